package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// Terminal says what the page is printed on. The caller knows whether that is
// a terminal and what NO_COLOR says. The zero Terminal has no colour and 80
// columns.
type Terminal struct {
	Colour bool
	Width  int // columns; 0 means 80, and less than 40 means 40
}

const (
	defaultWidth = 80
	leastWidth   = 40

	// A page with more cells than this shows one line per cell for the primary
	// metric and one per arm for each other, instead of a table per cell.
	fewCells = 4

	factName  = 10 // widths of the first column
	stateName = 8

	mostExamples  = 3
	mostMissing   = 5
	exampleLength = 200
)

// Text writes what a terminal shows at the end of a run.
func Text(w io.Writer, s *Source) error { return Terminal{}.Write(w, s) }

// Write writes the page for this terminal.
func (t Terminal) Write(w io.Writer, s *Source) error {
	if t.Width == 0 {
		t.Width = defaultWidth
	}
	p := &textPage{Source: s, width: max(t.Width, leastWidth), colour: t.Colour}
	p.verdict()
	p.para("  ", s.Verdict.Why)
	p.run()
	p.checks()
	if s.Results.Clear {
		p.effects()
		p.allRules()
	} else {
		p.heading("Figures")
		p.para("  ", withheldText(s))
	}
	p.failures()
	p.host()
	p.remarks()
	p.blank()
	p.verdict()
	_, err := io.WriteString(w, p.b.String())
	return err
}

// withheldText says why there are no figures.
func withheldText(s *Source) string {
	if s.Results.Note != "" {
		return s.Results.Note
	}
	return "Figures are withheld: not every check has passed."
}

type textPage struct {
	*Source
	b      strings.Builder
	width  int
	colour bool
}

func (p *textPage) blank() { p.b.WriteByte('\n') }

func (p *textPage) heading(format string, args ...any) {
	p.blank()
	p.para("", fmt.Sprintf(format, args...))
}

// para writes a wrapped paragraph. lead stands in front of its first line, and
// as many blanks in front of the others.
func (p *textPage) para(lead, s string) {
	hang := strings.Repeat(" ", utf8.RuneCountInString(lead))
	for i, l := range wrapped(s, p.width-len(hang)) {
		if i == 0 {
			l = lead + l
		} else {
			l = hang + l
		}
		p.b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
}

// fact is a paragraph with a name in front.
func (p *textPage) fact(name, s string) { p.para(fmt.Sprintf("  %-*s  ", factName, name), s) }

// state is one with a state in front, which stops the eye where it is in
// capitals.
func (p *textPage) state(state, s string) { p.para(fmt.Sprintf("  %-*s  ", stateName, state), s) }

// under belongs to the state above it.
func (p *textPage) under(lead, s string) {
	p.para(strings.Repeat(" ", stateName+4)+lead, s)
}

func (p *textPage) table(t *textTable) {
	for _, l := range t.lines(p.width) {
		p.b.WriteString(l + "\n")
	}
}

// The colours of the classes: green lets through, yellow waits, red stops.
var classColours = map[gate.Class]string{gate.Go: "\x1b[1;32m", gate.Inconclusive: "\x1b[1;33m"}

func (p *textPage) verdict() {
	word := clipped(strings.ToUpper(string(p.Verdict.Class)), 20)
	on, off := "", ""
	if p.colour {
		on, off = "\x1b[1;31m", "\x1b[0m"
		if c, ok := classColours[p.Verdict.Class]; ok {
			on = c
		}
	}
	fmt.Fprintf(&p.b, "VERDICT  %s%s%s  %s\n", on, word, off, clipped(p.Verdict.Outcome, p.width-len(word)-11))
}

func (p *textPage) run() {
	r := p.Results
	if len(r.Exploratory) > 0 && p.Verdict.Outcome != "EXPLORATORY" {
		p.heading("EXPLORATORY")
		for _, why := range r.Exploratory {
			p.para("  ", why)
		}
	}
	p.heading("Run")
	p.fact("question", p.Verdict.Question)
	p.fact("name", r.Name)
	p.fact("lock", fmt.Sprintf("%s, version %d", shortDigest(r.Lock), r.Version))
	p.fact("design", designText(p.Source))
	for _, m := range missingText(p.Source) {
		p.fact("missing", m)
	}
}

// missingText names what did not run, nil where everything did.
func missingText(s *Source) []string {
	missing := s.Results.Missing
	switch {
	case s.Results.Complete:
		return nil
	case len(missing) == 0:
		return []string{"the end of the run"}
	case len(missing) > mostMissing:
		return append(slices.Clone(missing[:mostMissing]), fmt.Sprintf("and %d more", len(missing)-mostMissing))
	}
	return missing
}

// designText is the plan in one line.
func designText(s *Source) string {
	p := s.Run.Protocol
	cells := p.Cells()
	least, most := 0, 0
	warm := 0
	for i, c := range cells {
		if i == 0 {
			least, most = c.Rounds, c.Rounds
		}
		least, most, warm = min(least, c.Rounds), max(most, c.Rounds), max(warm, c.Warmup)
	}
	text := counted(len(p.Arms), "arm")
	for _, a := range p.Arms {
		if a.Class == protocol.ClassReported {
			text += fmt.Sprintf(" (%s only reported)", a.Name)
		}
	}
	text += ", " + counted(len(cells), "cell") + ", "
	if least == most {
		text += counted(most, "round")
	} else {
		text += fmt.Sprintf("%d to %s", least, counted(most, "round"))
	}
	if warm > 0 {
		text += " after " + counted(warm, "warm-up round")
	}
	return text + fmt.Sprintf(", seed %d", p.Design.Seed)
}

func (p *textPage) checks() {
	p.heading("Checks")
	for _, c := range worstFirst(shownChecks(p.Results.Checks)) {
		p.state(checkWord(c.Verdict), clipped(c.text(), 400))
		if c.Verdict == check.Pass {
			continue
		}
		for j, e := range c.Examples {
			if j == mostExamples {
				p.under("- ", fmt.Sprintf("and %d more", len(c.Examples)-j))
				break
			}
			p.under("- ", clipped(e, exampleLength))
		}
	}
}

func (p *textPage) effects() {
	if len(p.Results.Exploratory) > 0 {
		p.exploratory()
	} else {
		p.primary()
	}
	if len(p.Results.Cells) > fewCells {
		p.overview()
		return
	}
	for i := range p.Results.Cells {
		p.metrics(&p.Results.Cells[i])
	}
}

// primary shows the confirmatory comparison: at length for one cell, a line
// each for several.
func (p *textPage) primary() {
	pr := p.Results.Primary
	m := p.Run.Protocol.Metric(p.Run.Protocol.Primary.Metric)
	if pr == nil || m == nil {
		return
	}
	p.heading("Primary: %s (%s), %s against %s", pr.Metric, direction(m), pr.Treatment, p.Run.Protocol.Reference())
	if len(pr.Cells) == 1 {
		p.onePrimary(&pr.Cells[0], m)
	} else {
		p.family(pr, m)
	}
	if pr.Power != nil {
		p.fact("power", fmt.Sprintf("an effect of %s %s would have been found with probability 0.8", pr.Power.Scale, num(float64(pr.Power.Detectable))))
	}
}

// figureOf is the line of the metric and arm in the cell, nil where there is
// none.
func (s *Source) figureOf(cell, metric, arm string) *figure {
	c := s.Results.Cell(cell)
	if c == nil {
		return nil
	}
	all := s.figures(c)
	i := slices.IndexFunc(all, func(f figure) bool { return f.metric.Name == metric && f.arm.Name == arm })
	if i < 0 {
		return nil
	}
	return &all[i]
}

func (p *textPage) onePrimary(pc *analysis.PrimaryCell, m *protocol.Metric) {
	f := p.figureOf(pc.Cell, m.Name, p.Results.Primary.Treatment)
	if f == nil {
		p.fact("MISSING", pc.Missing)
		return
	}
	t := &textTable{right: []bool{false, true, true, true}, names: []bool{true, false, false, false}}
	for _, a := range []*analysis.ArmSummary{f.ref, f.treat} {
		t.add(oneLine(a.Arm), spread(m, a), span(float64(a.Min), float64(a.Max), m.Unit), counted(a.N, "round"))
	}
	p.table(t)
	p.fact("change", strings.Join(compact(f.change()+" "+f.changeInterval(), f.towards()), ", "))
	if pc.Missing != "" {
		p.fact("MISSING", pc.Missing)
		return
	}
	p.fact("difference", withUnit(float64(pc.Diff), m.Unit)+", interval "+interval(float64(pc.CI.Low), float64(pc.CI.High), m.Unit))
	p.fact("test", fmt.Sprintf("%s, %s, alpha %s, dz %s, d %s, %s", p.Results.Primary.Test, pphrase(float64(pc.AdjustedP)),
		num(float64(p.Results.Primary.Alpha)), f.gainful(f.cmp.Dz), f.gainful(f.cmp.D), counted(pc.N, "round")))
}

// compact leaves out empty parts.
func compact(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" })
}

func (p *textPage) family(pr *analysis.Primary, m *protocol.Metric) {
	t := &textTable{
		head:  []string{"cell", oneLine(p.Run.Protocol.Reference()), "change", "interval", "p", "adjusted"},
		right: []bool{false, true, true, true, true, true}, names: []bool{true, false, false, false, false, false},
	}
	var missing []string
	for i := range pr.Cells {
		pc := &pr.Cells[i]
		f := p.figureOf(pc.Cell, m.Name, pr.Treatment)
		if f == nil {
			t.add(oneLine(pc.Cell), none, none, none, none, none)
		} else {
			t.add(oneLine(pc.Cell), withUnit(middle(m, f.ref), m.Unit), f.change(), f.changeInterval(), pvalue(float64(pc.P)), pvalue(float64(pc.AdjustedP)))
		}
		if pc.Missing != "" {
			missing = append(missing, pc.Cell+": "+pc.Missing)
		}
	}
	p.table(t)
	for _, s := range missing {
		p.fact("MISSING", s)
	}
	p.fact("weakest", pr.Weakest+" speaks for the family")
	p.fact("test", fmt.Sprintf("%s, alpha %s over %s, adjusted by Holm", pr.Test, num(float64(pr.Alpha)), counted(len(pr.Cells), "cell")))
}

// metrics is a cell's table.
func (p *textPage) metrics(cell *analysis.Cell) {
	title := "Metrics" + inCell(cell.Name)
	if cell.Class == protocol.ClassStress {
		title += " (stress: reported, not judged)"
	}
	p.heading("%s", title)
	figs := p.figures(cell)
	many := len(p.Run.Protocol.Arms) > 2
	arm := "arm"
	if !many && len(figs) > 0 {
		arm = clipped(figs[0].arm.Name, 14)
	}
	t := &textTable{
		head:  []string{"metric", clipped(p.Run.Protocol.Reference(), 14), arm, "", "change", "interval", "p"},
		right: []bool{false, true, true, false, true, true, true}, names: []bool{true, false, false, false, false, false, false}, grouped: true,
	}
	if many {
		t.head[2] = ""
		t.head, t.right, t.names = slices.Insert(t.head, 2, "arm"), slices.Insert(t.right, 2, false), slices.Insert(t.names, 2, true)
	}
	for i := range figs {
		f := &figs[i]
		// One unit for both, so that they can be compared at a glance.
		ref, treat := middle(f.metric, f.ref), middle(f.metric, f.treat)
		factor, unit := scale(f.metric.Unit, ref, treat)
		row := []string{metricLabel(f.metric), num(ref * factor), num(treat * factor), unit, f.change(), f.changeInterval(), f.pText()}
		if many {
			row = slices.Insert(row, 2, oneLine(f.arm.Name))
		}
		t.add(row...)
	}
	p.table(t)
	p.gaps(figs)
}

// gaps says what a dash in the table means.
func (p *textPage) gaps(figs []figure) {
	said := map[string]bool{}
	for i := range figs {
		for _, a := range []*analysis.ArmSummary{figs[i].ref, figs[i].treat} {
			for _, why := range sortedKeys(a.Missing) {
				s := fmt.Sprintf("%s, arm %s, %s: %s", figs[i].metric.Name, a.Arm, counted(a.Missing[why], "round"), why)
				if !said[s] {
					said[s] = true
					p.fact("missing", s)
				}
			}
		}
	}
}

// metricLabel is the metric with an arrow to where it improves.
func metricLabel(m *protocol.Metric) string {
	s := oneLine(m.Name) + " "
	if m.Better == "higher" {
		s += "↑"
	} else {
		s += "↓"
	}
	if m.Summarise == protocol.StatMedian {
		s += " median"
	}
	return s
}

// overview is for many cells: how far each metric moves, and where it looks
// worst.
func (p *textPage) overview() {
	p.heading("Metrics, change over %s", counted(len(p.Results.Cells), "cell"))
	t := &textTable{
		head:  []string{"metric", "arm", "best", "worst", "in cell"},
		right: []bool{false, false, true, true, false}, names: []bool{true, true, false, false, true},
	}
	all := p.allFigures()
	for _, m := range p.countsFirst() {
		for i := 1; i < len(p.Run.Protocol.Arms); i++ {
			arm := &p.Run.Protocol.Arms[i]
			var best, worst *figure
			for j := range all {
				f := &all[j]
				if f.metric != m || f.arm != arm || math.IsNaN(gain(f)) {
					continue
				}
				if best == nil || gain(f) > gain(best) {
					best = f
				}
				if worst == nil || gain(f) < gain(worst) {
					worst = f
				}
			}
			if best == nil {
				t.add(metricLabel(m), oneLine(arm.Name), none, none, "")
				continue
			}
			t.add(metricLabel(m), oneLine(arm.Name), best.change(), worst.change(), oneLine(worst.cell.Name))
		}
	}
	p.table(t)
	p.para("  ", "Every figure of every cell stands in results.json and on the page.")
}

// gain is the change, or the difference where there is none, turned so that
// more is better.
func gain(f *figure) float64 {
	x := float64(f.cmp.Change)
	if math.IsNaN(x) {
		x = float64(f.cmp.Diff)
	}
	if f.metric.Better == "lower" {
		return -x
	}
	return x
}

func (p *textPage) failures() {
	first := true
	for _, tc := range p.Results.Trials {
		text := statusText(tc.Status)
		if text == "" {
			continue
		}
		if first {
			p.heading("Failures")
			first = false
		}
		p.para("  - ", fmt.Sprintf("%s%s: %s of %d", tc.Arm, inCell(tc.Cell), text, tc.Planned))
		if tc.Example != "" {
			p.para("    ", "first: "+clipped(tc.Example, exampleLength))
		}
	}
}

// statusText counts the trials that did not end well, "" where all did.
func statusText(status map[string]int) string {
	var parts []string
	for _, st := range sortedKeys(status) {
		if st != string(trial.StatusOK) && status[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", status[st], oneLine(st)))
		}
	}
	return strings.Join(parts, ", ")
}

func (p *textPage) host() {
	if len(p.Results.Host.Breaches) == 0 {
		return
	}
	p.heading("Host")
	for _, b := range p.Results.Host.Breaches {
		p.para("  - ", breachText(&b))
	}
}

func breachText(b *analysis.HostBreach) string {
	if b.Times > 1 {
		return fmt.Sprintf("%s (%d times)", b.First, b.Times)
	}
	return b.First
}

func (p *textPage) remarks() {
	notes := remarksOf(p.Source)
	if len(notes) == 0 {
		return
	}
	p.heading("Notes")
	for _, n := range notes {
		p.para("  - ", n)
	}
}

// remarksOf is what a reader must know to judge the figures.
func remarksOf(s *Source) []string {
	var notes []string
	for _, n := range s.Verdict.Notes {
		// The host's own part has said those.
		if !strings.HasPrefix(n, "host: ") {
			notes = append(notes, n)
		}
	}
	for _, a := range s.Run.Protocol.Asymmetries {
		notes = append(notes, "the arms differ: "+a)
	}
	for _, d := range s.Run.Lock.Deviations {
		notes = append(notes, fmt.Sprintf("deviation, version %d: %s (changed: %s)", d.Version, d.Reason, strings.Join(d.Changed, ", ")))
	}
	return notes
}
