package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// results are the figures of each arm, one per round.
type results map[string][]figures

// med is the median over the rounds.
func (r results) med(arm, figure string) float64 {
	var xs []float64
	for _, f := range r[arm] {
		xs = append(xs, f[figure])
	}
	return median(xs)
}

// ratio is the median of the rounds' ratios of one arm to another.
func (r results) ratio(arm, to, figure string) float64 {
	var xs []float64
	for i, f := range r[arm] {
		xs = append(xs, f[figure]/r[to][i][figure])
	}
	return median(xs)
}

// syncs is the median of the rounds' ratios of a figure to S, both in seconds.
func (r results) syncs(arm, figure string) float64 {
	var xs []float64
	for i, f := range r[arm] {
		xs = append(xs, f[figure]/r["S"][i]["p50"])
	}
	return median(xs)
}

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	slices.Sort(xs)
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}

// row is one line of the report.
type row struct {
	name   string // with the section's name it is the figure's for bench/bars
	figure string
	got    float64
	bar    float64 // NaN: for information
	most   bool    // got may be the bar at most; else at least
	detail string
}

func atLeast(name string, bar, got float64, figure, detail string, args ...any) row {
	return row{name, figure, got, bar, false, fmt.Sprintf(detail, args...)}
}

func atMost(name string, bar, got float64, figure, detail string, args ...any) row {
	return row{name, figure, got, bar, true, fmt.Sprintf(detail, args...)}
}

func info(name string, got float64, figure, detail string, args ...any) row {
	return row{name, figure, got, math.NaN(), false, fmt.Sprintf(detail, args...)}
}

// met is false for what could not be measured.
func (r row) met() bool { return r.most && r.got <= r.bar || !r.most && r.got >= r.bar }

func (r row) String() string {
	verdict, bar := "missed", "≥"
	if r.met() {
		verdict = "met"
	}
	if r.most {
		bar = "≤"
	}
	if bar += " " + short(r.bar); math.IsNaN(r.bar) {
		verdict, bar = "", ""
	}
	return fmt.Sprintf("  %-6s  %9s  %-9s  %-62s %s", verdict, short(r.got), bar, r.figure, r.detail)
}

// short is a number of three digits or more.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// ticks are in a second, of processor time.
const ticks = 100

// cpu is processor time in ticks.
type cpu struct{ busy, total, own float64 }

// cpuNow is what the machine and this process with its children have used so far.
func cpuNow() (c cpu) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c
	}
	line, _, _ := strings.Cut(string(b), "\n")
	for i, f := range strings.Fields(line) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || i > 8 {
			continue
		}
		if c.total += v; i != 4 && i != 5 { // neither idle nor waiting for a disk
			c.busy += v
		}
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			c.own += float64(u.Utime.Nano()+u.Stime.Nano()) / (1e9 / ticks)
		}
	}
	return c
}

// foreign is the percentage of the machine that others have used since before.
func (c cpu) foreign(before cpu) float64 {
	return max(0, 100*(c.busy-before.busy-(c.own-before.own))/(c.total-before.total))
}
