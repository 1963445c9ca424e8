package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// primary shows the confirmatory comparison: at length for one cell, a line
// each for several.
func (p *textPage) primary() {
	pr := p.Results.Primary
	m := p.Run.Protocol.Metric(p.Run.Protocol.Primary.Metric)
	if pr == nil || m == nil {
		return
	}
	p.heading("Primary: %s (%s), %s against %s", pr.Metric, direction(m), pr.Treatment, p.Run.Protocol.Reference())
	if len(pr.Cells) == 1 {
		p.onePrimary(&pr.Cells[0], m)
	} else {
		p.family(pr, m)
	}
	if pr.Power != nil {
		p.fact("power", fmt.Sprintf("an effect of %s %s would have been found with probability 0.8", pr.Power.Scale, num(float64(pr.Power.Detectable))))
	}
}

func (p *textPage) onePrimary(pc *analysis.PrimaryCell, m *protocol.Metric) {
	f := p.figureOf(pc.Cell, m.Name, p.Results.Primary.Treatment)
	if f == nil {
		p.fact("MISSING", pc.Missing)
		return
	}
	t := &textTable{right: []bool{false, true, true, true}, names: []bool{true, false, false, false}}
	for _, a := range []*analysis.ArmSummary{f.ref, f.treat} {
		t.add(oneLine(a.Arm), spread(m, a), span(float64(a.Min), float64(a.Max), m.Unit), counted(a.N, "round"))
	}
	p.table(t)
	p.fact("change", strings.Join(compact(f.change()+" "+f.changeInterval(), f.towards()), ", "))
	if pc.Missing != "" {
		p.fact("MISSING", pc.Missing)
		return
	}
	diff, of := pc.Diff, ""
	if f.test == protocol.TestMannWhitney && f.cmp.Shift != nil {
		// The interval of a rank test is of the shift, not of the means.
		diff, of = f.cmp.Shift.Estimate, " (Hodges-Lehmann)"
	}
	p.fact("difference", signed(float64(diff), m.Unit)+of+", interval "+interval(float64(pc.CI.Low), float64(pc.CI.High), m.Unit))
	p.fact("test", fmt.Sprintf("%s, %s, alpha %s, dz %s, d %s, %s", p.Results.Primary.Test, pphrase(float64(pc.AdjustedP)),
		num(float64(p.Results.Primary.Alpha)), f.gainful(f.cmp.Dz), f.gainful(f.cmp.D), counted(pc.N, "round")))
}

// family is a line per cell. Of very many cells those that hold the decision
// back are shown.
func (p *textPage) family(pr *analysis.Primary, m *protocol.Metric) {
	t := &textTable{
		head:  []string{p.cellHead(), oneLine(p.Run.Protocol.Reference()), "change", "interval", "p", "adjusted"},
		right: []bool{false, true, true, true, true, true}, names: []bool{true, false, false, false, false, false},
	}
	cells := pr.Cells
	if len(cells) > mostCells {
		cells = weakestFirst(pr)[:mostCells]
	}
	var missing []string
	for _, pc := range cells {
		f := p.figureOf(pc.Cell, m.Name, pr.Treatment)
		if f == nil {
			t.add(p.cellLabel(pc.Cell), none, none, none, none, none)
		} else {
			t.add(p.cellLabel(pc.Cell), withUnit(middle(m, f.ref), m.Unit), f.change(), f.changeInterval(), pvalue(float64(pc.P)), pvalue(float64(pc.AdjustedP)))
		}
		if pc.Missing != "" {
			missing = append(missing, pc.Cell+": "+pc.Missing)
		}
	}
	p.table(t)
	if n := len(pr.Cells) - len(cells); n > 0 {
		p.fact("not shown", counted(n, "cell")+" with smaller p")
	}
	for _, s := range missing {
		p.fact("MISSING", s)
	}
	p.fact("weakest", pr.Weakest+" speaks for the family")
	p.fact("test", fmt.Sprintf("%s, alpha %s over %s, adjusted by Holm", pr.Test, num(float64(pr.Alpha)), counted(len(pr.Cells), "cell")))
}

func weakestFirst(pr *analysis.Primary) []analysis.PrimaryCell {
	cells := slices.Clone(pr.Cells)
	weight := func(c analysis.PrimaryCell) float64 {
		switch {
		case c.Cell == pr.Weakest:
			return 3
		case c.Missing != "" || math.IsNaN(float64(c.AdjustedP)):
			return 2
		}
		return float64(c.AdjustedP)
	}
	slices.SortStableFunc(cells, func(a, b analysis.PrimaryCell) int { return cmp.Compare(weight(b), weight(a)) })
	return cells
}
