package gate

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// A zero is a figure and must not look like one that is missing.
func TestConsultedValuesInJSON(t *testing.T) {
	yes, no := true, false
	for want, v := range map[string]Value{
		`{"name":"primary.p","num":0}`:                {Name: "primary.p"},
		`{"name":"primary.p","num":0.25}`:             {Name: "primary.p", Num: 0.25},
		`{"name":"primary.p","num":null}`:             {Name: "primary.p", Num: analysis.Number(math.NaN())},
		`{"name":"primary.d","num":"-inf"}`:           {Name: "primary.d", Num: analysis.Number(math.Inf(-1))},
		`{"name":"veto.any","bool":true}`:             {Name: "veto.any", Bool: &yes},
		`{"name":"primary.significant","bool":false}`: {Name: "primary.significant", Bool: &no},
	} {
		b, err := json.Marshal(v)
		if err != nil || string(b) != want {
			t.Errorf("%+v is %s (%v), want %s", v, b, err, want)
		}
		var back Value
		if err := json.Unmarshal(b, &back); err != nil || words([]Value{back}) != words([]Value{v}) {
			t.Errorf("%s came back as %+v (%v)", b, back, err)
		}
	}
}

func TestVerdictsSurviveJSON(t *testing.T) {
	for n := range len(faults) + 1 {
		v := decide(spoiled(t, func(i int) bool { return i == n }))
		var back Verdict
		if err := json.Unmarshal(v.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		if string(back.Bytes()) != string(v.Bytes()) {
			t.Errorf("%s reads back as something else", v.Outcome)
		}
		if again := decide(spoiled(t, func(i int) bool { return i == n })); string(again.Bytes()) != string(v.Bytes()) {
			t.Errorf("%s: the same run gave another verdict", v.Outcome)
		}
	}
}

func TestTheTraceShowsEachConditionWithItsValues(t *testing.T) {
	p := rulePlan(t, "higher", fourRounds, aboutM, byPreset, "gates: [{name: g, metric: m, require: diff > 0, because: it must}]")
	p.Decision.Outcomes = []protocol.Outcome{
		{Name: "WORSE", Class: "no-go", When: "primary.worse || veto.any"},
		{Name: "LUCKY", Class: "go", When: "primary.p < 1e-9 && gate.all"},
		{Name: "BETTER", Class: "go", When: "effect.m.ratio > 1.2 && effect.lat.treat < 1e9 && primary.better", Say: "It pays."},
		{Name: "LATER", Class: "inconclusive", When: "primary.n > 0"},
		{Name: "ELSE", Class: "no-go"},
	}
	v := Decide(p, values(t, p, []float64{10, 11, 12, 13}, []float64{15, 14, 18, 16}))
	ends(t, "own rule", v, "BETTER", Go)
	var got []string
	for _, s := range v.Trace {
		if !s.Guard {
			got = append(got, strings.Join([]string{s.Outcome, string(s.Class), s.Result, s.Condition, words(s.Values)}, " | "))
		}
	}
	pv := judgedOf(p, values(t, p, []float64{10, 11, 12, 13}, []float64{15, 14, 18, 16}))
	want := []string{
		"WORSE | no-go | false | primary.worse || veto.any | primary.worse=false veto.any=false",
		"LUCKY | go | false | primary.p < 1e-9 && gate.all | gate.all=true " + words(pv.named(pv.values, []string{"primary.p"})),
		"BETTER | go | true | effect.m.ratio > 1.2 && effect.lat.treat < 1e9 && primary.better | effect.lat.treat=1575 effect.m.ratio=1.36957 primary.better=true",
		"LATER | inconclusive | not reached | primary.n > 0 | ",
		"ELSE | no-go | not reached |  | ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the trace is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if g := v.Gates[0]; g.Rule != "g" || g.Metric != "m" || g.Cell != "all" || g.Arm != "new" || g.Require != "diff > 0" || g.Because != "it must" || !g.Judged || g.State != Holds {
		t.Errorf("the gate's answer is %+v", g)
	}
	if v.Why != "It pays." || v.Would != "BETTER" || v.Name != "rules" || v.Schema != SchemaVersion || v.Question == "" || len(v.Checks) != 2 {
		t.Errorf("got %+v", v)
	}
}

func TestABrokenConditionIsMissingData(t *testing.T) {
	p := goWhen(rulePlan(t, "higher", fourRounds, aboutM, byPreset, "vetoes: [{name: v, metric: m, require: ratio <= 9}]"), "primary.better")
	r := values(t, p, []float64{10, 11, 12, 13}, []float64{15, 14, 18, 16})
	p.Decision.Outcomes[0].When = "primary.bettr"
	v := Decide(p, r)
	ends(t, "an unknown name", v, "MISSING-DATA", Invalid)
	if !strings.Contains(v.Why, `outcome SHIP: unknown name "primary.bettr"`) || step(t, v, "SHIP").Result != "missing" {
		t.Errorf("why %q", v.Why)
	}
	p.Decision.Outcomes[0].When = "primary.better"
	p.Vetoes[0].Require = "ratio <= nine"
	v = Decide(p, r)
	ends(t, "an unknown name in a veto", v, "MISSING-DATA", Invalid)
	if res := v.Vetoes[0]; res.State != Missing || !strings.Contains(res.Missing, `unknown name "nine"`) {
		t.Errorf("veto %+v", res)
	}
}

func TestNotesOfThePrimaryComparisonTravel(t *testing.T) {
	p := rulePlan(t, "lower", "design: {rounds: 10, warmup: 0, seed: 3}", aboutM, byPreset)
	z := scores(2)
	r := analysis.Analyze(measure(t, p, "", func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{"m": 100 + 50*float64(s.Slot) + z[i+10*(len(s.Arm)%2)]}
		if s.Arm == "new" {
			o.Values["m"] = 100 + 50*float64(s.Slot) + z[i+15]
		}
	}))
	v := Decide(p, r)
	if !slices.ContainsFunc(v.Notes, func(n string) bool {
		return strings.HasPrefix(n, "all: which arm goes first in a round matters (p ") && strings.HasSuffix(n, "the balanced order keeps it out of the comparison")
	}) {
		t.Errorf("notes %q", v.Notes)
	}
	flat := rulePlan(t, "lower", fourRounds, aboutM, byPreset)
	v = Decide(flat, values(t, flat, []float64{1, 1, 1, 1}, []float64{2, 2, 2, 2}))
	if !slices.Contains(v.Notes, "all: no variation: the difference is exact") || slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, "goes first") }) {
		t.Errorf("notes %q", v.Notes)
	}
}

func TestPrimaryFiguresAreThoseOfTheWeakestCell(t *testing.T) {
	p := rulePlan(t, "higher", "factors: [{name: size, levels: [1, 2]}]", "design: {rounds: 10, warmup: 0, seed: 3}", "primary: {metric: m, test: welch}", byPreset)
	z := scores(1)
	r := analysis.Analyze(measure(t, p, "", func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{"m": 100 + z[i]}
		if s.Arm == "new" {
			o.Values["m"] = 100 + z[i+10] + map[string]float64{"size=1": 9, "size=2": 0.2}[s.Cell]
		}
	}))
	d := judgedOf(p, r)
	if r.Primary.Weakest != "size=2" {
		t.Fatalf("%s is the weakest", r.Primary.Weakest)
	}
	c, pc := r.Cell("size=2").Metric("m").Against("new"), r.Primary.Cells[1]
	if pc.AdjustedP == pc.P && pc.P < 0.5 {
		t.Errorf("not corrected: %+v", pc)
	}
	for name, want := range map[string]analysis.Number{
		"p": pc.AdjustedP, "d": c.D, "dz": c.Dz, "diff": c.Welch.Diff, "diff_low": c.Welch.CI.Low, "diff_high": c.Welch.CI.High,
		"ratio": c.Ratio, "change": c.Change, "n": 10, "alpha": 0.05,
	} {
		if got := d.values["primary."+name]; got != float64(want) {
			t.Errorf("primary.%s is %v, want %v", name, got, want)
		}
	}
	for name := range d.p.OutcomeScope() {
		if strings.HasPrefix(name, "effect.") {
			if _, ok := d.values[name]; ok {
				t.Errorf("%s has a value although the primary comparison has two cells", name)
			}
		}
	}
}

// A member of the family that holds by its own p may not by the corrected one.
func TestSignificanceIsThatOfTheFamily(t *testing.T) {
	p := rulePlan(t, "higher", "factors: [{name: size, levels: [1, 2]}]", "design: {rounds: 30, warmup: 0, seed: 3}", "primary: {metric: m, test: welch}", byPreset)
	for gain, want := range map[float64]bool{0.53: false, 0.9: true} {
		r := analysis.Analyze(measure(t, p, "", func(s trial.Slot, i int, o *trial.Observation) {
			o.Values = map[string]float64{"m": 100 + scores(1)[i]}
			if s.Arm == "new" {
				o.Values["m"] = 100 + scores(2)[i] + gain
			}
		}))
		for _, pc := range r.Primary.Cells {
			if pc.P >= 0.05 || want != (pc.AdjustedP < 0.05) {
				t.Fatalf("gain %v: %+v", gain, pc)
			}
		}
		d := judgedOf(p, r)
		if got := d.values["primary.significant"]; got != want {
			t.Errorf("gain %v: significant %v", gain, got)
		}
		if got := d.values["primary.p"]; got != float64(r.Primary.Cells[0].AdjustedP) || got == float64(r.Primary.Cells[0].P) {
			t.Errorf("gain %v: primary.p is %v", gain, got)
		}
	}
}
