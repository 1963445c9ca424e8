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
	contended := note("where a submission's time goes")
	for _, has := range []string{"attempts, and the time", "find statisticsControl", "update project (in the transaction)", "commitTransaction", "source_only: ", "fold: "} {
		if !strings.Contains(contended, has) {
			t.Errorf("no %q in\n%s", has, contended)
		}
	}
	pairs := note("paired measurements")
	for _, has := range []string{"a round trip", "majority write concern", "commit", "snapshot read concern", "fold save", "95 % from"} {
		if !strings.Contains(pairs, has) {
			t.Errorf("no %q in\n%s", has, pairs)
		}
	}
	t.Log(contended)
	t.Log(pairs)
	t.Log(note("trace of one transactional save"))
}

func noteOf(r ledger.Record) string {
	if r.Note == nil {
		return ""
	}
	return r.Note.Text
}

func TestTheContendedTableShowsWhatFoldSpendsMore(t *testing.T) {
	side := func(attempts int, took time.Duration, commands map[string]spent) contended {
		return contended{submissions: 10, attempts: attempts, saved: 4, took: took, commands: commands}
	}
	got := contendedTable([]string{"source_only", "fold"}, [2]contended{
		side(20, 40*time.Millisecond, map[string]spent{"find study": {20, 10 * time.Millisecond}, "find project": {20, 30 * time.Millisecond}}),
		side(30, 90*time.Millisecond, map[string]spent{"find study": {30, 20 * time.Millisecond}, "find project": {30, 30 * time.Millisecond}, "find control": {30, 25 * time.Millisecond}}),
	})
	var rows []string
	for line := range strings.Lines(got) {
		if strings.Contains(line, " x ") {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
	}
	want := []string{
		"attempts, and the time of all of them 2.00 x 4.00 3.00 x 9.00 +5.00",
		"find control 0.00 x 0.00 3.00 x 2.50 +2.50",
		"find study 2.00 x 1.00 3.00 x 2.00 +1.00",
		"find project 2.00 x 3.00 3.00 x 3.00 +0.00",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("got %q, want %q", rows, want)
	}
}
