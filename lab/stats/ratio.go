package stats

import "fmt"

// BootstrapMeanRatio returns the ratio of the treatment's mean to the
// reference's, given one value per round, with the percentile interval at the
// given level from the same resampling of rounds as BootstrapQuantiles: the
// same rounds for both arms when they have equally many, independent draws
// otherwise. An estimate of 1 means equal means. With fewer than 10 rounds the
// interval tends to be too narrow.
//
// It returns ErrTooFew when an arm has fewer than two values, ErrNotFinite when
// a value is NaN or infinite or the ratio overflows, ErrNoRatio when the reference's mean is zero or
// changes sign in any resample, and ErrOutOfRange when level lies outside (0, 1)
// or resamples is not positive.
func BootstrapMeanRatio(ref, treat []float64, level float64, resamples int, seed uint64) (est float64, ci Interval, err error) {
	if err := needResampling(level, resamples); err != nil {
		return 0, Interval{}, err
	}
	if err := needValues(2, ref, treat); err != nil {
		return 0, Interval{}, err
	}
	base := MomentsOf(ref).Mean
	if base == 0 {
		return 0, Interval{}, ErrNoRatio
	}
	ratios := make([]float64, resamples)
	draw := newResampler(len(ref), len(treat), seed)
	for i := range ratios {
		draw.next()
		below := weightedMean(ref, draw.ref)
		if below == 0 || (below < 0) != (base < 0) {
			return 0, Interval{}, ErrNoRatio
		}
		ratios[i] = weightedMean(treat, draw.treat) / below
	}
	est, ci = MomentsOf(treat).Mean/base, percentileInterval(ratios, level)
	if !finite(est, ci.Lower, ci.Upper) {
		return 0, Interval{}, fmt.Errorf("%w: the ratio overflows", ErrNotFinite)
	}
	return est, ci, nil
}

// weightedMean returns the mean of the resample in which xs[i] occurs times[i]
// times. The outer conversion keeps it the same everywhere; see interpolate.
func weightedMean(xs []float64, times []uint64) float64 {
	var sum float64
	for i, x := range xs {
		sum += float64(float64(times[i]) * x)
	}
	return sum / float64(len(xs))
}
