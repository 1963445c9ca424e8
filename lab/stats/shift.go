package stats

import (
	"fmt"
	"math"

	mstats "github.com/aclements/go-moremath/stats"
)

// Shift is the Hodges-Lehmann estimate of how far the treatment's values lie
// above the reference's, in their unit.
type Shift struct {
	// Estimate is the median of all pairwise differences; zero means that as
	// many of them are positive as negative.
	Estimate float64
	// CI is the distribution-free interval of the shift. Its Level is below
	// the one asked for when the samples are too small to reach that, and a
	// note says so.
	CI Interval
	// Notes tell what a reader must know to trust the figures; empty means
	// nothing.
	Notes []string
}

// HodgesLehmann estimates the shift between two independent samples as the
// median of the differences treat[j]-ref[i] over all pairs, with the interval
// of those shifts that MannWhitney would not reject. level is the confidence of
// the interval, such as 0.95.
//
// The interval's ends are order statistics of the pairwise differences, and
// their ranks come from the exact distribution of U when MannWhitney would use
// it, as in R's wilcox.test(conf.int = TRUE, exact = TRUE). With ties or more
// than 50 values in an arm the ranks come from the normal approximation with
// continuity correction and without correction for ties, which makes the
// interval slightly wide rather than narrow when there are many. (R solves for
// the ends numerically there, and differs by a fraction of the gap between two
// neighbouring differences.) Time is proportional to the number of values and
// not of pairs, once they are sorted.
//
// It returns ErrTooFew when an arm has fewer than two values, ErrNotFinite when
// a value is NaN or infinite or a difference overflows, and ErrOutOfRange when
// level lies outside (0, 1).
//
// Sources: Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963);
// Hollander and Wolfe, Nonparametric Statistical Methods (1973), section 4.3.
func HodgesLehmann(ref, treat []float64, level float64) (Shift, error) {
	if err := needProbability("level", level); err != nil {
		return Shift{}, err
	}
	if err := needValues(2, ref, treat); err != nil {
		return Shift{}, err
	}
	pairs := pairwise{sortedCopy(ref), sortedCopy(treat)}
	n := pairs.len()

	res := Shift{CI: Interval{Level: level}}
	if reach := 1 - MannWhitneyMinP(len(ref), len(treat)); reach < level {
		res.CI.Level = reach
		res.Notes = append(res.Notes, fmt.Sprintf(
			"too few values for level %.6g: the interval spans all differences and has level %.6g", level, reach))
	}
	rank := pairs.lowerRank(level)
	res.CI.Lower, res.CI.Upper = pairs.ranked(rank), pairs.ranked(n+1-rank)
	res.Estimate = interpolate(pairs.ranked((n+1)/2), pairs.ranked(n/2+1), 0.5)
	if !finite(res.Estimate, res.CI.Lower, res.CI.Upper) {
		return Shift{}, fmt.Errorf("%w: a difference overflows", ErrNotFinite)
	}
	return res, nil
}

// pairwise is the multiset of all differences treat[j]-ref[i] of two samples
// sorted in ascending order, without ever holding it.
type pairwise struct{ ref, treat []float64 }

func (p pairwise) len() int { return len(p.ref) * len(p.treat) }

// lowerRank returns the rank, counted from 1, of the difference that bounds the
// interval from below; the upper bound has the same rank from the other end.
func (p pairwise) lowerRank(level float64) int {
	n, m := len(p.ref), len(p.treat)
	// Without the allowance a tail that equals a probability of U would fall
	// on either side of it by rounding.
	tail := (1 - level) / 2 * (1 - 1e-12)
	if _, ties := rankStatistic(p.ref, p.treat); exactRanks(n, m, ties) {
		dist := mstats.UDist{N1: n, N2: m}
		lo, hi := 0, n*m/2
		for lo < hi {
			mid := (lo + hi) / 2
			if dist.CDF(float64(mid)) >= tail {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		return max(1, lo)
	}
	sd := math.Sqrt(float64(n) * float64(m) * float64(n+m+1) / 12)
	rank := math.Ceil(float64(n)*float64(m)/2 - 0.5 - normalQuantile(level)*sd)
	return max(1, int(rank))
}

// ranked returns the k-th smallest difference, counted from 1. It bisects over
// the float64 values themselves, in the order of their bits, so that it ends on
// the difference exactly after at most 64 counts.
func (p pairwise) ranked(k int) float64 {
	lo := orderedBits(p.treat[0] - p.ref[len(p.ref)-1])
	hi := orderedBits(p.treat[len(p.treat)-1] - p.ref[0])
	for lo < hi {
		mid := lo + (hi-lo)/2
		if p.countAtMost(fromOrderedBits(mid)) >= k {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return fromOrderedBits(lo)
}

// countAtMost returns how many differences are at most x. Rounded subtraction
// is monotone, so the first reference value that is large enough only moves up
// as the treatment value does.
func (p pairwise) countAtMost(x float64) int {
	count, first := 0, 0
	for _, t := range p.treat {
		for first < len(p.ref) && t-p.ref[first] > x {
			first++
		}
		count += len(p.ref) - first
	}
	return count
}

// orderedBits maps a float64 to an integer that sorts as the float64 does.
func orderedBits(x float64) uint64 {
	bits := math.Float64bits(x)
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}

// fromOrderedBits is the inverse of orderedBits, but for negative zero, which
// it returns as zero.
func fromOrderedBits(u uint64) float64 {
	if u>>63 == 0 {
		u = ^u
	} else {
		u &^= 1 << 63
	}
	x := math.Float64frombits(u)
	if x == 0 {
		return 0
	}
	return x
}
