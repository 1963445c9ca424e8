package stats

import (
	"math"
	"testing"
)

func TestQuantileOfInvalidInput(t *testing.T) {
	for _, q := range []float64{-0.1, 1.1, nan, 50} {
		if x := Quantile([]float64{1, 2}, q); !math.IsNaN(x) {
			t.Errorf("q=%v: got %v", q, x)
		}
	}
	if x := Quantile(nil, 0.5); !math.IsNaN(x) {
		t.Errorf("empty: got %v", x)
	}
	if x := QuantileInt(nil, 0.5); !math.IsNaN(x) {
		t.Errorf("empty: got %v", x)
	}
}

func TestQuantileIntIsQuantile(t *testing.T) {
	ints := []int64{-5, 0, 1, 1, 7, 1 << 40}
	floats := make([]float64, len(ints))
	for i, v := range ints {
		floats[i] = float64(v)
	}
	for q := 0.0; q <= 1; q += 1.0 / 64 {
		if a, b := QuantileInt(ints, q), Quantile(floats, q); a != b {
			t.Errorf("q=%v: %v and %v", q, a, b)
		}
	}
	if x := QuantileInt([]int64{math.MinInt64, math.MaxInt64}, 0.5); x != 0 {
		t.Errorf("whole range: got %v", x)
	}
	near(t, "whole range", Quantile([]float64{-math.MaxFloat64, math.MaxFloat64}, 0.75), math.MaxFloat64/2, 1e-15)
}

func TestQuantileOfEqualValuesIsExact(t *testing.T) {
	for _, x := range []float64{0.1, 1.0 / 3, -1e12 / 7} {
		for q := 0.0; q <= 1; q += 1.0 / 1024 {
			if got := Quantile(constant(4, x), q); got != x {
				t.Fatalf("q=%v of %v: got %v", q, x, got)
			}
		}
	}
}
