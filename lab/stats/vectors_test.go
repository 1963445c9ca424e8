package stats

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// The tolerances of the comparison with R and SciPy, both relative.
const (
	statisticTolerance = 1e-9
	pTolerance         = 1e-6
)

type testVector struct {
	Diff, T, DF, P, Lower, Upper float64
}

type dataSet struct {
	Name       string
	Level      float64
	Ref, Treat []float64
	Moments    struct{ Mean, SD float64 }
	Welch      testVector
	Paired     *testVector
	D, G       float64
	Dz         *float64
	Ranks      struct {
		U, P  float64
		Exact bool
	}
	Shift     struct{ Estimate, Lower, Upper, Level float64 }
	Quantiles []float64
	Drift     *struct{ Slope, P float64 }
}

type planVector struct {
	Kind            string
	D, Alpha, Power float64
	N               int
}

type vectors struct {
	Qs        []float64
	Sets      []dataSet
	Holm      []struct{ P, Adjusted []float64 }
	Tails     []struct{ T, DF, P float64 }
	Criticals []struct{ Alpha, DF, T float64 }
	Powers    []planVector
	Plans     []planVector
	// Detectable holds effects for which n values reach the power.
	Detectable []planVector
}

func loadVectors(t *testing.T) vectors {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// near fails the test unless got is within a relative tolerance of want; zero
// is only close to zero.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: got %.17g, want %.17g (relative error %.2g)", what, got, want, math.Abs(got/want-1))
	}
}

func statistic(t *testing.T, what string, got, want float64) {
	t.Helper()
	near(t, what, got, want, statisticTolerance)
}

func probability(t *testing.T, what string, got, want float64) {
	t.Helper()
	near(t, what, got, want, pTolerance)
}

func sameTTest(t *testing.T, what string, got TTest, want testVector, level float64) {
	t.Helper()
	statistic(t, what+" difference", got.Diff, want.Diff)
	statistic(t, what+" t", got.T, want.T)
	statistic(t, what+" df", got.DF, want.DF)
	probability(t, what+" p", got.P, want.P)
	statistic(t, what+" lower", got.CI.Lower, want.Lower)
	statistic(t, what+" upper", got.CI.Upper, want.Upper)
	if got.CI.Level != level || len(got.Notes) != 0 {
		t.Errorf("%s: level %v, notes %q", what, got.CI.Level, got.Notes)
	}
}

func TestDataSetsAgainstRAndSciPy(t *testing.T) {
	sets := loadVectors(t).Sets
	qs := loadVectors(t).Qs
	if len(sets) < 40 {
		t.Fatalf("only %d data sets", len(sets))
	}
	t.Logf("figure: stats.data-sets %d sets", len(sets))
	for _, set := range sets {
		t.Run(set.Name, func(t *testing.T) {
			ref, treat := MomentsOf(set.Ref), MomentsOf(set.Treat)
			statistic(t, "mean", treat.Mean, set.Moments.Mean)
			statistic(t, "SD", treat.SD, set.Moments.SD)
			statistic(t, "d", CohenD(ref, treat), set.D)
			statistic(t, "g", HedgesG(ref, treat), set.G)

			welch, err := Welch(ref, treat, set.Level)
			if err != nil {
				t.Fatal(err)
			}
			sameTTest(t, "Welch", welch, set.Welch, set.Level)

			if set.Paired != nil {
				paired, err := Paired(set.Ref, set.Treat, set.Level)
				if err != nil {
					t.Fatal(err)
				}
				sameTTest(t, "paired", paired, *set.Paired, set.Level)
				statistic(t, "dz", PairedDz(set.Ref, set.Treat), *set.Dz)
			}

			ranks, err := MannWhitney(set.Ref, set.Treat)
			if err != nil {
				t.Fatal(err)
			}
			statistic(t, "U", ranks.U, set.Ranks.U)
			probability(t, "rank p", ranks.P, set.Ranks.P)
			if ranks.Exact != set.Ranks.Exact {
				t.Errorf("exact is %v", ranks.Exact)
			}

			shift, err := HodgesLehmann(set.Ref, set.Treat, set.Level)
			if err != nil {
				t.Fatal(err)
			}
			statistic(t, "shift", shift.Estimate, set.Shift.Estimate)
			statistic(t, "shift lower", shift.CI.Lower, set.Shift.Lower)
			statistic(t, "shift upper", shift.CI.Upper, set.Shift.Upper)
			statistic(t, "shift level", shift.CI.Level, set.Shift.Level)
			if (len(shift.Notes) != 0) != (set.Shift.Level < set.Level) {
				t.Errorf("shift notes %q", shift.Notes)
			}

			sorted := sortedCopy(set.Treat)
			for i, q := range qs {
				statistic(t, "quantile", Quantile(sorted, q), set.Quantiles[i])
			}
			if set.Drift != nil {
				slope, p, err := Drift(set.Treat)
				if err != nil {
					t.Fatal(err)
				}
				statistic(t, "slope", slope, set.Drift.Slope)
				probability(t, "slope p", p, set.Drift.P)
			}
		})
	}
}

func TestHolmAgainstR(t *testing.T) {
	for _, v := range loadVectors(t).Holm {
		for i, p := range Holm(v.P) {
			probability(t, "adjusted p", p, v.Adjusted[i])
		}
	}
}

func TestStudentAgainstR(t *testing.T) {
	v := loadVectors(t)
	for _, v := range v.Tails {
		probability(t, "tail", studentTail(v.T, v.DF), v.P)
	}
	for _, v := range v.Criticals {
		statistic(t, "quantile", studentQuantile(v.Alpha, v.DF), v.T)
	}
}

func TestPowerAgainstR(t *testing.T) {
	v := loadVectors(t)
	for _, v := range v.Powers {
		power := PowerWelch
		if v.Kind == "paired" {
			power = PowerPaired
		}
		probability(t, v.Kind+" power", power(v.D, v.N, v.Alpha), v.Power)
		if power(-v.D, v.N, v.Alpha) != power(v.D, v.N, v.Alpha) {
			t.Errorf("%s power depends on the sign of the effect", v.Kind)
		}
	}
	for _, v := range v.Plans {
		rounds := RoundsForWelch
		if v.Kind == "paired" {
			rounds = RoundsForPaired
		}
		if n, err := rounds(v.D, v.Power, v.Alpha); err != nil || n != v.N {
			t.Errorf("%+v: got %d, %v", v, n, err)
		}
	}
	for _, v := range v.Detectable {
		detectable := DetectableWelch
		if v.Kind == "paired" {
			detectable = DetectablePaired
		}
		d, err := detectable(v.N, v.Power, v.Alpha)
		if err != nil {
			t.Fatal(err)
		}
		statistic(t, v.Kind+" detectable effect", d, v.D)
	}
}
