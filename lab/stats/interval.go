package stats

import "slices"

// Interval is a two-sided interval in the unit of whatever it encloses.
type Interval struct {
	Lower, Upper float64
	// Level is the confidence the interval claims, such as 0.95. It is the
	// level that was asked for unless the result's Notes say otherwise. Zero
	// means that no interval was computed.
	Level float64
}

// percentileInterval encloses the middle level of the replicates, which it
// sorts in place: the percentile interval of Efron and Tibshirani, An
// Introduction to the Bootstrap (1993), chapter 13.
func percentileInterval(replicates []float64, level float64) Interval {
	slices.Sort(replicates)
	tail := (1 - level) / 2
	return Interval{
		Lower: Quantile(replicates, tail),
		Upper: Quantile(replicates, 1-tail),
		Level: level,
	}
}
