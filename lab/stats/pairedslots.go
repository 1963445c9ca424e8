package stats

import (
	"fmt"
	"math"
)

// PairedSlots is Paired with the effect of the slots taken out: refSlot[i] and
// treatSlot[i] are the 0-based places within round i at which the two arms ran.
//
// Where some place in a round is slower than another, a balanced order keeps
// that out of the mean difference but not out of its spread, and Paired then
// finds too little: it rejects one in sixty instead of one in twenty when the
// second of two places is one standard deviation slower. The differences are
// therefore fitted as
//
//	treat[i] - ref[i] = Diff + slot(treatSlot[i]) - slot(refSlot[i]) + noise
//
// by least squares, and Diff is tested with what the fit leaves over. It costs
// one degree of freedom per slot effect that the order lets one see; with
// every arm in every place equally often Diff is the plain mean. For two arms
// this is the classical analysis of a two-period crossover (Grizzle, Biometrics
// 21, 1965) without carry-over.
//
// With fewer than minSlotRounds rounds there is not enough left over to
// estimate the spread from; the result is then Paired's, with a note.
//
// Errors are those of Paired; ErrUnpaired also when the slots' lengths differ.
func PairedSlots(ref, treat []float64, refSlot, treatSlot []int, level float64) (TTest, error) {
	plain, err := Paired(ref, treat, level)
	if err != nil {
		return plain, err
	}
	if len(refSlot) != len(ref) || len(treatSlot) != len(ref) {
		return TTest{}, fmt.Errorf("%w: %d rounds, %d and %d slots", ErrUnpaired, len(ref), len(refSlot), len(treatSlot))
	}
	if len(ref) < minSlotRounds {
		plain.Notes = append(plain.Notes, noteFewForSlots)
		return plain, nil
	}
	// Frisch and Waugh (1933): the coefficient of the constant is that of what
	// the slot columns leave of it.
	d := differences(ref, treat)
	one := make([]float64, len(d))
	for i := range one {
		one[i] = 1
	}
	basis := slotBasis(refSlot, treatSlot)
	for _, b := range basis {
		subtractProjection(one, b)
	}
	norm := dot(one, one)
	if norm < rankTolerance*float64(len(one)) {
		return TTest{}, fmt.Errorf("%w: every round had the same order, so that the slots cannot be told from the arms", ErrOutOfRange)
	}
	diff := dot(one, d) / norm
	rest := d
	for _, b := range basis {
		subtractProjection(rest, b)
	}
	scale := diff // of the constant that is left in rest
	ss := 0.0
	for i := range rest {
		r := rest[i] - scale*one[i]
		ss += r * r
	}
	df := float64(len(d) - 1 - len(basis))
	return tTest(diff, math.Sqrt(ss/df/norm), df, level)
}

// minSlotRounds is the least number of rounds at which slot effects are
// estimated.
const minSlotRounds = 8

const noteFewForSlots = "few rounds: the effect of the order within a round was not taken out"

// rankTolerance is the relative size below which a column is taken for a
// combination of the others.
const rankTolerance = 1e-9

// slotBasis is an orthogonal basis of the slot contrasts.
func slotBasis(refSlot, treatSlot []int) [][]float64 {
	top := 0
	for i := range refSlot {
		top = max(top, refSlot[i], treatSlot[i])
	}
	var basis [][]float64
	for slot := 1; slot <= top; slot++ {
		col := make([]float64, len(refSlot))
		for i := range col {
			if treatSlot[i] == slot {
				col[i]++
			}
			if refSlot[i] == slot {
				col[i]--
			}
		}
		before := dot(col, col)
		for _, b := range basis {
			subtractProjection(col, b)
		}
		if dot(col, col) > rankTolerance*max(before, 1) {
			basis = append(basis, col)
		}
	}
	return basis
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		// The conversion keeps the product from being fused with the sum, which
		// some machines do and others do not.
		s += float64(a[i] * b[i])
	}
	return s
}

// subtractProjection takes out of v what it has of b.
func subtractProjection(v, b []float64) {
	f := dot(v, b) / dot(b, b)
	for i := range v {
		v[i] -= float64(f * b[i])
	}
}
