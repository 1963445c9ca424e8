package analysis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// judged has a check of every scope and two cells.
const judged = head + `
factors: [{name: size, levels: [1, 2]}]
design: {rounds: 4, warmup: 1, seed: 7}
metrics:
  - {name: ops, better: higher, source: json}
checks:
  - {name: each, scope: trial, shell: "true"}
  - {name: said, scope: trial, reported: true, arms: [new], cells: {size: 2}}
  - {name: round, scope: round, shell: "true"}
  - {name: cell, scope: cell, shell: "true", cells: {size: 1}}
  - {name: run, scope: run, shell: "true"}
primary: {metric: ops}
`

func steady(s trial.Slot, i int, o *trial.Observation) {
	o.Values = map[string]float64{"ops": 100 + noise(armNo(s), i)}
}

func TestEveryCheckMustPassEverywhereForFigures(t *testing.T) {
	p := plan(t, judged)
	r := Analyze(measure(t, p, steady))
	if !r.Clear || r.Primary == nil || len(r.Cells) != 2 || r.Note != "" {
		t.Fatalf("clear %v, checks %+v", r.Clear, r.Checks)
	}
	looked := map[string]int{"completed": 20, "each": 20, "said": 5, "round": 10, "cell": 1, "run": 1}
	for _, c := range r.Checks {
		if c.Verdict != check.Pass || c.Operations != looked[c.Name] {
			t.Errorf("%+v, want %d operations", c, looked[c.Name])
		}
	}
	if len(r.Checks) != len(looked) {
		t.Errorf("%d checks", len(r.Checks))
	}
}

func TestAResultThatIsNotThereIsUnchecked(t *testing.T) {
	p := plan(t, judged)
	inTrial := func(name, cell, arm string, round int) arms {
		return func(s trial.Slot, i int, o *trial.Observation) {
			steady(s, i, o)
			if s.Cell == cell && s.Arm == arm && s.Round == round {
				o.Checks = slices.DeleteFunc(o.Checks, func(c check.Result) bool { return c.Name == name })
			}
		}
	}
	wider := func(name, cell string, round int) func(ledger.Record) bool {
		return func(rec ledger.Record) bool {
			return rec.Check != nil && rec.Check.Result.Name == name && rec.Check.Cell == cell && rec.Check.Round == round
		}
	}
	for _, c := range []struct {
		check, message string
		run            *ledger.Run
	}{
		{"each", "not checked: cell size=1, round 3, arm old", measure(t, p, inTrial("each", "size=1", "old", 3))},
		{"each", "not checked: cell size=2, round 0, arm new", measure(t, p, inTrial("each", "size=2", "new", 0))},
		{"said", "not checked: cell size=2, round 4, arm new", measure(t, p, inTrial("said", "size=2", "new", 4))},
		{"round", "not checked: cell size=2, round 0", without(measure(t, p, steady), wider("round", "size=2", 0))},
		{"cell", "not checked: cell size=1", without(measure(t, p, steady), wider("cell", "size=1", 0))},
		{"run", "not checked: the run", without(measure(t, p, steady), wider("run", "", 0))},
	} {
		r := Analyze(c.run)
		got := checkNamed(t, r, c.check)
		if got.Verdict != check.Unchecked || got.Message != c.message {
			t.Errorf("%s is %v %q, want unchecked %q", c.check, got.Verdict, got.Message, c.message)
		}
		withheld(t, r)
	}
}

// A result must stand in the scope that the check was declared with: a pass of
// one round is none of the run.
func TestAPassInAnotherScopeIsNone(t *testing.T) {
	p := plan(t, judged)
	for _, rec := range []ledger.Record{
		{Kind: ledger.KindCheck, Check: &ledger.Judgement{Scope: "round", Cell: "size=1", Round: 2, Result: check.Result{Name: "run", Verdict: check.Pass, Operations: 1}}},
		{Kind: ledger.KindCheck, Check: &ledger.Judgement{Scope: "cell", Cell: "size=1", Result: check.Result{Name: "run", Verdict: check.Pass, Operations: 1}}},
		{Kind: ledger.KindCheck, Check: &ledger.Judgement{Scope: "run", Round: 1, Result: check.Result{Name: "run", Verdict: check.Pass, Operations: 1}}},
	} {
		run := without(measure(t, p, steady), func(rec ledger.Record) bool { return rec.Check != nil && rec.Check.Result.Name == "run" })
		run.Records = slices.Insert(run.Records, 1, rec)
		if got := checkNamed(t, Analyze(run), "run"); got.Verdict != check.Unchecked {
			t.Errorf("%+v made it %v", rec.Check, got.Verdict)
		}
	}
	// Nor does an arm judge for a check of a wider scope.
	run := measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		steady(s, i, o)
		o.Checks = append(o.Checks, check.Result{Name: "run", Verdict: check.Pass, Operations: 1})
	})
	if got := checkNamed(t, Analyze(run), "run"); got.Verdict != check.Pass || got.Operations != 1 {
		t.Errorf("beside the judge's word the arm's own counts: %+v", got)
	}
	run = without(run, func(rec ledger.Record) bool { return rec.Check != nil && rec.Check.Result.Name == "run" })
	if got := checkNamed(t, Analyze(run), "run"); got.Verdict != check.Unchecked {
		t.Errorf("an arm's own word made it %v", got.Verdict)
	}
}

func TestOneBadResultDecidesTheCheck(t *testing.T) {
	p := plan(t, judged)
	for _, bad := range []check.Verdict{check.Fail, check.Unknown, check.Unchecked, check.Verdict(9)} {
		want := check.Merge(bad)
		inTrial := measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
			steady(s, i, o)
			if s.Cell == "size=2" && s.Round == 0 && s.Arm == "new" {
				o.Checks[0].Verdict, o.Checks[0].Message = bad, "seen in the warm-up"
			}
		})
		inRun := measure(t, p, steady)
		for _, rec := range inRun.Records {
			if rec.Check != nil && rec.Check.Result.Name == "round" && rec.Check.Cell == "size=1" && rec.Check.Round == 2 {
				rec.Check.Result.Verdict = bad
			}
		}
		for name, run := range map[string]*ledger.Run{"each": inTrial, "round": inRun} {
			r := Analyze(run)
			if got := checkNamed(t, r, name); got.Verdict != want {
				t.Errorf("%v in one place makes %s %v", bad, name, got.Verdict)
			}
			withheld(t, r)
		}
	}
}

func TestAFailureUnderAnUndeclaredNameCounts(t *testing.T) {
	p := plan(t, judged)
	extra := func(v check.Verdict) *Results {
		return Analyze(measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
			steady(s, i, o)
			o.Checks = append(o.Checks, check.Result{Name: "surprise", Verdict: v, Message: "lost a row", Operations: 1})
		}))
	}
	r := extra(check.Fail)
	if got := checkNamed(t, r, "surprise"); got.Verdict != check.Fail || got.Operations != 20 || got.Message != "lost a row" {
		t.Errorf("got %+v", got)
	}
	withheld(t, r)
	for _, v := range []check.Verdict{check.Pass, check.Unknown, check.Unchecked} {
		if r := extra(v); !r.Clear || len(r.Checks) != 6 {
			t.Errorf("an undeclared %v: clear %v, %d checks", v, r.Clear, len(r.Checks))
		}
	}
	// An arm cannot talk itself out of what assay itself checks.
	run := measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		steady(s, i, o)
		o.Checks = append(o.Checks, check.Result{Name: protocol.CompletedCheck, Verdict: check.Pass, Operations: 1})
		if i == 1 {
			o.Status = trial.StatusFailed
		}
	})
	if got := checkNamed(t, Analyze(run), protocol.CompletedCheck); got.Verdict != check.Unknown {
		t.Errorf("completed is %v", got.Verdict)
	}
}

func TestAFailedTrialMakesCompletedUnknown(t *testing.T) {
	p := plan(t, judged)
	for _, status := range []trial.Status{trial.StatusFailed, trial.StatusTimeout, trial.StatusNoStart, trial.StatusPrepare, trial.StatusOutput, ""} {
		r := Analyze(measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
			steady(s, i, o)
			if s.Cell == "size=2" && s.Arm == "new" && i >= 1 {
				o.Status, o.Notes, o.Stderr = status, []string{"killed"}, "no space left"
			}
		}))
		got := checkNamed(t, r, protocol.CompletedCheck)
		if got.Verdict != check.Unknown || got.Message != "arm new failed in 3 of 4 rounds of cell size=2" || len(got.Examples) != 3 {
			t.Errorf("%q: %+v", status, got)
		}
		wantContains(t, "the example", got.Examples[0], fmt.Sprintf("arm new, cell size=2, round 2: %s: killed: no space left", status))
		withheld(t, r)
		for _, tc := range r.Trials {
			if want := map[bool]int{true: 3, false: 0}[tc.Cell == "size=2" && tc.Arm == "new"]; tc.Status[string(status)] != want {
				t.Errorf("%q: counted %+v", status, tc)
			}
		}
	}
	r := Analyze(measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		steady(s, i, o)
		if s.Warmup && s.Arm == "old" {
			o.Status = trial.StatusTimeout
		}
	}))
	if got := checkNamed(t, r, protocol.CompletedCheck); got.Verdict != check.Unknown || got.Message != "a trial that is not measured failed" {
		t.Errorf("a failed warm-up: %+v", got)
	}
}

func TestARunWithoutTrials(t *testing.T) {
	p := plan(t, judged)
	run := without(measure(t, p, steady), func(rec ledger.Record) bool { return rec.Kind != ledger.KindBegin && rec.Kind != ledger.KindEnd })
	r := Analyze(run)
	if r.Complete || len(r.Missing) != 8 {
		t.Errorf("complete %v, missing %q", r.Complete, r.Missing)
	}
	if got := checkNamed(t, r, protocol.CompletedCheck); got.Verdict != check.Unknown || got.Message != "no trial ran" {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"each", "said", "round", "cell", "run"} {
		if got := checkNamed(t, r, name); got.Verdict != check.Unchecked {
			t.Errorf("%s is %v", name, got.Verdict)
		}
	}
	withheld(t, r)
	if r := Analyze(&ledger.Run{Protocol: p, Lock: run.Lock}); r.Complete || r.Clear {
		t.Error("a run without a record is complete or clear")
	}
}

func TestAnIncompleteRunSaysWhatIsMissing(t *testing.T) {
	p := plan(t, judged)
	whole := measure(t, p, steady)
	if r := Analyze(whole); !r.Complete || r.Missing != nil {
		t.Fatalf("a whole run: complete %v, missing %q", r.Complete, r.Missing)
	}
	gone := func(rec ledger.Record) bool {
		o := rec.Trial
		return o != nil && o.Cell == "size=2" && o.Arm == "new" && (o.Warmup || o.Round >= 3)
	}
	r := Analyze(without(whole, gone))
	want := []string{"cell size=2, arm new: 2 of 4 rounds ran", "cell size=2, arm new: 0 of 1 warm-up rounds ran"}
	if r.Complete || !slices.Equal(r.Missing, want) {
		t.Errorf("complete %v, missing %q", r.Complete, r.Missing)
	}
	withheld(t, r)

	unended := without(whole, func(rec ledger.Record) bool { return rec.Kind == ledger.KindEnd })
	if r := Analyze(unended); r.Complete || r.Missing != nil {
		t.Errorf("a run without its end: complete %v, missing %q", r.Complete, r.Missing)
	}
}

// Without any check of the protocol the trials themselves must still all be
// there before a figure is shown.
func TestAMissingTrialWithholdsFiguresWithoutAnyCheck(t *testing.T) {
	run := without(measure(t, plan(t, simple), steady), func(rec ledger.Record) bool {
		return rec.Trial != nil && rec.Trial.Round == 5 && rec.Trial.Arm == "new"
	})
	r := Analyze(run)
	if got := checkNamed(t, r, protocol.CompletedCheck); got.Verdict != check.Unchecked || got.Message != "not every planned trial ran" {
		t.Errorf("got %+v", got)
	}
	withheld(t, r)
}

func TestATrialThatWasNotPlannedIsNoFigure(t *testing.T) {
	p := plan(t, judged)
	good := Analyze(measure(t, p, steady))
	stray := func(change func(*trial.Observation)) *Results {
		run := measure(t, p, steady)
		o := *run.Records[5].Trial
		o.Values = map[string]float64{"ops": 1e9}
		change(&o)
		run.Records = slices.Insert(run.Records, len(run.Records)-1, ledger.Record{Kind: ledger.KindTrial, Trial: &o})
		return Analyze(run)
	}
	for name, change := range map[string]func(*trial.Observation){
		"a second time":   func(*trial.Observation) {},
		"unknown cell":    func(o *trial.Observation) { o.Cell = "size=3" },
		"unknown arm":     func(o *trial.Observation) { o.Arm = "newer" },
		"extra round":     func(o *trial.Observation) { o.Round = 5 },
		"negative round":  func(o *trial.Observation) { o.Round = -1 },
		"not a warm-up":   func(o *trial.Observation) { o.Round, o.Warmup = 0, false },
		"not a real one":  func(o *trial.Observation) { o.Round, o.Warmup = 2, true },
		"and did not run": func(o *trial.Observation) { o.Status = trial.StatusNoStart },
	} {
		r := stray(change)
		got := checkNamed(t, r, protocol.CompletedCheck)
		if got.Verdict != check.Unknown {
			t.Errorf("%s: completed is %v", name, got.Verdict)
		}
		wantContains(t, name, got.Message, "1 trials are in the ledger that the schedule does not have")
		withheld(t, r)
		if !slices.EqualFunc(r.Trials, good.Trials, func(a, b TrialCount) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Errorf("%s: counted %+v", name, r.Trials)
		}
	}
	// A failure that only the stray saw is a failure.
	r := stray(func(o *trial.Observation) {
		o.Checks = []check.Result{{Name: "each", Verdict: check.Fail}}
	})
	if got := checkNamed(t, r, "each"); got.Verdict != check.Fail {
		t.Errorf("each is %v", got.Verdict)
	}
}

var figure = regexp.MustCompile(`"(mean|sd|median|sum|values|diff|ratio|change|p|t|u|d|dz|hedges_g|ci|weakest|metrics|samples|primary|cells)":`)

// withheld asserts that results show no effect: not in the struct, and not in
// the bytes that everybody else reads.
func withheld(t *testing.T, r *Results) {
	t.Helper()
	if r.Clear || r.Cells != nil || r.Primary != nil {
		t.Errorf("clear %v, %d cells, primary %v", r.Clear, len(r.Cells), r.Primary)
	}
	if found := figure.FindString(string(r.Bytes())); found != "" {
		t.Errorf("results.json has %s", found)
	}
	if !strings.HasPrefix(r.Note, "Figures are withheld") {
		t.Errorf("note %q", r.Note)
	}
}

func TestCompareRefusesAnInvalidClearance(t *testing.T) {
	p := plan(t, simple)
	run := measure(t, p, steady)
	planned, _ := trials(run, trial.Schedule(p))
	r := &Results{}
	r.compare(check.Clearance{}, p, collect(run, p, planned))
	withheld(t, r)
}

func TestALongFailureIsCutBetweenCharacters(t *testing.T) {
	o := &trial.Observation{Status: trial.StatusFailed, Stderr: strings.Repeat("é", 400)}
	for pad := range 2 {
		o.Round = []int{1, 10}[pad]
		if s := explain(o); strings.ContainsRune(s, '\uFFFD') || len(s) > 310 || !strings.HasSuffix(s, "é…") {
			t.Errorf("cut to %q", s)
		}
	}
}

func TestExploratoryReasonsAreKeptOnce(t *testing.T) {
	p := plan(t, simple)
	run := measure(t, p, steady)
	run.Lock = &protocol.Lock{Exploratory: "asked for on the command line"}
	for range 2 {
		run.Records = slices.Insert(run.Records, 3,
			ledger.Record{Kind: ledger.KindNote, Note: &ledger.Note{Text: "analysed early", Exploratory: true}},
			ledger.Record{Kind: ledger.KindNote, Note: &ledger.Note{Text: "interrupted"}})
	}
	if r := Analyze(run); !slices.Equal(r.Exploratory, []string{"asked for on the command line", "analysed early"}) {
		t.Errorf("got %q", r.Exploratory)
	}
}
