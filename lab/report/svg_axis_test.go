package report

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func labels(a axis) string {
	var all []string
	for _, t := range a.ticks {
		all = append(all, t.label)
	}
	return strings.Join(all, " ")
}

func TestLinearAxis(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{
		{0, 1, "0 0.5 1.0"},
		{0, 10, "0 5 10"},
		{-3.2, 9, "0 5"},
		{11.8, 13.4, "12.0 12.5 13.0"},
		{0.0101, 0.0112, "0.0105 0.0110"},
		{98_000, 204_000, "100,000 150,000 200,000"},
		{5, 5, "4.8 5.0 5.2"},
		{0, 0, "-1.0 -0.5 0 0.5 1.0"},
	} {
		a, ok := linearAxis(c.lo, c.hi, 0, 300, 4)
		if got := labels(a); !ok || got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.lo, c.hi, got, c.want)
		}
	}
	for _, c := range [][2]float64{{missing, 1}, {0, math.Inf(1)}, {2, 1}, {-math.MaxFloat64, math.MaxFloat64}} {
		if _, ok := linearAxis(c[0], c[1], 0, 300, 4); ok {
			t.Errorf("drew %v", c)
		}
	}
}

func TestLogAxis(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{
		{1, 100, "1 2 5 10 20 50 100"},
		{0.5, 700_000, "1 10 100 1,000 10,000 100,000"},
		{3, 3, "2 5"},
		{1, 1e12, "1 100 10,000 1,000,000 100,000,000 10,000,000,000 1,000,000,000,000"},
	} {
		a, ok := logAxis(c.lo, c.hi, 0, 300)
		if got := labels(a); !ok || got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.lo, c.hi, got, c.want)
		}
	}
	for _, c := range [][2]float64{{0, 1}, {-1, 1}, {missing, 1}, {1, math.Inf(1)}, {2, 1}} {
		if _, ok := logAxis(c[0], c[1], 0, 300); ok {
			t.Errorf("drew %v", c)
		}
	}
}

// Over ranges of every size: at least two labels, rising, all different, all
// inside, and each at its own value.
func TestAnyAxis(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		lo := (rng.Float64() - 0.5) * math.Pow(10, rng.Float64()*24-12)
		hi := lo + math.Abs(lo)*math.Pow(10, rng.Float64()*12-8)
		a, ok := linearAxis(lo, hi, 40, 340, 1+rng.IntN(6))
		if !ok || len(a.ticks) < 2 || len(a.ticks) > 14 {
			t.Fatalf("%v to %v: %v %+v", lo, hi, ok, a)
		}
		for i, tick := range a.ticks {
			if at := a.at(tick.value); at < 39.9 || at > 340.1 || i > 0 && (at <= a.at(a.ticks[i-1].value) || tick.label == a.ticks[i-1].label) {
				t.Fatalf("%v to %v: %+v", lo, hi, a)
			}
		}
	}
}

func TestAxisUnit(t *testing.T) {
	for _, c := range []struct {
		unit   string
		most   float64
		factor float64
		name   string
	}{
		{"s", 0.012, 1e3, "ms"}, {"ns", 5e6, 1e-6, "ms"}, {"saves/s", 900, 1, "saves/s"},
		{"saves/s", 2.5e7, 1e-6, "×10⁶ saves/s"}, {"", 3e-7, 1e9, "×10⁻⁹"}, {"", 0, 1, ""}, {"", 1e300, 1, ""},
	} {
		factor, name := axisUnit(c.unit, 0, c.most)
		if math.Abs(factor/c.factor-1) > 1e-9 || name != c.name {
			t.Errorf("%v %s: %v %q", c.most, c.unit, factor, name)
		}
	}
}

func TestPixels(t *testing.T) {
	for x, want := range map[float64]string{0: "0", -0.04: "0", 1.25: "1.3", 100: "100", -3.14: "-3.1", math.Inf(1): "0"} {
		if got := px(x); got != want {
			t.Errorf("%v is %q", x, got)
		}
	}
	if px(math.NaN()) != "0" {
		t.Error("NaN")
	}
}
