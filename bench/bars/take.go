package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// take is how a figure is taken out of what a source left. Exactly one field is set.
type take struct {
	// figure is the name in lines "figure: NAME VALUE [UNIT]". Of several the worst counts.
	figure string
	// passes counts the tests that passed and whose full names match.
	passes *regexp.Regexp
	// benchmark is the value of a line of `go test -bench` in a unit.
	benchmark, unit string
	// seconds is how long the command took.
	seconds bool
	// run is the figure of one finished run of a study, or several of which the worst counts.
	run func(*finished) ([]float64, error)
	// outcomes counts the different outcomes of the runs of a study.
	outcomes bool
}

func figure(name string) take { return take{figure: name} }
func passes(re string) take   { return take{passes: regexp.MustCompile(re)} }
func seconds() take           { return take{seconds: true} }
func outcomes() take          { return take{outcomes: true} }

func benchmark(name, unit string) take { return take{benchmark: name, unit: unit} }

func ofRun(f func(*finished) (float64, error)) take {
	return take{run: func(r *finished) ([]float64, error) {
		x, err := f(r)
		return []float64{x}, err
	}}
}

// taken is figures with their unit, and the lines that they were taken from.
type taken struct {
	values []float64
	unit   string
	lines  []string
}

// from takes the figure out of a measurement of the bar's source: one value, or one of each
// run. Where there are more, the one that is worst for the limit. There is an error
// instead of a figure that is missing, garbage, infinite or no number.
func (t take) from(m *measured, want limit) (got taken, err error) {
	switch {
	case t.seconds:
		got = taken{values: []float64{m.took.Seconds()}, unit: "s"}
	case t.figure != "":
		got, err = figureLines(m.output, t.figure)
	case t.passes != nil:
		got, err = passed(m.output, t.passes)
	case t.benchmark != "":
		got, err = benchmarkLine(m.output, t.benchmark, t.unit)
	case t.outcomes:
		got, err = differing(m.runs)
	case t.run != nil:
		got, err = t.ofRuns(m, want)
	default:
		return taken{}, fmt.Errorf("the bar does not say how to take its figure")
	}
	if err != nil {
		return taken{}, err
	}
	if len(got.values) == 0 {
		return taken{}, errNoFigure
	}
	for _, x := range got.values {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return taken{}, fmt.Errorf("the figure is %v", x)
		}
	}
	if len(m.runs) == 0 {
		got.values = []float64{want.worst(got.values)}
	}
	return got, nil
}

func (t take) ofRuns(m *measured, want limit) (got taken, err error) {
	for _, r := range m.runs {
		xs, err := t.run(r)
		if err != nil {
			return taken{}, err
		}
		if len(xs) == 0 {
			return taken{}, errNoFigure
		}
		got.values = append(got.values, want.worst(xs))
		got.lines = append(got.lines, r.line())
	}
	return got, nil
}

func differing(runs []*finished) (taken, error) {
	seen := map[string]bool{}
	var got taken
	for _, r := range runs {
		seen[r.outcome()] = true
		got.lines = append(got.lines, r.line())
	}
	for range runs { // one value of each run, so that a bar can ask for several
		got.values = append(got.values, float64(len(seen)))
	}
	return got, nil
}

var figureLine = regexp.MustCompile(`(?m)(?:^|[ \t])figure: (\S+)(?:[ \t]+(\S+))?(?:[ \t]+(\S+))?[ \t]*$`)

func figureLines(output, name string) (got taken, err error) {
	for _, f := range figureLine.FindAllStringSubmatch(output, -1) {
		if f[1] != name {
			continue
		}
		x, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			return taken{}, fmt.Errorf("the figure is no number: %q", strings.TrimSpace(f[0]))
		}
		got.values, got.unit = append(got.values, x), f[3]
		got.lines = append(got.lines, strings.TrimSpace(f[0]))
	}
	return got, nil
}

var passLine = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL): (\S+) \(`)

func passed(output string, re *regexp.Regexp) (got taken, err error) {
	n := 0
	for _, l := range passLine.FindAllStringSubmatch(output, -1) {
		if l[1] == "FAIL" && re.MatchString(l[2]) {
			return taken{}, fmt.Errorf("%s failed", l[2])
		}
		if l[1] == "PASS" && re.MatchString(l[2]) {
			n++
			got.lines = append(got.lines, "PASS "+l[2])
		}
	}
	if n > 0 {
		got.values = []float64{float64(n)}
	}
	got.unit = "tests"
	return got, nil
}

func benchmarkLine(output, name, unit string) (got taken, err error) {
	for line := range strings.Lines(output) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.SplitN(f[0], "-", 2)[0] != name {
			continue
		}
		for i := 2; i+1 < len(f); i += 2 {
			if f[i+1] != unit {
				continue
			}
			x, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return taken{}, fmt.Errorf("the benchmark's figure is no number: %q", line)
			}
			got.values, got.unit = append(got.values, x), unit
			got.lines = append(got.lines, strings.Join(f, " "))
		}
	}
	return got, nil
}
