package check

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// violations counts by comparing every read with every write, without order or
// search.
func violations(h StaleHistory) (stale, invented, future int) {
	for _, r := range h.Reads {
		written, old, early := r.Revision == 0, false, false
		for _, w := range h.Writes {
			if w.Key != r.Key {
				continue
			}
			if w.Revision == r.Revision {
				written = true
				early = w.Start > r.End
			}
			if !w.Maybe && w.Acked < r.Start && w.Revision > r.Revision {
				old = true
			}
		}
		switch {
		case r.Status == ReadRefused:
		case !written:
			invented++
		case old:
			stale++
		case early:
			future++
		}
	}
	return stale, invented, future
}

// anyStaleHistory draws writes that keep to the assumption, in a shuffled
// record, and any reads at all.
func anyStaleHistory() *rapid.Generator[StaleHistory] {
	return rapid.Custom(func(t *rapid.T) StaleHistory {
		span := func(label string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, label))
		}
		var h StaleHistory
		for _, key := range []string{"a", "b"} {
			start := time.Duration(0)
			for revision := range rapid.Int64Range(0, 5).Draw(t, "writes") {
				start += span("gap", 4)
				h.Writes = append(h.Writes, StaleWrite{
					Key: key, Revision: revision + 1, Start: start, Acked: start + span("took", 8),
					Maybe: rapid.IntRange(0, 3).Draw(t, "maybe") == 0,
				})
			}
		}
		h.Writes = rapid.Permutation(h.Writes).Draw(t, "order")
		for range rapid.IntRange(0, 6).Draw(t, "reads") {
			start := span("start", 25)
			h.Reads = append(h.Reads, StaleRead{
				Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), Start: start, End: start + span("took", 5),
				Revision: rapid.Int64Range(0, 6).Draw(t, "revision"),
				Status:   rapid.SampledFrom([]string{ReadOK, ReadOK, ReadRefused}).Draw(t, "status"),
			})
		}
		return h
	})
}

func TestStalenessAgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyStaleHistory().Draw(t, "history")
		stale, invented, future := violations(h)
		all := newFindings(foundStale, foundInvented, foundFuture)
		for class, n := range map[string]int{foundStale: stale, foundInvented: invented, foundFuture: future} {
			if n > 0 {
				all.count[class] = n
			}
		}
		got := Staleness("staleness", h)
		if got.Verdict == Fail == all.empty() || !all.empty() && got.Message != all.summary() {
			t.Fatalf("got %v %q %q, brute force says %q", got.Verdict, got.Message, got.Examples, all.summary())
		}
		if got.Verdict == Pass && got.Kinds[kindBound] == 0 {
			t.Fatal("a vacuous pass")
		}
	})
}

// One read at a time, at all times and of all revisions, so that no other read
// decides the verdict.
func TestStalenessAgreesWithBruteForceOnEverySingleRead(t *testing.T) {
	seen := map[Verdict]int{}
	rapid.Check(t, func(t *rapid.T) {
		h := anyStaleHistory().Draw(t, "history")
		for start := time.Duration(0); start < 20; start += 2 {
			for revision := range int64(7) {
				r := StaleRead{Key: "a", Start: start, End: start + start%3, Revision: revision, Status: ReadOK}
				h.Reads = []StaleRead{r}
				got := Staleness("staleness", h)
				stale, invented, future := violations(h)
				if wrong := stale+invented+future > 0; wrong != (got.Verdict == Fail) {
					t.Fatalf("%+v: got %v %q, brute force says wrong is %t", r, got.Verdict, got.Message, wrong)
				}
				seen[got.Verdict]++
			}
		}
	})
	if seen[Pass] == 0 || seen[Unknown] == 0 || seen[Fail] == 0 {
		t.Errorf("a verdict was never drawn: %v", seen)
	}
}

func TestStalenessCounts(t *testing.T) {
	got := Staleness("role", StaleHistory{
		Writes: []StaleWrite{{Key: "k", Revision: 1, Acked: 10}, {Key: "k", Revision: 2, Start: 20, Maybe: true}},
		Reads: []StaleRead{
			{Key: "k", Start: 5, End: 6, Status: ReadOK},
			{Key: "k", Start: 11, End: 12, Revision: 1, Status: ReadOK},
			{Key: "k", Start: 21, End: 22, Revision: 2, Status: ReadOK},
			{Key: "k", Start: 30, End: 40, Status: ReadRefused},
		},
	})
	if got.Name != "role" || got.Verdict != Pass || got.Operations != 6 {
		t.Errorf("got %+v", got)
	}
	if want := map[string]int{"write": 1, "maybe": 1, "read": 3, "bound": 2, "refused": 1}; !maps.Equal(got.Kinds, want) {
		t.Errorf("kinds %v, want %v", got.Kinds, want)
	}
}

func TestStalenessOfNothingIsUnknown(t *testing.T) {
	read := StaleRead{Key: "k", Start: 1, End: 2, Status: ReadOK}
	write := StaleWrite{Key: "k", Revision: 1, Acked: 10}
	for name, h := range map[string]StaleHistory{
		"nothing":             {},
		"reads without write": {Reads: []StaleRead{read}},
		"write without reads": {Writes: []StaleWrite{write}},
		"write of other key":  {Writes: []StaleWrite{{Key: "j", Revision: 1}}, Reads: []StaleRead{read}},
		"write never acked":   {Writes: []StaleWrite{{Key: "k", Revision: 1, Maybe: true}}, Reads: []StaleRead{read}},
	} {
		if got := Staleness("role", h); got.Verdict != Unknown {
			t.Errorf("%s is %v", name, got.Verdict)
		}
	}
}

func TestStalenessJudgesReadsBesideAMalformedOne(t *testing.T) {
	h := StaleHistory{
		Writes: []StaleWrite{{Key: "k", Revision: 1, Acked: 10}, {Key: "k", Revision: 2, Start: 20, Acked: 30}},
		Reads: []StaleRead{
			{Key: "k", Start: 9, End: 3, Revision: 1, Status: ReadOK},
			{Key: "k", Start: 31, End: 40, Revision: 1, Status: ReadOK},
		},
	}
	got := Staleness("role", h)
	if want := "1 stale; read 0 is not judged: it ended at 3ns, before it began at 9ns (1 such)"; got.Verdict != Fail || got.Message != want {
		t.Errorf("got %v %q, want a fail and %q", got.Verdict, got.Message, want)
	}
}

func TestStalenessFindsOneReadAmongMany(t *testing.T) {
	var h StaleHistory
	for i := range 3000 {
		key, at := fmt.Sprint(i%7), time.Duration(i)*10
		revision := int64(i/7 + 1)
		h.Writes = append(h.Writes, StaleWrite{Key: key, Revision: revision, Start: at, Acked: at + 5})
		h.Reads = append(h.Reads, StaleRead{Key: key, Start: at + 6, End: at + 7, Revision: revision, Status: ReadOK})
	}
	if got := Staleness("role", h); got.Verdict != Pass {
		t.Fatalf("%v %q", got.Verdict, got.Message)
	}
	h.Reads[2345].Revision--
	if got := Staleness("role", h); got.Verdict != Fail || got.Message != "1 stale" {
		t.Errorf("%v %q", got.Verdict, got.Message)
	}
}
