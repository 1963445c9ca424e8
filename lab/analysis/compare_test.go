package analysis

import (
	"math"
	"slices"
	"testing"

	"github.com/assaylab/assay/lab/stats"
	"github.com/assaylab/assay/lab/trial"
)

// The figures of a small run against lab/stats, called by hand on the same
// numbers in the order of the rounds.
func TestFiguresAreThoseOfTheStatistics(t *testing.T) {
	p := plan(t, simple)
	old := []float64{100, 104, 99, 101, 97, 103, 100, 102, 98, 105}
	young := []float64{111, 112, 109, 115, 108, 110, 113, 109, 112, 118}
	slots := map[string][]int{}
	run := measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{"ops": 1}
		if i >= 0 {
			o.Values["ops"] = map[string][]float64{"old": old, "new": young}[s.Arm][i]
			slots[s.Arm] = append(slots[s.Arm], s.Slot)
		}
	})
	r := Analyze(run)
	m := r.Cell("all").Metric("ops")
	for _, a := range m.Arms {
		want := stats.Summarize(map[string][]float64{"old": old, "new": young}[a.Arm])
		if a.N != 10 || float64(a.Mean) != want.Mean || float64(a.SD) != want.SD || float64(a.Median) != want.Median || float64(a.Min) != want.Min || float64(a.Max) != want.Max {
			t.Errorf("%s: %+v, want %+v", a.Arm, a, want)
		}
	}
	if sum := m.Arm("new").Sum; sum != 1117 {
		t.Errorf("sum %v", sum)
	}

	c := comparison(t, r, "all", "ops", "new")
	rm, tm := stats.MomentsOf(old), stats.MomentsOf(young)
	if !near(c.Diff, 10.8, 1e-12) || !near(c.Change, 10.8/100.9, 1e-12) || !near(c.Ratio, 111.7/100.9, 1e-12) || !c.Better || c.Worse || c.N != 10 {
		t.Errorf("got %+v", c)
	}
	if float64(c.D) != stats.CohenD(rm, tm) || float64(c.G) != stats.HedgesG(rm, tm) || float64(c.Dz) != stats.PairedDz(old, young) {
		t.Errorf("effects %v %v %v", c.D, c.G, c.Dz)
	}
	tests := map[string]struct {
		got  *TTest
		want func() (stats.TTest, error)
	}{
		"paired": {c.Paired, func() (stats.TTest, error) { return stats.PairedSlots(old, young, slots["old"], slots["new"], 0.95) }},
		"welch":  {c.Welch, func() (stats.TTest, error) { return stats.Welch(rm, tm, 0.95) }},
		"order": {c.Order, func() (stats.TTest, error) {
			var diffs []float64
			var first []bool
			for i := range old {
				diffs, first = append(diffs, young[i]-old[i]), append(first, slots["new"][i] == 0)
			}
			return stats.OrderEffect(diffs, first, 0.95)
		}},
	}
	for name, test := range tests {
		want, err := test.want()
		if err != nil || test.got == nil || *test.got != *tTest(want) {
			t.Errorf("%s: got %+v, want %+v (%v)", name, test.got, want, err)
		}
	}
	if *c.DiffCI != c.Paired.CI {
		t.Errorf("the difference's interval is %+v", c.DiffCI)
	}
	u, _ := stats.MannWhitney(old, young)
	if c.MannWhitney == nil || *c.MannWhitney != (RankTest{Number(u.U), Number(u.P), u.Exact}) {
		t.Errorf("Mann-Whitney %+v, want %+v", c.MannWhitney, u)
	}
	hl, _ := stats.HodgesLehmann(old, young, 0.95)
	if c.Shift == nil || float64(c.Shift.Estimate) != hl.Estimate || c.Shift.CI != *interval(hl.CI) {
		t.Errorf("shift %+v, want %+v", c.Shift, hl)
	}
	ratio, ci, _ := stats.BootstrapMeanRatio(old, young, 0.95, ratioResamples, 7)
	if float64(c.Ratio) != ratio || *c.RatioCI != *interval(ci) {
		t.Errorf("ratio %v %+v", c.Ratio, c.RatioCI)
	}
	slope, pv, _ := stats.Drift(old)
	if d := m.Arm("old").Drift; d == nil || *d != (Drift{Number(slope), Number(pv)}) {
		t.Errorf("drift %+v", d)
	}
}

func TestTheIntervalsLevelIsOneMinusAlpha(t *testing.T) {
	p := plan(t, head+`
design: {rounds: 10, warmup: 0, seed: 7}
metrics: [{name: ops, better: higher, source: json}]
primary: {metric: ops, alpha: 0.01}
`)
	c := comparison(t, Analyze(measure(t, p, steady)), "all", "ops", "new")
	for _, ci := range []Interval{c.Paired.CI, c.Welch.CI, c.Shift.CI, *c.RatioCI, *c.DiffCI} {
		if ci.Level != 0.99 {
			t.Errorf("level %v", ci.Level)
		}
	}
}

func TestBetterFollowsTheMetric(t *testing.T) {
	for _, better := range []string{"lower", "higher"} {
		p := plan(t, head+"design: {rounds: 4, warmup: 0, seed: 7}\nmetrics: [{name: ops, better: "+better+", source: json}]\nprimary: {metric: ops}\n")
		for gain, want := range map[float64][2]bool{5: {better == "higher", better == "lower"}, -5: {better == "lower", better == "higher"}, 0: {false, false}} {
			r := Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
				return 100 + float64(i) + map[string]float64{"new": gain}[s.Arm]
			})))
			c := comparison(t, r, "all", "ops", "new")
			if c.Better != want[0] || c.Worse != want[1] || float64(c.Diff) != gain {
				t.Errorf("%s is better, difference %v: %+v", better, gain, c)
			}
			pc := r.Primary.Cells[0]
			if pc.Better != want[0] || pc.Worse != want[1] {
				t.Errorf("%s is better, difference %v: primary %+v", better, gain, pc)
			}
		}
	}
}

func TestOnlyRoundsWithBothValuesAreCompared(t *testing.T) {
	p := plan(t, simple)
	r := Analyze(measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		v := map[string]float64{"old": 100, "new": 110}[s.Arm] + float64(i)
		if s.Arm == "old" && i == 3 || s.Arm == "new" && i == 7 {
			// What stands alone in its round must not enter a mean either.
			o.Values = nil
			return
		}
		if i == 3 || i == 7 {
			v = 1e6
		}
		o.Values = map[string]float64{"ops": v}
	}))
	c := comparison(t, r, "all", "ops", "new")
	if c.N != 8 || c.Diff != 10 || !slices.Contains(c.Notes, "2 of 10 rounds lack a value") {
		t.Errorf("n %d, difference %v, notes %q", c.N, c.Diff, c.Notes)
	}
	if pc := r.Primary.Cells[0]; pc.Missing != "2 of 10 rounds lack a value of ops" || !math.IsNaN(float64(pc.P)) {
		t.Errorf("the primary comparison is %+v", pc)
	}
}

func TestNothingToCompare(t *testing.T) {
	p := plan(t, simple)
	r := Analyze(measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		if (i%2 == 0) == (s.Arm == "old") {
			o.Values = map[string]float64{"ops": 5}
		}
	}))
	c := comparison(t, r, "all", "ops", "new")
	for _, n := range []Number{c.Diff, c.Change, c.Ratio, c.D, c.G, c.Dz} {
		if !math.IsNaN(float64(n)) {
			t.Errorf("a figure without a common round: %+v", c)
		}
	}
	if c.N != 0 || c.Better || c.Worse || c.Paired != nil || c.Welch != nil || c.RatioCI != nil {
		t.Errorf("got %+v", c)
	}
}

func TestOneRoundHasNoTest(t *testing.T) {
	p := plan(t, head+"design: {rounds: 1, warmup: 0, seed: 7}\nmetrics: [{name: ops, better: higher, source: json}]\nprimary: {metric: ops}\n")
	r := Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 { return float64(armNo(s)) })))
	c := comparison(t, r, "all", "ops", "new")
	if c.N != 1 || c.Paired != nil || !slices.Contains(c.Notes, "one round only: no test") {
		t.Errorf("got %+v", c)
	}
	if r.Primary.Cells[0].Missing != "the paired test could not be computed" {
		t.Errorf("got %+v", r.Primary.Cells[0])
	}
}

func TestExactCountsHaveNoVariance(t *testing.T) {
	p := plan(t, simple)
	for _, c := range []struct {
		old, new float64
		p, t, d  float64
		note     string
	}{
		{1000, 1001, 0, math.Inf(1), math.Inf(1), "no variation: the difference is exact"},
		{1000, 999, 0, math.Inf(-1), math.Inf(-1), "no variation: the difference is exact"},
		{1000, 1000, 1, 0, 0, "no variation: samples are identical"},
		{0, 0, 1, 0, 0, "no variation: samples are identical"},
	} {
		r := Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
			return map[string]float64{"old": c.old, "new": c.new}[s.Arm]
		})))
		got := comparison(t, r, "all", "ops", "new")
		if float64(got.Diff) != c.new-c.old || float64(got.D) != c.d || float64(got.Dz) != c.d || got.DiffCI.Low != got.Diff || got.DiffCI.High != got.Diff {
			t.Errorf("%v and %v: %+v", c.old, c.new, got)
		}
		for _, test := range []*TTest{got.Paired, got.Welch} {
			if float64(test.P) != c.p || float64(test.T) != c.t || test.DF != 0 {
				t.Errorf("%v and %v: %+v", c.old, c.new, test)
			}
		}
		if !slices.Contains(got.Notes, c.note) || got.Contradiction != "" {
			t.Errorf("%v and %v: notes %q", c.old, c.new, got.Notes)
		}
		if pc := r.Primary.Cells[0]; float64(pc.AdjustedP) != c.p || pc.Missing != "" {
			t.Errorf("%v and %v: primary %+v", c.old, c.new, pc)
		}
	}
}

func TestARatioNeedsAPositiveReference(t *testing.T) {
	p := plan(t, simple)
	for _, c := range []struct{ old, new, ratio, change float64 }{
		{10, 5, 0.5, -0.5},
		{-10, -20, math.NaN(), -1},
		{-10, 5, math.NaN(), 1.5},
		{0, 5, math.NaN(), math.NaN()},
	} {
		got := comparison(t, Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
			return map[string]float64{"old": c.old, "new": c.new}[s.Arm]
		}))), "all", "ops", "new")
		same := func(a Number, b float64) bool { return float64(a) == b || math.IsNaN(float64(a)) && math.IsNaN(b) }
		if !same(got.Ratio, c.ratio) || !same(got.Change, c.change) || (got.RatioCI == nil) != math.IsNaN(c.ratio) {
			t.Errorf("%v and %v: ratio %v %v, change %v", c.old, c.new, got.Ratio, got.RatioCI, got.Change)
		}
	}
}

func TestAnOrderEffectIsSeenAndKeptOut(t *testing.T) {
	p := plan(t, head+"design: {rounds: 20, warmup: 0, seed: 7}\nmetrics: [{name: ops, better: lower, source: json}]\nprimary: {metric: ops}\n")
	planted := func(second float64) *Comparison {
		return comparison(t, Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
			return 100 + noise(armNo(s), i) + second*float64(s.Slot)
		}))), "all", "ops", "new")
	}
	with, out := planted(20), planted(0)
	if with.Order == nil || with.Order.P > 1e-6 || !near(with.Order.Diff, -40, 0.1) {
		t.Errorf("planted: %+v", with.Order)
	}
	if out.Order == nil || out.Order.P < 0.01 {
		t.Errorf("not planted: %+v", out.Order)
	}
	if !near(with.Diff, float64(out.Diff), 1e-9) || !near(with.Paired.P, float64(out.Paired.P), 1e-6) {
		t.Errorf("it moved the comparison from %v (p %v) to %v (p %v)", out.Diff, out.Paired.P, with.Diff, with.Paired.P)
	}
}

func TestADriftIsSeen(t *testing.T) {
	p := plan(t, simple)
	r := Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
		return 100 + noise(armNo(s), i) + map[string]float64{"new": 3}[s.Arm]*float64(i)
	})))
	m := r.Cell("all").Metric("ops")
	if d := m.Arm("new").Drift; d.P > 1e-6 || !near(d.PerRound, 3, 0.2) {
		t.Errorf("planted: %+v", d)
	}
	if d := m.Arm("old").Drift; d.P < 0.01 {
		t.Errorf("not planted: %+v", d)
	}
}

// With an odd number of rounds one arm stands more often in the slow place.
// Where that place is much slower, the means say the opposite of the test that
// takes it out, and neither may be used.
func TestMeansThatContradictTheTestAreNoAnswer(t *testing.T) {
	p := plan(t, head+"design: {rounds: 9, warmup: 0, seed: 7}\nmetrics: [{name: ops, better: lower, source: json}]\nprimary: {metric: ops}\n")
	second := map[string]int{}
	for _, round := range trial.Schedule(p) {
		second[round.Slots[1].Arm]++
	}
	// The arm that runs second less often is the one that is truly slower.
	slower := "new"
	if second["new"] > second["old"] {
		slower = "old"
	}
	for _, planted := range []struct{ place, noise float64 }{{90, 0.1}, {9, 0}} {
		r := Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
			return 100 + planted.place*float64(s.Slot) + map[string]float64{slower: 1}[s.Arm] + planted.noise*noise(armNo(s), i)
		})))
		c := comparison(t, r, "all", "ops", "new")
		if c.Paired.P > 1e-3 || float64(c.Paired.Diff)*float64(c.Diff) > 0 || planted.noise == 0 && c.Diff != 0 {
			t.Fatalf("the example does not contradict itself: %+v, paired %+v", c, c.Paired)
		}
		wantContains(t, "the contradiction", c.Contradiction, "the order was not balanced enough")
		if pc := r.Primary.Cells[0]; pc.Missing != c.Contradiction || !math.IsNaN(float64(pc.P)) || pc.Better || pc.Worse {
			t.Errorf("the primary comparison is %+v", pc)
		}
		if !slices.Contains(c.Notes, c.Contradiction) {
			t.Errorf("notes %q", c.Notes)
		}
	}
}

// Chance may turn the sign as well. That contradicts nothing, and the primary
// comparison has the estimate of its own test.
func TestAnUncertainSignIsNoContradiction(t *testing.T) {
	p := plan(t, head+"design: {rounds: 9, warmup: 0, seed: 7}\nmetrics: [{name: ops, better: lower, source: json}]\nprimary: {metric: ops}\n")
	turned := 0
	for k := range 60 {
		r := Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
			return 100 + 0.5*float64(s.Slot) + noise(armNo(s), i, k)
		})))
		c, pc := comparison(t, r, "all", "ops", "new"), r.Primary.Cells[0]
		if c.Paired.P < 0.05 {
			continue
		}
		if float64(c.Paired.Diff)*float64(c.Diff) < 0 {
			turned++
			if pc.Better || !pc.Worse {
				t.Errorf("case %d: %+v", k, pc)
			}
		}
		if c.Contradiction != "" || pc.Missing != "" || pc.Diff != c.Paired.Diff || pc.Diff == c.Diff {
			t.Errorf("case %d: %q, primary %+v, paired %+v", k, c.Contradiction, pc, c.Paired)
		}
	}
	if turned == 0 {
		t.Error("no case in which the signs differ")
	}
}

// A count that depends on nothing but the place leaves no difference, and what
// rounding makes of that is none either.
func TestRoundingIsNoContradiction(t *testing.T) {
	p := plan(t, head+"design: {rounds: 9, warmup: 0, seed: 7}\nmetrics: [{name: ops, better: lower, source: json}]\nprimary: {metric: ops}\n")
	for k := 1; k < 40; k++ {
		r := Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 { return 100 + 0.1*float64(k*s.Slot) })))
		if c := comparison(t, r, "all", "ops", "new"); c.Contradiction != "" {
			t.Errorf("a place that costs %v: %s", 0.1*float64(k), c.Contradiction)
		}
	}
}

func TestThreeArmsAreEachComparedWithTheFirst(t *testing.T) {
	p := plan(t, `
assay: 1
name: kit
question: Which one?
arms:
  - {name: old, shell: "true"}
  - {name: new, shell: "true"}
  - {name: odd, shell: "true", class: reported}
design: {rounds: 9, warmup: 1, seed: 7}
metrics: [{name: ops, better: higher, source: json}]
primary: {metric: ops}
decision: {preset: four-branch}
`)
	r := Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
		return map[string]float64{"old": 10, "new": 12, "odd": 5}[s.Arm] + 0.1*noise(int(s.Arm[2]), i)
	})))
	m := r.Cell("all").Metric("ops")
	if len(m.Arms) != 3 || len(m.Comparisons) != 2 || m.Against("old") != nil {
		t.Fatalf("%d arms, %d comparisons", len(m.Arms), len(m.Comparisons))
	}
	if !near(m.Against("new").Diff, 2, 0.1) || !near(m.Against("odd").Diff, -5, 0.1) || r.Primary.Treatment != "new" {
		t.Errorf("got %v and %v", m.Against("new").Diff, m.Against("odd").Diff)
	}
}
