package analysis

import (
	"slices"

	"github.com/assaylab/assay/lab/stats"
)

// shownQuantiles are the points of a distribution that tables and tail plots
// use; those beyond what the number of samples can show are left out.
var shownQuantiles = []float64{0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999, 1}

func summariseSamples(cd *cellData) []SampleSet {
	var sets []SampleSet
	for _, name := range cd.sampleNames() {
		for i := range cd.arms {
			rounds, ok := cd.rounds(name, &cd.arms[i])
			if !ok {
				continue
			}
			all := slices.Concat(rounds...)
			slices.Sort(all)
			s := SampleSet{Name: name, Arm: cd.arms[i].arm, Count: len(all), Min: Number(all[0]), Max: Number(all[len(all)-1])}
			sum := 0.0
			for _, v := range all {
				sum += float64(v)
			}
			s.Mean = Number(sum / float64(len(all)))
			for _, q := range shownQuantiles {
				// A quantile needs at least one sample beyond it.
				if q > 0.5 && q < 1 && float64(len(all))*(1-q) < 1 {
					continue
				}
				s.Quantiles = append(s.Quantiles, Quantile{Number(q), Number(stats.QuantileInt(all, q))})
			}
			sets = append(sets, s)
		}
	}
	return sets
}
