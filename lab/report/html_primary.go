package report

import (
	"fmt"
	"math"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// pagePrimary is the comparison that the decision is about.
type pagePrimary struct {
	Metric, Direction    string
	Treatment, Reference string
	Plan                 []pageFact
	Cells                []pagePrimaryCell
	Told                 []pagePrimaryCell // told in a sentence too
	Figures              []pageFigure
	More                 string
	CellHead             string
	Common               string // what the cells have in common, and their names leave out
	Varied               bool   // there is more than one cell to name
	Adjusted             bool
}

type pagePrimaryCell struct {
	Cell, Sentence, Missing string
	Weakest                 bool
	N                       int
	Ref, Treat              string
	Diff, DiffCI            string
	Change, ChangeCI        string
	Ratio, RatioCI          string
	P, AdjustedP            string
	D, Dz                   string
	Towards                 string
	Beside                  []string // order effect, drift, pooled samples, notes
}

// toldCells is how many cells are told in sentences; of more, the weakest is.
const toldCells = 4

func newPagePrimary(s *Source, names *cellNames, room *pageRoom) *pagePrimary {
	pr, p := s.Results.Primary, s.Run.Protocol
	if pr == nil {
		return nil
	}
	m := p.Metric(pr.Metric)
	if m == nil {
		return nil
	}
	v := &pagePrimary{
		Metric: m.Name, Direction: direction(m), Treatment: pr.Treatment, Reference: p.Reference(), CellHead: names.head,
		Varied: len(pr.Cells) > 1 || len(p.Factors) > 0, Adjusted: len(pr.Cells) > 1, Plan: primaryPlan(p, pr, names),
	}
	all := make([]string, len(pr.Cells))
	for i := range pr.Cells {
		all[i] = pr.Cells[i].Cell
	}
	of, common := names.among(all)
	v.Common = common
	for i, pc := range pr.Cells {
		if i == pageRows {
			v.More = leftOut(len(pr.Cells)-i, "cell")
			break
		}
		c := newPagePrimaryCell(s, names.of(pc.Cell), m, pr, pc)
		c.Cell = of(pc.Cell)
		v.Cells = append(v.Cells, c)
		if len(pr.Cells) <= toldCells || c.Weakest {
			v.Told = append(v.Told, c)
		}
	}
	family := newForest(s, of, m, room, func(f *figure) bool { return f.primary != nil })
	if chart := family.draw(); chart != "" {
		room.take(len(chart))
		v.Figures = []pageFigure{{Caption: "Change of " + m.Name + ", " + direction(m), Chart: chart}}
	}
	return v
}

func primaryPlan(p *protocol.Protocol, pr *analysis.Primary, names *cellNames) []pageFact {
	test := map[string]string{
		protocol.TestPaired:      "paired t, two-sided, with the round as block",
		protocol.TestWelch:       "Welch t, two-sided",
		protocol.TestMannWhitney: "Mann-Whitney, two-sided; the interval is that of the Hodges-Lehmann shift",
	}[pr.Test]
	level := "two-sided level " + num(float64(pr.Alpha))
	if len(pr.Cells) > 1 {
		level = fmt.Sprintf("family-wise level %s over %s, corrected by Holm", num(float64(pr.Alpha)), counted(len(pr.Cells), "cell"))
	}
	plan := []pageFact{{Term: "Test", Value: test}, {Term: "Level", Value: level}, {Term: "Smallest effect that matters", Value: floorWords(p.Primary.Floor)}}
	if pr.Power != nil && !math.IsNaN(float64(pr.Power.Detectable)) {
		plan = append(plan, pageFact{Term: "What the plan could detect", Value: fmt.Sprintf(
			"a true effect of %s %s or more is found with a power of 0.8; a smaller one may well go unseen", pr.Power.Scale, num(float64(pr.Power.Detectable)))})
	}
	if len(pr.Cells) > 1 {
		plan = append(plan, pageFact{Term: "Speaks for the family", Value: names.of(pr.Weakest)})
	}
	return plan
}

func floorWords(f protocol.Floor) string {
	switch {
	case f.D > 0:
		return "d of " + num(f.D)
	case f.Dz > 0:
		return "dz of " + num(f.Dz)
	case f.Change > 0:
		return "a change of " + num(100*f.Change) + " %"
	}
	return "none was set; significance is enough"
}

func newPagePrimaryCell(s *Source, cell string, m *protocol.Metric, pr *analysis.Primary, pc analysis.PrimaryCell) pagePrimaryCell {
	cm := s.Results.Cell(pc.Cell).Metric(m.Name)
	f := figure{
		metric: m, ref: orNoSummary(cm.Arm(s.Run.Protocol.Reference())), treat: orNoSummary(cm.Arm(pr.Treatment)),
		cmp: orNoComparison(cm.Against(pr.Treatment)), test: pr.Test, primary: &pc,
	}
	c := f.cmp
	v := pagePrimaryCell{
		Cell: cell, Missing: pc.Missing, Weakest: pc.Cell == pr.Weakest, N: pc.N,
		Ref: meanSD(m, f.ref), Treat: meanSD(m, f.treat),
		Diff: withUnit(float64(pc.Diff), m.Unit), DiffCI: interval(float64(pc.CI.Low), float64(pc.CI.High), m.Unit),
		Change: percent(float64(c.Change)), ChangeCI: f.changeInterval(),
		Ratio: num(float64(c.Ratio)), RatioCI: ratioInterval(c.RatioCI),
		P: pvalue(float64(pc.P)), AdjustedP: pvalue(float64(pc.AdjustedP)), D: f.gainful(c.D), Dz: f.gainful(c.Dz), Towards: f.towards(),
	}
	if pr.Test == protocol.TestMannWhitney && c.Shift != nil {
		v.Diff = withUnit(float64(c.Shift.Estimate), m.Unit)
	}
	v.Sentence = v.sentence(&f, pr)
	v.Beside = beside(&f)
	return v
}

func meanSD(m *protocol.Metric, a *analysis.ArmSummary) string {
	return plusMinus(float64(a.Mean), float64(a.SD), m.Unit)
}

func ratioInterval(ci *analysis.Interval) string {
	if ci == nil {
		return none
	}
	return interval(float64(ci.Low), float64(ci.High), "")
}

func (v *pagePrimaryCell) sentence(f *figure, pr *analysis.Primary) string {
	in := ""
	if pr.Cells[0].Cell != protocol.NoFactors {
		in = "In " + v.Cell + ", "
	}
	if v.Missing != "" {
		return in + "there is no answer: " + v.Missing + "."
	}
	s := fmt.Sprintf("%s%s has %s where %s has %s (mean ± standard deviation of %s).", in, pr.Treatment, v.Treat, armWord(f.ref.Arm), v.Ref, counted(v.N, "round"))
	what := "The difference is "
	if pr.Test == protocol.TestMannWhitney {
		what = "The shift is "
	}
	s += " " + what + v.Diff
	if level := float64(f.primary.CI.Level); finite(level) {
		s += fmt.Sprintf(" with a %s %% interval of %s", num(100*level), v.DiffCI)
	}
	if v.Change != none {
		s += ", a change of " + v.Change
	}
	if v.Towards != "" {
		s += ", towards " + v.Towards
	}
	s += "; " + pphrase(float64(f.primary.P))
	if len(pr.Cells) > 1 {
		s += ", adjusted " + pphrase(float64(f.primary.AdjustedP))
	}
	return s + "."
}

// armWord is the arm's name, or a word where the results have no such arm.
func armWord(arm string) string {
	if arm == "" {
		return "the reference"
	}
	return arm
}

// beside is what a reader should know of the comparison without it being part
// of the test.
func beside(f *figure) []string {
	var all []string
	c, unit := f.cmp, f.metric.Unit
	if c.Order != nil {
		all = append(all, fmt.Sprintf("Order effect: where %s runs before %s, the difference is shifted by %s against the other rounds (%s). The balanced order keeps this out of the comparison.",
			f.treat.Arm, f.ref.Arm, withUnit(float64(c.Order.Diff), unit), pphrase(float64(c.Order.P))))
	}
	for _, a := range []*analysis.ArmSummary{f.ref, f.treat} {
		if a.Drift != nil {
			all = append(all, fmt.Sprintf("Drift of %s: %s per round (%s).", a.Arm, withUnit(float64(a.Drift.PerRound), unit), pphrase(float64(a.Drift.P))))
		}
	}
	if q := c.Pooled; q != nil {
		all = append(all, fmt.Sprintf("All samples of all rounds together: %s against %s, difference %s with an interval of %s, ratio %s %s.",
			withUnit(float64(q.Treat), unit), withUnit(float64(q.Ref), unit), withUnit(float64(q.Diff), unit),
			interval(float64(q.DiffCI.Low), float64(q.DiffCI.High), unit), num(float64(q.Ratio)), ratioInterval(&q.RatioCI)))
	}
	return append(all, firstOf(c.Notes, pageItems)...)
}
