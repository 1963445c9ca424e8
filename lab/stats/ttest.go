package stats

import (
	"fmt"
	"math"
)

// Notes that mark a comparison without variation, for which no t distribution
// exists.
const (
	noteIdentical = "no variation: samples are identical"
	noteExact     = "no variation: the difference is exact"
)

// TTest is the result of a two-sided t test of a difference of means.
//
// Without any variation there is no t distribution: DF is then 0, CI collapses
// to Diff, a note says so, and T and P are 0 and 1 when the means are equal,
// plus or minus infinity and 0 when they are not.
type TTest struct {
	// Diff is the treatment's mean minus the reference's, in the unit of the
	// values.
	Diff float64
	// CI is the confidence interval of Diff.
	CI Interval
	// T is Diff over its standard error, DF its degrees of freedom.
	T, DF float64
	// P is the two-sided p value of the hypothesis that Diff is zero.
	P float64
	// Notes tell what a reader must know to trust the figures; empty means
	// nothing.
	Notes []string
}

// Welch compares the means of two independent samples that may differ in
// variance. level is the confidence of the interval, such as 0.95. One arm
// without variation is fine; for both see TTest.
//
// It returns ErrTooFew when an arm has fewer than two values, ErrNotFinite when
// a moment is NaN or infinite or the difference overflows, and ErrOutOfRange
// when level lies outside (0, 1) or an SD is negative.
//
// Source: Welch, Biometrika 34 (1947), with the degrees of freedom of
// Satterthwaite, Biometrics Bulletin 2 (1946).
func Welch(ref, treat Moments, level float64) (TTest, error) {
	if err := needProbability("level", level); err != nil {
		return TTest{}, err
	}
	if least := min(ref.N, treat.N); least < 2 {
		return TTest{}, fmt.Errorf("%w: an arm has %d, need 2", ErrTooFew, least)
	}
	if !finite(ref.Mean, ref.SD, treat.Mean, treat.SD) {
		return TTest{}, ErrNotFinite
	}
	if ref.SD < 0 || treat.SD < 0 {
		return TTest{}, fmt.Errorf("%w: negative SD", ErrOutOfRange)
	}
	nr, nt := float64(ref.N), float64(treat.N)
	er, et := ref.SD/math.Sqrt(nr), treat.SD/math.Sqrt(nt)
	se := math.Hypot(er, et)
	// Shares of the squared error instead of fourth powers of the SDs, which
	// would leave the range of a float64 for very large or small units.
	r, t := er/se, et/se
	r, t = r*r, t*t
	df := 1 / (r*r/(nr-1) + t*t/(nt-1))
	return tTest(treat.Mean-ref.Mean, se, df, level)
}

// Paired tests the mean of the differences treat[i]-ref[i], where both values
// come from the same round and so share its noise. level is the confidence of
// the interval, such as 0.95.
//
// It returns ErrUnpaired when the lengths differ, ErrTooFew when there are
// fewer than two rounds, ErrNotFinite when a value is NaN or infinite or a
// difference overflows, and ErrOutOfRange when level lies outside (0, 1).
//
// Source: Student, Biometrika 6 (1908).
func Paired(ref, treat []float64, level float64) (TTest, error) {
	if err := needProbability("level", level); err != nil {
		return TTest{}, err
	}
	if len(ref) != len(treat) {
		return TTest{}, fmt.Errorf("%w: %d and %d", ErrUnpaired, len(ref), len(treat))
	}
	if err := needValues(2, ref, treat); err != nil {
		return TTest{}, err
	}
	d := MomentsOf(differences(ref, treat))
	n := float64(d.N)
	return tTest(d.Mean, d.SD/math.Sqrt(n), n-1, level)
}

// tTest fills in the result for a difference with standard error se. df is
// ignored when se is zero.
func tTest(diff, se, df, level float64) (TTest, error) {
	if !finite(diff, se) {
		return TTest{}, fmt.Errorf("%w: the difference overflows", ErrNotFinite)
	}
	if se == 0 {
		res := TTest{Diff: diff, CI: Interval{diff, diff, level}, P: 1, Notes: []string{noteIdentical}}
		if diff != 0 {
			res.T, res.P = math.Inf(sign(diff)), 0
			res.Notes = []string{noteExact}
		}
		return res, nil
	}
	t := diff / se
	half := studentQuantile(1-level, df) * se
	return TTest{
		Diff: diff,
		CI:   Interval{diff - half, diff + half, level},
		T:    t,
		DF:   df,
		P:    studentTail(t, df),
	}, nil
}

func sign(x float64) int {
	if x < 0 {
		return -1
	}
	return 1
}

// differences returns treat[i]-ref[i].
func differences(ref, treat []float64) []float64 {
	d := make([]float64, len(ref))
	for i := range d {
		d[i] = treat[i] - ref[i]
	}
	return d
}
