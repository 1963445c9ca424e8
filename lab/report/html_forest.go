package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// pageFigure is a chart with its caption.
type pageFigure struct {
	Caption string
	Cell    string // that the caption names; "" where it names none
	More    string // what was left out
	Chart   template.HTML
	Wide    bool
}

// newPageForest draws one forest plot per metric: metrics differ in size and
// in which side is better, so they share no axis.
func newPageForest(s *Source, names *cellNames, room *pageRoom) []pageFigure {
	var all []pageFigure
	for _, m := range s.countsFirst() {
		silent := 0 // cells in which nobody has a value
		c := newForest(s, names.of, m, room, func(f *figure) bool { return f.ref.N+f.treat.N > 0 })
		for i := range s.Results.Cells {
			if valueless(s.Results.Cells[i].Metric(m.Name)) {
				silent++
			}
		}
		chart := c.draw()
		if chart == "" || room.full() {
			continue
		}
		room.take(len(chart))
		caption := m.Name + ", " + direction(m)
		if silent > 0 {
			caption += fmt.Sprintf(". No value in %s", counted(silent, "cell"))
		}
		if rest := len(s.Results.Cells) - silent - len(c.groups); rest > 0 {
			caption += ". " + leftOut(rest, "cell")
		}
		all = append(all, pageFigure{Caption: caption, Chart: chart})
	}
	return all
}

// valueless says whether no arm has a value in any round.
func valueless(m *analysis.CellMetric) bool {
	return m == nil || !slices.ContainsFunc(m.Arms, func(a analysis.ArmSummary) bool { return a.N > 0 })
}

// newForest gathers the figures of one metric that are asked for.
func newForest(s *Source, name func(string) string, m *protocol.Metric, room *pageRoom, wanted func(*figure) bool) forestPlot {
	c := forestPlot{id: room.id(), lowerIsBetter: m.Better == "lower", title: "Change of " + m.Name + " against " + s.Run.Protocol.Reference()}
	rows := 0
	for i := range s.Results.Cells {
		if rows >= forestRows {
			break
		}
		cell := &s.Results.Cells[i]
		g := forestGroup{label: name(cell.Name)}
		if cell.Name == protocol.NoFactors {
			g.label = ""
		} else if cell.Class == protocol.ClassStress {
			g.label += " (stress)"
		}
		for _, f := range s.figuresOf(cell, m) {
			if wanted(&f) {
				r := newForestRow(s, &f)
				g.rows, g.bold = append(g.rows, r), g.bold || f.primary != nil
				c.desc += strings.TrimPrefix(g.label+", ", ", ") + r.name + ": " + r.text + ". "
			}
		}
		if rows += len(g.rows); len(g.rows) > 0 {
			c.groups = append(c.groups, g)
		}
	}
	return c
}

// figuresOf are the cell's figures of one metric, in the order of the arms.
func (s *Source) figuresOf(cell *analysis.Cell, m *protocol.Metric) []figure {
	return slices.DeleteFunc(s.figures(cell), func(f figure) bool { return f.metric.Name != m.Name })
}

func newForestRow(s *Source, f *figure) forestRow {
	row := forestRow{
		arm: armPlace(s, f.arm.Name), name: f.arm.Name,
		change: float64(f.cmp.Change), lo: float64(nan), hi: float64(nan), text: f.change(),
	}
	lo, hi, ok := f.relative()
	switch {
	case !finite(row.change):
		row.text = "no relative change"
		if text := f.change(); text != none {
			row.text += "; difference " + text
		}
	case f.exact():
		row.text += ", exact"
	case ok:
		row.lo, row.hi = lo, hi
		row.text += " " + strings.TrimSuffix(percentInterval(lo, hi), " %")
	}
	return row
}
