package main

import (
	"math"
	"testing"
)

func TestJudging(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name   string
		want   limit
		runs   int
		values []float64
		why    string
		state  state
	}{
		{"at the limit", atMost(2), 0, []float64{2}, "", met},
		{"beyond it", atMost(2), 0, []float64{2.001}, "", missed},
		{"at the lower limit", atLeast(2), 0, []float64{2}, "", met},
		{"below it", atLeast(2), 0, []float64{1.999}, "", missed},
		{"within", between(0.03, 0.07), 0, []float64{0.03}, "", met},
		{"below the range", between(0.03, 0.07), 0, []float64{0.029}, "", missed},
		{"above the range", between(0.03, 0.07), 0, []float64{0.0701}, "", missed},
		{"what it must be", exactly(1), 0, []float64{1}, "", met},
		{"almost", exactly(1), 0, []float64{1.0000001}, "", missed},
		{"nothing", atMost(2), 0, nil, "", notMeasured},
		{"a reason", atMost(2), 0, nil, "no figure in the output", notMeasured},
		{"a figure beside a reason", atMost(2), 0, []float64{1}, "it failed", notMeasured},
		{"NaN, at most", atMost(2), 0, []float64{nan}, "", missed},
		{"NaN, at least", atLeast(2), 0, []float64{nan}, "", missed},
		{"NaN among others", atMost(2), 0, []float64{1, nan, 1}, "", missed},
		{"infinite", atLeast(2), 0, []float64{inf}, "", missed},
		{"one run of two", atMost(2), 2, []float64{1}, "", notMeasured},
		{"one run of two that is enough to miss", atMost(2), 2, []float64{3}, "", missed},
		{"two runs", atMost(2), 2, []float64{1, 2}, "", met},
		{"one of two misses", atMost(2), 2, []float64{3, 1}, "", missed},
	} {
		b := bar{id: "x", want: c.want, runs: c.runs}
		if got := b.judge(entry{Values: c.values, Why: c.why}); got != c.state {
			t.Errorf("%s: %s, want %s", c.name, got, c.state)
		}
	}
}

func TestAFigureIsSaid(t *testing.T) {
	for _, c := range []struct {
		b    bar
		e    entry
		said string
	}{
		{bar{want: atMost(2), unit: "s"}, entry{Values: []float64{1.23456}}, "1.23 s"},
		{bar{want: atLeast(0.75)}, entry{Values: []float64{0.74966}}, "0.74966"},
		{bar{want: atMost(2)}, entry{}, "–"},
		{bar{want: atMost(2)}, entry{Why: "the command ended with status 1"}, "the command ended with status 1"},
		{bar{want: atMost(2), runs: 2}, entry{Values: []float64{1}}, "1 in 1 of the 2 runs that it takes"},
		{bar{want: atMost(2), runs: 2}, entry{Values: []float64{1, 3}}, "3, the worst of 2 runs"},
	} {
		if got := c.b.said(c.e); got != c.said {
			t.Errorf("%q, want %q", got, c.said)
		}
	}
}

func TestTheWorst(t *testing.T) {
	for _, c := range []struct {
		want   limit
		values []float64
		worst  float64
	}{
		{atMost(2), []float64{1, 3, 2}, 3}, {atLeast(2), []float64{1, 3, 2}, 1},
		{between(1, 3), []float64{2, 2.5, 1.2}, 1.2}, {between(1, 3), []float64{0, 9}, 9}, {exactly(1), []float64{1, 1}, 1},
	} {
		if got := c.want.worst(c.values); got != c.worst {
			t.Errorf("of %v for %v: %v, want %v", c.values, c.want, got, c.worst)
		}
	}
	if !math.IsNaN(atMost(1).worst(nil)) {
		t.Error("the worst of nothing is a number")
	}
}

func TestNumbersAreReadable(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 2: "2", 0.72: "0.72", 1.0951: "1.1", 48.83: "48.8", 349.4: "349", 1234.5: "1,234", 1e6: "1,000,000", -1234567: "-1,234,567", 0.0000012: "1.2e-06", 500000: "500,000"} {
		if got := number(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
}
