package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
)

// Markdown writes a page for a pull request or a job summary. Its first line
// is a mark by which a bot finds its earlier comment.
func Markdown(w io.Writer, s *Source) error {
	p := &markdownPage{}
	p.b.WriteString(Marker(s.Results.Name) + "\n")
	p.b.WriteString(mdHead(s))
	worst, rest := mdFigures(s)
	if len(worst) > 0 {
		p.add(titled("What the decision rests on", mdFigureHead(s), worst))
	}
	p.add(titled("Checks", "", mdCheckLines(s)))
	mdTrouble(p, s)
	if rows := mdRules(s); len(rows) > 0 {
		p.add(folded("Vetoes and gates", tableHead("state", "rule", "cell", "requires", "figures", "because"), rows))
	}
	mdProfiles(p, s)
	p.add(folded("How it was decided", tableHead("result", "outcome", "class", "condition", "figures"), mdTrace(s)))
	p.add(folded("Protocol and machine", "", mdFacts(s)))
	// Last, since it alone grows without bound and would push out the others.
	if len(rest) > 0 {
		p.add(folded("All other figures", mdFigureHead(s), rest))
	}
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
	switch rows := mdNotes(remarksOf(s)); {
	case len(rows) > noteFew:
		p.add(folded("Notes", "", rows))
	case len(rows) > 0:
		p.add(titled("Notes", "", rows))
	}
}

func mdRules(s *Source) []string {
	var rows []string
	rules := s.rules()
	slices.SortStableFunc(rules, func(a, b rule) int { return b.badness() - a.badness() })
	for _, r := range rules {
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
