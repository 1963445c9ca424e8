package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/trial"
)

// newPageTimeline draws samples that are a series: what each arm did in each second of
// its trials.
func newPageTimeline(s *Source, cell *analysis.Cell, name string, room *pageRoom) pageMetric {
	what := strings.ReplaceAll(strings.TrimSuffix(name, trial.SeriesSuffix), "_", " ")
	v := pageMetric{Name: name, About: what + " in each second of a trial, mean over the rounds"}
	if room.full() {
		v.Note = "No chart here, to keep the page small. The values stand in the run folder."
		return v
	}
	series := seriesOverTime(s, cell, name)
	v.add(room, "Each second of a trial", true, roundsPlot{
		id: room.id(), title: name + " over time", desc: timelineDesc(series), series: series, wide: true, below: "second of the trial",
	}.draw())
	if len(v.Figures) == 0 {
		v.Note = "No arm has a value in any second."
	}
	return v
}

// seriesOverTime is the mean over a cell's measured rounds, second by second; NaN beyond the
// last value of an arm and where samples cannot be read.
func seriesOverTime(s *Source, cell *analysis.Cell, name string) []plotSeries {
	var list []plotSeries
	for i := range s.Run.Protocol.Arms {
		arm := s.Run.Protocol.Arms[i].Name
		var sum []float64
		var n []int
		for _, r := range s.Run.Records {
			o := r.Trial
			if o == nil || o.Cell != cell.Name || o.Arm != arm || o.Warmup {
				continue
			}
			at := 0
			for _, ref := range o.Samples {
				if ref.Name != name {
					continue
				}
				values, err := s.Run.Samples(ref)
				if err != nil {
					continue
				}
				for _, x := range values {
					if at == len(sum) {
						sum, n = append(sum, 0), append(n, 0)
					}
					sum[at] += float64(x)
					n[at]++
					at++
				}
			}
		}
		one := plotSeries{arm: i, name: arm}
		for k := range sum {
			one.values = append(one.values, sum[k]/float64(n[k]))
		}
		if len(one.values) > 0 {
			list = append(list, one)
		}
	}
	most := longest(list)
	for i := range list {
		for len(list[i].values) < most {
			list[i].values = append(list[i].values, math.NaN())
		}
	}
	return list
}

// timelineDesc is what the chart says to those who cannot see it.
func timelineDesc(list []plotSeries) string {
	s := ""
	for _, one := range list {
		lo, hi, ok := rangeOf(one.values)
		if ok {
			s += fmt.Sprintf("%s: from %s to %s in a second. ", one.name, withUnit(lo, ""), withUnit(hi, ""))
		}
	}
	return s
}
