package report

import (
	"fmt"
	"html/template"
	"math"
)

// plotSeries is what one arm contributes to a chart.
type plotSeries struct {
	arm    int // place among the protocol's arms: colour and shape
	name   string
	values []float64 // NaN where missing
}

// roundsPlot shows each arm's value in every round, in the order in which they
// ran, so that drift shows.
type roundsPlot struct {
	id, title, desc, unit string
	series                []plotSeries
	wide                  bool
	below                 string // what is counted along the axis; "" is the measured round
}

// beyondDots is the number of rounds at which a chart's marks would hide each
// other; from there on a column of pixels shows the range of its rounds.
const beyondDots = 320

// draw is empty where there is nothing to draw.
func (c roundsPlot) draw() template.HTML {
	rounds := 0
	lists := make([][]float64, len(c.series))
	for i, s := range c.series {
		lists[i] = s.values
		rounds = max(rounds, len(s.values))
	}
	lo, hi, ok := rangeOf(lists...)
	if !ok {
		return ""
	}
	f, factor, ok := c.frame(lo, hi, rounds)
	if !ok {
		return ""
	}
	d := newDrawing(c.id, f.width, f.height, c.title, c.desc)
	f.draw(d)
	for _, s := range c.series {
		if rounds > beyondDots {
			d.path("span "+armColour(s.arm), c.columns(f, factor, s.values))
			continue
		}
		c.dots(d, f, factor, s)
	}
	c.gaps(d, f)
	return d.done()
}

func (c roundsPlot) frame(lo, hi float64, rounds int) (f frame, factor float64, ok bool) {
	factor, unit := axisUnit(c.unit, lo, hi)
	lo, hi = padded(lo*factor, hi*factor, 0.06)
	y, ok := linearAxis(lo, hi, 0, 0, 4)
	if !ok {
		return f, 0, false
	}
	f = frame{width: narrowChart, unit: unit, below: c.below}
	if c.below == "" {
		f.below = "measured round"
	}
	if c.wide {
		f.width = wideChart
	}
	f.fit(y, seriesNames(c.series), seriesMarks(c.series))
	f.x = axis{lo: 1, hi: float64(rounds), from: f.left + 8, to: f.right - 8}
	if rounds < 2 {
		f.x.lo, f.x.hi = 0.5, 1.5
	}
	step := math.Max(1, niceStep(float64(rounds)/(f.width/70)))
	f.x.ticks = append([]tick{{1, "1"}}, linearTicks(math.Max(2, step/2), float64(rounds), step)...)
	return f, factor, true
}

func (c roundsPlot) dots(d *drawing, f frame, factor float64, s plotSeries) {
	p := pen{coarse: len(s.values) > manyMarks}
	var points [][2]float64
	broken := true
	for i, v := range s.values {
		if !finite(v) {
			broken = true
			continue
		}
		x, y := f.x.at(float64(i+1)), f.y.at(v*factor)
		if broken {
			p.move(x, y)
		} else {
			p.line(x, y)
		}
		broken = false
		points = append(points, [2]float64{x, y})
	}
	d.path("faint "+armColour(s.arm), p.String())
	r := 3.0
	if float64(len(s.values)) > (f.right-f.left)/7 {
		r = 2
	}
	d.markers(s.arm, r, points)
}

// columns draws, per pixel, the range of the values that fall on it.
func (c roundsPlot) columns(f frame, factor float64, values []float64) string {
	var p pen
	column, lo, hi := math.Inf(-1), 0.0, 0.0
	flush := func() {
		if !math.IsInf(column, 0) {
			p.move(column, f.y.at(lo*factor)+0.5)
			p.down(f.y.at(hi*factor) - 0.5)
		}
	}
	for i, v := range values {
		if !finite(v) {
			continue
		}
		if x := math.Round(f.x.at(float64(i + 1))); x != column {
			flush()
			column, lo, hi = x, v, v
			continue
		}
		lo, hi = math.Min(lo, v), math.Max(hi, v)
	}
	flush()
	return p.String()
}

// gaps marks, on the axis, each round in which an arm has no value.
func (c roundsPlot) gaps(d *drawing, f frame) {
	for _, s := range c.series {
		var p pen
		last := math.Inf(-1)
		for i, v := range s.values {
			if x := math.Round(f.x.at(float64(i + 1))); !finite(v) && x != last {
				p.mark(shapeCross, x, f.bottom-5-6*float64(s.arm%armStyles), 2.5)
				last = x
			}
		}
		d.path("mx "+armColour(s.arm), p.String())
	}
}

func seriesNames(list []plotSeries) []string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.name
	}
	return names
}

func seriesMarks(list []plotSeries) []marker {
	marks := make([]marker, len(list))
	for i, s := range list {
		marks[i] = armMarker(s.arm)
	}
	return marks
}

// roundsDesc is what a chart of rounds says to those who cannot see it.
func roundsDesc(list []plotSeries, unit string) string {
	s := ""
	for _, one := range list {
		n := 0
		for _, v := range one.values {
			if finite(v) {
				n++
			}
		}
		lo, hi, ok := rangeOf(one.values)
		if !ok {
			s += fmt.Sprintf("%s: no value. ", one.name)
			continue
		}
		s += fmt.Sprintf("%s: %d of %d rounds have a value, from %s to %s. ", one.name, n, len(one.values), withUnit(lo, unit), withUnit(hi, unit))
	}
	return s
}
