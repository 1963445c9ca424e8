package stats

import (
	"math"
	"slices"
)

// Summary describes one sample. All but N are in the unit of the values.
type Summary struct {
	N                          int
	Mean, SD, Median, Min, Max float64
}

// Summarize returns the summary of xs, which it leaves as it is. Mean and SD
// are those of MomentsOf, and the median of an even number of values is the
// mean of the middle two. All fields but N are NaN when xs is empty or any
// value is NaN or infinite; SD alone is NaN when xs has one value.
func Summarize(xs []float64) Summary {
	m := MomentsOf(xs)
	s := Summary{N: m.N, Mean: m.Mean, SD: m.SD, Median: math.NaN(), Min: math.NaN(), Max: math.NaN()}
	if len(xs) == 0 || !finite(xs...) {
		return s
	}
	sorted := sortedCopy(xs)
	s.Median = Quantile(sorted, 0.5)
	s.Min, s.Max = sorted[0], sorted[len(sorted)-1]
	return s
}

func sortedCopy(xs []float64) []float64 {
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	return sorted
}
