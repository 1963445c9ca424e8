package main

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// section is the bars of one part of the project.
type section struct {
	title string
	doc   string // the page that gives the reasons for misses, in docs
	bars  []bar
}

// bar is a limit that a figure has to keep.
type bar struct {
	id    string
	about string // what is measured
	want  limit
	unit  string // of limit and figure, as the command prints it; "" for a ratio or a count
	by    *source
	take  take
	// runs is how many finished runs of a study must keep the limit, each of them; 0 is one.
	runs int
}

// source is a command that measures, and how it is run.
type source struct {
	// line is what a shell is given in the folder of the repository. "assay" is the program
	// as it is built from there, $RUN a folder that does not exist yet.
	line string
	// long is left out unless asked for.
	long  bool
	limit time.Duration // after which it is ended
	needs []string      // programs that are not part of Go, by name or path
	exits []int         // statuses with which its figures count; nil is only 0

	// study is the protocol whose finished runs the figures come from, "" for none; times
	// how many runs are made of it, 0 is one.
	study string
	times int
}

// limit is the range that a figure must be in, ends included.
type limit struct{ low, high float64 }

func atMost(x float64) limit     { return limit{math.Inf(-1), x} }
func atLeast(x float64) limit    { return limit{x, math.Inf(1)} }
func between(a, b float64) limit { return limit{a, b} }
func exactly(x float64) limit    { return limit{x, x} }

// holds is false for what is no number, or infinite.
func (l limit) holds(x float64) bool { return l.low <= x && x <= l.high && !math.IsInf(x, 0) }

// worst is the value that is nearest to breaking the limit, or furthest beyond it.
func (l limit) worst(values []float64) float64 {
	worst, margin := math.NaN(), math.Inf(1)
	for _, x := range values {
		m := min(x-l.low, l.high-x)
		if math.IsNaN(m) {
			return math.NaN()
		}
		if m < margin {
			worst, margin = x, m
		}
	}
	return worst
}

func (l limit) String() string {
	switch {
	case l.low == l.high:
		return number(l.low)
	case math.IsInf(l.low, -1):
		return "≤ " + number(l.high)
	case math.IsInf(l.high, 1):
		return "≥ " + number(l.low)
	}
	return number(l.low) + " to " + number(l.high)
}

// number is x with three digits, or all of a whole number, in groups of three.
func number(x float64) string {
	s := strconv.FormatFloat(x, 'g', 3, 64)
	if math.Abs(x) >= 100 || x == math.Trunc(x) {
		s = strconv.FormatFloat(x, 'f', 0, 64)
	}
	digits := strings.TrimPrefix(s, "-")
	if strings.Trim(digits, "0123456789") != "" {
		return s
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return s[:len(s)-len(strings.TrimPrefix(s, "-"))] + digits
}

// state is what a figure says of its bar. The zero state is that it says nothing.
type state string

const (
	notMeasured state = "not measured"
	met         state = "met"
	missed      state = "missed"
)

// judge fails closed: what is no finite figure is not measured, and too few runs are no
// proof. One run that breaks the limit is enough to miss it.
func (b bar) judge(e entry) state {
	switch {
	case e.blank():
		return notMeasured
	case !b.want.holds(b.want.worst(e.Values)):
		return missed
	case len(e.Values) < max(1, b.runs):
		return notMeasured
	}
	return met
}

// said is the figure, or why there is none.
func (b bar) said(e entry) string {
	if e.blank() {
		return cmp.Or(e.Why, "–")
	}
	worst := b.want.worst(e.Values)
	s := number(worst)
	if b.judge(e) == missed && (s == number(b.want.low) || s == number(b.want.high)) {
		s = strconv.FormatFloat(worst, 'g', 6, 64)
	}
	s += b.inUnit()
	switch n := len(e.Values); {
	case b.judge(e) == notMeasured:
		s += fmt.Sprintf(" in %d of the %d runs that it takes", n, b.runs)
	case n > 1:
		s += fmt.Sprintf(", the worst of %d runs", n)
	}
	return s
}

func (b bar) inUnit() string {
	if b.unit == "" {
		return ""
	}
	return " " + b.unit
}

// bars are those of all sections, in order.
func bars(all []section) (out []bar) {
	for _, s := range all {
		out = append(out, s.bars...)
	}
	return out
}

func barsOf(all []section, s *source) (out []bar) {
	for _, b := range bars(all) {
		if b.by == s {
			out = append(out, b)
		}
	}
	return out
}
