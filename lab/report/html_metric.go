package report

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// pageMetric is one metric in one cell, drawn.
type pageMetric struct {
	Name, About string
	Figures     []pageFigure
	Note        string // why there is no chart
}

func newPageMetric(s *Source, m *protocol.Metric, cm *analysis.CellMetric, tails map[string][]tailSeries, room *pageRoom) pageMetric {
	v := pageMetric{Name: m.Name, About: direction(m)}
	if m.Unit != "" {
		v.About = m.Unit + ", " + v.About
	}
	series, medians := newSeries(s, cm)
	switch v.Note = plainWords(series, m.Unit); {
	case v.Note != "":
	case room.full():
		v.Note = "No chart here, to keep the page small. The values of every round stand in the csv format of this report."
	default:
		caption := "Each round in the order of the run"
		if longest(series) > beyondDots {
			caption += "; a stroke spans the rounds that share its pixel"
		}
		v.add(room, caption, longest(series) > 40, roundsPlot{
			id: room.id(), title: m.Name + " by round", desc: roundsDesc(series, m.Unit), unit: m.Unit, series: series, wide: longest(series) > 40,
		}.draw())
		v.add(room, "Distribution over rounds", false, ecdfPlot{
			id: room.id(), title: "Distribution of " + m.Name + " over rounds", desc: ecdfDesc(series, medians, m.Unit), unit: m.Unit, series: series,
		}.draw())
	}
	if v.Note == "" && len(v.Figures) == 0 {
		v.Note = "The values lie too far apart to be drawn."
	}
	// Metrics often share their samples; the first of them shows the tail.
	if list := tails[m.Key]; m.Source == protocol.SourceSamples && len(list) > 0 {
		delete(tails, m.Key)
		v.addTail(room, m.Key, m.Unit, list)
	}
	return v
}

func (v *pageMetric) addTail(room *pageRoom, name, unit string, list []tailSeries) {
	if room.full() {
		if v.Note == "" {
			v.Note = "No chart here, to keep the page small. The quantiles stand in the table of samples."
		}
		return
	}
	v.add(room, "Tail of all samples of "+name, false, tailPlot{
		id: room.id(), title: "Quantiles of all samples of " + name, desc: tailDesc(list, unit), unit: unit, series: list,
	}.draw())
}

func (v *pageMetric) add(room *pageRoom, caption string, wide bool, chart template.HTML) {
	if chart != "" {
		v.Figures = append(v.Figures, pageFigure{Caption: caption, Chart: chart, Wide: wide})
		room.take(len(chart))
	}
}

func newSeries(s *Source, cm *analysis.CellMetric) (list []plotSeries, medians []float64) {
	for i := range cm.Arms {
		a := &cm.Arms[i]
		one := plotSeries{arm: armPlace(s, a.Arm), name: a.Arm}
		for _, x := range a.Values {
			one.values = append(one.values, float64(x))
		}
		list = append(list, one)
		medians = append(medians, float64(a.Median))
	}
	return list, medians
}

func armPlace(s *Source, name string) int {
	return max(0, slices.IndexFunc(s.Run.Protocol.Arms, func(a protocol.Arm) bool { return a.Name == name }))
}

func longest(list []plotSeries) int {
	n := 0
	for _, one := range list {
		n = max(n, len(one.values))
	}
	return n
}

// plainWords says in words what a chart would not say better: no value, a
// single round, or arms that never vary. It is empty where a chart is due.
func plainWords(list []plotSeries, unit string) string {
	_, _, any := rangeOf(seriesValues(list)...)
	switch {
	case !any:
		return "No arm has a value in any round."
	case longest(list) < 2:
		return "There is one round; its values stand in the table above."
	}
	s := ""
	for _, one := range list {
		lo, hi, ok := rangeOf(one.values)
		switch {
		case !ok:
			s += fmt.Sprintf("%s has no value. ", one.name)
		case lo != hi || slices.ContainsFunc(one.values, func(x float64) bool { return !finite(x) }):
			return ""
		default:
			s += fmt.Sprintf("%s is %s in every round. ", one.name, withUnit(lo, unit))
		}
	}
	return s
}

func seriesValues(list []plotSeries) [][]float64 {
	all := make([][]float64, len(list))
	for i, one := range list {
		all[i] = one.values
	}
	return all
}
