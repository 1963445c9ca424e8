package report

import (
	"fmt"

	"github.com/assaylab/assay/lab/gate"
)

// allRules shows vetoes and gates. A rule that holds in every cell is one line;
// each cell in which it does not is a line of its own.
func (p *textPage) allRules() {
	for _, kind := range []struct{ word, title string }{{"veto", "Vetoes"}, {"gate", "Gates"}} {
		var mine []rule
		for _, r := range p.rules() {
			if r.kind == kind.word {
				mine = append(mine, r)
			}
		}
		if len(mine) == 0 {
			continue
		}
		p.heading("%s", kind.title)
		for _, group := range byName(mine) {
			p.ruleLines(group)
		}
	}
}

// byName groups neighbours, since a rule's cells follow each other.
func byName(rules []rule) [][]rule {
	var groups [][]rule
	for _, r := range rules {
		if n := len(groups); n > 0 && groups[n-1][0].Rule == r.Rule {
			groups[n-1] = append(groups[n-1], r)
			continue
		}
		groups = append(groups, []rule{r})
	}
	return groups
}

func (p *textPage) ruleLines(group []rule) {
	var holds, stress []rule
	for _, r := range group {
		switch {
		case !r.Judged:
			stress = append(stress, r)
		case r.State == gate.Holds:
			holds = append(holds, r)
		default:
			p.state(r.state(), ruleText(&r))
			if r.Because != "" {
				p.under("", "because: "+r.Because)
			}
		}
	}
	switch {
	case len(holds) == 1:
		p.state(gate.Holds, ruleText(&holds[0]))
	case len(holds) > 1:
		p.state(gate.Holds, fmt.Sprintf("%s: %s of %s, in %s", holds[0].Rule, holds[0].Require, holds[0].Metric, counted(len(holds), "cell")))
	}
	if len(stress) == 0 {
		return
	}
	count := map[string]int{}
	for _, r := range stress {
		count[r.State]++
	}
	text := ""
	for _, st := range []string{gate.Holds, gate.Broken, gate.Missing} {
		if count[st] > 0 {
			text += fmt.Sprintf(", %s in %s", st, counted(count[st], "cell"))
		}
	}
	p.state("reported", fmt.Sprintf("%s: %s of %s%s; not judged", stress[0].Rule, stress[0].Require, stress[0].Metric, text))
}

func ruleText(r *rule) string {
	s := fmt.Sprintf("%s%s: %s of %s", r.Rule, inCell(r.Cell), r.Require, r.Metric)
	if len(r.Values) > 0 {
		s += " (" + valuesText(r.Values) + ")"
	}
	if r.Missing != "" {
		s += ": " + r.Missing
	}
	return s
}
