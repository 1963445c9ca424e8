package report

import (
	"html"
	"html/template"
	"math"
	"slices"

	"github.com/assaylab/assay/lab/gate"
)

// trendPlot shows one effect over the runs of a study, in the order in which
// they began, with its interval; shape and colour of a mark are the verdict.
type trendPlot struct {
	id, title, desc, unit string
	caption               string // the title without the cell
	relative              bool   // effects are parts of the reference
	wide                  bool
	points                []trendPoint
}

type trendPoint struct {
	run            int // number of the run, from 1
	class          gate.Class
	change, lo, hi float64 // NaN where unknown
	text           string  // the same in words
	broke          bool    // the run before it had another protocol
}

// classMarker is a verdict as a mark.
func classMarker(c gate.Class) marker {
	shape := map[string]int{"go": shapeCircle, "no-go": shapeSquare, "inconclusive": shapeDiamond, "invalid": shapeTriangle}
	return marker{shape[classStyle(c)], "c-" + classStyle(c)}
}

// draw is empty where no run has an effect.
func (c trendPlot) draw() template.HTML {
	var all []float64
	for _, p := range c.points {
		if finite(p.change) {
			all = append(all, p.change, p.lo, p.hi)
		}
	}
	lo, hi, ok := rangeOf(all)
	if !ok {
		return ""
	}
	y, factor, unit, ok := c.scale(math.Min(lo, 0), math.Max(hi, 0))
	if !ok {
		return ""
	}
	f := frame{width: narrowChart, unit: unit, below: "run, the oldest first"}
	if c.wide {
		f.width = wideChart
	}
	names, marks := c.classes()
	f.fit(y, names, marks)
	first, last := c.points[0].run, c.points[len(c.points)-1].run
	f.x = axis{lo: float64(first), hi: float64(last), from: f.left + 12, to: f.right - 12}
	if first == last {
		f.x.lo, f.x.hi = f.x.lo-0.5, f.x.hi+0.5
	}
	step := math.Max(1, niceStep(float64(last-first+1)/(f.width/60)))
	f.x.ticks = linearTicks(float64(first), float64(last), step)
	d := newDrawing(c.id, f.width, f.height, c.title, c.desc)
	f.draw(d)
	d.line("zero", f.left, f.y.at(0), f.right, f.y.at(0))
	for _, p := range c.points {
		p.draw(d, f, factor)
	}
	return d.done()
}

// scale is the value axis, and how values get there.
func (c trendPlot) scale(lo, hi float64) (y axis, factor float64, unit string, ok bool) {
	if lo == 0 && hi == 0 {
		lo, hi = -0.01, 0.01
	}
	switch {
	case c.relative && hi > 3 && lo > -1:
		y, ok = ratioAxis(lo, hi, 0, 0)
		return y, 1, c.unit, ok
	case c.relative:
		lo, hi = padded(lo, hi, 0.06)
		y, ok = changeAxis(lo, hi, 0, 0, 5)
		return y, 1, c.unit, ok
	}
	factor, unit = axisUnit(c.unit, lo, hi)
	lo, hi = padded(lo*factor, hi*factor, 0.06)
	y, ok = linearAxis(lo, hi, 0, 0, 4)
	return y, factor, unit, ok
}

// classes are the verdicts that occur, for the legend.
func (c trendPlot) classes() (names []string, marks []marker) {
	for _, p := range c.points {
		if m := classMarker(p.class); !slices.Contains(marks, m) {
			names, marks = append(names, classWord(p.class)), append(marks, m)
		}
	}
	return names, marks
}

func (p trendPoint) draw(d *drawing, f frame, factor float64) {
	x, m := f.x.at(float64(p.run)), classMarker(p.class)
	d.b.WriteString("<g><title>" + html.EscapeString(p.text) + "</title>")
	if p.broke {
		between := (x + f.x.at(float64(p.run-1))) / 2
		d.line("resume", between, f.top, between, f.bottom)
	}
	switch {
	case !finite(p.change):
		var missing pen
		missing.mark(shapeCross, x, f.bottom-6, 3)
		d.path("mx "+m.colour, missing.String())
	case finite(p.lo) && finite(p.hi):
		var bar pen
		bar.move(x, f.y.at(p.lo*factor))
		bar.down(f.y.at(p.hi * factor))
		d.path("line "+m.colour, bar.String())
		fallthrough
	default:
		d.marks(m, 4, [][2]float64{{x, f.y.at(p.change * factor)}})
	}
	d.b.WriteString("</g>\n")
}
