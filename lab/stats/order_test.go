package stats

import (
	"errors"
	"math"
	"testing"
)

// Whatever runs second reads 3 higher; the treatment itself adds 10.
func TestOrderEffectOfASlowSecondSlot(t *testing.T) {
	got, err := OrderEffect([]float64{7, 13, 13, 7}, []bool{true, false, false, true}, 0.95)
	if err != nil || got.Diff != -6 || got.P != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOrderEffectIsWelchBetweenTheOrders(t *testing.T) {
	got, err := OrderEffect([]float64{1, 2, 4, 3, 7}, []bool{true, false, true, false, true}, 0.9)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Welch(MomentsOf([]float64{2, 3}), MomentsOf([]float64{1, 4, 7}), 0.9)
	if err != nil || got.T != want.T || got.P != want.P || got.CI != want.CI {
		t.Errorf("got %+v, want %+v, %v", got, want, err)
	}
}

func TestOrderEffectErrors(t *testing.T) {
	for _, tt := range []struct {
		diffs []float64
		first []bool
		want  error
	}{
		{[]float64{1, 2}, []bool{true}, ErrUnpaired},
		{nil, nil, ErrTooFew},
		{[]float64{1, 2, 3}, []bool{true, true, false}, ErrTooFew},
		{[]float64{1, 2, 3, nan}, []bool{true, true, false, false}, ErrNotFinite},
	} {
		if _, err := OrderEffect(tt.diffs, tt.first, 0.95); !errors.Is(err, tt.want) {
			t.Errorf("%v: got %v", tt.diffs, err)
		}
	}
}

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

func TestDriftOnALine(t *testing.T) {
	for _, tt := range []struct {
		values   []float64
		slope, p float64
	}{
		{[]float64{5, 5, 5}, 0, 1},
		{[]float64{1, 2, 3, 4, 5}, 1, 0},
		{[]float64{2, 0, -2}, -2, 0},
	} {
		slope, p, err := Drift(tt.values)
		if err != nil || math.Abs(slope-tt.slope) > 1e-15 || math.Abs(p-tt.p) > 1e-40 {
			t.Errorf("%v: got %v, %v, %v", tt.values, slope, p, err)
		}
	}
}

func TestDriftErrors(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   error
	}{
		{nil, ErrTooFew}, {[]float64{1, 2}, ErrTooFew}, {[]float64{1, 2, inf}, ErrNotFinite},
	} {
		if _, _, err := Drift(tt.values); !errors.Is(err, tt.want) {
			t.Errorf("%v: got %v", tt.values, err)
		}
	}
}
