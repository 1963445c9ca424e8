package report

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"slices"
)

// Bounds of a trend.
const (
	trendRuns  = 60 // the newest, in a chart
	trendCells = 12
	wideTrend  = 14 // runs from which a chart is wide
)

// Trend draws the primary effect over the runs of one study, the oldest first: a
// chart per cell. Runs are numbered from 1 in that order. It is empty where fewer
// than two have an effect.
func Trend(runs []*Summary) template.HTML {
	// One axis carries one comparison; that of the newest run which has one.
	var newest *Summary
	var cells []string
	n := 0
	for _, r := range slices.Backward(runs) {
		if newest == nil && len(r.Effects) > 0 {
			newest = r
		}
		if newest.comparesAs(r) {
			n++
		}
		for _, e := range r.Effects {
			if newest.comparesAs(r) && !slices.Contains(cells, e.Cell) {
				cells = append(cells, e.Cell)
			}
		}
	}
	if n < 2 {
		return ""
	}
	room := &pageRoom{left: pageFigureBytes}
	var all []pageFigure
	for i, cell := range cells {
		if i == trendCells {
			break
		}
		c := newTrend(runs, newest, cell)
		c.id = room.id()
		chart := c.draw()
		if chart == "" {
			continue
		}
		all = append(all, pageFigure{Caption: c.caption, Cell: cell, More: leftOutRuns(len(runs)), Chart: chart, Wide: c.wide})
	}
	if len(all) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "figures", all); err != nil {
		panic("report: " + err.Error()) // the template is ours and writes to memory
	}
	return template.HTML(b.String())
}

func leftOutRuns(n int) string {
	if n <= trendRuns {
		return ""
	}
	return fmt.Sprintf("The newest %d of %s are drawn", trendRuns, counted(n, "run"))
}

// comparesAs says that the primary comparisons of two runs are of the same kind.
func (s *Summary) comparesAs(r *Summary) bool {
	return s != nil && s.Metric == r.Metric && s.Unit == r.Unit && s.Treatment == r.Treatment && s.Reference == r.Reference
}

// Effect is that of the cell, nil where the run has none.
func (s *Summary) Effect(cell string) *Effect {
	if i := slices.IndexFunc(s.Effects, func(e Effect) bool { return e.Cell == cell }); i >= 0 {
		return &s.Effects[i]
	}
	return nil
}

func newTrend(runs []*Summary, newest *Summary, cell string) trendPlot {
	c := trendPlot{relative: true, wide: len(runs) > wideTrend}
	// Where a run has no relative change, the axis is that of differences.
	for _, r := range runs {
		if e := r.Effect(cell); e != nil && newest.comparesAs(r) && finite(e.Change) && !e.Relative {
			c.relative = false
		}
	}
	c.caption = "Change of " + newest.Metric
	better := "higher is better"
	if newest.LowerIsBetter {
		better = "lower is better"
	}
	c.unit = newest.Treatment + " against " + newest.Reference + ", " + better
	if !c.relative {
		c.caption, c.unit = "Difference of "+newest.Metric, newest.Unit
	}
	if c.title = c.caption; cell != "" {
		c.title += inCell(cell)
	}
	for i, r := range runs {
		if len(runs)-i > trendRuns {
			continue
		}
		p := trendPoint{run: i + 1, class: r.Class, change: math.NaN(), broke: i > 0 && runs[i-1].Protocol != r.Protocol && len(runs)-i < trendRuns}
		p.text = fmt.Sprintf("run %d: %s", p.run, classWord(r.Class))
		if e := r.Effect(cell); e != nil && newest.comparesAs(r) && e.Missing == "" && e.Relative == c.relative {
			p.change, p.lo, p.hi = e.Change, e.Low, e.High
			p.text += ", " + e.Text
			if e.Interval != none {
				p.text += " " + e.Interval
			}
		} else {
			p.text += ", no figure"
		}
		c.points = append(c.points, p)
		c.desc += p.text + ". "
	}
	return c
}
