package stats

import (
	"errors"
	"math"
	"testing"
)

func TestSlotEffectWithoutVariation(t *testing.T) {
	got, err := SlotEffect([]float64{2, 2, 2, 2}, []int{0, 1, 0, 1}, 2)
	if err != nil || got.F != 0 || got.P != 1 || got.Notes[0] != noteIdentical {
		t.Errorf("equal: got %+v, %v", got, err)
	}
	got, err = SlotEffect([]float64{2, 3, 2, 3}, []int{0, 1, 0, 1}, 2)
	if err != nil || !math.IsInf(got.F, 1) || got.P != 0 || got.Notes[0] != noteExact || got.Means[1] != 3 {
		t.Errorf("exact: got %+v, %v", got, err)
	}
}

func TestSlotEffectErrors(t *testing.T) {
	four := []float64{1, 2, 3, 4}
	for _, tt := range []struct {
		values []float64
		slots  []int
		k      int
		want   error
	}{
		{four, []int{0, 1}, 2, ErrUnpaired},
		{four, []int{0, 1, 0, 1}, 1, ErrOutOfRange},
		{four, []int{0, 1, 0, 2}, 2, ErrOutOfRange},
		{four, []int{0, 1, 0, -1}, 2, ErrOutOfRange},
		{four, []int{0, 1, 0, 0}, 2, ErrTooFew},
		{nil, nil, 2, ErrTooFew},
		{[]float64{1, 2, nan, 4}, []int{0, 1, 0, 1}, 2, ErrNotFinite},
	} {
		if _, err := SlotEffect(tt.values, tt.slots, tt.k); !errors.Is(err, tt.want) {
			t.Errorf("%v %v: got %v", tt.values, tt.slots, err)
		}
	}
}
