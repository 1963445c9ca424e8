package report

import (
	"math"
	"slices"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// figure is one arm against the reference on one metric in one cell: a line of
// every table.
type figure struct {
	cell    *analysis.Cell
	metric  *protocol.Metric
	arm     *protocol.Arm
	ref     *analysis.ArmSummary
	treat   *analysis.ArmSummary
	cmp     *analysis.Comparison
	test    string // the frozen test, of which p is shown for every metric
	primary *analysis.PrimaryCell
	rules   []rule
}

// countsFirst are the metrics in the order in which they are shown: counts are
// exact on any machine, clocks are not.
func (s *Source) countsFirst() []*protocol.Metric {
	var counts, clocks []*protocol.Metric
	for i := range s.Run.Protocol.Metrics {
		if m := &s.Run.Protocol.Metrics[i]; m.Count {
			counts = append(counts, m)
		} else {
			clocks = append(clocks, m)
		}
	}
	return append(counts, clocks...)
}

// figures are the cell's lines.
func (s *Source) figures(cell *analysis.Cell) []figure {
	var all []figure
	p := s.Run.Protocol
	planned, known := p.Cell(cell.Name)
	for _, m := range s.countsFirst() {
		for i := 1; i < len(p.Arms); i++ {
			if known && !planned.Runs(p.Arms[i].Name) {
				continue
			}
			all = append(all, s.figure(cell, m, &p.Arms[i]))
		}
	}
	return all
}

// figure is one line. An arm or a metric that the results do not have is a line
// without values, so that a gap is seen.
func (s *Source) figure(cell *analysis.Cell, m *protocol.Metric, arm *protocol.Arm) figure {
	cm := cell.Metric(m.Name)
	f := figure{
		cell: cell, metric: m, arm: arm, test: s.Run.Protocol.Primary.Test,
		ref: orNoSummary(cm.Arm(s.Run.Protocol.Reference())), treat: orNoSummary(cm.Arm(arm.Name)), cmp: orNoComparison(cm.Against(arm.Name)),
	}
	if pr := s.Results.Primary; pr != nil && pr.Metric == m.Name && pr.Treatment == arm.Name {
		if at := slices.IndexFunc(pr.Cells, func(c analysis.PrimaryCell) bool { return c.Cell == cell.Name }); at >= 0 {
			f.primary = &pr.Cells[at]
		}
	}
	return f
}

// figureOf is the line of that name, nil where there is none.
func (s *Source) figureOf(cell, metric, arm string) *figure {
	c, m, a := s.Results.Cell(cell), s.Run.Protocol.Metric(metric), s.Run.Protocol.Arm(arm)
	if c == nil || m == nil || a == nil {
		return nil
	}
	f := s.figure(c, m, a)
	return &f
}

// allFigures are the lines of all cells, with what the rules say of them.
func (s *Source) allFigures() []figure {
	type place struct{ cell, metric, arm string }
	said := map[place][]rule{}
	for _, r := range s.rules() {
		at := place{r.Cell, r.Metric, r.Arm}
		said[at] = append(said[at], r)
	}
	var all []figure
	for i := range s.Results.Cells {
		for _, f := range s.figures(&s.Results.Cells[i]) {
			f.rules = said[place{f.cell.Name, f.metric.Name, f.arm.Name}]
			all = append(all, f)
		}
	}
	return all
}

var nan = analysis.Number(math.NaN())

func orNoSummary(a *analysis.ArmSummary) *analysis.ArmSummary {
	if a == nil {
		return &analysis.ArmSummary{Mean: nan, SD: nan, Median: nan, Min: nan, Max: nan, Sum: nan}
	}
	return a
}

func orNoComparison(c *analysis.Comparison) *analysis.Comparison {
	if c == nil {
		return &analysis.Comparison{Diff: nan, Change: nan, Ratio: nan, D: nan, G: nan, Dz: nan}
	}
	return c
}

// middle is the value that stands for an arm's rounds, as the protocol asks.
func middle(m *protocol.Metric, a *analysis.ArmSummary) float64 {
	if m.Summarise == protocol.StatMedian {
		return float64(a.Median)
	}
	return float64(a.Mean)
}

// spread is an arm's value with how far its rounds lie apart.
func spread(m *protocol.Metric, a *analysis.ArmSummary) string {
	if m.Summarise == protocol.StatMedian {
		return withUnit(float64(a.Median), m.Unit) + " median"
	}
	return plusMinus(float64(a.Mean), float64(a.SD), m.Unit)
}

// change is the relative change, or the difference where there is no ratio to
// speak of, for instance because the reference did none of it.
func (f *figure) change() string {
	if !math.IsNaN(float64(f.cmp.Change)) {
		return percent(float64(f.cmp.Change))
	}
	return signed(float64(f.cmp.Diff), f.metric.Unit)
}

// changeInterval is the interval of what change shows. The ratio's is used only
// where ratio and change mean the same, that is, for a positive reference.
func (f *figure) changeInterval() string {
	if f.exact() {
		return none
	}
	if lo, hi, ok := f.relative(); ok {
		return percentInterval(lo, hi)
	}
	if math.IsNaN(float64(f.cmp.Change)) && f.cmp.DiffCI != nil {
		return interval(float64(f.cmp.DiffCI.Low), float64(f.cmp.DiffCI.High), f.metric.Unit)
	}
	return none
}

// relative is the interval of the relative change.
func (f *figure) relative() (lo, hi float64, ok bool) {
	ci := f.cmp.RatioCI
	if ci == nil || !(f.ref.Mean > 0) || math.IsNaN(float64(f.cmp.Change)) || math.IsNaN(float64(ci.Low)) || math.IsNaN(float64(ci.High)) {
		return 0, 0, false
	}
	return float64(ci.Low) - 1, float64(ci.High) - 1, true
}

// exact says that no round of either arm differs from the others: then there
// is nothing to test, and the difference is what it is.
func (f *figure) exact() bool {
	return f.cmp.N > 1 && f.ref.Min == f.ref.Max && f.treat.Min == f.treat.Max
}

// p is that of the frozen test, not adjusted.
func (f *figure) p() float64 {
	c := f.cmp
	switch {
	case f.test == protocol.TestWelch && c.Welch != nil:
		return float64(c.Welch.P)
	case f.test == protocol.TestMannWhitney && c.MannWhitney != nil:
		return float64(c.MannWhitney.P)
	case f.test == protocol.TestPaired && c.Paired != nil:
		return float64(c.Paired.P)
	}
	return math.NaN()
}

// pText is p, or "exact".
func (f *figure) pText() string {
	if f.exact() {
		return "exact"
	}
	return pvalue(f.p())
}

// adjustedText is pText with the adjusted p of a primary figure behind it.
func (f *figure) adjustedText() string {
	pc := f.primary
	if pc == nil || pc.AdjustedP == pc.P || math.IsNaN(float64(pc.AdjustedP)) {
		return f.pText()
	}
	return f.pText() + " (" + pvalue(float64(pc.AdjustedP)) + ")"
}

// effect is the standardised effect with the sign turned so that positive is
// better, as conditions and floors have it.
func (f *figure) effect() string {
	if f.exact() {
		return none
	}
	if f.test == protocol.TestPaired && !math.IsNaN(float64(f.cmp.Dz)) {
		return "dz " + f.gainful(f.cmp.Dz)
	}
	if math.IsNaN(float64(f.cmp.D)) {
		return none
	}
	return "d " + f.gainful(f.cmp.D)
}

func (f *figure) gainful(effect analysis.Number) string {
	x := float64(effect)
	if f.metric.Better == "lower" {
		x = -x
	}
	if x > 0 {
		return "+" + num(x)
	}
	return num(x)
}

// towards is the direction as a word. It says nothing of whether the
// difference is more than noise.
func (f *figure) towards() string {
	switch {
	case f.cmp.Better:
		return "better"
	case f.cmp.Worse:
		return "worse"
	}
	return ""
}

// badness orders figures for a reader in a hurry: what blocks, what is missing,
// what the decision is about, the rest.
func (f *figure) badness() int {
	worst := 0
	if f.primary != nil {
		worst = 1
		if f.primary.Missing != "" {
			worst = 3
		}
	}
	for i := range f.rules {
		worst = max(worst, f.rules[i].badness())
	}
	return worst
}

// direction says which way the metric improves.
func direction(m *protocol.Metric) string { return m.Better + " is better" }

// inCell is " in CELL", empty where nothing is varied.
func inCell(name string) string {
	if name == protocol.NoFactors {
		return ""
	}
	return " in " + oneLine(name)
}

// shortDigest is enough of a digest to tell runs apart by eye.
func shortDigest(s string) string {
	if len(s) > 12 {
		s = s[:12]
	}
	return oneLine(s)
}
