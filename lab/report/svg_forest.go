package report

import (
	"html/template"
	"math"
	"slices"
	"strings"
)

// forestPlot shows one metric's change against the reference, with its
// interval, for each arm in each cell. A cell's name stands above its arms, so
// that long names fit a phone; the legend tells the arms apart.
type forestPlot struct {
	id, title, desc string
	lowerIsBetter   bool
	groups          []forestGroup
}

// forestGroup is a cell. Its label is empty where there is but one.
type forestGroup struct {
	label string
	bold  bool // belongs to the confirmatory family
	rows  []forestRow
}

type forestRow struct {
	arm            int
	name           string
	change, lo, hi float64 // relative; NaN where unknown
	text           string  // the same in figures, or why there are none
}

const (
	forestStep = 19.0
	forestText = 146.0 // room for the figures right of the plot
)

func (c forestPlot) draw() template.HTML {
	x, ok := c.axis()
	if !ok {
		return ""
	}
	names, marks := c.arms()
	l := layoutLegend(names, marks, narrowChart)
	top := l.height + 4
	bottom := top
	for _, g := range c.groups {
		bottom += g.height()
	}
	d := newDrawing(c.id, narrowChart, bottom+2*labelRow+12, c.title, c.desc)
	d.legend(l)
	for _, g := range c.groups {
		c.group(d, x, top, g)
		top += g.height()
	}
	bottom += 4
	d.line("axis", x.from, bottom, x.to, bottom)
	free := math.Inf(-1)
	for _, t := range x.ticks {
		w := textWidth(t.label)
		if mid := math.Max(x.at(t.value), w/2); mid-w/2 >= free {
			d.line("tick", x.at(t.value), bottom, x.at(t.value), bottom+4)
			d.text("mid", mid, bottom+labelRow, t.label)
			free = mid + w/2 + 8
		}
	}
	left, right := "← worse", "better →"
	if c.lowerIsBetter {
		left, right = "← better", "worse →"
	}
	d.text("muted", x.from-10, bottom+2*labelRow+2, left)
	d.text("muted end", x.to+10, bottom+2*labelRow+2, right)
	return d.done()
}

// arms are those that have a row, in the order of the protocol.
func (c forestPlot) arms() (names []string, marks []marker) {
	var seen []int
	for _, g := range c.groups {
		for _, r := range g.rows {
			if !slices.Contains(seen, r.arm) {
				seen, names, marks = append(seen, r.arm), append(names, r.name), append(marks, armMarker(r.arm))
			}
		}
	}
	return names, marks
}

func (g forestGroup) height() float64 {
	h := forestStep * float64(len(g.rows))
	if g.label != "" {
		h += forestStep
	}
	return h
}

// group draws a cell. The grid is drawn anew behind each, so that no line runs
// through a name.
func (c forestPlot) group(d *drawing, x axis, top float64, g forestGroup) {
	if g.label != "" {
		class := ""
		if g.bold {
			class = "strong"
		}
		d.titled(class, 0, top+14, fitText(g.label, narrowChart-12), g.label)
		top += forestStep
	}
	bottom := top + forestStep*float64(len(g.rows))
	for _, t := range x.ticks {
		if t.value != 0 {
			d.line("grid", x.at(t.value), top, x.at(t.value), bottom)
		}
	}
	d.line("zero", x.at(0), top, x.at(0), bottom)
	for i, r := range g.rows {
		r.draw(d, x, top+forestStep*(float64(i)+0.5))
	}
}

func (r forestRow) draw(d *drawing, x axis, y float64) {
	if !finite(r.change) {
		d.titled("halo", x.from, y+4, fitText(r.text, narrowChart-x.from), r.text)
		return
	}
	if finite(r.lo) && finite(r.hi) {
		var p pen
		p.move(x.at(r.lo), y)
		p.across(x.at(r.hi))
		// Caps on a short bar would hide the mark between them.
		if x.at(r.hi)-x.at(r.lo) > 10 {
			for _, end := range []float64{r.lo, r.hi} {
				p.move(x.at(end), y-5)
				p.down(y + 5)
			}
		}
		d.path("line "+armColour(r.arm), p.String())
	}
	d.markers(r.arm, 3, [][2]float64{{x.at(r.change), y}})
	text := r.text
	if textWidth(text) > forestText {
		text, _, _ = strings.Cut(text, " [") // half an interval would be worse than none
	}
	d.titled("", narrowChart-forestText, y+4, fitText(text, forestText), r.text)
}

// axis spans all intervals and zero. Where a change is beyond a factor of
// four, a doubling and a halving get the same room: the scale is that of the
// ratio.
func (c forestPlot) axis() (axis, bool) {
	var all []float64
	for _, g := range c.groups {
		for _, r := range g.rows {
			all = append(all, r.change, r.lo, r.hi)
		}
	}
	lo, hi, ok := rangeOf(all)
	if !ok {
		return axis{}, false
	}
	lo, hi = math.Min(lo, 0), math.Max(hi, 0)
	from, to := 10.0, narrowChart-forestText-14
	if hi > 3 && lo > -1 {
		return ratioAxis(lo, hi, from, to)
	}
	if lo == 0 && hi == 0 {
		lo, hi = -0.01, 0.01
	}
	lo, hi = padded(lo, hi, 0.05)
	for n := 4; ; n-- {
		if a, ok := changeAxis(lo, hi, from, to, n); !ok || a.legible() || n == 1 {
			return a, ok
		}
	}
}

// changeAxis labels changes in per cent.
func changeAxis(lo, hi, from, to float64, want int) (axis, bool) {
	// The labels are per cent, so the round values must be.
	a, ok := linearAxis(100*lo, 100*hi, from, to, want)
	if !ok {
		return a, false
	}
	a.lo, a.hi = a.lo/100, a.hi/100
	for i := range a.ticks {
		t := &a.ticks[i]
		t.value /= 100
		if t.value > 0 {
			t.label = "+" + t.label
		}
		if t.value != 0 {
			t.label += " %"
		}
	}
	return a, true
}

// ratioAxis places changes by the logarithm of the ratio, and labels ratios.
func ratioAxis(lo, hi, from, to float64) (axis, bool) {
	a, ok := logAxis((1+lo)/1.1, (1+hi)*1.1, from, to)
	if !ok {
		return a, false
	}
	a.shift = 1
	for i, t := range a.ticks {
		a.ticks[i] = tick{t.value - 1, "×" + t.label}
	}
	return a, true
}
