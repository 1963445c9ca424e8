package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// exploratory shows what each arm did and who was faster: such a run has no
// question that a test could answer, only figures.
func (p *textPage) exploratory() {
	if len(p.Results.Cells) > fewCells {
		p.armsOfCells()
		return
	}
	for i := range p.Results.Cells {
		cell := &p.Results.Cells[i]
		p.heading("Arms%s", inCell(cell.Name))
		p.arms(cell, p.countsFirst())
	}
	p.heading("Summary")
	for i := range p.Results.Cells {
		p.summary(&p.Results.Cells[i])
	}
}

// armsOfCells is one table of the primary metric for many cells.
func (p *textPage) armsOfCells() {
	m := p.Run.Protocol.Metric(p.Run.Protocol.Primary.Metric)
	if m == nil {
		return
	}
	p.heading("Arms: %s (%s)", m.Name, direction(m))
	t := &textTable{
		head:  []string{p.cellHead(), "arm", "mean ± sd", "change", "interval"},
		right: []bool{false, false, true, true, true}, names: []bool{true, true, false, false, false}, grouped: true,
	}
	arms := p.Run.Protocol.Arms
	for i := range p.Results.Cells {
		if i == mostCells {
			break
		}
		first := true
		planned, known := p.Run.Protocol.Cell(p.Results.Cells[i].Name)
		for j := 1; j < len(arms); j++ {
			if known && !planned.Runs(arms[j].Name) {
				continue
			}
			f := p.figure(&p.Results.Cells[i], m, &arms[j])
			if first {
				first = false
				t.add(p.cellLabel(f.cell.Name), oneLine(arms[0].Name), spread(m, f.ref), "", "")
			}
			t.add(p.cellLabel(f.cell.Name), oneLine(f.arm.Name), spread(m, f.treat), f.change(), f.changeInterval())
		}
	}
	p.table(t)
	if n := len(p.Results.Cells) - mostCells; n > 0 {
		p.fact("not shown", counted(n, "more cell"))
	}
}

func (p *textPage) arms(cell *analysis.Cell, metrics []*protocol.Metric) {
	t := &textTable{
		head:  []string{"", "", "mean ± sd", "min … max", "rounds"},
		right: []bool{false, false, true, true, true}, names: []bool{true, true, false, false, false}, grouped: true,
	}
	planned, known := p.Run.Protocol.Cell(cell.Name)
	for i := range p.Run.Protocol.Arms {
		a := &p.Run.Protocol.Arms[i]
		if known && !planned.Runs(a.Name) {
			continue
		}
		for _, m := range metrics {
			sum := orNoSummary(cell.Metric(m.Name).Arm(a.Name))
			t.add(oneLine(a.Name), oneLine(m.Name), spread(m, sum), span(float64(sum.Min), float64(sum.Max), m.Unit), num(float64(sum.N)))
		}
	}
	p.table(t)
}

// summary says of each arm how it compares with the reference on the primary
// metric.
func (p *textPage) summary(cell *analysis.Cell) {
	q := p.Run.Protocol.Primary
	for _, f := range p.figures(cell) {
		if f.metric.Name != q.Metric {
			continue
		}
		s := f.inWords(p.Run.Protocol.Reference())
		if cell.Name != protocol.NoFactors {
			s = oneLine(cell.Name) + ": " + s
		}
		p.para("  ", s)
	}
}

// inWords is the comparison as a sentence. The interval stands in place of a
// plus-minus, because that of a ratio is not symmetric.
func (f *figure) inWords(reference string) string {
	r := float64(f.cmp.Ratio)
	if !(r > 0) || math.IsInf(r, 0) || !(f.ref.Mean > 0) {
		return fmt.Sprintf("%s: %s changes by %s against %s", f.arm.Name, f.metric.Name, f.change(), reference)
	}
	lo, hi := math.NaN(), math.NaN()
	level := ""
	if ci := f.cmp.RatioCI; ci != nil {
		lo, hi = float64(ci.Low), float64(ci.High)
		level = num(100*float64(ci.Level)) + " % interval "
	}
	more, less := f.arm.Name, reference
	if r < 1 {
		r, lo, hi = 1/r, 1/hi, 1/lo
		more, less = less, more
	}
	bounds := "one round, so no interval"
	if !math.IsNaN(lo) && !math.IsNaN(hi) {
		bounds = level + times(lo) + " to " + times(hi)
	}
	switch {
	case r == 1 && !(lo < 1 || hi > 1):
		return fmt.Sprintf("%s and %s have the same %s", f.arm.Name, reference, f.metric.Name)
	case lo <= 1:
		return fmt.Sprintf("no difference in %s shown between %s and %s: ratio %s (%s)", f.metric.Name, less, more, times(r), bounds)
	case isTime(f.metric.Unit) && f.metric.Better == "lower":
		return fmt.Sprintf("%s is %s times faster than %s (%s: %s)", less, times(r), more, f.metric.Name, bounds)
	}
	word := "worse"
	if (more == f.arm.Name) == f.cmp.Better {
		word = "better"
	}
	return fmt.Sprintf("%s has %s times the %s of %s, which is %s (%s)", more, times(r), f.metric.Name, less, word, bounds)
}

// times is a ratio with as many digits as people say.
func times(x float64) string {
	if x >= 100 || math.IsNaN(x) {
		return num(x)
	}
	return fmt.Sprintf("%.2f", x)
}

func isTime(unit string) bool {
	base, _, _ := strings.Cut(unit, "/")
	return base == "us" || slices.ContainsFunc(ladders[0], func(s step) bool { return s.name == base })
}
