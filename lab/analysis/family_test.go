package analysis

import (
	"fmt"
	"math"
	"testing"

	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
	"github.com/assaylab/assay/lab/trial"
)

const threeCells = head + `
factors: [{name: size, levels: [1, 2, 3]}]
design: {rounds: 10, warmup: 0, seed: 7}
metrics: [{name: ops, better: higher, source: json}]
primary: {metric: ops, test: %s}
`

// gains is a run whose treatment differs by so much in each cell, with noise of
// about 1.
func gains(t *testing.T, p *protocol.Protocol, by map[string]float64) *Results {
	return Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
		if s.Arm == "old" {
			return 100 + noise(1, i)
		}
		return 100 + noise(2, i, len(s.Cell)) + by[s.Cell]
	})))
}

func TestTheFamilyIsCorrectedByHolm(t *testing.T) {
	for _, test := range []string{"paired", "welch", "mann-whitney"} {
		p := plan(t, fmt.Sprintf(threeCells, test))
		r := gains(t, p, map[string]float64{"size=1": 0.7, "size=2": 1.1, "size=3": 5})
		var ps []float64
		for _, cell := range r.Cells {
			c := cell.Metric("ops").Against("new")
			ps = append(ps, map[string]float64{"paired": float64(c.Paired.P), "welch": float64(c.Welch.P), "mann-whitney": float64(c.MannWhitney.P)}[test])
		}
		adjusted := stats.Holm(ps)
		for i, pc := range r.Primary.Cells {
			if float64(pc.P) != ps[i] || float64(pc.AdjustedP) != adjusted[i] || adjusted[i] < ps[i] || pc.N != 10 || pc.Missing != "" {
				t.Errorf("%s, %s: %+v, want p %v adjusted to %v", test, pc.Cell, pc, ps[i], adjusted[i])
			}
			if pc.Diff < pc.CI.Low || pc.Diff > pc.CI.High {
				t.Errorf("%s, %s: %v outside of its own interval %+v", test, pc.Cell, pc.Diff, pc.CI)
			}
		}
		if r.Primary.Weakest != "size=1" {
			t.Errorf("%s: %s speaks for the family", test, r.Primary.Weakest)
		}
	}
}

func TestWhoSpeaksForTheFamily(t *testing.T) {
	p := plan(t, fmt.Sprintf(threeCells, "paired"))
	for name, c := range map[string]struct {
		by   map[string]float64
		lost string
		want string
	}{
		"the largest p":                         {map[string]float64{"size=1": 9, "size=2": 0.1, "size=3": 9}, "", "size=2"},
		"significantly worse before all others": {map[string]float64{"size=1": 0, "size=2": 9, "size=3": -9}, "", "size=3"},
		"worse by chance is no worse":           {map[string]float64{"size=1": 9, "size=2": -0.3, "size=3": 0.1}, "", "size=3"},
		"a missing one before all others":       {map[string]float64{"size=1": -9, "size=2": 9, "size=3": 0}, "size=2", "size=2"},
	} {
		r := Analyze(measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
			if s.Cell == c.lost && i == 4 && s.Arm == "old" {
				return
			}
			v := 100 + noise(1, i)
			if s.Arm == "new" {
				v = 100 + noise(2, i, len(s.Cell)) + c.by[s.Cell]
			}
			o.Values = map[string]float64{"ops": v}
		}))
		if r.Primary.Weakest != c.want {
			t.Errorf("%s: %s speaks for the family %+v", name, r.Primary.Weakest, r.Primary.Cells)
		}
		if worse := r.Primary.Cells[1]; name == "worse by chance is no worse" && (!worse.Worse || worse.AdjustedP < 0.05) {
			t.Errorf("the example is none: %+v", worse)
		}
		for _, pc := range r.Primary.Cells {
			if gone := pc.Cell == c.lost; gone != (pc.Missing != "") || gone != math.IsNaN(float64(pc.AdjustedP)) {
				t.Errorf("%s: %+v", name, pc)
			}
			// The lost member still counts in the family of three.
			if c.lost != "" && pc.Cell == "size=1" && !near(pc.AdjustedP, 3*float64(pc.P), 1e-12) {
				t.Errorf("%s: adjusted %v from %v", name, pc.AdjustedP, pc.P)
			}
		}
	}
}

// Ranks may say better where the means say worse. Neither is then called
// better, and both may be called worse.
func TestBetterNeedsBothTheTestAndTheMeans(t *testing.T) {
	p := plan(t, head+`
design: {rounds: 20, warmup: 0, seed: 7}
metrics: [{name: ops, better: higher, source: json}]
primary: {metric: ops, test: mann-whitney}
`)
	r := Analyze(measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
		switch {
		case s.Arm == "old":
			return 100 + noise(1, i)
		case i == 11:
			return -5000
		}
		return 110 + noise(2, i)
	})))
	pc := r.Primary.Cells[0]
	if c := comparison(t, r, "all", "ops", "new"); pc.P > 0.001 || pc.Diff < 5 || c.Diff > 0 {
		t.Fatalf("the example does not contradict itself: %+v, means differ by %v", pc, c.Diff)
	}
	if pc.Better || !pc.Worse {
		t.Errorf("better %v, worse %v", pc.Better, pc.Worse)
	}
}

func TestStressCellsAreNoPartOfTheFamily(t *testing.T) {
	p := plan(t, fmt.Sprintf(threeCells, "paired")+"overrides: [{cells: {size: 3}, class: stress, rounds: 4}]\n")
	r := gains(t, p, map[string]float64{"size=1": 5, "size=2": 5, "size=3": -50})
	if len(r.Primary.Cells) != 2 || r.Cell("size=3").Class != protocol.ClassStress || r.Cell("size=3").Rounds != 4 {
		t.Errorf("family %+v", r.Primary.Cells)
	}
	if pc := r.Primary.Cells[0]; !near(pc.AdjustedP, min(1, 2*float64(pc.P)), 1e-9) && pc.AdjustedP != r.Primary.Cells[1].AdjustedP {
		t.Errorf("corrected for another number of cells: %+v", r.Primary.Cells)
	}
}

func TestTheReportSaysWhatThePlanCouldFind(t *testing.T) {
	for test, scale := range map[string]string{"paired": "dz", "welch": "d", "mann-whitney": "d"} {
		r := gains(t, plan(t, fmt.Sprintf(threeCells, test)), nil)
		want, _ := stats.DetectableWelch(10, 0.8, 0.05/3)
		if test == "paired" {
			want, _ = stats.DetectablePaired(10, 0.8, 0.05/3)
		}
		if pw := r.Primary.Power; pw == nil || pw.Scale != scale || float64(pw.Detectable) != want {
			t.Errorf("%s: %+v, want %v", test, pw, want)
		}
	}
}
