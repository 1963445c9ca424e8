package stats

import (
	"fmt"
	"math"
)

// Notes of the bootstrap.
const (
	noteFewRounds   = "few rounds: a percentile interval from fewer than 10 rounds tends to be too narrow"
	noteIndependent = "unpaired: the arms have different numbers of rounds and were resampled independently"
	noteNoRatio     = "no ratio: the reference quantile is not positive in every resample"
)

// fewRounds is the number of rounds below which the bootstrap warns.
const fewRounds = 10

// QuantileEffect compares one quantile of two arms. Values and intervals are in
// the unit of the samples, but for the ratio, which has none.
type QuantileEffect struct {
	// Q is the quantile, such as 0.99.
	Q float64
	// Ref and Treat are the quantiles of each arm's pooled samples.
	Ref, Treat     float64
	RefCI, TreatCI Interval
	// Diff is Treat minus Ref.
	Diff   float64
	DiffCI Interval
	// Ratio is Treat over Ref. It and its interval are NaN, with a note, when
	// the reference quantile is zero or negative in any resample.
	Ratio   float64
	RatioCI Interval
	// Notes tell what a reader must know to trust the figures; empty means
	// nothing.
	Notes []string
}

// BootstrapQuantile is BootstrapQuantiles for a single quantile.
func BootstrapQuantile(ref, treat Rounds, q, level float64, resamples int, seed uint64) (QuantileEffect, error) {
	effects, err := BootstrapQuantiles(ref, treat, []float64{q}, level, resamples, seed)
	if err != nil {
		return QuantileEffect{}, err
	}
	return effects[0], nil
}

// BootstrapQuantiles compares the quantiles qs of two arms, with percentile
// intervals at the given level from a block bootstrap: whole rounds are drawn
// with replacement, and each resample's quantile is that of all samples of the
// rounds drawn, as QuantileInt defines it. Operations within a round share its
// disturbances, and resampling them one by one would claim far too much
// precision.
//
// When both arms have the same number of rounds, round i of each is taken to be
// the same block, and each resample draws the same rounds for both arms;
// otherwise the arms are drawn independently, with a note. A further note warns
// when there are fewer than 10 rounds. The resamples depend on seed and on the
// numbers of rounds only, so each quantile's result is the same whether asked
// for alone or with others. Between 1000 and 10000 resamples are usual.
//
// It returns ErrTooFew when an arm has fewer than two rounds or a round has no
// samples, and ErrOutOfRange when a quantile lies outside [0, 1], level lies
// outside (0, 1), or resamples is not positive.
//
// Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993),
// chapters 8 and 13.
func BootstrapQuantiles(ref, treat Rounds, qs []float64, level float64, resamples int, seed uint64) ([]QuantileEffect, error) {
	if err := needResampling(level, resamples); err != nil {
		return nil, err
	}
	for _, q := range qs {
		if !(q >= 0 && q <= 1) {
			return nil, fmt.Errorf("%w: quantile is %v, must lie in [0, 1]", ErrOutOfRange, q)
		}
	}
	for _, arm := range []Rounds{ref, treat} {
		if err := needRounds(arm); err != nil {
			return nil, err
		}
	}

	refPool, treatPool := newPool(ref), newPool(treat)
	replicates := make([]quantileReplicates, len(qs))
	draw := newResampler(len(ref), len(treat), seed)
	for range resamples {
		draw.next()
		for i, q := range qs {
			replicates[i].add(refPool.quantile(draw.ref, q), treatPool.quantile(draw.treat, q))
		}
	}

	notes := draw.notes()
	effects := make([]QuantileEffect, len(qs))
	once := func(n int) []uint64 {
		times := make([]uint64, n)
		for i := range times {
			times[i] = 1
		}
		return times
	}
	refOnce, treatOnce := once(len(ref)), once(len(treat))
	for i, q := range qs {
		effects[i] = replicates[i].effect(refPool.quantile(refOnce, q), treatPool.quantile(treatOnce, q), level)
		effects[i].Q = q
		effects[i].Notes = append(effects[i].Notes, notes...)
	}
	return effects, nil
}

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
// times. The conversion forbids the compiler to fuse the multiplication with
// the addition, which some machines would do and others not.
func weightedMean(xs []float64, times []uint64) float64 {
	var sum float64
	for i, x := range xs {
		sum += float64(float64(times[i]) * x)
	}
	return sum / float64(len(xs))
}

func needResampling(level float64, resamples int) error {
	if resamples < 1 {
		return fmt.Errorf("%w: %d resamples, need at least 1", ErrOutOfRange, resamples)
	}
	return needProbability("level", level)
}

func needRounds(arm Rounds) error {
	if len(arm) < 2 {
		return fmt.Errorf("%w: have %d rounds, need 2", ErrTooFew, len(arm))
	}
	for i, samples := range arm {
		if len(samples) == 0 {
			return fmt.Errorf("%w: round %d is empty", ErrTooFew, i)
		}
	}
	return nil
}

// resampler draws the rounds of both arms for one resample after another.
type resampler struct {
	random random
	// ref[i] and treat[i] are how often round i of each arm was drawn. They
	// are the same slice when the rounds are paired.
	ref, treat []uint64
	paired     bool
}

func newResampler(nRef, nTreat int, seed uint64) *resampler {
	r := &resampler{random: random{seed}, ref: make([]uint64, nRef), paired: nRef == nTreat}
	r.treat = r.ref
	if !r.paired {
		r.treat = make([]uint64, nTreat)
	}
	return r
}

func (r *resampler) next() {
	r.random.resample(r.ref)
	if !r.paired {
		r.random.resample(r.treat)
	}
}

func (r *resampler) notes() []string {
	var notes []string
	if !r.paired {
		notes = append(notes, noteIndependent)
	}
	if min(len(r.ref), len(r.treat)) < fewRounds {
		notes = append(notes, noteFewRounds)
	}
	return notes
}

// quantileReplicates collects one quantile of both arms over the resamples.
type quantileReplicates struct {
	ref, treat, diff, ratio []float64
	noRatio                 bool
}

func (r *quantileReplicates) add(ref, treat float64) {
	r.ref = append(r.ref, ref)
	r.treat = append(r.treat, treat)
	r.diff = append(r.diff, treat-ref)
	r.ratio = append(r.ratio, treat/ref)
	r.noRatio = r.noRatio || ref <= 0
}

// effect encloses the quantiles of the whole arms in the intervals of the
// replicates.
func (r *quantileReplicates) effect(ref, treat, level float64) QuantileEffect {
	e := QuantileEffect{
		Ref: ref, RefCI: percentileInterval(r.ref, level),
		Treat: treat, TreatCI: percentileInterval(r.treat, level),
		Diff: treat - ref, DiffCI: percentileInterval(r.diff, level),
	}
	if r.noRatio || ref <= 0 {
		e.Ratio = math.NaN()
		e.RatioCI = Interval{math.NaN(), math.NaN(), level}
		e.Notes = []string{noteNoRatio}
		return e
	}
	e.Ratio, e.RatioCI = treat/ref, percentileInterval(r.ratio, level)
	return e
}
