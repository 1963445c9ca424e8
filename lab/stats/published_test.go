package stats

import (
	"math"
	"testing"
)

// A published report prints means and SDs to one decimal and what follows from
// them to two or more. Each printed figure must be reachable from some inputs
// that round to the printed ones.
func TestPublishedReports(t *testing.T) {
	type printed struct{ value, unit float64 }
	reports := []struct {
		name         string
		ref, treat   Moments
		t, df, d     printed
		lower, upper printed
		p            printed
	}{
		{
			name:  "first",
			ref:   Moments{30, 4560.6, 136.3},
			treat: Moments{30, 18791.9, 792.4},
			t:     printed{96.95, 0.01}, df: printed{30.72, 0.01}, d: printed{25.03, 0.01},
			lower: printed{13931.8, 0.1}, upper: printed{14530.8, 0.1},
			p: printed{9.1e-40, 1e-41},
		},
		{
			name:  "second",
			ref:   Moments{30, 5799.6, 191.3},
			treat: Moments{30, 15486.1, 835.0},
			t:     printed{61.94, 0.01}, df: printed{32.04, 0.01}, d: printed{15.99, 0.01},
			lower: printed{9368.0, 0.1}, upper: printed{10005.1, 0.1},
		},
	}
	for _, r := range reports {
		t.Run(r.name, func(t *testing.T) {
			check := func(what string, want printed, figure func(TTest, float64) float64) {
				t.Helper()
				low, high := math.Inf(1), math.Inf(-1)
				for corner := range 81 {
					nudge := func() float64 {
						defer func() { corner /= 3 }()
						return float64(corner%3-1) * 0.05
					}
					ref, treat := r.ref, r.treat
					ref.Mean += nudge()
					ref.SD += nudge()
					treat.Mean += nudge()
					treat.SD += nudge()
					test, err := Welch(ref, treat, 0.95)
					if err != nil {
						t.Fatal(err)
					}
					x := figure(test, CohenD(ref, treat))
					low, high = min(low, x), max(high, x)
				}
				if half := want.unit / 2; want.value+half < low || want.value-half > high {
					t.Errorf("%s: printed %v, computed between %v and %v", what, want.value, low, high)
				}
			}
			check("t", r.t, func(x TTest, _ float64) float64 { return x.T })
			check("df", r.df, func(x TTest, _ float64) float64 { return x.DF })
			check("d", r.d, func(_ TTest, d float64) float64 { return d })
			check("lower", r.lower, func(x TTest, _ float64) float64 { return x.CI.Lower })
			check("upper", r.upper, func(x TTest, _ float64) float64 { return x.CI.Upper })
			if r.p.value > 0 {
				check("p", r.p, func(x TTest, _ float64) float64 { return x.P })
			}
		})
	}
}

// The sample sizes that textbooks and G*Power give for a large effect.
func TestPublishedPower(t *testing.T) {
	if n, err := RoundsForWelch(0.8, 0.9, 0.05); n != 34 || err != nil {
		t.Errorf("n for power 0.9: got %d, %v, want 34", n, err)
	}
	for n, want := range map[int]float64{27: 0.82, 30: 0.86} {
		if got := PowerWelch(0.8, n, 0.05); math.Abs(got-want) > 0.005 {
			t.Errorf("power of n=%d: got %v, want %v", n, got, want)
		}
	}
}
