package report

import (
	"math"
	"strconv"
)

// axis maps values to pixels, and knows the round values to label.
type axis struct {
	lo, hi   float64 // of the values shown
	from, to float64 // pixels of lo and hi
	log      bool
	shift    float64 // added to a value before it is placed; lo and hi have it already
	ticks    []tick
}

type tick struct {
	value float64
	label string
}

func (a axis) at(v float64) float64 {
	v += a.shift
	lo, hi := a.lo, a.hi
	if a.log {
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	return a.from + (v-lo)/(hi-lo)*(a.to-a.from)
}

// linearAxis labels about want round values between lo and hi. It is false
// where there is nothing to draw: an end is no finite number, or the span is
// beyond one.
func linearAxis(lo, hi, from, to float64, want int) (axis, bool) {
	span := hi - lo
	if !finite(lo) || !finite(hi) || !finite(span) || span < 0 {
		return axis{}, false
	}
	if most := math.Max(math.Abs(lo), math.Abs(hi)); span <= most*1e-9 {
		pad := most * 0.05
		if pad == 0 {
			pad = 1
		}
		lo, hi = lo-pad, hi+pad
	}
	a := axis{lo: lo, hi: hi, from: from, to: to}
	// A span that starts and ends between two round values may hold but one of
	// them, and one label gives no scale.
	for n := want; len(a.ticks) < 2 && n < want+6; n++ {
		a.ticks = linearTicks(lo, hi, niceStep((hi-lo)/float64(n)))
	}
	return a, true
}

// legible says whether the labels of a horizontal axis keep clear of each
// other.
func (a axis) legible() bool {
	for i := 1; i < len(a.ticks); i++ {
		p, q := a.ticks[i-1], a.ticks[i]
		if a.at(q.value)-a.at(p.value) < (textWidth(p.label)+textWidth(q.label))/2+6 {
			return false
		}
	}
	return true
}

// legibleAxis has as many labels up to most as fit side by side.
func legibleAxis(lo, hi, from, to float64, most int) (a axis, ok bool) {
	for n := most; n > 0; n-- {
		if a, ok = linearAxis(lo, hi, from, to, n); !ok || a.legible() {
			break
		}
	}
	return a, ok
}

// niceStep is the smallest of 1, 2, 5 times a power of ten that is not below x.
func niceStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= x*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func linearTicks(lo, hi, step float64) []tick {
	var ticks []tick
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	const slack = 1e-9
	for k := math.Ceil(lo/step - slack); k <= hi/step+slack; k++ {
		v := k * step
		ticks = append(ticks, tick{v, tickLabel(v, step, digits)})
	}
	return ticks
}

// tickLabel has just the digits that tell neighbours apart.
func tickLabel(v, step float64, digits int) string {
	switch {
	case math.Abs(v) < step/2:
		return "0"
	case digits <= 9 && math.Abs(v) < 1e15:
		return thousands(strconv.FormatFloat(v, 'f', digits, 64))
	}
	return strconv.FormatFloat(v, 'g', 1+int(math.Floor(math.Log10(math.Abs(v)))-math.Floor(math.Log10(step)+1e-9)), 64)
}

// logAxis is for values above zero whose range is too wide for a linear one.
func logAxis(lo, hi, from, to float64) (axis, bool) {
	if !finite(lo) || !finite(hi) || lo <= 0 || hi < lo {
		return axis{}, false
	}
	if hi <= lo*(1+1e-9) {
		lo, hi = lo/2, hi*2
	}
	a := axis{lo: lo, hi: hi, from: from, to: to, log: true}
	decades := math.Log10(hi / lo)
	mantissas, stride := []float64{1}, math.Ceil(decades/7)
	if decades < 2.5 {
		mantissas = []float64{1, 2, 5}
	}
	for k := math.Floor(math.Log10(lo)); k <= math.Ceil(math.Log10(hi)); k++ {
		if math.Mod(k, stride) != 0 {
			continue
		}
		for _, m := range mantissas {
			if v := m * math.Pow(10, k); v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
				a.ticks = append(a.ticks, tick{v, num(v)})
			}
		}
	}
	if len(a.ticks) == 0 {
		a.ticks = []tick{{lo, num(lo)}, {hi, num(hi)}}
	}
	return a, true
}

// padded widens a range by a share on either side, so that no mark sits on the
// frame.
func padded(lo, hi, share float64) (float64, float64) {
	pad := (hi - lo) * share
	return lo - pad, hi + pad
}

// rangeOf is the least and greatest finite value; ok is false without any.
func rangeOf(lists ...[]float64) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, xs := range lists {
		for _, x := range xs {
			if finite(x) {
				lo, hi, ok = math.Min(lo, x), math.Max(hi, x), true
			}
		}
	}
	return lo, hi, ok
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

var superscripts = map[int]string{
	-15: "⁻¹⁵", -12: "⁻¹²", -9: "⁻⁹", -6: "⁻⁶", -3: "⁻³", 6: "⁶", 9: "⁹", 12: "¹²", 15: "¹⁵",
}

// axisUnit is the factor and the name of the unit that keep the labels of an
// axis short: the ladder of the unit where it has one, else a power of ten.
func axisUnit(unit string, lo, hi float64) (factor float64, name string) {
	if f, n := scale(unit, lo, hi); f != 1 || n != unit {
		return f, n
	}
	most := math.Max(math.Abs(lo), math.Abs(hi))
	if most == 0 || most >= 0.01 && most < 1e6 {
		return 1, unit
	}
	k := 3 * int(math.Floor(math.Log10(most)/3))
	word, ok := superscripts[k]
	if !ok {
		return 1, unit
	}
	name = "×10" + word
	if unit != "" {
		name += " " + unit
	}
	return math.Pow(10, float64(-k)), name
}
