package stats

import (
	"math"

	mstats "github.com/aclements/go-moremath/stats"
)

// exactLimit is the largest sample for which the exact distribution of U is
// used: beyond it the normal approximation is good to several digits and the
// exact computation slow.
const exactLimit = 50

// RankTest is the result of a two-sided Mann-Whitney test.
type RankTest struct {
	// U counts the pairs of one treatment and one reference value in which
	// the treatment's is the larger; a tie counts one half. Zero means that
	// every treatment value lies below every reference value.
	U float64
	// P is the two-sided p value of the hypothesis that both arms have the
	// same distribution.
	P float64
	// Exact tells whether P comes from the exact distribution of U or from
	// the normal approximation.
	Exact bool
	// Notes tell what a reader must know to trust the figures; empty means
	// nothing.
	Notes []string
}

// MannWhitney tests whether values of one arm tend to be larger than those of
// the other. Without ties and with at most 50 values in each arm P is exact;
// otherwise it is the normal approximation with corrections for ties and
// continuity. Those are SciPy's mannwhitneyu(treat, ref) with the method exact
// and asymptotic. When all values are equal P is 1, with a note.
//
// It returns ErrTooFew when an arm has fewer than two values and ErrNotFinite
// when a value is NaN or infinite.
//
// Source: Mann and Whitney, Annals of Mathematical Statistics 18 (1947).
func MannWhitney(ref, treat []float64) (RankTest, error) {
	if err := needValues(2, ref, treat); err != nil {
		return RankTest{}, err
	}
	ref, treat = sortedCopy(ref), sortedCopy(treat)
	u, ties := rankStatistic(ref, treat)
	n, m := len(ref), len(treat)
	res := RankTest{U: u}
	pairs := float64(n) * float64(m)

	if exactRanks(n, m, ties) {
		smaller := min(u, pairs-u)
		dist := mstats.UDist{N1: n, N2: m}
		res.P = min(1, 2*dist.CDF(smaller))
		res.Exact = true
		return res, nil
	}

	if ref[0] == treat[m-1] && treat[0] == ref[n-1] {
		res.P = 1
		res.Notes = []string{noteIdentical}
		return res, nil
	}
	total := float64(n + m)
	sd := math.Sqrt(pairs / 12 * (total + 1 - ties/(total*(total-1))))
	z := (math.Abs(u-pairs/2) - 0.5) / sd
	res.P = min(1, math.Erfc(z/math.Sqrt2))
	return res, nil
}

// MannWhitneyMinP returns the smallest two-sided exact p value that any two
// untied samples of these sizes can reach, 2/C(nRef+nTreat, nRef), reached when
// the arms do not overlap at all. Above the alpha of a plan it means that the
// test cannot reject whatever is measured; it is 1 when an arm is empty.
func MannWhitneyMinP(nRef, nTreat int) float64 {
	if nRef < 1 || nTreat < 1 {
		return 1
	}
	small, large := min(nRef, nTreat), max(nRef, nTreat)
	p := 2.0
	for i := 1; i <= small && p > 0; i++ {
		p *= float64(i) / float64(large+i)
	}
	return min(1, p)
}

// exactRanks tells whether the exact distribution of U applies and is
// affordable.
func exactRanks(n, m int, ties float64) bool {
	return ties == 0 && n <= exactLimit && m <= exactLimit
}

// rankStatistic returns U of two samples sorted in ascending order, and the sum
// of t³-t over the groups of t equal values in both together, which is zero
// when no two values are equal.
func rankStatistic(ref, treat []float64) (u, ties float64) {
	var twice, below int
	for i, j := 0, 0; i < len(ref) || j < len(treat); {
		var x float64
		switch {
		case i == len(ref):
			x = treat[j]
		case j == len(treat):
			x = ref[i]
		default:
			x = min(ref[i], treat[j])
		}
		r, t := 0, 0
		for ; i < len(ref) && ref[i] == x; i++ {
			r++
		}
		for ; j < len(treat) && treat[j] == x; j++ {
			t++
		}
		twice += t * (2*below + r)
		below += r
		equal := float64(r + t)
		ties += equal*equal*equal - equal
	}
	return float64(twice) / 2, ties
}
