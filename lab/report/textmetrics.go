package report

import (
	"fmt"
	"math"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// metrics is a cell's table.
func (p *textPage) metrics(cell *analysis.Cell) {
	title := "Metrics" + inCell(cell.Name)
	if cell.Class == protocol.ClassStress {
		title += " (stress: reported, not judged)"
	}
	p.heading("%s", title)
	figs := p.figures(cell)
	if len(p.Run.Protocol.Arms) > 2 {
		p.table(p.ofArms(figs))
	} else {
		p.table(p.ofTwo(figs))
	}
	p.gaps(figs)
}

// ofTwo has a line for each metric.
func (p *textPage) ofTwo(figs []figure) *textTable {
	arm := "arm"
	if len(figs) > 0 {
		arm = clipped(figs[0].arm.Name, 14)
	}
	t := &textTable{
		head:  []string{"metric", clipped(p.Run.Protocol.Reference(), 14), arm, "", "change", "interval", "p"},
		right: []bool{false, true, true, false, true, true, true}, names: []bool{true, false, false, false, false, false, false}, grouped: true,
	}
	for i := range figs {
		f := &figs[i]
		// One unit for both, so that they can be compared at a glance.
		ref, treat := middle(f.metric, f.ref), middle(f.metric, f.treat)
		factor, unit := scale(f.metric.Unit, ref, treat)
		t.add(metricLabel(f.metric), num(ref*factor), num(treat*factor), unit, f.change(), f.changeInterval(), f.pText())
	}
	return t
}

// ofArms has a line for each arm, the reference first, so that there is room for their names.
func (p *textPage) ofArms(figs []figure) *textTable {
	t := &textTable{
		head:  []string{"metric", "arm", "", "", "change", "interval", "p"},
		right: []bool{false, false, true, false, true, true, true}, names: []bool{true, true, false, false, false, false, false}, grouped: true,
	}
	for len(figs) > 0 {
		m, n := figs[0].metric, 1
		for n < len(figs) && figs[n].metric == m {
			n++
		}
		values := []float64{middle(m, figs[0].ref)}
		for i := range figs[:n] {
			values = append(values, middle(m, figs[i].treat))
		}
		factor, unit := scale(m.Unit, values...)
		t.add(metricLabel(m), oneLine(p.Run.Protocol.Reference()), num(values[0]*factor), unit, "reference", "", "")
		for i := range figs[:n] {
			f := &figs[i]
			t.add(metricLabel(m), oneLine(f.arm.Name), num(values[i+1]*factor), unit, f.change(), f.changeInterval(), f.pText())
		}
		figs = figs[n:]
	}
	return t
}

// legend says what the tables leave out.
func (p *textPage) legend() {
	q := p.Run.Protocol.Primary
	text := fmt.Sprintf("↓ lower is better, ↑ higher; changes are of means, intervals are %s %%, p is of the %s test and not adjusted", num(100*(1-q.Alpha)), q.Test)
	for _, m := range p.countsFirst() {
		if m.Summarise == protocol.StatMedian {
			text += "; " + m.Name + " is shown as its median"
		}
	}
	p.para("  ", text)
}

// gaps says what a dash in the table means.
func (p *textPage) gaps(figs []figure) {
	said := map[string]bool{}
	for i := range figs {
		for _, a := range []*analysis.ArmSummary{figs[i].ref, figs[i].treat} {
			for _, why := range sortedKeys(a.Missing) {
				s := fmt.Sprintf("%s, arm %s, %s: %s", figs[i].metric.Name, a.Arm, counted(a.Missing[why], "round"), why)
				if !said[s] {
					said[s] = true
					p.fact("missing", s)
				}
			}
		}
	}
}

// metricLabel is the metric with an arrow to where it improves.
func metricLabel(m *protocol.Metric) string {
	s := oneLine(m.Name) + " "
	if m.Better == "higher" {
		s += "↑"
	} else {
		s += "↓"
	}
	return s
}

// overview is for many cells: how far each metric moves, and where it looks
// worst.
func (p *textPage) overview() {
	p.heading("Metrics, change over %s", counted(len(p.Results.Cells), "cell"))
	t := &textTable{
		head:  []string{"metric", "arm", "best", "worst", "at " + p.cellHead()},
		right: []bool{false, false, true, true, false}, names: []bool{true, true, false, false, true},
	}
	all := p.allFigures()
	for _, m := range p.countsFirst() {
		for i := 1; i < len(p.Run.Protocol.Arms); i++ {
			arm := &p.Run.Protocol.Arms[i]
			var best, worst *figure
			for j := range all {
				f := &all[j]
				if f.metric != m || f.arm != arm || math.IsNaN(gain(f)) {
					continue
				}
				if best == nil || gain(f) > gain(best) {
					best = f
				}
				if worst == nil || gain(f) < gain(worst) {
					worst = f
				}
			}
			if best == nil {
				t.add(metricLabel(m), oneLine(arm.Name), none, none, "")
				continue
			}
			t.add(metricLabel(m), oneLine(arm.Name), best.change(), worst.change(), p.cellLabel(worst.cell.Name))
		}
	}
	p.table(t)
	p.para("  ", "Every figure of every cell stands in results.json and on the page.")
}

// gain is the change, or the difference where there is none, turned so that
// more is better.
func gain(f *figure) float64 {
	x := float64(f.cmp.Change)
	if math.IsNaN(x) {
		x = float64(f.cmp.Diff)
	}
	if f.metric.Better == "lower" {
		return -x
	}
	return x
}
