package stats

import (
	"errors"
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
