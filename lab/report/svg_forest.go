package report

import (
	"html/template"
	"math"
)

// forestPlot shows one metric's change against the reference in each cell, with
// its interval. Each row is a line of words above a line of marks, so that long
// cell names fit a phone.
type forestPlot struct {
	id, title, desc string
	lowerIsBetter   bool
	rows            []forestRow
}

type forestRow struct {
	arm            int
	label          string
	bold           bool    // belongs to the confirmatory family
	change, lo, hi float64 // relative; NaN where unknown
	text           string  // the same in figures, or why there are none
}

const (
	forestStep = 38.0
	forestText = 142.0 // room for the figures right of the plot
)

func (c forestPlot) draw() template.HTML {
	x, ok := c.axis()
	if !ok {
		return ""
	}
	bottom := forestStep*float64(len(c.rows)) + 4
	d := newDrawing(c.id, narrowChart, bottom+2*labelRow+8, c.title, c.desc)
	free := math.Inf(-1)
	for _, t := range x.ticks {
		at := x.at(t.value)
		d.line("grid", at, 0, at, bottom)
		w := textWidth(t.label)
		if mid := math.Max(at, w/2); mid-w/2 >= free {
			d.text("mid", mid, bottom+labelRow, t.label)
			free = mid + w/2 + 4
		}
	}
	d.line("axis", x.from, bottom, x.to, bottom)
	d.line("zero", x.at(0), 0, x.at(0), bottom)
	left, right := "← worse", "better →"
	if c.lowerIsBetter {
		left, right = "← better", "worse →"
	}
	d.text("muted", x.from, bottom+2*labelRow+2, left)
	d.text("muted end", x.to, bottom+2*labelRow+2, right)
	for i, r := range c.rows {
		c.row(d, x, forestStep*float64(i), r)
	}
	return d.done()
}

func (c forestPlot) row(d *drawing, x axis, top float64, r forestRow) {
	class := "halo"
	if r.bold {
		class += " strong"
	}
	d.titled(class, 0, top+14, fitText(r.label, narrowChart-4), r.label)
	y := top + 27
	if finite(r.lo) && finite(r.hi) {
		var p pen
		p.move(x.at(r.lo), y)
		p.across(x.at(r.hi))
		for _, end := range []float64{r.lo, r.hi} {
			p.move(x.at(end), y-4)
			p.down(y + 4)
		}
		d.path("line "+armColour(r.arm), p.String())
	}
	if finite(r.change) {
		d.markers(r.arm, 4, [][2]float64{{x.at(r.change), y}})
	}
	room := forestText
	at := narrowChart - forestText
	if !finite(r.change) {
		room, at = narrowChart, 0
	}
	d.titled("halo num", at, y+4, fitText(r.text, room), r.text)
}

// axis spans all intervals and zero. Where a change is beyond a factor of
// four, a doubling and a halving get the same room: the scale is that of the
// ratio.
func (c forestPlot) axis() (axis, bool) {
	var all []float64
	for _, r := range c.rows {
		all = append(all, r.change, r.lo, r.hi)
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
	// The labels are per cent, so the round values must be.
	a, ok := linearAxis(100*lo, 100*hi, from, to, 3)
	if !ok {
		return a, false
	}
	a.lo, a.hi = lo, hi
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
