package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

var missing = math.NaN()

// wave is a series that any reader of a golden file can recompute.
func wave(n int, base, size float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = base + size*math.Sin(float64(i))
	}
	return xs
}

func twoArms(a, b []float64) []plotSeries {
	return []plotSeries{{0, "control", a}, {1, "treatment", b}}
}

var someTail = []tailSeries{
	{0, "control", []float64{0, 0.5, 0.9, 0.99}, []float64{1e6, 2e6, 3e6, 5e6}},
	{1, "treatment", []float64{0, 0.5, 0.9, 0.99}, []float64{9e5, 2e6, 4e6, 4e8}},
}

func someReadings(n int) []hostPoint {
	var all []hostPoint
	for i := range n {
		p := hostPoint{at: time.Duration(i) * 20 * time.Second, value: 0.2 + 0.1*math.Sin(float64(i)), breach: i == 3}
		if i == 5 {
			p.value = missing
		}
		all = append(all, p)
	}
	return all
}

// charts are drawn once per shape that a chart can take.
var charts = []struct {
	name string
	svg  func() template.HTML
}{
	{"forest", forestPlot{id: "f1", title: "Change of wall", desc: "In words.", lowerIsBetter: true, groups: []forestGroup{
		{"size=1,keys=hot", true, []forestRow{
			{1, "treatment", -0.12, -0.18, -0.06, "-12.0 % [-18.0, -6.0]"},
			{2, "other", 0.03, missing, missing, "+3.0 %"}}},
		{"size=16,keys=hot (stress)", false, []forestRow{
			{1, "treatment", missing, missing, missing, "no relative change; difference +3"},
			{2, "other", 0.2, 0.199, 0.201, "+20.0 % [+19.9, +20.1]"}}},
	}}.draw},
	{"forest-ratio", forestPlot{id: "f1", groups: []forestGroup{{"", false, []forestRow{
		{1, "treatment", 9, 5, 14, "+900 % [+500, +1,400]"},
		{2, "other", -0.5, -0.6, -0.4, "-50.0 % [-60.0, -40.0]"}}}}}.draw},
	{"forest-none", forestPlot{id: "f1", groups: []forestGroup{{"", false, []forestRow{{1, "a", 0, 0, 0, "0.0 %"}}}}}.draw},
	{"rounds", roundsPlot{id: "f1", title: "wall by round", desc: "In words.", unit: "s",
		series: twoArms(wave(9, 0.012, 0.001), append(wave(7, 0.011, 0.001), missing, 0.0115))}.draw},
	{"rounds-wide", roundsPlot{id: "f1", unit: "saves/s", wide: true, series: twoArms(wave(60, 2e7, 1e6), wave(60, 1.8e7, 1e6))}.draw},
	{"rounds-many", roundsPlot{id: "f1", series: twoArms(wave(1200, 5, 1), append(wave(1199, 6, 1), missing))}.draw},
	{"rounds-one", roundsPlot{id: "f1", series: twoArms([]float64{3}, []float64{4})}.draw},
	{"ecdf", ecdfPlot{id: "f1", title: "Distribution", desc: "In words.", unit: "ms", series: twoArms(wave(9, 12, 1), append(wave(7, 11, 1), missing, 11.5))}.draw},
	{"ecdf-many", ecdfPlot{id: "f1", series: twoArms(wave(400, 12, 1), wave(400, 11, 2))}.draw},
	{"tail", tailPlot{id: "f1", title: "Tail", desc: "In words.", unit: "ns", series: someTail[:1]}.draw},
	{"tail-log", tailPlot{id: "f1", unit: "ns", series: someTail}.draw},
	{"host", hostPlot{id: "f1", title: "load_per_cpu", desc: "In words.", unit: "per CPU", readings: someReadings(40),
		limits: []hostLimit{{0.25, "at most 0.25: warn"}}, resumed: []time.Duration{4 * time.Minute}}.draw},
	{"host-many", hostPlot{id: "f1", unit: "%", readings: someReadings(2000)}.draw},
}

func TestChartGolden(t *testing.T) {
	for _, c := range charts {
		t.Run(c.name, func(t *testing.T) {
			svg := string(c.svg())
			wellFormed(t, svg)
			golden(t, "chart-"+c.name+".svg", []byte(svg+"\n"))
		})
	}
}

// Nothing to draw is no chart, never an empty axis.
func TestNothingToDraw(t *testing.T) {
	none := []float64{missing, math.Inf(1), math.Inf(-1)}
	beyond := []float64{-math.MaxFloat64, math.MaxFloat64}
	for name, svg := range map[string]template.HTML{
		"forest":       forestPlot{groups: []forestGroup{{"", false, []forestRow{{1, "a", missing, missing, missing, "none"}}}}}.draw(),
		"forest empty": forestPlot{}.draw(),
		"rounds":       roundsPlot{series: twoArms(none, none)}.draw(),
		"rounds empty": roundsPlot{}.draw(),
		"rounds span":  roundsPlot{series: twoArms(beyond, nil)}.draw(),
		"ecdf":         ecdfPlot{series: twoArms(none, nil)}.draw(),
		"ecdf span":    ecdfPlot{series: twoArms(beyond, nil)}.draw(),
		"tail":         tailPlot{series: []tailSeries{{0, "a", []float64{0.5}, []float64{missing}}}}.draw(),
		"tail empty":   tailPlot{}.draw(),
		"tail at one":  tailPlot{series: []tailSeries{{0, "a", []float64{1}, []float64{5}}}}.draw(),
		"host":         hostPlot{readings: []hostPoint{{value: missing}}, limits: []hostLimit{{3, "x"}}}.draw(),
		"host empty":   hostPlot{}.draw(),
	} {
		if svg != "" {
			t.Errorf("%s: %s", name, svg)
		}
	}
}

// Whatever the values, a chart stays inside its frame and holds no number that
// a browser would refuse.
func TestChartsOfExtremes(t *testing.T) {
	for _, xs := range [][]float64{
		{0, 0}, {5}, {1e-300, 2e-300}, {1e300, 2e300}, {-1e9, 1e9}, {1e15, 1e15 + 1}, {-3, -3.0000000001}, {missing, 7, math.Inf(1)}, {math.SmallestNonzeroFloat64, 1},
	} {
		for name, svg := range map[string]template.HTML{
			"rounds": roundsPlot{id: "f", unit: "ns", series: twoArms(xs, xs)}.draw(),
			"ecdf":   ecdfPlot{id: "f", unit: "B", series: twoArms(xs, xs)}.draw(),
			"tail":   tailPlot{id: "f", series: []tailSeries{{0, "a", []float64{0, 0.9, 0.99}[:min(3, len(xs))], xs}}}.draw(),
			"forest": forestPlot{id: "f", groups: []forestGroup{{"", false, []forestRow{{0, "a", xs[0], xs[0], xs[len(xs)-1], "t"}}}}}.draw(),
			"host":   hostPlot{id: "f", readings: []hostPoint{{0, xs[0], false}, {time.Hour, xs[len(xs)-1], true}}}.draw(),
		} {
			s := string(svg)
			wellFormed(t, s)
			for _, bad := range []string{"NaN", "Inf", "e+", "e-3"} {
				if strings.Contains(s, `d="`) && strings.Contains(between(s, `d="`, `"`), bad) {
					t.Errorf("%s of %v has %s", name, xs, bad)
				}
			}
		}
	}
}

func between(s, from, to string) string {
	var all strings.Builder
	for {
		_, rest, ok := strings.Cut(s, from)
		if !ok {
			return all.String()
		}
		part, rest, _ := strings.Cut(rest, to)
		all.WriteString(part)
		s = rest
	}
}

func TestChartTextIsInert(t *testing.T) {
	svg := string(roundsPlot{id: `"><script>`, title: hostile, desc: hostile, unit: hostile, series: []plotSeries{{0, hostile, []float64{1, 2}}}}.draw())
	if strings.Contains(svg, "<script") {
		t.Error(svg)
	}
	// What XML forbids altogether is taken out of the whole page at its end.
	wellFormed(t, string(Inert([]byte(svg))))
}

func TestArmsAreToldApart(t *testing.T) {
	seen := map[string]int{}
	for arm := range 64 {
		k := fmt.Sprint(armColour(arm), armShape(arm))
		if first, dup := seen[k]; dup {
			t.Fatalf("arms %d and %d look the same", first, arm)
		}
		seen[k] = arm
	}
}

func TestFitText(t *testing.T) {
	for _, c := range []struct {
		text  string
		width float64
		want  string
	}{{"fold", 100, "fold"}, {"transactional", 50, "trans…"}, {"wide", 1, "…"}, {"", 1, ""}} {
		got := fitText(c.text, c.width)
		if got != c.want || c.width > 12 && textWidth(got) > c.width {
			t.Errorf("%q in %v is %q", c.text, c.width, got)
		}
	}
}

func wellFormed(t *testing.T, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, s[:min(len(s), 3000)])
		}
	}
}

// The curve must pass through every step, however close the steps are.
func TestCurveReachesEveryStep(t *testing.T) {
	f := frame{left: 0, right: 300, bottom: 100, y: axis{lo: 0, hi: 1, from: 100, to: 0}, x: axis{lo: 0, hi: 300, from: 0, to: 300}}
	curve, points := ecdfCurve(f, 1, []float64{10, 10.2, 100, 100, 250})
	if want := "M10 100V60H100V20H250V0"; curve != want {
		t.Errorf("%s, want %s", curve, want)
	}
	if len(points) != 4 || points[3] != [2]float64{250, 0} {
		t.Errorf("%v", points)
	}
}
