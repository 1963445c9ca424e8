package stats

import (
	"fmt"
	"math"
)

const noteNoRatio = "no ratio: the reference quantile is not positive in every resample"

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

	effects := make([]QuantileEffect, len(qs))
	for i, q := range qs {
		effects[i] = replicates[i].effect(QuantileInt(refPool.values, q), QuantileInt(treatPool.values, q), level)
		effects[i].Q = q
		effects[i].Notes = append(effects[i].Notes, draw.notes()...)
	}
	return effects, nil
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
