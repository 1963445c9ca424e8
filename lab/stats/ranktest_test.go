package stats

import (
	"errors"
	"math/bits"
	"testing"
)

// enumeratedP counts, over all ways to deal the values to the arms, how many
// give a U as far out as the one observed.
func enumeratedP(ref, treat []float64) float64 {
	pooled := append(append([]float64{}, ref...), treat...)
	u := func(treated uint) (u float64) {
		for i, x := range pooled {
			for j, y := range pooled {
				if treated>>i&1 == 1 && treated>>j&1 == 0 && x > y {
					u++
				}
			}
		}
		return u
	}
	pairs := float64(len(ref) * len(treat))
	observed := u((1<<len(treat) - 1) << len(ref))
	observed = min(observed, pairs-observed)
	var all, extreme float64
	for deal := uint(0); deal < 1<<len(pooled); deal++ {
		if bits.OnesCount(deal) == len(treat) {
			all++
			if u(deal) <= observed {
				extreme++
			}
		}
	}
	return min(1, 2*extreme/all)
}

func TestMannWhitneyAgainstEnumeration(t *testing.T) {
	r := random{1}
	for n := 2; n <= 6; n++ {
		for m := 2; m <= 6; m++ {
			ref, treat := make([]float64, n), make([]float64, m)
			for i := range ref {
				ref[i] = float64(r.below(1 << 50))
			}
			for i := range treat {
				treat[i] = float64(r.below(1 << 50))
			}
			got, err := MannWhitney(ref, treat)
			if err != nil {
				t.Fatal(err)
			}
			statistic(t, "p", got.P, enumeratedP(ref, treat))

			for i := range treat {
				treat[i] += 1 << 50
			}
			if got, err = MannWhitney(ref, treat); err != nil {
				t.Fatal(err)
			}
			statistic(t, "smallest p", got.P, MannWhitneyMinP(n, m))
		}
	}
}

func TestMannWhitneyMinP(t *testing.T) {
	for _, tt := range []struct {
		n, m int
		want float64
	}{
		{0, 5, 1}, {5, 0, 1}, {-1, 5, 1}, {1, 1, 1}, {1, 3, 0.5}, {3, 3, 0.1}, {4, 4, 2.0 / 70}, {5, 3, 2.0 / 56},
		{30, 30, 2 / 118264581564861424.0}, {5000, 5000, 0},
	} {
		statistic(t, "smallest p", MannWhitneyMinP(tt.n, tt.m), tt.want)
	}
}

func TestMannWhitneyOfEqualValues(t *testing.T) {
	got, err := MannWhitney(constant(4, 2), constant(5, 2))
	if err != nil || got.U != 10 || got.P != 1 || got.Exact || len(got.Notes) != 1 || got.Notes[0] != noteIdentical {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestMannWhitneyErrors(t *testing.T) {
	two := []float64{1, 2}
	for _, tt := range []struct {
		ref, treat []float64
		want       error
	}{
		{nil, two, ErrTooFew}, {two, []float64{1}, ErrTooFew},
		{[]float64{1, nan}, two, ErrNotFinite}, {two, []float64{-inf, 1}, ErrNotFinite},
	} {
		if _, err := MannWhitney(tt.ref, tt.treat); !errors.Is(err, tt.want) {
			t.Errorf("%v against %v: got %v", tt.treat, tt.ref, err)
		}
		if _, err := HodgesLehmann(tt.ref, tt.treat, 0.9); !errors.Is(err, tt.want) {
			t.Errorf("shift of %v against %v: got %v", tt.treat, tt.ref, err)
		}
	}
	if _, err := HodgesLehmann(two, two, 1); !errors.Is(err, ErrOutOfRange) {
		t.Errorf("level 1: got %v", err)
	}
	far := []float64{1e308, 1.7e308}
	if _, err := HodgesLehmann([]float64{-1e308, -1.7e308}, far, 0.5); !errors.Is(err, ErrNotFinite) {
		t.Errorf("overflow: got %v", err)
	}
}
