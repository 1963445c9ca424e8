package stats

import (
	"math"
	"testing"
)

func TestMomentsOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		xs   []float64
		want Moments
	}{
		{"empty", nil, Moments{0, nan, nan}},
		{"one value", []float64{3}, Moments{1, 3, nan}},
		{"equal values", []float64{0.1, 0.1, 0.1}, Moments{3, 0.1, 0}},
		{"NaN", []float64{1, nan}, Moments{2, nan, nan}},
		{"infinite", []float64{1, inf}, Moments{2, nan, nan}},
		{"neighbours", []float64{1, 1 + 0x1p-52}, Moments{2, 1, 0x1p-52 / math.Sqrt2}},
		{"cancelling", []float64{1e16, 1, -1e16, 1}, Moments{4, 0.5, 1e16 * math.Sqrt(2.0/3)}},
		{"largest", []float64{1.5e308, 1.25e308, 1e308}, Moments{3, 1.25e308, 0.25e308}},
		{"smallest", []float64{0x1p-1072, 0, 0x1p-1073}, Moments{3, 0x1p-1073, 0x1p-1073}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := MomentsOf(tt.xs)
			same := func(what string, got, want float64) {
				if math.IsNaN(got) && math.IsNaN(want) {
					return
				}
				near(t, what, got, want, 1e-15)
			}
			if got.N != tt.want.N {
				t.Errorf("N is %d", got.N)
			}
			same("mean", got.Mean, tt.want.Mean)
			same("SD", got.SD, tt.want.SD)
		})
	}
}

func TestMomentsOfEqualValuesAreExact(t *testing.T) {
	for n := 2; n < 200; n++ {
		for _, x := range []float64{0.1, 1.0 / 3, 1e12 / 7, -1e-12 / 3} {
			if got := MomentsOf(constant(n, x)); got != (Moments{n, x, 0}) {
				t.Fatalf("%d times %v: got %+v", n, x, got)
			}
		}
	}
}

func TestSummarize(t *testing.T) {
	xs := []float64{4, 1, 3, 2}
	got := Summarize(xs)
	want := Summary{N: 4, Mean: 2.5, SD: got.SD, Median: 2.5, Min: 1, Max: 4}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	statistic(t, "SD", got.SD, math.Sqrt(5.0/3))
	if xs[0] != 4 {
		t.Error("sorted its argument")
	}
	for _, xs := range [][]float64{nil, {1, nan}, {1, inf}} {
		s := Summarize(xs)
		if s.N != len(xs) || !math.IsNaN(s.Mean+s.SD) || !math.IsNaN(s.Median) || !math.IsNaN(s.Min) || !math.IsNaN(s.Max) {
			t.Errorf("%v: got %+v", xs, s)
		}
	}
	if s := Summarize([]float64{5}); s.Mean != 5 || s.Median != 5 || s.Min != 5 || s.Max != 5 || !math.IsNaN(s.SD) {
		t.Errorf("one value: got %+v", s)
	}
}
