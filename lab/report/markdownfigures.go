package report

import (
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
)

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
