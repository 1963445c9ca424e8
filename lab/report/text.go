package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
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

	// More cells than this are not listed at all.
	mostCells = 32

	factName  = 10 // widths of the first column
	stateName = 9

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
	labels map[string]string // per cell
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

// lines is a paragraph; of several lines, such as a table, each stays one, and what
// does not fit is broken.
func (p *textPage) lines(lead, s string) {
	first, rest, table := strings.Cut(s, "\n")
	p.para(lead, first)
	if !table {
		return
	}
	hang, room := strings.Repeat(" ", len(lead)), max(p.width-len(lead), 1)
	put := func(r []rune) { p.b.WriteString(strings.TrimRight(hang+string(r), " ") + "\n") }
	for l := range strings.Lines(rest) {
		r := []rune(graphic(l))
		for ; len(r) > room; r = r[room:] {
			put(r[:room])
		}
		put(r)
	}
}

// fact is a paragraph with a name in front.
func (p *textPage) fact(name, s string) { p.para(fmt.Sprintf("  %-*s  ", factName, name), s) }

// state is one with a state in front, which stops the eye where it is in
// capitals.
func (p *textPage) state(state, s string) {
	p.para(fmt.Sprintf("  %-*s  ", stateName, clipped(state, 20)), s)
}

// under belongs to the state above it.
func (p *textPage) under(lead, s string) {
	p.para(strings.Repeat(" ", stateName+4)+lead, s)
}

// cellHead and cellLabel name cells in a table without repeating the factors in
// every line, which would leave no room for what tells them apart.
func (p *textPage) cellHead() string {
	var names []string
	for _, f := range p.Run.Protocol.Factors {
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		return "cell"
	}
	return oneLine(strings.Join(names, ","))
}

func (p *textPage) cellLabel(name string) string {
	if p.labels == nil {
		p.labels = map[string]string{}
		for _, c := range p.Run.Protocol.Cells() {
			p.labels[c.Name] = strings.Join(c.Levels, ",")
		}
	}
	if l := p.labels[name]; l != "" {
		return oneLine(l)
	}
	return oneLine(name)
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
	if len(p.Results.Cells) > 0 {
		p.legend()
	}
}
