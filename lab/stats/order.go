package stats

import "fmt"

// OrderEffect tests whether a round's difference depends on which arm ran
// first. diffs[i] is the difference of round i, treatFirst[i] whether the
// treatment ran first in it, and level the confidence of the interval, such as
// 0.95.
//
// The result is Welch's test of the rounds in which the treatment ran first
// against those in which the reference did. Diff is the mean difference of the
// former minus that of the latter: if whatever runs second reads s higher, Diff
// estimates -2s. Zero means no effect of the order.
//
// It returns ErrUnpaired when the lengths differ, ErrTooFew when either order
// occurs fewer than twice, ErrNotFinite when a difference is NaN or infinite,
// and ErrOutOfRange when level lies outside (0, 1).
func OrderEffect(diffs []float64, treatFirst []bool, level float64) (TTest, error) {
	if len(diffs) != len(treatFirst) {
		return TTest{}, fmt.Errorf("%w: %d and %d", ErrUnpaired, len(diffs), len(treatFirst))
	}
	var refFirst, first []float64
	for i, d := range diffs {
		if treatFirst[i] {
			first = append(first, d)
		} else {
			refFirst = append(refFirst, d)
		}
	}
	return Welch(MomentsOf(refFirst), MomentsOf(first), level)
}
