package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sampleOf generates values whose sums and differences are exact, so that
// properties hold to the last bits whatever the values.
func sampleOf(least int) *rapid.Generator[[]float64] {
	value := rapid.Map(rapid.IntRange(-1<<20, 1<<20), func(i int) float64 { return float64(i) / 1024 })
	return rapid.SliceOfN(value, least, 40)
}

func pairOf(t *rapid.T) (ref, treat []float64) {
	ref = sampleOf(2).Draw(t, "ref")
	treat = rapid.SliceOfN(rapid.Float64Range(-1000, 1000), len(ref), len(ref)).Draw(t, "treat")
	for i := range treat {
		treat[i] = math.Round(treat[i]*1024) / 1024
	}
	return ref, treat
}

func mapped(xs []float64, f func(float64) float64) []float64 {
	ys := make([]float64, len(xs))
	for i, x := range xs {
		ys[i] = f(x)
	}
	return ys
}

func must[T any](t *rapid.T) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// alike allows for rounding relative to the larger of the figures and size.
func alike(t *rapid.T, what string, a, b, size float64) {
	t.Helper()
	if a == b {
		return
	}
	if !(math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), size)) {
		t.Errorf("%s: %v and %v", what, a, b)
	}
}

func TestSwappingArmsMirrorsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref, treat := pairOf(t)
		test := must[TTest](t)
		for _, pair := range [][2]TTest{
			{test(Paired(ref, treat, 0.9)), test(Paired(treat, ref, 0.9))},
			{test(Welch(MomentsOf(ref), MomentsOf(treat), 0.9)), test(Welch(MomentsOf(treat), MomentsOf(ref), 0.9))},
		} {
			a, b := pair[0], pair[1]
			if a.Diff != -b.Diff || a.T != -b.T || a.DF != b.DF || a.P != b.P ||
				a.CI.Lower != -b.CI.Upper || a.CI.Upper != -b.CI.Lower {
				t.Errorf("%+v and %+v", a, b)
			}
		}
		ranks := must[RankTest](t)
		a, b := ranks(MannWhitney(ref, treat)), ranks(MannWhitney(treat, ref))
		if a.U+b.U != float64(len(ref)*len(treat)) || a.P != b.P {
			t.Errorf("%+v and %+v", a, b)
		}
		shift := must[Shift](t)
		c, d := shift(HodgesLehmann(ref, treat, 0.9)), shift(HodgesLehmann(treat, ref, 0.9))
		if c.Estimate != -d.Estimate || c.CI.Lower != -d.CI.Upper || c.CI.Upper != -d.CI.Lower {
			t.Errorf("%+v and %+v", c, d)
		}
	})
}

func TestShiftAndScaleInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref, treat := pairOf(t)
		by := float64(rapid.IntRange(-1000, 1000).Draw(t, "shift"))
		unit := math.Ldexp(1, rapid.IntRange(-300, 300).Draw(t, "exponent"))
		move := func(x float64) float64 { return (x + by) * unit }
		ref2, treat2 := mapped(ref, move), mapped(treat, move)

		test := must[TTest](t)
		for _, pair := range [][2]TTest{
			{test(Paired(ref, treat, 0.9)), test(Paired(ref2, treat2, 0.9))},
			{test(Welch(MomentsOf(ref), MomentsOf(treat), 0.9)), test(Welch(MomentsOf(ref2), MomentsOf(treat2), 0.9))},
		} {
			a, b := pair[0], pair[1]
			alike(t, "difference", a.Diff, b.Diff/unit, 1000)
			alike(t, "df", a.DF, b.DF, 0)
			alike(t, "p", a.P, b.P, 1e-3)
			alike(t, "lower", a.CI.Lower, b.CI.Lower/unit, 1000)
		}
		alike(t, "d", CohenD(MomentsOf(ref), MomentsOf(treat)), CohenD(MomentsOf(ref2), MomentsOf(treat2)), 1)
		ranks := must[RankTest](t)
		a, b := ranks(MannWhitney(ref, treat)), ranks(MannWhitney(ref2, treat2))
		if a.U != b.U || a.P != b.P {
			t.Errorf("%+v and %+v", a, b)
		}
		shift := must[Shift](t)
		c, d := shift(HodgesLehmann(ref, treat, 0.9)), shift(HodgesLehmann(ref2, treat2, 0.9))
		if c.Estimate != d.Estimate/unit || c.CI.Upper != d.CI.Upper/unit {
			t.Errorf("%+v and %+v", c, d)
		}
	})
}

func TestPValuesAndIntervalsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref, treat := sampleOf(2).Draw(t, "ref"), sampleOf(2).Draw(t, "treat")
		level := rapid.Float64Range(0.01, 0.999).Draw(t, "level")
		test := must[TTest](t)(Welch(MomentsOf(ref), MomentsOf(treat), level))
		if !(test.P >= 0 && test.P <= 1) || !(test.CI.Lower <= test.Diff && test.Diff <= test.CI.Upper) {
			t.Errorf("%+v", test)
		}
		excludes := test.CI.Lower > 0 || test.CI.Upper < 0
		if math.Abs(test.P-(1-level)) > 1e-9 && excludes != (test.P < 1-level) {
			t.Errorf("p and interval disagree: %+v", test)
		}
		ranks := must[RankTest](t)(MannWhitney(ref, treat))
		if !(ranks.P > 0 && ranks.P <= 1) || ranks.U < 0 || ranks.U > float64(len(ref)*len(treat)) {
			t.Errorf("%+v", ranks)
		}
		shift := must[Shift](t)(HodgesLehmann(ref, treat, level))
		if !(shift.CI.Lower <= shift.Estimate && shift.Estimate <= shift.CI.Upper) {
			t.Errorf("%+v", shift)
		}
	})
}

// The Hodges-Lehmann interval holds just the shifts that the exact test, the
// one the interval's ranks come from, does not reject.
func TestShiftIntervalInvertsTheExactTest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		distinct := rapid.SliceOfNDistinct(rapid.IntRange(0, 1<<20), 4, 30, rapid.ID[int]).Draw(t, "values")
		n := rapid.IntRange(2, len(distinct)-2).Draw(t, "n")
		xs := make([]float64, len(distinct))
		for i, v := range distinct {
			xs[i] = float64(v)
		}
		ref, treat := xs[:n], xs[n:]
		shift := must[Shift](t)(HodgesLehmann(ref, treat, 0.9))
		p := func(by float64) float64 {
			res := must[RankTest](t)(MannWhitney(ref, mapped(treat, func(x float64) float64 { return x - by })))
			if !res.Exact {
				return nan
			}
			return res.P
		}
		// A quarter off an end is between two differences, which are whole.
		for _, by := range []float64{shift.CI.Lower + 0.25, shift.CI.Upper - 0.25} {
			if by > shift.CI.Lower && by < shift.CI.Upper && p(by) < 0.1-1e-12 {
				t.Errorf("rejects %v inside %+v", by, shift.CI)
			}
		}
		if len(shift.Notes) == 0 {
			for _, by := range []float64{shift.CI.Lower - 0.25, shift.CI.Upper + 0.25} {
				if p(by) > 0.1+1e-12 {
					t.Errorf("accepts %v outside %+v", by, shift.CI)
				}
			}
		}
	})
}

func TestHolmIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(t, "ps")
		adjusted := Holm(ps)
		for i, p := range ps {
			if !(adjusted[i] >= p && adjusted[i] <= min(1, p*float64(len(ps)))) {
				t.Errorf("%v adjusted to %v", p, adjusted[i])
			}
			for j := range ps {
				if ps[j] < p && adjusted[j] > adjusted[i] {
					t.Errorf("order of %v and %v changed", ps[j], p)
				}
			}
		}
		more := append(slices.Clone(ps), nan)
		for i, p := range Holm(more)[:len(ps)] {
			if p < adjusted[i] {
				t.Errorf("a failed test eased %v to %v", adjusted[i], p)
			}
		}
	})
}

func TestQuantileIsMonotoneAndWithinTheSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sorted := sortedCopy(rapid.SliceOfN(rapid.Float64(), 1, 50).Draw(t, "values"))
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		a, b = min(a, b), max(a, b)
		low, high := Quantile(sorted, a), Quantile(sorted, b)
		if !(sorted[0] <= low && low <= high*(1+1e-15*float64(sign(high))) && high <= sorted[len(sorted)-1]) {
			t.Errorf("quantiles %v and %v of %v", low, high, sorted)
		}
		if Quantile(sorted, 0) != sorted[0] || Quantile(sorted, 1) != sorted[len(sorted)-1] {
			t.Errorf("ends of %v", sorted)
		}
	})
}

func TestPowerIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Float64Range(0, 5).Draw(t, "d")
		n := rapid.IntRange(2, 200).Draw(t, "n")
		alpha := rapid.Float64Range(1e-4, 0.5).Draw(t, "alpha")
		power := PowerPaired(d, n, alpha)
		if !(power >= alpha-1e-12 && power <= 1) {
			t.Errorf("power %v", power)
		}
		for what, more := range map[string]float64{
			"effect": PowerPaired(d+0.1, n, alpha),
			"rounds": PowerPaired(d, n+1, alpha),
			"alpha":  PowerPaired(d, n, alpha*1.1),
		} {
			if more < power-1e-12 {
				t.Errorf("more %s lowers power from %v to %v", what, power, more)
			}
		}
	})
}

func TestBootstrapIsInsideTheSamplesAndRepeatable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		round := rapid.SliceOfN(rapid.Int64Range(1, 1000), 1, 8)
		ref := Rounds(rapid.SliceOfN(round, 2, 6).Draw(t, "ref"))
		treat := Rounds(rapid.SliceOfN(round, 2, 6).Draw(t, "treat"))
		q, seed := rapid.Float64Range(0, 1).Draw(t, "q"), rapid.Uint64().Draw(t, "seed")
		effect := must[QuantileEffect](t)
		a := effect(quantileOf(ref, treat, q, 0.9, 30, seed))
		all := slices.Sorted(slices.Values(slices.Concat(ref...)))
		if !(float64(all[0]) <= a.RefCI.Lower && a.RefCI.Lower <= a.RefCI.Upper && a.RefCI.Upper <= float64(all[len(all)-1])) {
			t.Errorf("%+v outside %v", a.RefCI, all)
		}
		b := effect(quantileOf(ref, treat, q, 0.9, 30, seed))
		if a.RefCI != b.RefCI || a.RatioCI != b.RatioCI || a.DiffCI != b.DiffCI {
			t.Errorf("%+v and %+v", a, b)
		}
	})
}
