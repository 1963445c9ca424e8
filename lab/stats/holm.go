package stats

import (
	"math"
	"slices"
)

// Holm returns the p values adjusted so that rejecting those at or below alpha
// keeps the chance of any false rejection among all of them at alpha. The
// order is that of ps, which is left as it is; an empty ps gives an empty
// result.
//
// A p value that is NaN or outside [0, 1] stands for a test that could not be
// done. It fails closed: its adjusted value is NaN, and it still counts as one
// of the comparisons, so that a broken test never makes the others easier to
// pass. (R drops missing values from the count.)
//
// Source: Holm, Scandinavian Journal of Statistics 6 (1979).
func Holm(ps []float64) []float64 {
	adjusted := make([]float64, len(ps))
	var valid []int
	for i, p := range ps {
		adjusted[i] = math.NaN()
		if p >= 0 && p <= 1 {
			valid = append(valid, i)
		}
	}
	slices.SortStableFunc(valid, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return 0
	})
	var worst float64
	for rank, i := range valid {
		worst = max(worst, min(1, float64(len(ps)-rank)*ps[i]))
		adjusted[i] = worst
	}
	return adjusted
}
