package stats

import (
	"errors"
	"testing"
)

func TestBootstrapMeanRatioAgainstNaive(t *testing.T) {
	ref, treat := []float64{1, 2.5, 3.25, 4, 7}, []float64{2, 3.5, 3, 5.75, 1}
	for _, treat := range [][]float64{treat, treat[:3]} {
		_, ci, err := BootstrapMeanRatio(ref, treat, 0.8, 50, 3)
		if err != nil {
			t.Fatal(err)
		}
		mean := func(xs []float64, times []uint64) float64 {
			var all []float64
			for i, n := range times {
				for range n {
					all = append(all, xs[i])
				}
			}
			return MomentsOf(all).Mean
		}
		var ratios []float64
		draw := newResampler(len(ref), len(treat), 3)
		for range 50 {
			draw.next()
			ratios = append(ratios, mean(treat, draw.treat)/mean(ref, draw.ref))
		}
		want := percentileInterval(ratios, 0.8)
		statistic(t, "lower", ci.Lower, want.Lower)
		statistic(t, "upper", ci.Upper, want.Upper)
	}
}

// With few resamples none of them may show that the reference's mean is zero.
func TestBootstrapMeanRatioToZero(t *testing.T) {
	for seed := range uint64(20) {
		if _, _, err := BootstrapMeanRatio([]float64{-1, 1, 2, -2}, []float64{1, 2}, 0.95, 1, seed); !errors.Is(err, ErrNoRatio) {
			t.Errorf("got %v", err)
		}
	}
}

func TestBootstrapMeanRatioErrors(t *testing.T) {
	two := []float64{1, 2}
	for _, tt := range []struct {
		name       string
		ref, treat []float64
		level      float64
		resamples  int
		want       error
	}{
		{"empty", nil, two, 0.95, 10, ErrTooFew},
		{"one value", two, []float64{1}, 0.95, 10, ErrTooFew},
		{"NaN", []float64{1, nan}, two, 0.95, 10, ErrNotFinite},
		{"overflow", []float64{1e-300, 1e-300}, []float64{1e300, 1e300}, 0.95, 10, ErrNotFinite},
		{"zero reference", []float64{-1, 1}, two, 0.95, 10, ErrNoRatio},
		{"zero resample", []float64{0, 1}, two, 0.95, 10, ErrNoRatio},
		{"changing sign", []float64{-1, 2}, two, 0.95, 10, ErrNoRatio},
		{"level", two, two, 0, 10, ErrOutOfRange},
		{"resamples", two, two, 0.95, -1, ErrOutOfRange},
	} {
		if _, _, err := BootstrapMeanRatio(tt.ref, tt.treat, tt.level, tt.resamples, 1); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}
