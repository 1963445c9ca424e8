package stats

import (
	"errors"
	"math"
	"testing"
)

func TestPowerOfInvalidInput(t *testing.T) {
	for what, got := range map[string]float64{
		"one value":  PowerWelch(1, 1, 0.05),
		"no values":  PowerPaired(1, 0, 0.05),
		"NaN effect": PowerWelch(nan, 10, 0.05),
		"infinite":   PowerPaired(inf, 10, 0.05),
		"alpha 0":    PowerWelch(1, 10, 0),
		"alpha 5":    PowerPaired(1, 10, 5),
		"tiny alpha": PowerPaired(1, 10, 1e-200),
	} {
		if !math.IsNaN(got) {
			t.Errorf("%s: got %v", what, got)
		}
	}
}

func TestPlanErrors(t *testing.T) {
	for _, tt := range []struct {
		d, power, alpha float64
		want            error
	}{
		{0, 0.8, 0.05, ErrOutOfRange}, {1e-9, 0.8, 0.05, ErrOutOfRange},
		{nan, 0.8, 0.05, ErrNotFinite}, {inf, 0.8, 0.05, ErrNotFinite},
		{1, 0, 0.05, ErrOutOfRange}, {1, 1, 0.05, ErrOutOfRange}, {1, 0.8, 0, ErrOutOfRange}, {1, 0.8, nan, ErrOutOfRange},
		{1, 0.8, 1e-200, ErrOutOfRange},
	} {
		if _, err := RoundsForWelch(tt.d, tt.power, tt.alpha); !errors.Is(err, tt.want) {
			t.Errorf("%+v: got %v", tt, err)
		}
		if _, err := RoundsForPaired(tt.d, tt.power, tt.alpha); !errors.Is(err, tt.want) {
			t.Errorf("paired %+v: got %v", tt, err)
		}
	}
	if _, err := DetectableWelch(1, 0.8, 0.05); !errors.Is(err, ErrTooFew) {
		t.Errorf("n=1: got %v", err)
	}
	if _, err := DetectablePaired(9, 80, 0.05); !errors.Is(err, ErrOutOfRange) {
		t.Errorf("power in percent: got %v", err)
	}
}

func TestPowerBelowAlphaNeedsNoEffect(t *testing.T) {
	if d, err := DetectableWelch(10, 0.04, 0.05); d != 0 || err != nil {
		t.Errorf("got %v, %v", d, err)
	}
	if n, err := RoundsForPaired(0, 0.04, 0.05); n != 2 || err != nil {
		t.Errorf("got %v, %v", n, err)
	}
}

func TestRoundsAndDetectableAreInverse(t *testing.T) {
	for _, n := range []int{2, 5, 17, 60, 2500, 1_000_000} {
		d, err := DetectablePaired(n, 0.8, 0.05)
		if err != nil {
			t.Fatal(err)
		}
		got, err := RoundsForPaired(d*(1+1e-9), 0.8, 0.05)
		if err != nil || got != n {
			t.Errorf("n=%d: got %d, %v", n, got, err)
		}
	}
}

// With very many degrees of freedom the statistic is a normal deviate; with a
// huge noncentrality the power is one.
func TestNoncentralTailsAtTheLimits(t *testing.T) {
	normal := (math.Erfc((1.96-1.2)/math.Sqrt2) + math.Erfc((1.96+1.2)/math.Sqrt2)) / 2
	near(t, "many degrees of freedom", noncentralTails(1.2, 1e12, 1.96), normal, 1e-9)
	if p := noncentralTails(1e9, 5, 2.57); p != 1 {
		t.Errorf("huge noncentrality: got %v", p)
	}
	for _, df := range []float64{1, 2, 7, 99} {
		for _, critical := range []float64{40, 105, 130, 1000} {
			a, b := averageOverDeviate(110, df, critical), averageOverSD(110, df, critical)
			if !(math.Abs(a-b) <= 1e-12) {
				t.Errorf("df=%v, critical=%v: averages are %v and %v", df, critical, a, b)
			}
		}
	}
	// So far out the normal deviate hardly matters, and half the chi-squared
	// variable of two degrees of freedom is exponential.
	near(t, "far critical value", noncentralTails(3*3000, 2, 3000), 1-math.Exp(-9), 1e-9)
	for _, df := range []float64{1, 2, 9, 58, 1e5} {
		for _, alpha := range []float64{0.5, 0.05, 1e-6} {
			near(t, "no effect", noncentralTails(0, df, studentQuantile(alpha, df)), alpha, 1e-9)
		}
	}
}
