package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/gate"
)

func recorded(t *testing.T, name string) *measured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return &measured{output: string(b), took: 12500 * time.Millisecond}
}

func TestFiguresAreTakenOutOfOutput(t *testing.T) {
	trie, tests := recorded(t, "trie.txt"), recorded(t, "test.txt")
	for name, c := range map[string]struct {
		m    *measured
		take take
		want limit
		got  float64
		unit string
		err  string
	}{
		"a line":                        {trie, figure("peers.best"), atLeast(2), 2.4783, "", ""},
		"behind a test's place":         {tests, figure("cas.double-wins"), atMost(0), 3, "", ""},
		"of several the lowest":         {tests, figure("cas.double-wins"), atLeast(5), 0, "", ""},
		"of several the furthest":       {tests, figure("cas.double-wins"), between(1, 2.5), 0, "", ""},
		"no number":                     {trie, figure("peers.p50"), atMost(1.2), 0, "", "NaN"},
		"infinite":                      {trie, figure("peers.p999"), atLeast(1), 0, "", "+Inf"},
		"garbage":                       {trie, figure("peers.garbage"), atLeast(1), 0, "", "no number"},
		"a name alone":                  {trie, figure("peers.nothing"), atMost(1), 0, "", "no number"},
		"not there":                     {trie, figure("peers.bes"), atLeast(2), 0, "", "no figure"},
		"an empty output":               {&measured{}, figure("peers.best"), atMost(2), 0, "", "no figure"},
		"tests that passed":             {tests, passes(`^TestComplaint\d+[^/]*$`), atLeast(22), 2, "tests", ""},
		"without those that were left":  {tests, passes(`^TestNoVersionIsWonTwice/`), atLeast(3), 2, "tests", ""},
		"a test that failed":            {tests, passes(`^TestOther`), atLeast(1), 0, "", "failed"},
		"no such test":                  {tests, passes(`^TestNothing`), atMost(5), 0, "", "no figure"},
		"the slower benchmark":          {tests, benchmark("BenchmarkRequire", "ns/op"), atMost(2e4), 1502, "ns/op", ""},
		"another unit":                  {tests, benchmark("BenchmarkRequire", "B/op"), atMost(2e4), 864, "B/op", ""},
		"a unit that is not there":      {tests, benchmark("BenchmarkRequire", "s/op"), atMost(2e4), 0, "", "no figure"},
		"the time of the command":       {trie, seconds(), atMost(30), 12.5, "s", ""},
		"a bar without a way to take":   {trie, take{}, atMost(30), 0, "", "does not say how"},
		"outcomes where no run is":      {trie, outcomes(), exactly(1), 0, "", "no figure"},
		"a run's figure where none ran": {trie, ofRun(minutes), atMost(15), 0, "", "no figure"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.take.from(c.m, c.want)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%+v, %v; want an error with %q", got, err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(got.values, []float64{c.got}) || got.unit != c.unit {
				t.Errorf("%+v, %v; want %v %s", got, err, c.got, c.unit)
			}
			if len(got.lines) == 0 && !c.take.seconds {
				t.Error("it does not say which lines it was taken from")
			}
		})
	}
}

// aRun is a run of one cell with two arms and a gate.
func aRun(outcome string, p50 float64) *finished {
	pooled := analysis.Number(p50)
	return &finished{
		results: &analysis.Results{
			Name: "authority-reads", Complete: true, Clear: true, Lock: "0123456789abcdef",
			Trials: []analysis.TrialCount{{Cell: "c", Arm: "a", Planned: 3, Status: map[string]int{"ok": 3}}},
			Cells: []analysis.Cell{{Name: "c", Metrics: []analysis.CellMetric{{
				Metric: "p50", Arms: []analysis.ArmSummary{{Arm: "a", N: 3, Sum: 6, Pooled: &pooled}, {Arm: "holes", N: 2, Missing: map[string]int{"no value": 1}}},
				Comparisons: []analysis.Comparison{{Arm: "a", Ratio: 1.5}, {Arm: "nothing", Ratio: analysis.Number(math.NaN())}},
			}}}},
		},
		verdict: &gate.Verdict{Outcome: outcome, Gates: []gate.RuleResult{
			{Rule: "latency", Judged: true, State: gate.Holds}, {Rule: "latency", Judged: true, State: gate.Broken},
			{Rule: "latency", Judged: true, State: gate.Missing}, {Rule: "latency", State: gate.Broken},
		}},
		began: time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC), took: 8 * time.Minute,
	}
}

func TestFiguresOfRuns(t *testing.T) {
	run := aRun("ACCEPT", 7)
	all := func(string) bool { return true }
	for name, c := range map[string]struct {
		f    func(*finished) (float64, error)
		got  float64
		fail bool
	}{
		"minutes":                   {minutes, 8, false},
		"a ratio":                   {func(f *finished) (float64, error) { return f.ratio("c", "p50", "a") }, 1.5, false},
		"a ratio of no arm":         {func(f *finished) (float64, error) { return f.ratio("c", "p50", "b") }, 0, true},
		"a ratio in no cell":        {func(f *finished) (float64, error) { return f.ratio("d", "p50", "a") }, 0, true},
		"a sum":                     {func(f *finished) (float64, error) { return f.sum([]string{"c", "c"}, "p50", "a") }, 12, false},
		"a sum with a missing arm":  {func(f *finished) (float64, error) { return f.sum([]string{"c"}, "p50", "a", "b") }, 0, true},
		"a value that is missing":   {func(f *finished) (float64, error) { return f.sum([]string{"c"}, "p50", "holes") }, 0, true},
		"a pooled quantile":         {func(f *finished) (float64, error) { return f.pooled("c", "p50", "a") }, 7, false},
		"trials":                    {func(f *finished) (float64, error) { return f.trials("c", "a") }, 3, false},
		"trials of nobody":          {func(f *finished) (float64, error) { return f.trials("c", "z") }, 0, true},
		"broken and missing gates":  {func(f *finished) (float64, error) { return f.broken(all) }, 2, false},
		"no gate of that name":      {func(f *finished) (float64, error) { return f.broken(func(string) bool { return false }) }, 0, true},
		"a check that is not there": {func(f *finished) (float64, error) { return f.unpassed("no_stale_allow") }, 0, true},
	} {
		got, err := c.f(run)
		if (err != nil) != c.fail || err == nil && got != c.got {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	nan := ofRun(func(f *finished) (float64, error) { return f.ratio("c", "p50", "nothing") })
	if got, err := nan.from(&measured{runs: []*finished{run}}, atMost(2)); err == nil {
		t.Errorf("a ratio that is no number gave %+v", got)
	}
}

func TestSeveralRunsGiveAFigureEach(t *testing.T) {
	p50 := ofRun(func(f *finished) (float64, error) { return f.pooled("c", "p50", "a") })
	m := &measured{runs: []*finished{aRun("ACCEPT", 7), aRun("TOO-DEAR", 9)}}
	got, err := p50.from(m, atMost(8))
	if err != nil || !slices.Equal(got.values, []float64{7, 9}) || len(got.lines) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = outcomes().from(m, exactly(1))
	if err != nil || !slices.Equal(got.values, []float64{2, 2}) {
		t.Errorf("two outcomes: %+v, %v", got, err)
	}
	m.runs[1] = aRun("ACCEPT", 9)
	if got, err = outcomes().from(m, exactly(1)); err != nil || !slices.Equal(got.values, []float64{1, 1}) {
		t.Errorf("one outcome: %+v, %v", got, err)
	}
}

func TestRunsThatDoNotCount(t *testing.T) {
	for why, spoil := range map[string]func(*finished){
		"given as one of":  func(f *finished) { f.results.Name = "authority-reads-quick" },
		"exploratory":      func(f *finished) { f.results.Exploratory = []string{"the quick form"} },
		"not complete":     func(f *finished) { f.results.Complete = false },
		"ended in ACCEPT:": func(f *finished) { f.results.Clear = false },
	} {
		f := aRun("ACCEPT", 1)
		if err := f.whole("authority-reads"); err != nil {
			t.Fatal(err)
		}
		spoil(f)
		if err := f.whole("authority-reads"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
