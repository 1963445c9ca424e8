package report

import (
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

// hostPlot shows one probe over the run, with its limits.
type hostPlot struct {
	id, title, desc, unit string
	readings              []hostPoint
	limits                []hostLimit
	resumed               []time.Duration // when the run went on after a stop
}

// hostPoint is a reading at the end of its stretch of the run. Time in which
// the run stood still is not counted.
type hostPoint struct {
	at     time.Duration
	value  float64 // NaN where unavailable
	breach bool
}

type hostLimit struct {
	value float64
	label string
}

const hostHeight = 96.0

func (c hostPlot) values() []float64 {
	values := make([]float64, len(c.readings))
	for i, r := range c.readings {
		values[i] = r.value
	}
	return values
}

func (c hostPlot) breached() bool {
	return slices.ContainsFunc(c.readings, func(r hostPoint) bool { return r.breach && finite(r.value) })
}

func (c hostPlot) draw() template.HTML {
	values := c.values()
	end := time.Duration(1)
	for _, r := range c.readings {
		end = max(end, r.at)
	}
	if _, _, ok := rangeOf(values); !ok {
		return ""
	}
	// Zero and the limits belong to the picture: how far away they are is what
	// it is for.
	values = append(values, 0)
	for _, l := range c.limits {
		values = append(values, l.value)
	}
	lo, hi, _ := rangeOf(values)
	if hi == lo {
		hi = lo + 1
	}
	room := (hi - lo) * 0.08
	if lo < 0 {
		lo -= room
	}
	y, ok := linearAxis(lo, hi+room, 0, 0, 3)
	if !ok {
		return ""
	}
	clock, word := time.Second, "seconds"
	if end > 3*time.Hour {
		clock, word = time.Hour, "hours"
	} else if end > 3*time.Minute {
		clock, word = time.Minute, "minutes"
	}
	f := frame{width: narrowChart, unit: c.unit, below: word + " since the start"}
	f.fit(y, nil, nil)
	f.bottom -= plotHeight - hostHeight
	f.height -= plotHeight - hostHeight
	f.y.from = f.bottom
	if f.x, ok = legibleAxis(0, float64(end)/float64(clock), f.left+6, f.right-6, 4); !ok {
		return ""
	}
	d := newDrawing(c.id, f.width, f.height, c.title, c.desc)
	f.draw(d)
	for _, at := range c.resumed {
		x := f.x.at(float64(at) / float64(clock))
		d.line("resume", x, f.top, x, f.bottom)
	}
	c.trace(d, f, clock)
	var labels []string
	for _, l := range c.limits {
		at := f.y.at(l.value)
		d.line("limit", f.left, at, f.right, at)
		labels = append(labels, l.label)
	}
	if label := strings.Join(labels, ", "); label != "" {
		room := f.right - textWidth(f.unit) - 12
		d.titled("end limit-label", f.right, f.top-12, fitText("- - "+label, room), "- - "+label)
	}
	return d.done()
}

// trace draws the readings. Readings that share a pixel become one stroke over
// their range, so that a long run costs no more than a short one.
func (c hostPlot) trace(d *drawing, f frame, clock time.Duration) {
	var line, missing pen
	var points, breaches [][2]float64
	x, lo, hi := math.Inf(-1), 0.0, 0.0
	pendown := false
	flush := func() {
		if math.IsInf(x, 0) {
			return
		}
		if pendown {
			line.line(x, lo)
		} else {
			line.move(x, lo)
		}
		if hi-lo >= 0.1 || lo-hi >= 0.1 {
			line.down(hi)
		}
		pendown, x = true, math.Inf(-1)
	}
	lastMissing := math.Inf(-1)
	for _, r := range c.readings {
		at := math.Round(f.x.at(float64(r.at)/float64(clock))*2) / 2
		if !finite(r.value) {
			flush()
			pendown = false
			if at != lastMissing {
				missing.mark(shapeCross, at, f.bottom-5, 2.5)
				lastMissing = at
			}
			continue
		}
		y := f.y.at(r.value)
		if at != x {
			flush()
			x, lo, hi = at, y, y
			points = append(points, [2]float64{at, y})
		} else {
			lo, hi = math.Max(lo, y), math.Min(hi, y)
		}
		if r.breach && (len(breaches) == 0 || breaches[len(breaches)-1][0] != at) {
			breaches = append(breaches, [2]float64{at, y})
		}
	}
	flush()
	d.path("line host", line.String())
	if len(points) <= 60 {
		var p pen
		for _, at := range points {
			p.mark(shapeCircle, at[0], at[1], 0)
		}
		d.path("dot host", p.String())
	}
	d.path("mx faded", missing.String())
	var p pen
	for _, at := range breaches {
		p.mark(shapeTriangle, at[0], at[1], 4)
	}
	d.path("breach", p.String())
}
