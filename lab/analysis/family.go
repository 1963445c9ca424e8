package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
)

// detectPower is the power at which the report says what the plan could find.
const detectPower = 0.8

// family gathers the confirmatory comparisons, corrects them by Holm and picks
// the cell that speaks for them: one that is significantly worse if there is
// any, else the one with the largest p.
func (r *Results) family(p *protocol.Protocol) {
	q := p.Primary
	m := p.Metric(q.Metric)
	pr := &Primary{Metric: q.Metric, Treatment: q.Treatment, Test: q.Test, Alpha: Number(q.Alpha)}
	cells := p.PrimaryCells()
	ps := make([]float64, len(cells))
	for i, c := range cells {
		pc := PrimaryCell{Cell: c.Name, P: nan, AdjustedP: nan, Diff: nan, CI: Interval{nan, nan, nan}}
		ps[i] = math.NaN()
		cmp := r.Cell(c.Name).Metric(m.Name).Against(q.Treatment)
		switch {
		case cmp == nil:
			pc.Missing = "no comparison"
		case cmp.N < c.Rounds:
			pc.N = cmp.N
			pc.Missing = fmt.Sprintf("%d of %d rounds lack a value of %s", c.Rounds-cmp.N, c.Rounds, m.Name)
		case cmp.Contradiction != "":
			pc.N, pc.Missing = cmp.N, cmp.Contradiction
		default:
			pc.N = cmp.N
			pc.P, pc.Diff, pc.CI, pc.Missing = cmp.test(q.Test)
			ps[i] = float64(pc.P)
			better, worse := direction(m, float64(pc.Diff))
			pc.Better, pc.Worse = better && cmp.Better, worse || cmp.Worse
		}
		pr.Cells = append(pr.Cells, pc)
	}
	adjusted := stats.Holm(ps)
	for i := range pr.Cells {
		pr.Cells[i].AdjustedP = Number(adjusted[i])
	}
	pr.Weakest = pr.weakest()
	n := cells[0].Rounds
	for _, c := range cells {
		n = min(n, c.Rounds)
	}
	alpha := q.Alpha / float64(len(cells))
	note := &PowerNote{Scale: "d"}
	d, err := stats.DetectableWelch(n, detectPower, alpha)
	if q.Test == protocol.TestPaired {
		note.Scale = "dz"
		d, err = stats.DetectablePaired(n, detectPower, alpha)
	}
	if err == nil {
		note.Detectable = Number(d)
		pr.Power = note
	}
	r.Primary = pr
}

func (pr *Primary) weakest() string {
	rank := func(c PrimaryCell) float64 {
		switch {
		case math.IsNaN(float64(c.AdjustedP)):
			return 3 // a missing comparison is the weakest of all
		case c.Worse && c.AdjustedP < pr.Alpha:
			return 2
		}
		return float64(c.AdjustedP)
	}
	weakest := slices.MaxFunc(pr.Cells, func(a, b PrimaryCell) int { return cmp.Compare(rank(a), rank(b)) })
	return weakest.Cell
}

// test picks the frozen test out of those computed: its p, its own estimate of
// the difference, and that one's interval.
func (c *Comparison) test(name string) (p, diff Number, ci Interval, missing string) {
	switch name {
	case protocol.TestWelch:
		if c.Welch != nil {
			return c.Welch.P, c.Welch.Diff, c.Welch.CI, ""
		}
	case protocol.TestMannWhitney:
		if c.MannWhitney != nil && c.Shift != nil {
			return c.MannWhitney.P, c.Shift.Estimate, c.Shift.CI, ""
		}
	case protocol.TestPaired:
		if c.Paired != nil {
			return c.Paired.P, c.Paired.Diff, c.Paired.CI, ""
		}
	}
	return nan, nan, Interval{nan, nan, nan}, "the " + name + " test could not be computed"
}
