package stats

import (
	"fmt"
	"math"

	"github.com/aclements/go-moremath/mathx"
)

// maxRounds bounds the search for a number of rounds. A plan beyond it is a
// mistake in the effect size.
const maxRounds = 1 << 30

// minAlpha is the smallest alpha whose critical value can be squared with one
// degree of freedom.
const minAlpha = 1e-100

// design is a two-sided t test as a plan sees it.
type design struct {
	// df returns the degrees of freedom with n values (Welch: in each arm).
	df func(n float64) float64
	// perN is the factor by which the squared standardized effect grows the
	// squared noncentrality for each value.
	perN float64
}

var (
	welchDesign  = design{func(n float64) float64 { return 2 * (n - 1) }, 0.5}
	pairedDesign = design{func(n float64) float64 { return n - 1 }, 1}
)

// PowerWelch returns the probability that Welch rejects at alpha when the true
// effect is d (CohenD, its sign is ignored) and n values are measured in each
// arm. With equal true variances, which it assumes, the test has 2(n-1) degrees
// of freedom. Rejections in the wrong direction count, as in R's power.t.test
// with strict = TRUE; at d = 0 the result is alpha. It is NaN when n is below 2,
// d is NaN or infinite, or alpha lies outside [1e-100, 1).
//
// Source: the noncentral t distribution; see Cohen, Statistical Power Analysis
// for the Behavioral Sciences (1988).
func PowerWelch(d float64, n int, alpha float64) float64 {
	return welchDesign.power(d, n, alpha)
}

// PowerPaired is PowerWelch for Paired with n rounds and a true effect dz
// (PairedDz); the test has n-1 degrees of freedom.
func PowerPaired(dz float64, n int, alpha float64) float64 {
	return pairedDesign.power(dz, n, alpha)
}

// RoundsForWelch returns the smallest number of values per arm, at least 2,
// with which PowerWelch reaches power at alpha for a true effect d.
//
// It returns ErrNotFinite when d is NaN or infinite, and ErrOutOfRange when
// power lies outside (0, 1) or alpha outside [1e-100, 1), or when more than 2^30
// values would be needed, as for an effect of zero.
func RoundsForWelch(d, power, alpha float64) (int, error) {
	return welchDesign.rounds(d, power, alpha)
}

// RoundsForPaired is RoundsForWelch for the number of rounds of Paired.
func RoundsForPaired(dz, power, alpha float64) (int, error) {
	return pairedDesign.rounds(dz, power, alpha)
}

// DetectableWelch returns the smallest true effect d (CohenD) at which
// PowerWelch with n values per arm reaches power at alpha; zero when power does
// not exceed alpha.
//
// It returns ErrTooFew when n is below 2, and ErrOutOfRange when power lies
// outside (0, 1) or alpha outside [1e-100, 1).
func DetectableWelch(n int, power, alpha float64) (float64, error) {
	return welchDesign.detectable(n, power, alpha)
}

// DetectablePaired is DetectableWelch for n rounds of Paired; the effect is a
// PairedDz.
func DetectablePaired(n int, power, alpha float64) (float64, error) {
	return pairedDesign.detectable(n, power, alpha)
}

func (g design) power(effect float64, n int, alpha float64) float64 {
	if n < 2 || !finite(effect) || needAlpha(alpha) != nil {
		return math.NaN()
	}
	df := g.df(float64(n))
	return noncentralTails(g.noncentrality(effect, n), df, studentQuantile(alpha, df))
}

func (g design) noncentrality(effect float64, n int) float64 {
	return math.Abs(effect) * math.Sqrt(g.perN*float64(n))
}

func (g design) rounds(effect, power, alpha float64) (int, error) {
	if !finite(effect) {
		return 0, fmt.Errorf("%w: effect is %v", ErrNotFinite, effect)
	}
	if err := needPlan(power, alpha); err != nil {
		return 0, err
	}
	enough := func(n int) bool { return g.power(effect, n, alpha) >= power }
	hi := 2
	for !enough(hi) {
		if hi >= maxRounds {
			return 0, fmt.Errorf("%w: an effect of %v needs more than %d values", ErrOutOfRange, effect, maxRounds)
		}
		hi *= 2
	}
	lo := max(2, hi/2)
	for lo < hi {
		if mid := (lo + hi) / 2; enough(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return hi, nil
}

func (g design) detectable(n int, power, alpha float64) (float64, error) {
	if err := needPlan(power, alpha); err != nil {
		return 0, err
	}
	if n < 2 {
		return 0, fmt.Errorf("%w: have %d, need 2", ErrTooFew, n)
	}
	df := g.df(float64(n))
	critical := studentQuantile(alpha, df)
	reaches := func(shift float64) bool { return noncentralTails(shift, df, critical) >= power }
	if reaches(0) {
		return 0, nil
	}
	lo, hi := 0.0, 1.0
	for !reaches(hi) {
		lo, hi = hi, 2*hi
	}
	for range 60 {
		if mid := lo + (hi-lo)/2; reaches(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi / g.noncentrality(1, n), nil
}

func needPlan(power, alpha float64) error {
	if err := needProbability("power", power); err != nil {
		return err
	}
	return needAlpha(alpha)
}

func needAlpha(alpha float64) error {
	if alpha > 0 && alpha < minAlpha {
		return fmt.Errorf("%w: alpha is %v, must be at least %v", ErrOutOfRange, alpha, minAlpha)
	}
	return needProbability("alpha", alpha)
}

// noncentralTails returns the probability that a noncentral t variable with
// noncentrality shift >= 0 and df degrees of freedom lies further from zero
// than critical.
//
// The statistic is that far out when a normal deviate around shift is further
// from zero than critical*s, where s is the sample SD over the true one. The
// probability is averaged over one of the two by the trapezoidal rule, which
// converges exponentially because the integrand is analytic and vanishes at
// both ends (Trefethen and Weideman, SIAM Review 56, 2014). All terms are
// positive, which the usual series of Lenth, Applied Statistics 38 (1989), gives
// up for a noncentrality beyond 37.
func noncentralTails(shift, df, critical float64) float64 {
	if s := (shift - 10) / critical; s > 1 && chiLogDensity(math.Log(s), df) < -50 {
		return 1
	}
	if shift > 100 && df < 100 {
		return averageOverDeviate(shift, df, critical)
	}
	return averageOverSD(shift, df, critical)
}

// averageOverSD averages the deviate's two tails over the chi distribution of
// s, in log s.
func averageOverSD(shift, df, critical float64) float64 {
	// The step resolves both the width of log s and the width of the normal
	// tail in log s where critical*s passes shift.
	step := min(1/math.Sqrt(2*df), 1/(shift+5)) / 3
	var sum, mass float64
	add := func(u float64) bool {
		weight := math.Exp(chiLogDensity(u, df))
		bound := critical * math.Exp(u)
		sum += weight * (math.Erfc((bound-shift)/math.Sqrt2) + math.Erfc((bound+shift)/math.Sqrt2)) / 2
		mass += weight
		return weight > 1e-20
	}
	for i := 0; add(float64(i) * step); i++ {
	}
	for i := -1; add(float64(i) * step); i-- {
	}
	return min(1, sum/mass)
}

// averageOverDeviate averages the distribution function of s over the normal
// deviate, for a shift so large that the deviate is always positive and hardly
// varies, which would take averageOverSD very small steps.
func averageOverDeviate(shift, df, critical float64) float64 {
	const step = 0.5
	var sum, mass float64
	for z := -9.0; z <= 9; z += step {
		weight := math.Exp(-z * z / 2)
		s := (shift + z) / critical
		sum += weight * mathx.GammaInc(df/2, df/2*s*s)
		mass += weight
	}
	return min(1, sum/mass)
}

// chiLogDensity returns the logarithm of the density of log s, where s² is a
// chi-squared variable over its df degrees of freedom, up to a constant that
// makes it zero at its peak u = 0.
func chiLogDensity(u, df float64) float64 {
	return df * (u - math.Expm1(2*u)/2)
}
