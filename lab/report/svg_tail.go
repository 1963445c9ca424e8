package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// tailPlot shows the quantiles of all samples of an arm on the scale 1/(1-q),
// which gives every further nine the same room, so that the tail is not the
// last pixel of the chart.
type tailPlot struct {
	id, title, desc, unit string
	series                []tailSeries
}

type tailSeries struct {
	arm  int
	name string
	q, v []float64 // q below 1: the greatest sample has no place on this scale
}

// wideRange is the ratio of greatest to least from which values are drawn on a
// logarithmic scale.
const wideRange = 100

func (c tailPlot) draw() template.HTML {
	names, marks := make([]string, len(c.series)), make([]marker, len(c.series))
	var all [][]float64
	beyond := 2.0
	for i, s := range c.series {
		names[i], marks[i] = s.name, armMarker(s.arm)
		all = append(all, s.v)
		for _, q := range s.q {
			beyond = math.Max(beyond, 1/(1-q))
		}
	}
	lo, hi, ok := rangeOf(all...)
	if !ok || !finite(beyond) {
		return ""
	}
	factor, unit := axisUnit(c.unit, lo, hi)
	var y axis
	if lo > 0 && hi/lo > wideRange {
		unit = strings.TrimPrefix(unit+", log scale", ", ")
		y, ok = logAxis(lo*factor/1.1, hi*factor*1.1, 0, 0)
	} else {
		a, b := padded(lo*factor, hi*factor, 0.06)
		y, ok = linearAxis(a, b, 0, 0, 4)
	}
	if !ok {
		return ""
	}
	f := frame{width: narrowChart, unit: unit, below: "percentile of all samples"}
	f.fit(y, names, marks)
	f.x = axis{lo: 1, hi: beyond, from: f.left + 6, to: f.right - 8, log: true, ticks: tailTicks(beyond)}
	d := newDrawing(c.id, f.width, f.height, c.title, c.desc)
	f.draw(d)
	for _, s := range c.series {
		var p pen
		var points [][2]float64
		for i, q := range s.q {
			if !finite(s.v[i]) || q < 0 || q >= 1 {
				continue
			}
			at := [2]float64{f.x.at(1 / (1 - q)), f.y.at(s.v[i] * factor)}
			if points = append(points, at); len(points) == 1 {
				p.move(at[0], at[1])
			} else {
				p.line(at[0], at[1])
			}
		}
		d.path("line "+armColour(s.arm), p.String())
		d.markers(s.arm, 3, points)
	}
	return d.done()
}

func tailTicks(beyond float64) []tick {
	ticks := []tick{{1, "0"}, {2, "50"}, {10, "90"}}
	label := "99"
	for x := 100.0; x <= beyond*1.001; x *= 10 {
		ticks = append(ticks, tick{x, label})
		if label == "99" {
			label += "."
		}
		label += "9"
	}
	if beyond < 9.99 {
		ticks = ticks[:2]
	}
	return ticks
}

func tailDesc(list []tailSeries, unit string) string {
	s := ""
	for _, one := range list {
		for i, q := range one.q {
			for _, named := range []float64{0.5, 0.99, 0.999} {
				if q == named {
					s += fmt.Sprintf("%s: percentile %s is %s. ", one.name, num(100*q), withUnit(one.v[i], unit))
				}
			}
		}
	}
	return s
}
