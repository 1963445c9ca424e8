package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// rulePlan has one metric m that is better in the given direction, and the
// given sections.
func rulePlan(t testing.TB, better string, sections ...string) *protocol.Protocol {
	return plan(t, `
assay: 1
name: rules
question: May the new one be used?
arms:
  - {name: old, shell: "true"}
  - {name: new, shell: "true"}
metrics:
  - {name: m, better: `+better+`, source: json}
  - {name: lat, better: lower, source: samples, quantile: 0.5}
checks: [{name: exact, scope: trial, shell: "true"}]
`+strings.Join(sections, "\n"))
}

const (
	fourRounds = "design: {rounds: 4, warmup: 0, seed: 3}"
	aboutM     = "primary: {metric: m}"
	byPreset   = "decision: {preset: four-branch}"
)

// values is a run in which each arm has these values of m, round by round, and
// latencies that go with them.
func values(t testing.TB, p *protocol.Protocol, old, young []float64) *analysis.Results {
	return analysis.Analyze(measure(t, p, t.TempDir(), func(s trial.Slot, i int, o *trial.Observation) {
		v := old[i]
		if s.Arm == "new" {
			v = young[i]
		}
		o.Values = map[string]float64{"m": v}
		o.Bulk = map[string][]int64{"lat": {int64(10 * v), int64(100 * v), int64(1000 * v)}}
	}))
}

func TestWhatAStatisticStandsFor(t *testing.T) {
	old, young := []float64{1, 2, 3, 10}, []float64{2, 4, 6, 30}
	for statistic, want := range map[string]string{
		"mean":   "change=1.625 diff=6.5 n=4 ratio=2.625 ref=4 treat=10.5",
		"median": "change=1 diff=2.5 n=4 ratio=2 ref=2.5 treat=5",
		"max":    "change=2 diff=20 n=4 ratio=3 ref=10 treat=30",
		"sum":    "change=1.625 diff=26 n=4 ratio=2.625 ref=16 treat=42",
	} {
		p := rulePlan(t, "lower", fourRounds, aboutM, byPreset,
			"vetoes: [{name: v, metric: m, statistic: "+statistic+", require: ref + treat + diff + ratio + change + n < 0}]")
		res := Decide(p, values(t, p, old, young)).Vetoes[0]
		if res.State != Broken || words(res.Values) != want {
			t.Errorf("%s: %s with %s, want %s", statistic, res.State, words(res.Values), want)
		}
	}
	p := rulePlan(t, "lower", fourRounds, aboutM, byPreset,
		"vetoes: [{name: v, metric: lat, statistic: pooled, require: ref + treat + diff + ratio + change + n + diff_low + diff_high + ratio_low + ratio_high < 0}]")
	r := values(t, p, old, young)
	res := Decide(p, r).Vetoes[0]
	q := r.Cell("all").Metric("lat").Against("new").Pooled
	// All of 10 20 30 100, 100 200 300 1000 and 1000 … 10000, and likewise.
	if q.Ref != 250 || q.Treat != 500 {
		t.Fatalf("pooled %+v", q)
	}
	want := fmt.Sprintf("change=1 diff=250 diff_high=%.6g diff_low=%.6g n=4 ratio=2 ratio_high=%.6g ratio_low=%.6g ref=250 treat=500",
		float64(q.DiffCI.High), float64(q.DiffCI.Low), float64(q.RatioCI.High), float64(q.RatioCI.Low))
	if words(res.Values) != want {
		t.Errorf("pooled with %s, want %s", words(res.Values), want)
	}
}

func TestTheMeansTestAndIntervals(t *testing.T) {
	p := rulePlan(t, "higher", fourRounds, aboutM, byPreset,
		"vetoes: [{name: v, metric: m, require: p + d + dz + diff_low + diff_high + ratio_low + ratio_high < -99}]")
	r := values(t, p, []float64{10, 11, 12, 13}, []float64{15, 14, 18, 16})
	c := r.Cell("all").Metric("m").Against("new")
	res := Decide(p, r).Vetoes[0]
	want := fmt.Sprintf("d=%.6g diff_high=%.6g diff_low=%.6g dz=%.6g p=%.6g ratio_high=%.6g ratio_low=%.6g",
		float64(c.D), float64(c.Paired.CI.High), float64(c.Paired.CI.Low), float64(c.Dz), float64(c.Paired.P), float64(c.RatioCI.High), float64(c.RatioCI.Low))
	if words(res.Values) != want {
		t.Errorf("got %s, want %s", words(res.Values), want)
	}
}

func TestDirectionsFollowTheMetric(t *testing.T) {
	more, less := []float64{15, 14, 18, 16}, []float64{10, 11, 12, 13}
	for _, c := range []struct {
		better     string
		old, young []float64
		gain       float64
	}{{"higher", less, more, 1}, {"higher", more, less, -1}, {"lower", less, more, -1}, {"lower", more, less, 1}, {"higher", less, less, 0}, {"lower", more, more, 0}} {
		for _, statistic := range []string{"mean", "median", "max", "sum"} {
			p := rulePlan(t, c.better, fourRounds, "primary: {metric: m, floor: {d: 0.8}}", byPreset,
				"vetoes: [{name: v, metric: m, statistic: "+statistic+", require: better || !worse}]")
			res := Decide(p, values(t, p, c.old, c.young)).Vetoes[0]
			if want := fmt.Sprintf("better=%v worse=%v", c.gain > 0, c.gain < 0); words(res.Values) != want {
				t.Errorf("%s is better, gain %v, %s: %s, want %s", c.better, c.gain, statistic, words(res.Values), want)
			}
		}
		p := rulePlan(t, c.better, fourRounds, "primary: {metric: m, floor: {d: 0.8}}", byPreset)
		r := values(t, p, c.old, c.young)
		d := judgedOf(p, r)
		sign := func(name string) float64 {
			x := d.values[name].(float64)
			return map[bool]float64{true: 1}[x > 0] - map[bool]float64{true: 1}[x < 0]
		}
		if sign("primary.d") != c.gain || sign("primary.dz") != c.gain || sign("effect.m.d") != c.gain || sign("effect.m.dz") != c.gain {
			t.Errorf("%s is better, gain %v: d %v, dz %v", c.better, c.gain, d.values["primary.d"], d.values["primary.dz"])
		}
		for name, want := range map[string]bool{"primary.better": c.gain > 0, "primary.worse": c.gain < 0, "primary.meets_floor": c.gain > 0, "effect.m.better": c.gain > 0, "effect.m.worse": c.gain < 0} {
			if d.values[name] != want {
				t.Errorf("%s is better, gain %v: %s is %v", c.better, c.gain, name, d.values[name])
			}
		}
		if diff := float64(r.Cell("all").Metric("m").Against("new").Diff); d.values["primary.diff"] != diff {
			t.Errorf("primary.diff is %v and not arm minus reference, %v", d.values["primary.diff"], diff)
		}
	}
}

// judgedOf is a decision whose named results are worked out.
func judgedOf(p *protocol.Protocol, r *analysis.Results) *decision {
	d := &decision{p: p, r: r, clear: cleared(p, r), v: &Verdict{}}
	d.evaluateRules()
	return d
}

func TestFloors(t *testing.T) {
	old := []float64{10, 11, 12, 13}
	for _, c := range []struct {
		floor string
		by    float64
		want  any
	}{
		{"{d: 0.8}", 2, true}, {"{d: 0.8}", 1, false}, {"{d: 0.8}", -2, false},
		{"{change: 0.1}", 1.15, true}, {"{change: 0.1}", 1.14, false}, {"{change: 0.1}", -5, false},
		// The differences are all equal, so that dz is infinite.
		{"{dz: 5}", 0.001, true}, {"{dz: 5}", -0.001, false}, {"{dz: 5}", 0, false},
		{"{}", 0.001, true}, {"{}", 0, false}, {"{}", -1, false},
	} {
		young := make([]float64, 4)
		for i := range old {
			young[i] = old[i] + c.by
		}
		p := rulePlan(t, "higher", fourRounds, "primary: {metric: m, floor: "+c.floor+"}", byPreset)
		if got := judgedOf(p, values(t, p, old, young)).values["primary.meets_floor"]; got != c.want {
			t.Errorf("floor %s, gain %v: %v", c.floor, c.by, got)
		}
	}
	// A change from zero has no size, so that nothing can be said of it.
	p := rulePlan(t, "higher", fourRounds, "primary: {metric: m, floor: {change: 0.1}}", byPreset)
	r := values(t, p, []float64{0, 0, 0, 0}, []float64{5, 6, 7, 8})
	ends(t, "a change from zero", Decide(p, r), "MISSING-DATA", Invalid)
}

func TestARatioOverNothing(t *testing.T) {
	for _, c := range []struct {
		old, young float64
		state      string
		values     string
	}{
		{0, 0, Holds, "change=0 ratio=1"},
		{0, 5, Missing, "change=NaN ratio=NaN"},
		{5, 0, Holds, "change=-1 ratio=0"},
		// Over a negative reference a ratio of -0.5 would be within any bound.
		{-10, 5, Missing, "change=1.5 ratio=NaN"},
		{-10, -20, Missing, "change=-1 ratio=NaN"},
	} {
		for _, statistic := range []string{"mean", "median", "max", "sum"} {
			p := rulePlan(t, "lower", fourRounds, aboutM, byPreset,
				"vetoes: [{name: v, metric: m, statistic: "+statistic+", require: ratio <= 1.25 && change <= 0.25}]")
			flat := func(x float64) []float64 { return []float64{x, x, x, x} }
			r := analysis.Analyze(measure(t, p, t.TempDir(), func(s trial.Slot, i int, o *trial.Observation) {
				o.Values = map[string]float64{"m": flat(map[string]float64{"old": c.old, "new": c.young}[s.Arm])[i]}
			}))
			v := Decide(p, r)
			res := v.Vetoes[0]
			if res.State != c.state || words(res.Values) != c.values {
				t.Errorf("%v and %v, %s: %s with %s (%s), want %s with %s", c.old, c.young, statistic, res.State, words(res.Values), res.Missing, c.state, c.values)
			}
			if c.state == Missing {
				ends(t, fmt.Sprint(c), v, "MISSING-DATA", Invalid)
			}
		}
	}
}

// Arithmetic inside a condition can lose the figures that go into it.
func TestNothingOverNothingIsNoAnswer(t *testing.T) {
	p := goWhen(rulePlan(t, "lower", fourRounds, aboutM, byPreset, "vetoes: [{name: v, metric: m, require: not (treat / ref > 1.25)}]"), "primary.better || !(effect.m.treat / effect.m.ref > 1.25)")
	v := Decide(p, values(t, p, []float64{0, 0, 0, 0}, []float64{0, 0, 0, 0}))
	ends(t, "0/0", v, "MISSING-DATA", Invalid)
	if v.Vetoes[0].State != Missing || step(t, v, "SHIP").Result != "missing" || step(t, v, "KEEP").Result != "not reached" {
		t.Errorf("veto %+v, trace %+v", v.Vetoes[0], v.Trace)
	}
}

func TestAnInfiniteEffectIsAnEffect(t *testing.T) {
	for gain, want := range map[float64]string{1: "PROCEED", -1: "REGRESSION", 0: "NO-BENEFIT"} {
		p := rulePlan(t, "lower", fourRounds, "primary: {metric: m, floor: {d: 0.8}}", byPreset)
		r := values(t, p, []float64{7, 7, 7, 7}, []float64{7 - gain, 7 - gain, 7 - gain, 7 - gain})
		v := Decide(p, r)
		if v.Outcome != want {
			t.Errorf("a gain of exactly %v: %s, %s", gain, v.Outcome, v.Why)
		}
		if d := judgedOf(p, r).values["primary.d"]; gain != 0 && d != math.Inf(int(gain)) {
			t.Errorf("a gain of exactly %v: d is %v", gain, d)
		}
	}
}

// Sums can leave the range of a float64. What then has no direction must not
// be called not worse.
func TestAnOverflowHasNoDirection(t *testing.T) {
	p := rulePlan(t, "lower", fourRounds, aboutM, byPreset, "vetoes: [{name: v, metric: m, statistic: sum, require: not worse}]")
	huge := []float64{1.5e308, 1.6e308, 1.5e308, 1.7e308}
	r := analysis.Analyze(measure(t, p, "", func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{"m": huge[i]}
	}))
	if res := Decide(p, r).Vetoes[0]; res.State != Missing {
		t.Errorf("%s with %s", res.State, words(res.Values))
	}
}

const twoCells = "factors: [{name: size, levels: [1, 2]}]\n" + fourRounds + "\nprimary: {metric: m, cells: {size: 1}}"

// cellStates makes a rule "ratio <= 1.25" hold, break or miss in each cell.
func cellStates(t testing.TB, p *protocol.Protocol, states map[string]string) *analysis.Results {
	return analysis.Analyze(measure(t, p, t.TempDir(), func(s trial.Slot, i int, o *trial.Observation) {
		v := 100.0
		if state := states[s.Cell]; s.Arm == "new" {
			switch {
			case state == Broken:
				v = 130
			case state == Missing && i == 1:
				v = math.NaN()
			}
		}
		o.Values = map[string]float64{"m": v}
		o.Bulk = map[string][]int64{"lat": {100, 101}}
		if s.Arm == "new" {
			o.Bulk["lat"] = []int64{50, 51}
		}
	}))
}

// A broken cell settles a rule, and a broken rule settles all of them, whatever
// else is missing. Otherwise what is missing leaves no answer.
func TestRulesAreFoldedOverCellsAndOverRules(t *testing.T) {
	for _, kind := range []string{"veto", "gate"} {
		list := map[string]string{"veto": "vetoes", "gate": "gates"}[kind]
		all := map[string]string{"veto": "veto.any", "gate": "gate.all"}[kind]
		p := rulePlan(t, "lower", twoCells, byPreset, list+": [{name: other, metric: lat, require: treat < 1000}, {name: r, metric: m, require: ratio <= 1.25}]")
		for _, one := range []string{Holds, Broken, Missing} {
			for _, two := range []string{Holds, Broken, Missing} {
				d := judgedOf(p, cellStates(t, p, map[string]string{"size=1": one, "size=2": two}))
				var want any // nil is without a value
				switch {
				case one == Broken || two == Broken:
					want = kind == "veto"
				case one == Holds && two == Holds:
					want = kind == "gate"
				}
				for _, name := range []string{kind + ".r", all} {
					got, ok := d.values[name]
					if ok != (want != nil) || got != want {
						t.Errorf("%s with %s and %s: %s is %v, want %v", kind, one, two, name, got, want)
					}
					if want == nil && !strings.Contains(d.absent[name], "1 of 4 rounds lack a value of m") {
						t.Errorf("%s with %s and %s: %s is absent because %q", kind, one, two, name, d.absent[name])
					}
				}
				if d.values[kind+".other"] != (kind == "gate") {
					t.Errorf("%s.other is %v", kind, d.values[kind+".other"])
				}
			}
		}
	}
}

func TestOneBrokenRuleSettlesAllWhateverIsMissing(t *testing.T) {
	p := rulePlan(t, "lower", twoCells, byPreset,
		"vetoes: [{name: a, metric: m, cells: {size: 1}, require: ratio <= 1.25}, {name: b, metric: m, cells: {size: 2}, require: ratio <= 1.25}]",
		"gates: [{name: a, metric: m, cells: {size: 1}, require: ratio <= 1.25}, {name: b, metric: m, cells: {size: 2}, require: ratio <= 1.25}]")
	for _, states := range []map[string]string{{"size=1": Broken, "size=2": Missing}, {"size=1": Missing, "size=2": Broken}} {
		d := judgedOf(p, cellStates(t, p, states))
		if d.values["veto.any"] != true || d.values["gate.all"] != false {
			t.Errorf("%v: veto.any %v, gate.all %v", states, d.values["veto.any"], d.values["gate.all"])
		}
	}
}

// A rule that counts and selects stress cells only has no answer that counts.
func TestARuleWithoutAJudgedCellHasNoAnswer(t *testing.T) {
	p := rulePlan(t, "lower", "factors: [{name: size, levels: [1, 2]}]\n"+fourRounds+"\nprimary: {metric: lat, cells: {size: 1}}\noverrides: [{cells: {size: 2}, class: stress}]",
		byPreset, "gates: [{name: r, metric: m, require: ratio <= 1.25}]")
	p.Gates[0].Cells = protocol.Selector{"size": {"2"}}
	d := judgedOf(p, cellStates(t, p, nil))
	for _, name := range []string{"gate.r", "gate.all"} {
		if got, ok := d.values[name]; ok || !strings.HasSuffix(d.absent[name], "no judged cell") {
			t.Errorf("%s is %v, absent because %q", name, got, d.absent[name])
		}
	}
}

func TestStressIsReportedAndNeverJudged(t *testing.T) {
	cells := "factors: [{name: size, levels: [1, 2]}]\n" + fourRounds + "\nprimary: {metric: lat, cells: {size: 1}}\noverrides: [{cells: {size: 2}, class: stress}]"
	for _, list := range []string{"vetoes", "gates"} {
		p := rulePlan(t, "lower", cells, byPreset, list+": [{name: r, metric: m, require: ratio <= 1.25}]")
		for _, state := range []string{Holds, Broken, Missing} {
			v := Decide(p, cellStates(t, p, map[string]string{"size=2": state}))
			ends(t, "a stress cell that "+state, v, "PROCEED", Go)
			res := append(v.Vetoes, v.Gates...)[1]
			if res.State != state || res.Judged || res.Cell != "size=2" {
				t.Errorf("%s: reported as %+v", list, res)
			}
		}
		p = rulePlan(t, "lower", twoCells+"\n", byPreset, list+": [{name: calm, metric: lat, require: treat < 1000}, {name: r, metric: m, require: ratio <= 1.25, class: stress}]")
		for _, state := range []string{Holds, Broken, Missing} {
			d := judgedOf(p, cellStates(t, p, map[string]string{"size=2": state}))
			all := map[string]string{"vetoes": "veto.any", "gates": "gate.all"}[list]
			if got := d.values[all]; got != (list == "gates") {
				t.Errorf("a stress rule that %s: %s is %v", state, all, got)
			}
			if res := append(d.v.Vetoes, d.v.Gates...); len(res) != 4 || res[3].State != state || res[3].Judged {
				t.Errorf("%s: reported as %+v", list, res)
			}
		}
	}
}

// goWhen gives the protocol a rule of its own, past lint: the gate is the last
// door and relies on none before it.
func goWhen(p *protocol.Protocol, condition string) *protocol.Protocol {
	p.Decision.Outcomes = []protocol.Outcome{{Name: "SHIP", Class: "go", When: condition}, {Name: "KEEP", Class: "no-go"}}
	return p
}

// A rule that is never judged has no truth: taking it for passed would open the
// gate by a measurement that nobody answers for.
func TestAStressRuleCannotOpenTheGate(t *testing.T) {
	p := goWhen(rulePlan(t, "lower", fourRounds, "primary: {metric: lat}", byPreset, "gates: [{name: tight, metric: m, require: ratio < 0, class: stress}]"), "gate.tight")
	v := Decide(p, cellStates(t, p, nil))
	ends(t, "a stress gate", v, "MISSING-DATA", Invalid)
	if !strings.Contains(v.Why, "gate.tight (class stress: reported, never judged)") {
		t.Errorf("why %q", v.Why)
	}
}

func TestAGoNeedsSomethingThatWasMeasured(t *testing.T) {
	p := rulePlan(t, "lower", fourRounds, "primary: {metric: lat}", byPreset)
	for _, when := range []string{"gate.all", "primary.alpha < 1", "primary.alpha < 1 && !veto.any", "!veto.any", "primary.alpha < 1 && gate.all", ""} {
		v := Decide(goWhen(p, when), cellStates(t, p, nil))
		ends(t, when, v, "MISSING-DATA", Invalid)
		if !strings.Contains(v.Why, "consults nothing that was measured") {
			t.Errorf("%s: why %q", when, v.Why)
		}
	}
	for _, when := range []string{"primary.better", "primary.p < 2", "effect.m.ratio < 2", "gate.all && primary.n > 1"} {
		ends(t, when, Decide(goWhen(p, when), cellStates(t, p, nil)), "SHIP", Go)
	}
	gated := goWhen(rulePlan(t, "lower", fourRounds, "primary: {metric: lat}", byPreset, "gates: [{name: tight, metric: m, require: ratio <= 1}]"), "gate.all")
	ends(t, "a real gate", Decide(gated, cellStates(t, gated, nil)), "SHIP", Go)
	ends(t, "a broken gate", Decide(gated, cellStates(t, gated, map[string]string{"all": Broken})), "KEEP", NoGo)
}

func TestADefaultIsNeverGo(t *testing.T) {
	p := goWhen(rulePlan(t, "lower", fourRounds, aboutM, byPreset), "primary.better")
	p.Decision.Outcomes[1].Class = "go"
	ends(t, "a default that is go", Decide(p, cellStates(t, p, nil)), "MISSING-DATA", Invalid)
	p.Decision.Outcomes = p.Decision.Outcomes[:1]
	v := Decide(p, cellStates(t, p, nil))
	ends(t, "no default", v, "MISSING-DATA", Invalid)
	if !strings.Contains(v.Why, "no outcome of the rule applies") {
		t.Errorf("why %q", v.Why)
	}
}

func TestVetoesBlockARuleThatDoesNotAskThem(t *testing.T) {
	p := goWhen(rulePlan(t, "lower", "factors: [{name: size, levels: [1, 2]}]\n"+fourRounds+"\nprimary: {metric: lat, cells: {size: 1}}", byPreset,
		"vetoes: [{name: r, metric: m, require: ratio <= 1.25}, {name: s, metric: m, require: treat < 0, class: stress}]"), "primary.better")
	for _, c := range []struct {
		states  map[string]string
		outcome string
		class   Class
		why     string
	}{
		{nil, "SHIP", Go, "The rule's outcome is SHIP."},
		{map[string]string{"size=2": Broken}, "VETOED", NoGo, "The rule says SHIP, but a veto is broken: r in size=2"},
		{map[string]string{"size=1": Broken, "size=2": Missing}, "VETOED", NoGo, "The rule says SHIP, but a veto is broken: r in size=1"},
		{map[string]string{"size=2": Missing}, "MISSING-DATA", Invalid, "The decision needs figures that do not exist: veto.r (cell size=2: missing: ratio (1 of 4 rounds lack a value of m))"},
	} {
		v := Decide(p, cellStates(t, p, c.states))
		ends(t, fmt.Sprint(c.states), v, c.outcome, c.class)
		if v.Why != c.why {
			t.Errorf("%v: why %q, want %q", c.states, v.Why, c.why)
		}
		if v.Would != "SHIP" {
			t.Errorf("%v: would have been %q", c.states, v.Would)
		}
	}
	// What is not go needs no veto's leave.
	p.Decision.Outcomes[0].Class = "no-go"
	ends(t, "no go", Decide(p, cellStates(t, p, map[string]string{"size=2": Broken})), "SHIP", NoGo)
	ends(t, "no go", Decide(p, cellStates(t, p, map[string]string{"size=2": Missing})), "SHIP", NoGo)
}

// Whatever name a condition consults, and however it is turned: without its
// value the answer is neither true nor false.
func TestEveryNameThatIsMissingIsMissing(t *testing.T) {
	p := rulePlan(t, "lower", fourRounds, aboutM, byPreset,
		"vetoes: [{name: v, metric: m, require: ratio <= 9}]", "gates: [{name: g, metric: m, require: ratio <= 9}]")
	whole := values(t, p, []float64{9, 8, 9, 7}, []float64{4, 5, 4, 6})
	for name, kind := range p.OutcomeScope() {
		conditions := []string{name + " || primary.alpha < 1", "!" + name, "primary.alpha < 1 ? primary.alpha < 1 : " + name}
		if kind == protocol.Number {
			conditions = []string{name + " <= 0", name + " > 0", "!(" + name + " > 0)", "primary.alpha < 1 || " + name + " > 0", "max(" + name + ", 1) > 0"}
		}
		for _, condition := range conditions {
			goWhen(p, condition)
			for _, gone := range []func(*decision){
				func(d *decision) { delete(d.values, name) },
				func(d *decision) {
					if kind == protocol.Number {
						d.values[name] = math.NaN()
					} else {
						delete(d.values, name)
					}
				},
			} {
				d := judgedOf(p, whole)
				if _, ok := d.values[name]; !ok {
					t.Fatalf("%s has no value in a whole run: %s", name, d.absent[name])
				}
				gone(d)
				b, steps := d.rule()
				if b.name != "" || !slices.ContainsFunc(b.missing, func(s string) bool { return strings.Contains(s, name) }) || steps[0].Result != "missing" || steps[1].Result != "not reached" {
					t.Errorf("%s without %s: %+v, steps %+v", condition, name, b, steps)
				}
			}
		}
	}
}

func TestARuleOverSeveralCells(t *testing.T) {
	p := rulePlan(t, "higher", "factors: [{name: size, levels: [1, 2, 3]}]", "design: {rounds: 10, warmup: 0, seed: 3}", "primary: {metric: m, floor: {d: 0.8}}", byPreset)
	for _, c := range []struct {
		name string
		by   map[string]float64
		want map[string]any
		v    string
	}{
		{"better in all", map[string]float64{"size=1": 9, "size=2": 5, "size=3": 7}, map[string]any{"significant": true, "better": true, "worse": false, "meets_floor": true}, "PROCEED"},
		{"worse in one", map[string]float64{"size=1": 9, "size=2": -9, "size=3": 0}, map[string]any{"significant": true, "better": false, "worse": true, "meets_floor": false}, "REGRESSION"},
		{"nothing in the first", map[string]float64{"size=1": 0, "size=2": 9, "size=3": 9}, map[string]any{"significant": false, "better": false, "meets_floor": false}, "NO-BENEFIT"},
		{"nothing in one", map[string]float64{"size=1": 9, "size=2": 9, "size=3": 0}, map[string]any{"significant": false, "better": false, "meets_floor": false}, "NO-BENEFIT"},
		// The weakest by its p is size 3, which is better by chance; size 2 is
		// worse by chance.
		{"worse by chance in one", map[string]float64{"size=1": 9, "size=2": -0.4, "size=3": 0.001}, map[string]any{"significant": false, "better": false, "worse": true}, "NO-BENEFIT"},
	} {
		z := scores(1)
		d := judgedOf(p, analysis.Analyze(measure(t, p, t.TempDir(), func(s trial.Slot, i int, o *trial.Observation) {
			v := 100.0
			if s.Arm == "new" {
				// Differences whose mean is exact, however the rounds fall.
				v += c.by[s.Cell] + z[i] - z[(i/2)*2]*0.5 - z[(i/2)*2+1]*0.5
			}
			o.Values = map[string]float64{"m": v}
		})))
		for name, want := range c.want {
			if got := d.values["primary."+name]; got != want {
				t.Errorf("%s: %s is %v, want %v (%s)", c.name, name, got, want, d.absent["primary."+name])
			}
		}
		if v := Decide(p, d.r); v.Outcome != c.v {
			t.Errorf("%s: %s, %s", c.name, v.Outcome, v.Why)
		}
	}
}

// Where ranks and means point in different ways, nothing is better.
func TestRanksAndMeansMustAgree(t *testing.T) {
	p := rulePlan(t, "higher", "design: {rounds: 30, warmup: 0, seed: 3}", "primary: {metric: m, test: mann-whitney}", byPreset)
	z := scores(1)
	for _, c := range []struct {
		gain, outlier float64
		outcome       string
		meets         bool
	}{{5, 0, "PROCEED", true}, {5, -5000, "REGRESSION", false}, {-5, 5000, "REGRESSION", false}} {
		r := analysis.Analyze(measure(t, p, "", func(s trial.Slot, i int, o *trial.Observation) {
			o.Values = map[string]float64{"m": 100 + z[i]}
			if s.Arm == "new" {
				o.Values["m"] = 100 + c.gain - z[i]
				if i == 17 {
					o.Values["m"] += c.outlier
				}
			}
		}))
		if v := Decide(p, r); v.Outcome != c.outcome {
			t.Errorf("%+v: %s, %+v", c, v.Outcome, r.Primary.Cells[0])
		}
		if got := judgedOf(p, r).values["primary.meets_floor"]; got != c.meets {
			t.Errorf("%+v: meets_floor %v", c, got)
		}
	}
}

// An order of rounds that favours one arm can turn the sign of a difference of
// means. Neither a rule nor the primary comparison then has an answer.
func TestContradictoryFiguresAreMissing(t *testing.T) {
	p := rulePlan(t, "lower", "design: {rounds: 9, warmup: 0, seed: 3}", aboutM, byPreset,
		"vetoes: [{name: s4, metric: m, require: p >= 0.05 || diff <= 0}, {name: total, metric: m, statistic: sum, require: ratio <= 1.25}]")
	second := 0
	for _, round := range trial.Schedule(p) {
		if round.Slots[1].Arm == "new" {
			second++
		}
	}
	slower := map[bool]string{true: "old", false: "new"}[second > 4]
	z := scores(3)
	r := analysis.Analyze(measure(t, p, "", func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{"m": 100 + 90*float64(s.Slot) + map[string]float64{slower: 1}[s.Arm] + 0.05*z[i+9*len(s.Arm)%2]}
	}))
	if r.Cell("all").Metric("m").Against("new").Contradiction == "" {
		t.Fatal("the example does not contradict itself")
	}
	v := Decide(p, r)
	ends(t, "a contradiction", v, "MISSING-DATA", Invalid)
	for _, res := range v.Vetoes {
		if res.State != Missing || !strings.Contains(res.Missing, "not balanced enough") || !strings.Contains(v.Why, "not balanced enough") {
			t.Errorf("veto %+v, why %q", res, v.Why)
		}
	}
}
