package stats

import (
	"errors"
	"math"
	"testing"
)

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

func TestDriftOfAnOutlierNearTheLargestFloat(t *testing.T) {
	for i := range 12 {
		values := make([]float64, 12)
		for j := range values {
			values[j] = 78000 + float64(j)
		}
		values[i] = math.MaxFloat64
		if _, p, err := Drift(values); err == nil && !(p >= 0 && p <= 1) {
			t.Errorf("outlier at %d: p = %v", i, p)
		}
	}
}
