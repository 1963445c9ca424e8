package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
)

// ecdfPlot shows the share of rounds at or below each value, per arm: the
// whole distribution, without bins that somebody chose.
type ecdfPlot struct {
	id, title, desc, unit string
	series                []plotSeries
}

// fewSteps is how many steps of a curve still get a marker each.
const fewSteps = 24

func (c ecdfPlot) draw() template.HTML {
	sorted := make([][]float64, len(c.series))
	for i, s := range c.series {
		sorted[i] = slices.DeleteFunc(slices.Clone(s.values), func(v float64) bool { return !finite(v) })
		slices.Sort(sorted[i])
	}
	lo, hi, ok := rangeOf(sorted...)
	if !ok {
		return ""
	}
	factor, unit := axisUnit(c.unit, lo, hi)
	f := frame{width: narrowChart, unit: "share of rounds at or below", below: unit}
	y, _ := linearAxis(0, 1, 0, 0, 4)
	y.ticks = []tick{{0, "0 %"}, {0.25, "25 %"}, {0.5, "50 %"}, {0.75, "75 %"}, {1, "100 %"}}
	f.fit(y, seriesNames(c.series), seriesMarks(c.series))
	lo, hi = padded(lo*factor, hi*factor, 0.04)
	if f.x, ok = legibleAxis(lo, hi, f.left+2, f.right, 5); !ok {
		return ""
	}
	d := newDrawing(c.id, f.width, f.height, c.title, c.desc)
	f.draw(d)
	for i, s := range c.series {
		curve, points := ecdfCurve(f, factor, sorted[i])
		d.path("line "+armColour(s.arm), curve)
		d.markers(s.arm, 3, points)
	}
	return d.done()
}

// ecdfCurve is the stair of the sorted values, and where its markers go: on
// every step, or on the quartiles where there are too many steps.
func ecdfCurve(f frame, factor float64, sorted []float64) (string, [][2]float64) {
	n := len(sorted)
	if n == 0 {
		return "", nil
	}
	p := pen{coarse: n > manyMarks}
	var points [][2]float64
	last, least := f.x.at(sorted[0]*factor), 0.5
	if p.coarse {
		least = 1
	}
	p.move(last, f.y.at(0))
	height := f.y.at(0)
	for i, v := range sorted {
		if i+1 < n && sorted[i+1] == v {
			continue
		}
		x, y := f.x.at(v*factor), f.y.at(float64(i+1)/float64(n))
		// Steps within a pixel of each other are one.
		if x-last >= least {
			p.down(height)
			p.across(x)
			last = x
		}
		height = y
		if n <= fewSteps {
			points = append(points, [2]float64{x, y})
		}
	}
	p.down(height)
	if n > fewSteps {
		for _, share := range []float64{0.25, 0.5, 0.75} {
			i := int(math.Ceil(share*float64(n))) - 1
			points = append(points, [2]float64{f.x.at(sorted[i] * factor), f.y.at(float64(i+1) / float64(n))})
		}
	}
	return p.String(), points
}

func ecdfDesc(list []plotSeries, medians []float64, unit string) string {
	s := "Share of rounds at or below each value. "
	for i, one := range list {
		if finite(medians[i]) {
			s += fmt.Sprintf("%s: half of the rounds are at or below %s. ", one.name, withUnit(medians[i], unit))
		}
	}
	return s
}
