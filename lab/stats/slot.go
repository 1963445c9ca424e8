package stats

import (
	"fmt"
	"math"
)

// SlotTest is the result of a test that the slot a trial ran in matters.
type SlotTest struct {
	// Means holds the mean value of each slot, in the unit of the values.
	Means []float64
	// F is the variance between slots over that within, with DF1 and DF2
	// degrees of freedom. Zero means equal means; it is infinite when the
	// means differ and nothing varies within any slot.
	F, DF1, DF2 float64
	// P is the p value of the hypothesis that all slots have the same mean.
	P float64
	// Notes tell what a reader must know to trust the figures; empty means
	// nothing.
	Notes []string
}

// SlotEffect tests whether the slot of a round that a trial ran in matters:
// values[i] is one trial's value less its arm's mean, and slots[i] the slot it
// ran in, from 0 to k-1. It is a one-way analysis of variance, which takes the
// trials to be independent; noise that the trials of a round share makes it
// less likely to find an effect. With many trials it does not matter that the
// arm means were estimated from the same values. When all values are equal P is 1, with a note.
//
// It returns ErrUnpaired when the lengths differ, ErrOutOfRange when k is below
// 2 or a slot is not among the k, ErrTooFew when a slot has fewer than two
// values, and ErrNotFinite when a value is NaN or infinite.
//
// Source: Fisher, Statistical Methods for Research Workers (1925), chapter 7.
func SlotEffect(values []float64, slots []int, k int) (SlotTest, error) {
	if len(values) != len(slots) {
		return SlotTest{}, fmt.Errorf("%w: %d and %d", ErrUnpaired, len(values), len(slots))
	}
	if k < 2 {
		return SlotTest{}, fmt.Errorf("%w: %d slots, need 2", ErrOutOfRange, k)
	}
	bySlot := make([][]float64, k)
	for i, s := range slots {
		if s < 0 || s >= k {
			return SlotTest{}, fmt.Errorf("%w: slot %d of %d", ErrOutOfRange, s, k)
		}
		bySlot[s] = append(bySlot[s], values[i])
	}
	if err := needValues(2, bySlot...); err != nil {
		return SlotTest{}, err
	}

	all := MomentsOf(values)
	res := SlotTest{Means: make([]float64, k), DF1: float64(k - 1), DF2: float64(len(values) - k)}
	// Sums of squares in units of the overall SD stay within the range of a
	// float64 whatever the unit of the values.
	var between, within float64
	for s, xs := range bySlot {
		m := MomentsOf(xs)
		res.Means[s] = m.Mean
		n, shift, sd := float64(m.N), (m.Mean-all.Mean)/all.SD, m.SD/all.SD
		between += n * shift * shift
		within += (n - 1) * sd * sd
	}
	switch {
	case all.SD == 0:
		res.P = 1
		res.Notes = []string{noteIdentical}
	case within == 0:
		res.F, res.P = math.Inf(1), 0
		res.Notes = []string{noteExact}
	default:
		res.F = (between / res.DF1) / (within / res.DF2)
		res.P = fTail(res.F, res.DF1, res.DF2)
	}
	return res, nil
}
