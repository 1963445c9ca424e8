package report

import (
	"slices"
	"strconv"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// pageSamples is one arm's bulk samples.
type pageSamples struct {
	Name, Arm string
	Count     string
	Mean      string
	Values    []string
}

func newPageSamples(s *Source, cell *analysis.Cell) (rows []pageSamples, columns []string) {
	var qs []float64
	for _, set := range cell.Samples {
		for _, q := range set.Quantiles {
			if x := float64(q.Q); !slices.Contains(qs, x) {
				qs = append(qs, x)
			}
		}
	}
	slices.Sort(qs)
	for _, q := range qs {
		switch q {
		case 0:
			columns = append(columns, "least")
		case 1:
			columns = append(columns, "greatest")
		default:
			columns = append(columns, strconv.FormatFloat(100*q, 'g', 6, 64)+" %")
		}
	}
	for _, set := range cell.Samples {
		unit := sampleUnit(s, set.Name)
		row := pageSamples{Name: set.Name, Arm: set.Arm, Count: thousands(strconv.Itoa(set.Count)), Mean: withUnit(float64(set.Mean), unit)}
		for _, q := range qs {
			text := none
			for _, x := range set.Quantiles {
				if float64(x.Q) == q {
					text = withUnit(float64(x.V), unit)
				}
			}
			row.Values = append(row.Values, text)
		}
		rows = append(rows, row)
	}
	return rows, columns
}

// sampleUnit is the unit of the metric that reads the samples; samples that no
// metric reads have none that is known.
func sampleUnit(s *Source, name string) string {
	for i := range s.Run.Protocol.Metrics {
		if m := &s.Run.Protocol.Metrics[i]; m.Source == protocol.SourceSamples && m.Key == name {
			return m.Unit
		}
	}
	return ""
}

func newTails(s *Source, cell *analysis.Cell) map[string][]tailSeries {
	all := map[string][]tailSeries{}
	for _, set := range cell.Samples {
		one := tailSeries{arm: armPlace(s, set.Arm), name: set.Arm}
		for _, q := range set.Quantiles {
			if q.Q < 1 {
				one.q, one.v = append(one.q, float64(q.Q)), append(one.v, float64(q.V))
			}
		}
		all[set.Name] = append(all[set.Name], one)
	}
	return all
}
