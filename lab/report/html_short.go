package report

import (
	"fmt"
	"strings"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/protocol"
)

// pageShort is the run in a few lines, for a reader who reads no further: what was
// compared, whether it was correct, what came of it, and what could have stopped it.
type pageShort struct {
	Treatment, Reference string
	Others               []string // arms beside these two
	Where                string   // cells and rounds
	Base                 string   // what the cells' names leave out
	Lines                []pageShortLine
}

type pageShortLine struct {
	Term, Link        string // the link leads to the part that has it all
	Sign, Style, Word string
	Text              string
	Beside            string
}

func newPageShort(s *Source, names *cellNames) *pageShort {
	p := s.Run.Protocol
	v := &pageShort{Treatment: p.Primary.Treatment, Reference: p.Reference(), Where: whereText(p), Base: names.leftOut()}
	for _, a := range p.Arms[1:] {
		if a.Name != v.Treatment {
			v.Others = append(v.Others, a.Name)
		}
	}
	v.Others = firstOf(v.Others, 4)
	v.Lines = append(v.Lines, checksInShort(s.Results.Checks))
	if len(withheld(s)) > 0 {
		v.Lines = append(v.Lines, pageShortLine{Term: "Measured", Link: "withheld", Text: "Withheld: no figure is shown before every check has passed."})
		return v
	}
	if line, ok := primaryInShort(s, names); ok {
		v.Lines = append(v.Lines, line)
	}
	v.Lines = append(v.Lines, rulesInShort(s, names)...)
	return v
}

// whereText is how many cells there are, and rounds in each.
func whereText(p *protocol.Protocol) string {
	cells := p.Cells()
	least, most := 0, 0
	for i, c := range cells {
		if i == 0 || c.Rounds < least {
			least = c.Rounds
		}
		most = max(most, c.Rounds)
	}
	text := counted(most, "round")
	if least < most {
		text = fmt.Sprintf("%d to %s", least, text)
	}
	if len(cells) == 1 {
		return text
	}
	return fmt.Sprintf("%s of %s each", counted(len(cells), "cell"), text)
}

func checksInShort(checks []check.Result) pageShortLine {
	line := pageShortLine{Term: "Checked", Link: "checks"}
	operations := 0
	worse := map[check.Verdict][]string{}
	for _, c := range checks {
		operations += c.Operations
		if c.Verdict != check.Pass {
			worse[c.Verdict] = append(worse[c.Verdict], c.Name)
		}
	}
	switch {
	case len(checks) == 0:
		line.Sign, line.Style, line.Word = "?", "unknown", "Nothing"
		line.Text = ": no check was declared, and none has a result."
	case len(worse) == 0:
		line.Sign, line.Style = checkSign(check.Pass), check.Pass.String()
		line.Word = fmt.Sprintf("All %s passed", counted(len(checks), "correctness check"))
		if len(checks) == 1 {
			line.Word = "The correctness check passed"
		}
		line.Text = fmt.Sprintf(", over %s.", counted(operations, "operation"))
	default:
		for _, v := range []check.Verdict{check.Fail, check.Unknown, check.Unchecked} {
			if len(worse[v]) == 0 {
				continue
			}
			word := fmt.Sprintf("%d of %d %s", len(worse[v]), len(checks), map[check.Verdict]string{
				check.Fail: "failed", check.Unknown: "could not tell", check.Unchecked: "never made",
			}[v])
			if line.Word == "" {
				line.Sign, line.Style, line.Word = checkSign(v), v.String(), word
			} else {
				line.Text += "; " + word
			}
			line.Text += ": " + strings.Join(firstOf(worse[v], 5), ", ")
		}
		line.Text += "."
	}
	return line
}

// primaryInShort is the effect that the decision is about, in the cell that speaks
// for the family.
func primaryInShort(s *Source, names *cellNames) (line pageShortLine, ok bool) {
	pr, m := s.Results.Primary, s.Run.Protocol.Metric(s.Run.Protocol.Primary.Metric)
	if pr == nil || m == nil || len(pr.Cells) == 0 {
		return line, false
	}
	pc := &pr.Cells[0]
	for i := range pr.Cells {
		if pr.Cells[i].Cell == pr.Weakest {
			pc = &pr.Cells[i]
		}
	}
	f := s.figureOf(pc.Cell, m.Name, pr.Treatment)
	if f == nil {
		return line, false
	}
	line = pageShortLine{Term: "Measured", Link: "primary"}
	line.Word = m.Name
	in := ""
	switch {
	case len(pr.Cells) > 1:
		in = fmt.Sprintf("In %s, the weakest of %s: ", names.of(pc.Cell), counted(len(pr.Cells), "cell"))
	case pc.Cell != protocol.NoFactors:
		in = "In " + names.of(pc.Cell) + ": "
	}
	line.Beside = fmt.Sprintf("%s%s with %s, %s with %s; %s. Smallest effect that matters: %s.", in,
		meanSD(m, f.treat), pr.Treatment, meanSD(m, f.ref), s.Run.Protocol.Reference(), direction(m), floorWords(s.Run.Protocol.Primary.Floor))
	if pc.Missing != "" {
		line.Text = ": no answer, because " + pc.Missing + "."
		return line, true
	}
	p := pphrase(float64(pc.P))
	if len(pr.Cells) > 1 {
		p = "adjusted " + pphrase(float64(pc.AdjustedP))
	}
	effect := f.change()
	if ci := f.changeInterval(); ci != none {
		effect += ", interval " + ci
	}
	if f.towards() != "" {
		effect += ", towards " + f.towards()
	}
	line.Text = " " + effect + "; " + p + "."
	return line, true
}

// rulesInShort is a line for the vetoes and one for the gates, where they judge.
func rulesInShort(s *Source, names *cellNames) []pageShortLine {
	var lines []pageShortLine
	for _, list := range ruleLists(s) {
		broken, missing, n := []string(nil), []string(nil), 0
		for i := range list.rules {
			a := newRuleAnswers(s, &list.rules[i], list.answers, names)
			if a.judged == 0 {
				continue
			}
			n++
			switch {
			case a.broken > 0:
				broken = append(broken, list.rules[i].Name)
			case a.missing > 0:
				missing = append(missing, list.rules[i].Name)
			}
		}
		if n == 0 {
			continue
		}
		line := pageShortLine{Term: list.plural, Link: "rules", Sign: "✓", Style: "good", Word: fmt.Sprintf("All %d hold", n)}
		if n == 1 {
			line.Word = "The only one holds"
		}
		without := fmt.Sprintf("%d of %d without an answer", len(missing), n)
		which := ": " + strings.Join(firstOf(missing, 5), ", ")
		switch {
		case len(broken) > 0:
			line.Sign, line.Style, line.Word = "✕", "bad", fmt.Sprintf("%d of %d broken", len(broken), n)
			line.Text = ": " + strings.Join(firstOf(broken, 5), ", ")
			if len(missing) > 0 {
				line.Text += "; " + without + which
			}
		case len(missing) > 0:
			line.Sign, line.Style, line.Word, line.Text = "?", "unsure", without, which
		}
		line.Text += "."
		lines = append(lines, line)
	}
	return lines
}
