package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var fewKeys = [...]string{"a", "b", "c"}

// content is what a map over fewKeys holds, in their order; 0 is absent.
type content [len(fewKeys)]int

const mostValue = 2

// contents are all there can be.
func contents() (all []content) {
	const n = mostValue + 1
	for i := range n * n * n {
		all = append(all, content{i % n, i / n % n, i / n / n})
	}
	return all
}

func (c content) entries() (out []Entry[string, int]) {
	for i, v := range c {
		if v > 0 {
			out = append(out, Entry[string, int]{fewKeys[i], v})
		}
	}
	return out
}

func (c content) after(op MapOp[string, int]) content {
	for i, key := range fewKeys {
		if slices.Contains(op.Delete, key) {
			c[i] = 0
		}
		for _, e := range op.Put {
			if e.Key == key {
				c[i] = e.Value
			}
		}
	}
	return c
}

// reachable is the slow oracle: all that the operations can leave, found by
// trying every subset of those in flight at every place among the acknowledged.
func reachable(h MapHistory[string, int]) map[content]bool {
	out := map[content]bool{}
	var walk func(c content, done int, applied []bool)
	walk = func(c content, done int, applied []bool) {
		if done == len(h.Acked) {
			out[c] = true
		} else {
			walk(c.after(h.Acked[done]), done+1, applied)
		}
		for i, op := range h.Maybe {
			if !applied[i] && op.After <= done {
				next := slices.Clone(applied)
				next[i] = true
				walk(c.after(op), done, next)
			}
		}
	}
	walk(content{}, 0, make([]bool, len(h.Maybe)))
	return out
}

// anyMapOp draws an operation on one to most keys.
func anyMapOp(t *rapid.T, most, acked int) MapOp[string, int] {
	op := MapOp[string, int]{After: rapid.IntRange(0, acked).Draw(t, "after")}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(fewKeys[:]), 1, most, rapid.ID).Draw(t, "keys") {
		if rapid.Bool().Draw(t, "delete") {
			op.Delete = append(op.Delete, key)
		} else {
			op.Put = append(op.Put, Entry[string, int]{key, rapid.IntRange(1, mostValue).Draw(t, "value")})
		}
	}
	return op
}

// anyMapHistory draws operations; the caller decides what was found.
func anyMapHistory(most int) *rapid.Generator[MapHistory[string, int]] {
	return rapid.Custom(func(t *rapid.T) MapHistory[string, int] {
		// A pass needs an acknowledged put; without one no verdict can be
		// compared with the oracle.
		h := MapHistory[string, int]{Acked: []MapOp[string, int]{{Put: []Entry[string, int]{{"a", 1}}}}}
		for range rapid.IntRange(0, 3).Draw(t, "acked") {
			h.Acked = append(h.Acked, anyMapOp(t, most, 0))
		}
		for range rapid.IntRange(0, 3).Draw(t, "maybe") {
			h.Maybe = append(h.Maybe, anyMapOp(t, most, len(h.Acked)))
		}
		return h
	})
}

func TestMapExactAgreesWithBruteForceOnSingleChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyMapHistory(1).Draw(t, "history")
		agreesOnAllContents(t, h)
	})
}

// One batch in flight, called last: here no tear may be missed.
func TestMapExactSeesEveryTearOfALoneBatch(t *testing.T) {
	torn := 0
	rapid.Check(t, func(t *rapid.T) {
		h := anyMapHistory(3).Draw(t, "history")
		h.Maybe = []MapOp[string, int]{anyMapOp(t, 3, 0)}
		h.Maybe[0].After = len(h.Acked)
		torn += agreesOnAllContents(t, h)
	})
	if torn == 0 {
		t.Error("no torn batch was drawn")
	}
}

func agreesOnAllContents(t *rapid.T, h MapHistory[string, int]) (torn int) {
	legal := reachable(h)
	for _, c := range contents() {
		h.Found = c.entries()
		got, want := MapExact("map", h), Fail
		if legal[c] {
			want = Pass
		}
		if got.Verdict != want {
			t.Fatalf("found %v: got %v %q %q, brute force says %v", h.Found, got.Verdict, got.Message, got.Examples, want)
		}
		if strings.Contains(got.Message, foundTorn) {
			torn++
		}
	}
	return torn
}

// With several batches the checker may miss a tear, but must never see one that
// is not there.
func TestMapExactNeverAccusesWhatIsReachable(t *testing.T) {
	caught, missed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		h := anyMapHistory(3).Draw(t, "history")
		legal := reachable(h)
		for _, c := range contents() {
			h.Found = c.entries()
			got := MapExact("map", h)
			switch {
			case legal[c] && got.Verdict != Pass:
				t.Fatalf("found %v: %v %q %q", h.Found, got.Verdict, got.Message, got.Examples)
			case !legal[c] && got.Verdict == Fail:
				caught++
			case !legal[c]:
				missed++
			}
		}
	})
	if caught < 10*missed {
		t.Errorf("of the unreachable, %d were caught and %d missed", caught, missed)
	}
}

func TestSetExactAgreesWithMapExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMapHistory(3).Draw(t, "history")
		m.Found = rapid.SampledFrom(contents()).Draw(t, "found").entries()
		toSet := func(ops []MapOp[string, int]) (out []SetOp[string]) {
			for _, op := range ops {
				out = append(out, SetOp[string]{Insert: keysOf(op.Put), Delete: op.Delete, After: op.After})
			}
			return out
		}
		s := SetHistory[string]{Acked: toSet(m.Acked), Maybe: toSet(m.Maybe), Found: keysOf(m.Found)}
		flatten(m.Found)
		for _, ops := range [][]MapOp[string, int]{m.Acked, m.Maybe} {
			for _, op := range ops {
				flatten(op.Put)
			}
		}
		viaMap, viaSet := MapExact("exact", m), SetExact("exact", s)
		if viaMap.Verdict != viaSet.Verdict || !slices.Equal(viaMap.Examples, viaSet.Examples) {
			t.Fatalf("map: %v %q, set: %v %q", viaMap.Verdict, viaMap.Examples, viaSet.Verdict, viaSet.Examples)
		}
	})
}

// flatten makes a map a set: all values alike.
func flatten(entries []Entry[string, int]) {
	for i := range entries {
		entries[i].Value = 1
	}
}

func keysOf(entries []Entry[string, int]) (keys []string) {
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys
}

func TestSetExactCounts(t *testing.T) {
	got := SetExact("durable", SetHistory[int]{
		Acked: []SetOp[int]{{Insert: []int{1, 2}}, {Insert: []int{3}, Delete: []int{1}}, {Delete: []int{2}}},
		Maybe: []SetOp[int]{{Insert: []int{4}}},
		Found: []int{3},
	})
	if got.Name != "durable" || got.Verdict != Pass || got.Operations != 4 {
		t.Errorf("got %+v", got)
	}
	if want := map[string]int{"insert": 2, "delete": 2, "maybe": 1}; !maps.Equal(got.Kinds, want) {
		t.Errorf("kinds %v, want %v", got.Kinds, want)
	}
}

func TestSetExactOfNothingIsUnknown(t *testing.T) {
	if got := SetExact("durable", SetHistory[int]{}); got.Verdict != Unknown {
		t.Errorf("an empty history is %v", got.Verdict)
	}
	if got := SetExact("durable", SetHistory[int]{Found: []int{1}}); got.Verdict != Fail {
		t.Errorf("an item out of nothing is %v", got.Verdict)
	}
	if got := MapExact("durable", MapHistory[int, int]{}); got.Verdict != Unknown {
		t.Errorf("an empty history is %v", got.Verdict)
	}
}

// NaN is equal to nothing, itself included: as a key it would be lost in every
// map, and as a value never be the one that was written.
func TestExactDoesNotPassOnNaN(t *testing.T) {
	nan := math.NaN()
	one := SetOp[float64]{Insert: []float64{1}}
	if got := SetExact("nan", SetHistory[float64]{Acked: []SetOp[float64]{one, {Insert: []float64{nan}}}, Found: []float64{1, nan}}); got.Verdict != Unknown {
		t.Errorf("an inserted NaN is %v", got.Verdict)
	}
	if got := SetExact("nan", SetHistory[float64]{Acked: []SetOp[float64]{one}, Found: []float64{1, nan}}); got.Verdict != Fail {
		t.Errorf("a NaN out of nothing is %v", got.Verdict)
	}
	m := MapHistory[string, float64]{
		Acked: []MapOp[string, float64]{{Put: []Entry[string, float64]{{"a", nan}}}},
		Found: []Entry[string, float64]{{"a", nan}},
	}
	if got := MapExact("nan", m); got.Verdict != Fail {
		t.Errorf("a NaN as value is %v", got.Verdict)
	}
}

func TestExactRefusesACallBeforeTheFirst(t *testing.T) {
	h := SetHistory[int]{Acked: []SetOp[int]{{Insert: []int{1}}}, Found: []int{1}}
	h.Maybe = []SetOp[int]{{Delete: []int{1}, After: -1}}
	if got := SetExact("durable", h); got.Verdict != Unknown {
		t.Errorf("after -1: %v", got.Verdict)
	}
	h.Maybe = nil
	h.Acked[0].After = 1
	if got := SetExact("durable", h); got.Verdict != Unknown {
		t.Errorf("an acknowledged operation with After: %v", got.Verdict)
	}
}

// A key that is lost says nothing about the batch that was to change it too.
func TestExactReportsOneDefectOnce(t *testing.T) {
	h := SetHistory[string]{
		Acked: []SetOp[string]{{Insert: []string{"a"}}, {Insert: []string{"b"}}},
		Maybe: []SetOp[string]{{Insert: []string{"a", "x"}, After: 2}},
		Found: []string{"b", "x"},
	}
	if got := SetExact("durable", h); got.Verdict != Fail || got.Message != "1 lost" {
		t.Errorf("%v %q %q", got.Verdict, got.Message, got.Examples)
	}
}

func TestExactStaysReadable(t *testing.T) {
	var h SetHistory[string]
	for i := range 1000 {
		h.Acked = append(h.Acked, SetOp[string]{Insert: []string{fmt.Sprintf("%d%s", i, strings.Repeat("ä", 500))}})
	}
	h.Found = []string{"x"}
	got := SetExact("durable", h)
	if got.Message != "1000 lost, 1 unexpected" {
		t.Errorf("message %q", got.Message)
	}
	if len(got.Examples) != 3 {
		t.Errorf("%d examples", len(got.Examples))
	}
	for _, ex := range got.Examples {
		if len(ex) > maxExampleBytes {
			t.Errorf("example of %d bytes", len(ex))
		}
		if strings.HasPrefix(ex, foundLost) && !strings.HasSuffix(ex, "is not there") {
			t.Errorf("a long key pushes out what is wrong with it: %q", ex)
		}
	}
}
