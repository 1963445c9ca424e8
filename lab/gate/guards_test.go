package gate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// ownRule goes by the primary comparison alone, so that what stops it are the
// guards.
const ownRule = `
assay: 1
name: guards
question: May the new one be used?
arms:
  - {name: old, shell: "true"}
  - {name: new, shell: "true"}
design: {rounds: 8, warmup: 1, seed: 3}
metrics:
  - {name: ops, better: higher, source: json}
  - {name: mem, better: lower, source: json}
checks:
  - {name: exact, scope: trial, shell: "true"}
  - {name: whole, scope: run, shell: "true"}
primary: {metric: ops}
vetoes:
  - {name: memory, metric: mem, require: ratio <= 1.25}
decision:
  outcomes:
    - {name: SHIP, class: go, when: primary.significant && primary.better, say: It is faster.}
    - {name: KEEP, class: no-go, say: It is not.}
host:
  - {probe: steal, max: 5, action: block}
  - {probe: psi_io, max: 5, action: provisional}
  - {probe: psi_cpu, max: 5, action: warn}
`

type fault struct {
	outcome string
	class   Class
	arms    arms
	run     func(*ledger.Run)
}

// faults are ways to spoil a run that would otherwise go, in the order of the
// guards.
var faults = []fault{
	{outcome: "ABORT", class: NoGo, arms: func(s trial.Slot, i int, o *trial.Observation) {
		if i == 2 {
			o.Checks[0].Verdict, o.Checks[0].Message = check.Fail, "a row is gone"
		}
	}},
	{outcome: "INCOMPLETE", class: Inconclusive, run: func(run *ledger.Run) {
		run.Records = run.Records[:len(run.Records)-1]
	}},
	{outcome: "UNCHECKED", class: Invalid, arms: func(s trial.Slot, i int, o *trial.Observation) {
		if i == 5 && s.Arm == "new" {
			o.Checks[0].Verdict = check.Unknown
		}
	}},
	{outcome: "HOST-LIMITS", class: Invalid, run: func(run *ledger.Run) { reading(run, "steal", 9) }},
	{outcome: "EXPLORATORY", class: Inconclusive, run: func(run *ledger.Run) {
		run.Records = slices.Insert(run.Records, 3, ledger.Record{Kind: ledger.KindNote, Note: &ledger.Note{Text: "looked at early", Exploratory: true}})
	}},
	{outcome: "MISSING-DATA", class: Invalid, arms: func(s trial.Slot, i int, o *trial.Observation) {
		if i == 4 && s.Arm == "new" {
			o.Values["ops"] = math.NaN()
		}
	}},
	{outcome: "PROVISIONAL", class: Inconclusive, run: func(run *ledger.Run) { reading(run, "psi_io", 9) }},
	{outcome: "VETOED", class: NoGo, arms: func(s trial.Slot, i int, o *trial.Observation) {
		if s.Arm == "new" {
			o.Values["mem"] = 200
		}
	}},
}

// reading records a state of the machine, at the start of the run so that a
// run without an end has it too.
func reading(run *ledger.Run, probe string, v float64) {
	rs := []host.Reading{{Probe: probe, State: host.OK, Value: v, Unit: "%"}}
	limits := slices.DeleteFunc(slices.Clone(run.Protocol.Host), func(l protocol.Limit) bool { return l.Probe != probe })
	run.Records = slices.Insert(run.Records, 0, ledger.Record{Kind: ledger.KindHost, Host: &ledger.HostWindow{
		When: "before", Readings: rs, Breaches: host.Judge(rs, limits, "before"),
	}})
}

func spoiled(t testing.TB, which func(int) bool) *ledger.Run {
	run := measure(t, plan(t, ownRule), "", func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{"ops": 100 + float64((i*7)%5), "mem": 100}
		if s.Arm == "new" {
			o.Values["ops"] += 20 + float64((i*3)%4)
		}
		for n, f := range faults {
			if which(n) && f.arms != nil {
				f.arms(s, i, o)
			}
		}
	})
	for _, probe := range []string{"steal", "psi_io", "psi_cpu"} {
		reading(run, probe, 1)
	}
	for n, f := range faults {
		if which(n) && f.run != nil {
			f.run(run)
		}
	}
	return run
}

// Every set of faults, all 256, ends where the first of them stands.
func TestTheFirstGuardThatFiresWins(t *testing.T) {
	for set := range 1 << len(faults) {
		has := func(n int) bool { return set>>n&1 == 1 }
		var names []string
		first := -1
		for n, f := range faults {
			if has(n) {
				names = append(names, f.outcome)
				if first < 0 {
					first = n
				}
			}
		}
		what := strings.Join(names, "+")
		v := decide(spoiled(t, has))
		if first < 0 {
			ends(t, "without a fault", v, "SHIP", Go)
			continue
		}
		ends(t, what, v, faults[first].outcome, faults[first].class)
		wantTrace(t, what, v, first)
		if v.Why == "" {
			t.Errorf("%s: no reason", what)
		}
	}
}

// wantTrace asserts that guards before the one that fired were false, and that
// those after it were not looked at.
func wantTrace(t *testing.T, what string, v *Verdict, first int) {
	t.Helper()
	for _, s := range v.Trace {
		n := slices.IndexFunc(faults, func(f fault) bool { return f.outcome == s.Outcome })
		if n < 0 {
			continue
		}
		want := "false"
		switch {
		case n == first:
			want = "true"
		case n > first:
			want = "not reached"
		}
		if s.Result != want || !s.Guard || s.Class != faults[n].class {
			t.Errorf("%s: step %s is %q (%s), want %q", what, s.Outcome, s.Result, s.Class, want)
		}
		if n == first && s.Note != v.Why {
			t.Errorf("%s: the step says %q and the verdict %q", what, s.Note, v.Why)
		}
	}
}

func TestGuardsComeInTheOrderOfTheirDocumentation(t *testing.T) {
	v := decide(spoiled(t, func(int) bool { return false }))
	var got []string
	for _, s := range v.Trace {
		got = append(got, s.Outcome)
	}
	want := []string{"ABORT", "INCOMPLETE", "UNCHECKED", "HOST-LIMITS", "EXPLORATORY", "MISSING-DATA", "PROVISIONAL", "SHIP", "KEEP", "VETOED"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, s := range v.Trace {
		if s.Guard != slices.Contains(protocol.ReservedOutcomes, s.Outcome) {
			t.Errorf("%s: guard %v", s.Outcome, s.Guard)
		}
	}
}

func TestGuardsSayWhy(t *testing.T) {
	for n, want := range []string{
		"A correctness check failed, so no figure counts: exact is fail (a row is gone)",
		"The run is not complete: it has no end",
		"Correctness was not established, so no figure counts: exact is unknown",
		"The machine was not fit to measure: block: steal 9 %, allowed is at most 5, before",
		"An exploratory run decides nothing: looked at early. The rule alone would have said SHIP (go).",
		"The decision needs figures that do not exist: primary.better (cell all: 1 of 8 rounds lack a value of ops); primary.significant (cell all: 1 of 8 rounds lack a value of ops)",
		"The machine was not quiet enough for its timings to count: provisional: psi_io 9 %, allowed is at most 5, before. The rule alone would have said SHIP (go).",
		"The rule says SHIP, but a veto is broken: memory",
	} {
		if v := decide(spoiled(t, func(i int) bool { return i == n })); v.Why != want {
			t.Errorf("%s says\n%q, want\n%q", faults[n].outcome, v.Why, want)
		}
	}
	if v := decide(spoiled(t, func(int) bool { return false })); v.Why != "It is faster." {
		t.Errorf("the rule's own reason is %q", v.Why)
	}
}

func TestWouldIsWhatTheRuleAloneSays(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "", 2: "", 3: "", 4: "SHIP", 5: "", 6: "SHIP", 7: "SHIP", -1: "SHIP"} {
		v := decide(spoiled(t, func(i int) bool { return i == n }))
		if v.Would != want {
			t.Errorf("%s: would have been %q, want %q", v.Outcome, v.Would, want)
		}
		informed := v.Outcome == "EXPLORATORY" || v.Outcome == "PROVISIONAL"
		for _, s := range v.Trace {
			if s.Outcome == "SHIP" && informed != (s.Note == "not reached; shown for information") {
				t.Errorf("%s: the rule's step says %q", v.Outcome, s.Note)
			}
		}
	}
}

// Where correctness is open no figure may be looked at, nor shown.
func TestNoFigureBeforeEveryCheckHasPassed(t *testing.T) {
	for _, n := range []int{0, 2} {
		v := decide(spoiled(t, func(i int) bool { return i == n }))
		if v.Vetoes != nil || v.Gates != nil || v.Would != "" {
			t.Errorf("%s: %+v", v.Outcome, v)
		}
		for _, s := range v.Trace {
			if s.Values != nil || s.Outcome == "SHIP" {
				t.Errorf("%s: step %+v", v.Outcome, s)
			}
		}
	}
}

// The results' own word for being clear, complete or undisturbed is not taken
// where their details say otherwise.
func TestTheGateReadsTheDetails(t *testing.T) {
	good := func() (*protocol.Protocol, *analysis.Results) {
		run := spoiled(t, func(int) bool { return false })
		return run.Protocol, analysis.Analyze(run)
	}
	for name, c := range map[string]struct {
		outcome string
		class   Class
		spoil   func(*analysis.Results)
	}{
		"a failed check":       {"ABORT", NoGo, func(r *analysis.Results) { r.Checks[1].Verdict = check.Fail }},
		"an unknown check":     {"UNCHECKED", Invalid, func(r *analysis.Results) { r.Checks[1].Verdict = check.Unknown }},
		"an unchecked check":   {"UNCHECKED", Invalid, func(r *analysis.Results) { r.Checks[2].Verdict = check.Unchecked }},
		"no such verdict":      {"UNCHECKED", Invalid, func(r *analysis.Results) { r.Checks[2].Verdict = 17 }},
		"a check left out":     {"UNCHECKED", Invalid, func(r *analysis.Results) { r.Checks = r.Checks[:2] }},
		"no checks":            {"UNCHECKED", Invalid, func(r *analysis.Results) { r.Checks = nil }},
		"trials unchecked":     {"UNCHECKED", Invalid, func(r *analysis.Results) { r.Checks = r.Checks[1:] }},
		"not clear":            {"UNCHECKED", Invalid, func(r *analysis.Results) { r.Clear = false }},
		"an undeclared fail":   {"ABORT", NoGo, func(r *analysis.Results) { r.Checks = append(r.Checks, check.Result{Name: "odd", Verdict: check.Fail}) }},
		"a blocking breach":    {"HOST-LIMITS", Invalid, func(r *analysis.Results) { r.Host.Breaches = []analysis.HostBreach{{Action: "block"}} }},
		"a provisional breach": {"PROVISIONAL", Inconclusive, func(r *analysis.Results) { r.Host.Breaches = []analysis.HostBreach{{Action: "provisional"}} }},
		"only the worst":       {"HOST-LIMITS", Invalid, func(r *analysis.Results) { r.Host.Worst = "block" }},
		"no primary":           {"MISSING-DATA", Invalid, func(r *analysis.Results) { r.Primary = nil }},
		"no primary cell":      {"MISSING-DATA", Invalid, func(r *analysis.Results) { r.Primary.Cells = nil }},
		"nobody speaks":        {"MISSING-DATA", Invalid, func(r *analysis.Results) { r.Primary.Weakest = "" }},
		"no cells":             {"MISSING-DATA", Invalid, func(r *analysis.Results) { r.Cells = nil }},
		"fewer rounds":         {"MISSING-DATA", Invalid, func(r *analysis.Results) { r.Primary.Cells[0].N = 7 }},
		"p is no number":       {"MISSING-DATA", Invalid, func(r *analysis.Results) { r.Primary.Cells[0].AdjustedP = analysis.Number(math.NaN()) }},
		"difference no number": {"MISSING-DATA", Invalid, func(r *analysis.Results) { r.Primary.Cells[0].Diff = analysis.Number(math.NaN()) }},
		"a cut-off veto": {"MISSING-DATA", Invalid, func(r *analysis.Results) {
			m := r.Cell("all").Metric("mem")
			m.Comparisons[0].N = 3
			m.Arms[0].Values, m.Arms[1].Values = m.Arms[0].Values[:3], m.Arms[1].Values[:3]
		}},
	} {
		p, r := good()
		c.spoil(r)
		ends(t, name, Decide(p, r), c.outcome, c.class)
	}
}

func TestManyReasonsAreCutShort(t *testing.T) {
	run := spoiled(t, func(int) bool { return false })
	r := analysis.Analyze(run)
	r.Complete, r.Missing = false, []string{"a", "b", "c", "d", "e"}
	if v := Decide(run.Protocol, r); v.Why != "The run is not complete: a; b; c; and 2 more" {
		t.Errorf("why %q", v.Why)
	}
	r = analysis.Analyze(run)
	r.Checks[1] = check.Result{Name: "exact", Verdict: check.Fail, Message: strings.Repeat("é \n", 300)}
	if v := Decide(run.Protocol, r); len([]rune(v.Why)) > 300 || strings.Contains(v.Why, "\n") {
		t.Errorf("why has %d characters: %q", len([]rune(v.Why)), v.Why)
	}
}

func TestClassesAndExitStatuses(t *testing.T) {
	for class, want := range map[Class]int{Go: 0, NoGo: 1, Inconclusive: 3, Invalid: 4, "": 70, "GO": 70, "maybe": 70} {
		if got := class.ExitCode(); got != want {
			t.Errorf("%q exits with %d, want %d", class, got, want)
		}
	}
}

func TestAWarningIsANoteAndStopsNothing(t *testing.T) {
	run := spoiled(t, func(int) bool { return false })
	reading(run, "psi_cpu", 50)
	v := decide(run)
	ends(t, "with a warning", v, "SHIP", Go)
	if !slices.Contains(v.Notes, "host: warn: psi_cpu 50 %, allowed is at most 5, before") {
		t.Errorf("notes %q", v.Notes)
	}
}
