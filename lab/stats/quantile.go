package stats

import "math"

// Quantile returns the q quantile of values sorted in ascending order, in their
// unit: 0 is the smallest, 0.5 the median, 1 the largest. Between two values it
// interpolates linearly. It is NaN when sorted is empty or q lies outside
// [0, 1].
//
// Source: type 7 of Hyndman and Fan, The American Statistician 50 (1996), the
// default of R and NumPy.
func Quantile(sorted []float64, q float64) float64 {
	i, frac, ok := quantilePosition(len(sorted), q)
	if !ok {
		return math.NaN()
	}
	return interpolate(sorted[i], sorted[min(i+1, len(sorted)-1)], frac)
}

// QuantileInt is Quantile for integers such as nanoseconds. Values beyond 2^53,
// which is 104 days in nanoseconds, are rounded to the nearest float64.
func QuantileInt(sorted []int64, q float64) float64 {
	i, frac, ok := quantilePosition(len(sorted), q)
	if !ok {
		return math.NaN()
	}
	return interpolate(float64(sorted[i]), float64(sorted[min(i+1, len(sorted)-1)]), frac)
}

// quantilePosition returns the index of the value at or just below the q
// quantile of n values, and how far towards the next one the quantile lies.
func quantilePosition(n int, q float64) (i int, frac float64, ok bool) {
	if n == 0 || !(q >= 0 && q <= 1) {
		return 0, 0, false
	}
	h := float64(q * float64(n-1)) // not fused; see interpolate
	i = int(h)
	return i, h - float64(i), true
}

// interpolate returns the point the given fraction of the way from lo to hi,
// never outside them. The conversions forbid the compiler to fuse a
// multiplication with the addition, which some machines would do and others
// not.
func interpolate(lo, hi, frac float64) float64 {
	x := float64(lo*(1-frac)) + float64(hi*frac)
	return min(max(x, lo), hi)
}
