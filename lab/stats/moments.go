package stats

import (
	"math"
	"slices"
)

// Moments is what Welch needs of a sample.
type Moments struct {
	// N is the number of values; zero means an empty sample.
	N int
	// Mean is in the unit of the values.
	Mean float64
	// SD is the sample standard deviation (divisor N-1) in the unit of the
	// values; zero means that all values are equal.
	SD float64
}

// MomentsOf returns the moments of xs. Mean is NaN when xs is empty, SD is NaN
// when xs has fewer than two values, and both are NaN when any value is NaN or
// infinite.
//
// The mean is a compensated sum (Neumaier, 1974) and the SD the corrected
// two-pass formula (Chan, Golub and LeVeque, 1983), both on values scaled by a
// power of two, so that neither cancellation nor squares beyond the range of a
// float64 cost accuracy.
func MomentsOf(xs []float64) Moments {
	m := Moments{N: len(xs), Mean: math.NaN(), SD: math.NaN()}
	if len(xs) == 0 || !finite(xs...) {
		return m
	}
	lo, hi := slices.Min(xs), slices.Max(xs)
	if lo == hi {
		// Dividing a rounded sum of equal values can miss that value by a
		// bit, and would make a constant sample look like a varying one.
		m.Mean = lo
		if m.N > 1 {
			m.SD = 0
		}
		return m
	}

	scale := powerOfTwoBelow(math.Max(math.Abs(lo), math.Abs(hi)))
	n := float64(m.N)
	var sum, lost float64
	for _, x := range xs {
		x /= scale
		next := sum + x
		if math.Abs(sum) >= math.Abs(x) {
			lost += (sum - next) + x
		} else {
			lost += (x - next) + sum
		}
		sum = next
	}
	mean := (sum + lost) / n

	var squares, residue float64
	for _, x := range xs {
		d := x/scale - mean
		squares += d * d
		residue += d
	}
	variance := (squares - residue*residue/n) / (n - 1)
	m.Mean = mean * scale
	m.SD = math.Sqrt(variance) * scale
	return m
}

// powerOfTwoBelow returns a power of two within a factor of two of x, held
// inside the range whose reciprocal is also finite. Dividing by it is exact.
func powerOfTwoBelow(x float64) float64 {
	_, exp := math.Frexp(x)
	return math.Ldexp(1, min(max(exp-1, -1022), 1022))
}
