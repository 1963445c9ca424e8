package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// none stands where there is no number, so that a gap is never read as zero.
const none = "–"

// num is x with about four significant digits: 1234.5 is 1,234 (digits ahead of
// the point are never rounded away), 0.012345 is 0.01234. Zeros at the end are
// left out only where nothing was rounded: 0.5 is 0.5, and 10.79987 is 10.80.
// Only what would need a long row of zeros gets an exponent.
func num(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return none
	case math.IsInf(x, 1):
		return "∞"
	case math.IsInf(x, -1):
		return "-∞"
	case x == 0:
		return "0"
	case a < 1e-6 || a >= 1e15:
		return strconv.FormatFloat(x, 'g', 4, 64)
	default:
		s := strconv.FormatFloat(x, 'f', decimals(a), 64)
		// A change of units leaves an error in the last bits.
		if shown, _ := strconv.ParseFloat(s, 64); strings.Contains(s, ".") && math.Abs(shown-x) <= 1e-12*a {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return thousands(s)
	}
}

// decimals is how many digits behind the point give four significant ones.
func decimals(a float64) int {
	return max(0, 3-int(math.Floor(math.Log10(a))))
}

// thousands puts a comma between groups of three digits ahead of the point.
func thousands(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, frac, dot := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + frac
	}
	return sign + whole
}

// step is one size of a unit, in the smallest of its ladder.
type step struct {
	name string
	size float64
}

// ladders are the units that are printed in the size that suits the value.
var ladders = [][]step{
	{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}},
	{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}},
}

// scale is the unit in which the largest of xs is best read, and the factor
// that takes values of unit there. A rate such as ns/op keeps what stands
// behind its slash. A unit that is on no ladder stays as it is.
func scale(unit string, xs ...float64) (factor float64, name string) {
	base, per, rate := strings.Cut(unit, "/")
	if base == "us" {
		base = "µs"
	}
	for _, ladder := range ladders {
		at := slices.IndexFunc(ladder, func(s step) bool { return s.name == base })
		if at < 0 {
			continue
		}
		most := 0.0
		for _, x := range xs {
			if a := math.Abs(x); a > most && !math.IsInf(a, 0) {
				most = a
			}
		}
		to := ladder[at]
		if most > 0 {
			most *= to.size
			to = ladder[0]
			for _, s := range ladder {
				if most >= s.size {
					to = s
				}
			}
		}
		name = to.name
		if rate {
			name += "/" + per
		}
		return ladder[at].size / to.size, name
	}
	return 1, unit
}

// withUnit is x in the size of its unit that reads best: 0.0123 s is 12.3 ms,
// 3,145,728 B is 3 MiB.
func withUnit(x float64, unit string) string {
	if math.IsNaN(x) {
		return none
	}
	f, name := scale(unit, x)
	return joinUnit(num(x*f), name)
}

// signed is withUnit for a difference: an increase has a plus.
func signed(x float64, unit string) string {
	if x > 0 {
		return "+" + withUnit(x, unit)
	}
	return withUnit(x, unit)
}

func joinUnit(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// plusMinus is a mean with its spread, in one unit and to the same digit, which
// is the second of the spread: more would be noise.
func plusMinus(mean, sd float64, unit string) string {
	if math.IsNaN(mean) {
		return none
	}
	f, name := scale(unit, mean)
	mean, sd = mean*f, sd*f
	if math.IsNaN(sd) {
		return joinUnit(num(mean), name)
	}
	if math.IsInf(sd, 0) || math.IsInf(mean, 0) || sd == 0 {
		return joinUnit(num(mean)+" ± "+num(sd), name)
	}
	digits := 1 - int(math.Floor(math.Log10(sd)))
	if mean != 0 {
		digits = min(digits, decimals(math.Abs(mean))+2)
	}
	if digits < 0 || digits > 9 {
		return joinUnit(num(mean)+" ± "+num(sd), name)
	}
	fixed := func(x float64) string { return thousands(strconv.FormatFloat(x, 'f', digits, 64)) }
	return joinUnit(fixed(mean)+" ± "+fixed(sd), name)
}

// span is the least and the greatest value in one unit: 11.8 … 13.1 ms.
func span(lo, hi float64, unit string) string {
	if math.IsNaN(lo) || math.IsNaN(hi) {
		return none
	}
	f, name := scale(unit, lo, hi)
	return joinUnit(num(lo*f)+" … "+num(hi*f), name)
}

// interval is both ends in one unit: [-1.2, 3.4] ms.
func interval(lo, hi float64, unit string) string {
	if math.IsNaN(lo) && math.IsNaN(hi) {
		return none
	}
	f, name := scale(unit, lo, hi)
	return joinUnit("["+num(lo*f)+", "+num(hi*f)+"]", name)
}

// percent is a relative change with its sign: 0.123 is +12.3 %.
func percent(x float64) string {
	if math.IsNaN(x) {
		return none
	}
	return signedHundredfold(x) + " %"
}

// percentInterval is an interval of relative changes: [+1.2, +3.4] %.
func percentInterval(lo, hi float64) string {
	if math.IsNaN(lo) && math.IsNaN(hi) {
		return none
	}
	return "[" + signedHundredfold(lo) + ", " + signedHundredfold(hi) + "] %"
}

func signedHundredfold(x float64) string {
	x *= 100
	digits := 1
	switch a := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, -1):
		return num(x)
	case math.IsInf(x, 1):
		return "+∞"
	case a >= 100:
		digits = 0
	case a < 0.1:
		digits = 3
	}
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Trim(s, "-0.") == "" {
		return "0.0"
	}
	if x > 0 {
		return "+" + thousands(s)
	}
	return thousands(s)
}

// thresholds are the levels that people compare a p with. Rounding must not
// move a p onto one of them.
var thresholds = []float64{0.001, 0.005, 0.01, 0.05, 0.1}

// pvalue is a p for a column headed p: "0.034", or "< 0.0001".
func pvalue(p float64) string {
	switch {
	case math.IsNaN(p):
		return none
	case p < 0.0001:
		return "< 0.0001"
	}
	for digits := 3; ; digits++ {
		s := strconv.FormatFloat(p, 'f', digits, 64)
		rounded, _ := strconv.ParseFloat(s, 64)
		if digits == 3 && p < 0.01 {
			continue
		}
		if digits >= 8 || rounded == p || !slices.Contains(thresholds, rounded) {
			return s
		}
	}
}

// pphrase is a p for a sentence: "p = 0.034", or "p < 0.0001".
func pphrase(p float64) string {
	s := pvalue(p)
	if strings.HasPrefix(s, "<") {
		return "p " + s
	}
	return "p = " + s
}
