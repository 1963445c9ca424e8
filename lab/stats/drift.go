package stats

import (
	"fmt"
	"math"
)

// Drift returns the least-squares slope of values over their index, in their
// unit per round, and the two-sided p value of the hypothesis that the slope is
// zero, from a t distribution with len(values)-2 degrees of freedom. When all
// values are equal the slope is 0 and p is 1; when they lie exactly on another
// line p is 0.
//
// It returns ErrTooFew when there are fewer than three values and ErrNotFinite
// when a value is NaN or infinite or their spread overflows.
//
// Source: Draper and Smith, Applied Regression Analysis (1966), chapter 1.
func Drift(values []float64) (slopePerRound, p float64, err error) {
	if err := needValues(3, values); err != nil {
		return 0, 0, err
	}
	m := MomentsOf(values)
	if !finite(m.Mean, m.SD) {
		return 0, 0, fmt.Errorf("%w: the spread of the values overflows", ErrNotFinite)
	}
	if m.SD == 0 {
		return 0, 1, nil
	}
	n := float64(m.N)
	centre := (n - 1) / 2
	// In units of the SD, so that no square leaves the range of a float64.
	var xy, xx float64
	for i, v := range values {
		x := float64(i) - centre
		xy += x * ((v - m.Mean) / m.SD)
		xx += x * x
	}
	slope := xy / xx
	var residual float64
	for i, v := range values {
		r := (v-m.Mean)/m.SD - slope*(float64(i)-centre)
		residual += r * r
	}
	if residual == 0 {
		return slope * m.SD, 0, nil
	}
	t := slope / math.Sqrt(residual/(n-2)/xx)
	return slope * m.SD, studentTail(t, n-2), nil
}
