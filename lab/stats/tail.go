package stats

import (
	"math"

	"github.com/aclements/go-moremath/mathx"
	mstats "github.com/aclements/go-moremath/stats"
)

// largeDF is where the log-gamma terms of the incomplete beta function start
// to cost more accuracy than an expansion around the normal distribution.
const largeDF = 2e5

// studentTail returns the probability that a t variable with df degrees of
// freedom lies further from zero than t. It works on the tail itself and so
// keeps its relative accuracy where one minus the distribution function would
// be zero.
//
// Sources: DLMF 8.17.1 with Abramowitz and Stegun 26.7.1; above largeDF the
// transform to a normal deviate of Wallace, Annals of Mathematical Statistics
// 30 (1959).
func studentTail(t, df float64) float64 {
	t2 := t * t
	switch {
	case math.IsNaN(t):
		// The incomplete beta function would search for ever and panic.
		return math.NaN()
	case df > largeDF:
		z := (8*df + 1) / (8*df + 3) * math.Sqrt(df*math.Log1p(t2/df))
		return math.Erfc(z / math.Sqrt2)
	case t2 < 1:
		// Near zero df/(df+t2) rounds to one; its complement does not.
		return 1 - mathx.BetaInc(t2/(df+t2), 0.5, df/2)
	default:
		return mathx.BetaInc(df/(df+t2), df/2, 0.5)
	}
}

// studentQuantile returns the t > 0 for which studentTail(t, df) is alpha, which
// must be at least minAlpha.
//
// The logarithm of the tail is a concave function of log t, straight for small
// df and parabolic for large, so Newton's method in those coordinates
// converges from any start.
func studentQuantile(alpha, df float64) float64 {
	density := mstats.TDist{V: math.Min(df, largeDF)}
	t := math.Sqrt(-2 * math.Log(alpha))
	for range 300 {
		tail := studentTail(t, df)
		step := math.Log(tail/alpha) * tail / (2 * t * density.PDF(t))
		// A longer stride could underflow the tail and leave no way back.
		step = min(max(step, -1), 1)
		t *= math.Exp(step)
		if math.Abs(step) < 1e-14 {
			break
		}
	}
	return t
}

// normalQuantile returns the z > 0 that a standard normal variable stays
// within, on both sides of zero, with probability level.
func normalQuantile(level float64) float64 {
	return math.Sqrt2 * math.Erfinv(level)
}
