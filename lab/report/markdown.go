package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
)

// Markdown writes a page for a pull request or a job summary. Its first line
// is a mark by which a bot finds its earlier comment.
func Markdown(w io.Writer, s *Source) error {
	p := &markdownPage{}
	p.b.WriteString(Marker(s.Results.Name) + "\n")
	p.b.WriteString(mdHead(s))
	if s.Results.Clear {
		worst, rest := mdFigures(s)
		if len(worst) > 0 {
			p.add(titled("What the decision rests on", mdFigureHead(s), worst))
		}
		p.add(titled("Checks", "", mdCheckLines(s)))
		mdTrouble(p, s)
		if len(rest) > 0 {
			p.add(folded("All other figures", mdFigureHead(s), rest))
		}
	} else {
		p.add(titled("Checks", "", mdCheckLines(s)))
		mdTrouble(p, s)
	}
	if rows := mdRules(s); len(rows) > 0 {
		p.add(folded("Vetoes and gates", tableHead("state", "rule", "cell", "requires", "figures", "because"), rows))
	}
	p.add(folded("How it was decided", tableHead("result", "outcome", "class", "condition", "figures"), mdTrace(s)))
	p.add(folded("Protocol and machine", "", mdFacts(s)))
	_, err := w.Write(p.bytes())
	return err
}

var notInMarker = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Marker is the comment that Markdown starts with.
func Marker(name string) string {
	return "<!-- assay:" + clipped(notInMarker.ReplaceAllString(name, "-"), mdName) + " -->"
}

func mdHead(s *Source) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n%s\n", prose(strings.ToUpper(string(s.Verdict.Class))), code(s.Verdict.Outcome), prose(s.Verdict.Why))
	fmt.Fprintf(&b, "\n> %s\n", prose(s.Verdict.Question))
	fmt.Fprintf(&b, "\n%s, version %d of lock %s, %s\n", code(s.Results.Name), s.Results.Version, code(shortDigest(s.Results.Lock)), prose(designText(s)))
	if len(s.Results.Exploratory) > 0 {
		fmt.Fprintf(&b, "\n**EXPLORATORY**, decides nothing: %s\n", prose(strings.Join(s.Results.Exploratory, "; ")))
	}
	if !s.Results.Complete {
		fmt.Fprintf(&b, "\n**Incomplete**: %s\n", prose(strings.Join(missingText(s), "; ")))
	}
	if !s.Results.Clear {
		fmt.Fprintf(&b, "\n%s\n", prose(withheldText(s)))
	}
	return b.String()
}

func mdFigureHead(s *Source) string {
	columns := []string{"metric", "reference", "treatment", "change [interval]", "p (adj)", "effect (+ is better)", "verdict"}
	if len(s.Results.Cells) > 1 {
		columns = slices.Insert(columns, 0, "cell")
	}
	return tableHead(columns...)
}

// mdFigures are the rows that the decision is about or that block it, worst
// first, and all others in the order of the protocol.
func mdFigures(s *Source) (worst, rest []string) {
	var top []figure
	for _, f := range s.allFigures() {
		if f.badness() > 0 {
			top = append(top, f)
		} else {
			rest = append(rest, mdFigure(s, &f))
		}
	}
	weakest := func(f *figure) bool {
		return f.primary != nil && s.Results.Primary != nil && f.cell.Name == s.Results.Primary.Weakest
	}
	slices.SortStableFunc(top, func(a, b figure) int {
		if d := b.badness() - a.badness(); d != 0 {
			return d
		}
		switch wa, wb := weakest(&a), weakest(&b); {
		case wa && !wb:
			return -1
		case wb && !wa:
			return 1
		}
		return 0
	})
	for i := range top {
		worst = append(worst, mdFigure(s, &top[i]))
	}
	return worst, rest
}

func mdFigure(s *Source, f *figure) string {
	metric := code(f.metric.Name) + ", " + direction(f.metric)
	if f.metric.Count {
		metric += ", count"
	}
	if f.metric.Summarise == protocol.StatMedian {
		metric += ", median"
	}
	treat := prose(spread(f.metric, f.treat))
	if len(s.Run.Protocol.Arms) > 2 {
		treat = code(f.arm.Name) + " " + treat
	}
	if f.arm.Class == protocol.ClassReported {
		treat += " (reported)"
	}
	moved := f.change()
	if iv := f.changeInterval(); iv != none {
		moved += " " + iv
	}
	if word := f.towards(); word != "" {
		moved += ", " + word
	}
	cells := []string{metric, prose(spread(f.metric, f.ref)), treat, measure(moved, f.metric.Unit), prose(f.adjustedText()), prose(f.effect()), mdStanding(s, f)}
	if len(s.Results.Cells) > 1 {
		name := code(f.cell.Name)
		if f.cell.Class == protocol.ClassStress {
			name += " (stress)"
		}
		cells = slices.Insert(cells, 0, name)
	}
	return tableRow(cells...)
}

// mdStanding is what a figure is for, and what rules say of it.
func mdStanding(s *Source, f *figure) string {
	var parts []string
	if f.primary != nil {
		word := "primary"
		if len(s.Results.Primary.Cells) > 1 && f.cell.Name == s.Results.Primary.Weakest {
			word += ", weakest"
		}
		if f.primary.Missing != "" {
			word = "**primary missing**: " + prose(f.primary.Missing)
		}
		parts = append(parts, word)
	}
	for i := range f.rules {
		parts = append(parts, mdRuleWord(&f.rules[i]))
	}
	for _, why := range sortedKeys(f.treat.Missing) {
		parts = append(parts, "missing: "+prose(why))
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, "; ")
}

func mdRuleWord(r *rule) string {
	word := r.kind + " " + code(r.Rule)
	switch {
	case !r.Judged:
		return word + " reported"
	case r.State == gate.Holds:
		return word + " holds"
	}
	return word + " **" + r.state() + "**"
}

func mdCheckLines(s *Source) []string {
	var rows []string
	for _, c := range worstFirst(shownChecks(s.Results.Checks)) {
		word := checkWord(c.Verdict)
		if c.Verdict != check.Pass {
			word = "**" + word + "**"
		}
		line := "- " + word + " " + prose(c.text()) + "\n"
		if c.Verdict != check.Pass {
			for j, e := range c.Examples {
				if j == mostExamples {
					line += fmt.Sprintf("  - and %d more\n", len(c.Examples)-j)
					break
				}
				line += "  - " + prose(e) + "\n"
			}
		}
		rows = append(rows, line)
	}
	return rows
}

// mdTrouble is what went wrong besides: trials that did not end well, and the
// machine.
func mdTrouble(p *markdownPage, s *Source) {
	var rows []string
	for _, tc := range s.Results.Trials {
		if text := statusText(tc.Status); text != "" {
			rows = append(rows, fmt.Sprintf("- %s%s: %s of %d; first: %s\n", code(tc.Arm), prose(inCell(tc.Cell)), prose(text), tc.Planned, prose(tc.Example)))
		}
	}
	if len(rows) > 0 {
		p.add(titled("Failures", "", rows))
	}
	rows = nil
	for _, b := range s.Results.Host.Breaches {
		rows = append(rows, "- "+prose(breachText(&b))+"\n")
	}
	if len(rows) > 0 {
		p.add(titled("Host", "", rows))
	}
	rows = nil
	for _, n := range remarksOf(s) {
		rows = append(rows, "- "+prose(n)+"\n")
	}
	if len(rows) > 0 {
		p.add(titled("Notes", "", rows))
	}
}

func mdRules(s *Source) []string {
	var rows []string
	for _, r := range s.rules() {
		state := r.state()
		switch {
		case !r.Judged:
			state += ", not judged"
		case r.State != gate.Holds:
			state = "**" + state + "**"
		}
		figures := valuesText(r.Values)
		if r.Missing != "" {
			figures = strings.Join(compact(figures, r.Missing), ": ")
		}
		rows = append(rows, tableRow(state, r.kind+" "+code(r.Rule), code(r.Cell), code(r.Require)+" of "+code(r.Metric), prose(figures), prose(r.Because)))
	}
	return rows
}

func mdTrace(s *Source) []string {
	var rows []string
	for _, st := range s.Verdict.Trace {
		condition := prose(st.Condition)
		switch {
		case st.Condition == "":
			condition = "otherwise"
		case !st.Guard:
			condition = code(st.Condition)
		}
		rows = append(rows, tableRow(prose(st.Result), code(st.Outcome), prose(string(st.Class)), condition, prose(valuesText(st.Values))))
	}
	return rows
}

func mdFacts(s *Source) []string {
	p := s.Run.Protocol
	var rows []string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, "- "+name+": "+value+"\n")
		}
	}
	for _, h := range p.Hypotheses {
		add("hypothesis", prose(h))
	}
	add("expected", prose(p.Expectation))
	add("lock", code(s.Run.Lock.Digest))
	add("protocol, SHA-256", code(s.Run.Lock.SHA256))
	for _, r := range s.Run.Lock.Receipts {
		add("arm "+code(r.Arm), receiptText(r))
	}
	for _, l := range environmentLines(s) {
		add(l[0], prose(l[1]))
	}
	for _, h := range s.Results.Host.Probes {
		add("probe "+code(h.Probe), prose(probeText(&h)))
	}
	return rows
}

func receiptText(r protocol.Receipt) string {
	var parts []string
	for _, x := range []struct{ name, value string }{{"program", r.Program}, {"SHA-256", r.SHA256}, {"revision", r.Rev}, {"version", r.Version}} {
		if x.value != "" {
			parts = append(parts, x.name+" "+code(x.value))
		}
	}
	if r.Dirty {
		parts = append(parts, "with uncommitted changes")
	}
	if len(parts) == 0 {
		return "no receipt"
	}
	return strings.Join(parts, ", ")
}

func probeText(h *analysis.HostSummary) string {
	s := fmt.Sprintf("%s, %s", joinUnit(span(float64(h.Min), float64(h.Max), ""), h.Unit), counted(h.Readings, "reading"))
	if h.Readings == 0 {
		s = "unavailable"
	} else if h.Unavailable > 0 {
		s += fmt.Sprintf(", unavailable %d times", h.Unavailable)
	}
	if h.Detail != "" {
		s += " (" + h.Detail + ")"
	}
	return s
}
