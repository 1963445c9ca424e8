package screeningwrite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/ledger"
)

func TestRoundsAndRepeatedReads(t *testing.T) {
	at := func(name string, start, took int) traced {
		return traced{name: name, reads: name, transaction: name != "outside", start: time.Duration(start), took: time.Duration(took)}
	}
	seen := annotate([]traced{at("b", 12, 8), at("a", 0, 10), at("outside", 1, 5), at("c", 9, 9), at("a", 30, 1), at("outside", 31, 1)})
	var rounds []int
	var again []string
	for _, c := range seen {
		rounds = append(rounds, c.round)
		if c.again {
			again = append(again, c.name)
		}
	}
	if want := []int{1, 1, 1, 1, 2, 3}; !slices.Equal(rounds, want) {
		t.Errorf("rounds %v, %v wanted", rounds, want)
	}
	if !slices.Equal(again, []string{"a"}) {
		t.Errorf("read again: %v", again)
	}
	if got := hot([]traced{{writes: []string{"control p", "study 1"}}}, []traced{{writes: []string{"study 2", "control p"}}}); !slices.Equal(got, []string{"control p"}) {
		t.Errorf("hot: %v", got)
	}
}

func TestTrace(t *testing.T) {
	o := carryOut(t, nil, arms(), 1, small("trace", "on"), cellName(targetSame, 1, "off", "free"))
	note := func(has string) string {
		for _, r := range o.Run.Records {
			if n := noteOf(r); strings.Contains(n, has) {
				return n
			}
		}
		t.Fatalf("no note has %q", has)
		return ""
	}
	for arm, head := range map[string]string{
		"source_only": "2 commands in 2 sequential rounds", "fold": "4 commands in", "transactional": "commands in",
	} {
		text := note("trace of one " + arm + " save")
		if !strings.Contains(text, head) {
			t.Errorf("%s:\n%s", arm, text)
		}
		busy := strings.Contains(text, "(hot)") && strings.Contains(text, "statisticsControl")
		if busy != (arm == "transactional") {
			t.Errorf("%s: hot documents are found: %v\n%s", arm, busy, text)
		}
	}
	pairs := note("paired measurements")
	for _, has := range []string{"a round trip", "majority write concern", "commit", "snapshot read concern", "fold save", "95 % from"} {
		if !strings.Contains(pairs, has) {
			t.Errorf("no %q in\n%s", has, pairs)
		}
	}
	t.Log(pairs)
	t.Log(note("trace of one transactional save"))
}

func noteOf(r ledger.Record) string {
	if r.Note == nil {
		return ""
	}
	return r.Note.Text
}
