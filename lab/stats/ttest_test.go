package stats

import (
	"errors"
	"math"
	"testing"
)

var nan, inf = math.NaN(), math.Inf(1)

func constant(n int, x float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = x
	}
	return xs
}

func TestTTestWithoutVariation(t *testing.T) {
	tests := []struct {
		name       string
		ref, treat float64
		t, p       float64
		note       string
	}{
		{"identical", 0.1, 0.1, 0, 1, noteIdentical},
		{"above", 1, 3, inf, 0, noteExact},
		{"below", 3, 1, -inf, 0, noteExact},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ref, treat := constant(7, tt.ref), constant(7, tt.treat)
			welch, err := Welch(MomentsOf(ref), MomentsOf(treat), 0.9)
			if err != nil {
				t.Fatal(err)
			}
			paired, err := Paired(ref, treat, 0.9)
			if err != nil {
				t.Fatal(err)
			}
			diff := tt.treat - tt.ref
			for _, got := range []TTest{welch, paired} {
				if got.Diff != diff || got.CI != (Interval{diff, diff, 0.9}) ||
					got.T != tt.t || got.P != tt.p || got.DF != 0 ||
					len(got.Notes) != 1 || got.Notes[0] != tt.note {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}

func TestTTestErrors(t *testing.T) {
	ok := Moments{3, 1, 1}
	for _, tt := range []struct {
		name       string
		ref, treat Moments
		level      float64
		want       error
	}{
		{"empty", Moments{}, ok, 0.95, ErrTooFew},
		{"one value", ok, Moments{1, 2, 0}, 0.95, ErrTooFew},
		{"NaN mean", Moments{3, nan, 1}, ok, 0.95, ErrNotFinite},
		{"infinite SD", ok, Moments{3, 1, inf}, 0.95, ErrNotFinite},
		{"overflow", Moments{3, -1.7e308, 1}, Moments{3, 1.7e308, 1}, 0.95, ErrNotFinite},
		{"negative SD", ok, Moments{3, 1, -1}, 0.95, ErrOutOfRange},
		{"level 0", ok, ok, 0, ErrOutOfRange},
		{"level 1", ok, ok, 1, ErrOutOfRange},
		{"level in percent", ok, ok, 95, ErrOutOfRange},
		{"level NaN", ok, ok, nan, ErrOutOfRange},
	} {
		if _, err := Welch(tt.ref, tt.treat, tt.level); !errors.Is(err, tt.want) {
			t.Errorf("Welch, %s: got %v", tt.name, err)
		}
	}
	for _, tt := range []struct {
		name       string
		ref, treat []float64
		level      float64
		want       error
	}{
		{"empty", nil, nil, 0.95, ErrTooFew},
		{"one round", []float64{1}, []float64{2}, 0.95, ErrTooFew},
		{"lengths", []float64{1, 2}, []float64{2, 3, 4}, 0.95, ErrUnpaired},
		{"NaN", []float64{1, nan}, []float64{2, 3}, 0.95, ErrNotFinite},
		{"infinite", []float64{1, 2}, []float64{2, -inf}, 0.95, ErrNotFinite},
		{"overflow", []float64{-1.7e308, 2}, []float64{1.7e308, 1}, 0.95, ErrNotFinite},
		{"level", []float64{1, 2}, []float64{2, 3}, 1, ErrOutOfRange},
	} {
		if _, err := Paired(tt.ref, tt.treat, tt.level); !errors.Is(err, tt.want) {
			t.Errorf("Paired, %s: got %v", tt.name, err)
		}
	}
}

// Squares of these values are zero or infinite as float64s.
func TestWelchAtTheEndsOfTheRange(t *testing.T) {
	ref, treat := []float64{1, 2, 4, 5}, []float64{3, 5, 6, 8}
	want, err := Welch(MomentsOf(ref), MomentsOf(treat), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []float64{1e-300, 1e300} {
		scaled := func(xs []float64) Moments {
			ys := make([]float64, len(xs))
			for i := range xs {
				ys[i] = xs[i] * unit
			}
			return MomentsOf(ys)
		}
		got, err := Welch(scaled(ref), scaled(treat), 0.95)
		if err != nil {
			t.Fatal(err)
		}
		statistic(t, "t", got.T, want.T)
		statistic(t, "df", got.DF, want.DF)
		statistic(t, "p", got.P, want.P)
		statistic(t, "upper", got.CI.Upper/unit, want.CI.Upper)
	}
}
