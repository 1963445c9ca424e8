package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
)

// pageMatrix is what the vetoes and gates require and what they found: each of them
// with its answer, and every cell against all of them where that says more.
type pageMatrix struct {
	Rules    []pageRule
	CellHead string
	Rows     []pageMatrixRow
	Rest     string // cells in which nothing is asked
	More     string
}

type pageRule struct {
	Kind, Name, Metric, Unit, Arm, Statistic, Require, Because string

	Sign, Word, Style string
	Common            string // what the cells in which it was asked have in common
	Found             []pageFound
	More              string
}

// pageFound is what a rule found in one cell.
type pageFound struct{ Cell, Values string }

type pageMatrixRow struct {
	Cell   string
	Stress bool
	Asked  []pageAnswer
}

// pageAnswer is one rule in one cell; the zero pageAnswer was not asked.
type pageAnswer struct {
	Sign, Word string
	Style      string
	Values     string
	Why        string // there is no answer
}

// ruleList is the vetoes or the gates, with what they found.
type ruleList struct {
	kind, plural string
	rules        []protocol.Rule
	answers      []gate.RuleResult
}

func ruleLists(s *Source) []ruleList {
	p, v := s.Run.Protocol, s.Verdict
	return []ruleList{{"veto", "Vetoes", p.Vetoes, v.Vetoes}, {"gate", "Gates", p.Gates, v.Gates}}
}

// ruleAnswers are the answers of one rule, those that count first.
type ruleAnswers struct {
	judged, broken, missing int // of the cells that count
	reported                int // cells that do not
	common                  string
	found                   []pageFound
	states                  map[string]int // of the cells that do not count
}

func newRuleAnswers(s *Source, r *protocol.Rule, all []gate.RuleResult, names *cellNames) ruleAnswers {
	v := ruleAnswers{states: map[string]int{}}
	mine := slices.DeleteFunc(slices.Clone(all), func(a gate.RuleResult) bool { return a.Rule != r.Name })
	// What stops a reader comes first.
	slices.SortStableFunc(mine, func(a, b gate.RuleResult) int {
		return (&rule{RuleResult: b}).badness() - (&rule{RuleResult: a}).badness()
	})
	var cells []string
	for _, a := range mine {
		cells = append(cells, a.Cell)
	}
	of, common := names.among(cells)
	v.common = common
	for _, a := range mine {
		if !a.Judged {
			v.reported++
			v.states[a.State]++
		} else {
			v.judged++
			switch a.State {
			case gate.Broken:
				v.broken++
			case gate.Holds:
			default:
				v.missing++
			}
		}
		if a.State != gate.Holds || len(mine) <= fewFound {
			f := pageFound{Values: cmp.Or(ruleValues(s, &a), shorten(a.Missing))}
			if a.Cell != protocol.NoFactors {
				f.Cell = of(a.Cell)
			}
			v.found = append(v.found, f)
		}
	}
	return v
}

// fewFound is up to how many cells of a rule are named even where it holds.
const fewFound = 3

// mostFound is how many cells of one rule are named beside it.
const mostFound = 8

// words fills in what the rule says all in all.
func (a *ruleAnswers) words(r *pageRule) {
	some := func(n, of int) string {
		if of == 1 {
			return ""
		}
		if n == of {
			return fmt.Sprintf(" in all %d cells", of)
		}
		return fmt.Sprintf(" in %d of %d cells", n, of)
	}
	switch {
	case a.broken > 0:
		r.Sign, r.Style, r.Word = "✕", "bad", gate.Broken+some(a.broken, a.judged)
	case a.missing > 0:
		r.Sign, r.Style, r.Word = "?", "unsure", gate.Missing+some(a.missing, a.judged)
	case a.judged > 0:
		r.Sign, r.Style, r.Word = "✓", "good", gate.Holds+some(a.judged, a.judged)
	case a.reported > 0:
		state := gate.Holds
		for _, s := range []string{gate.Missing, gate.Broken} {
			if a.states[s] > 0 {
				state = s
			}
		}
		r.Style, r.Word = "unjudged", state+some(a.states[state], a.reported)+", not judged"
		r.Sign = map[string]string{gate.Holds: "✓", gate.Broken: "✕"}[state]
		r.Sign = cmp.Or(r.Sign, "?")
	default:
		r.Style, r.Word = "unjudged", "asked nowhere"
	}
	if a.judged > 0 && a.reported > 0 {
		r.Word += fmt.Sprintf(", and reported in %d more", a.reported)
	}
	if r.Found = a.found[:min(len(a.found), mostFound)]; len(r.Found) > 0 {
		r.Common = a.common
	}
	if n := len(a.found) - mostFound; n > 0 {
		r.More = "and " + counted(n, "more cell")
	}
}

func newPageMatrix(s *Source, names *cellNames) *pageMatrix {
	v := &pageMatrix{CellHead: names.head}
	for _, list := range ruleLists(s) {
		for i := range list.rules {
			r := &list.rules[i]
			row := pageRule{Kind: list.kind, Name: r.Name, Metric: r.Metric, Unit: unitOf(s, r.Metric), Arm: r.Arm, Statistic: r.Statistic, Require: shorten(r.Require), Because: shorten(r.Because)}
			a := newRuleAnswers(s, r, list.answers, names)
			a.words(&row)
			v.Rules = append(v.Rules, row)
		}
	}
	if len(v.Rules) == 0 {
		return nil
	}
	v.cells(s, names)
	return v
}

// cells puts every cell against all rules. Where no rule is asked in more than one
// cell, the list of rules has said all of it.
func (v *pageMatrix) cells(s *Source, names *cellNames) {
	answers, times := map[ruleKey]rule{}, map[[2]string]int{}
	most := 0
	for _, r := range s.rules() {
		answers[ruleKey{r.kind, r.Rule, r.Cell}] = r
		at := [2]string{r.kind, r.Rule}
		times[at]++
		most = max(most, times[at])
	}
	if most < 2 {
		return
	}
	cells := s.Run.Protocol.Cells()
	silent := 0
	for i, c := range cells {
		if len(v.Rows)*len(v.Rules) > 4*pageRows {
			v.More = leftOut(len(cells)-i, "cell")
			break
		}
		row := pageMatrixRow{Cell: names.of(c.Name), Stress: c.Class == protocol.ClassStress}
		asked := false
		for _, r := range v.Rules {
			a := newPageAnswer(s, answers[ruleKey{r.Kind, r.Name, c.Name}])
			asked = asked || a.Word != ""
			row.Asked = append(row.Asked, a)
		}
		if !asked {
			silent++
			continue
		}
		v.Rows = append(v.Rows, row)
	}
	if silent > 0 {
		v.Rest = "No rule is asked in " + counted(silent, "more cell") + "."
	}
}

func newPageAnswer(s *Source, r rule) pageAnswer {
	a := pageAnswer{Word: r.State, Values: ruleValues(s, &r.RuleResult), Why: shorten(r.RuleResult.Missing)}
	switch r.State {
	case "":
		return pageAnswer{}
	case gate.Holds:
		a.Sign, a.Style = "✓", "good"
	case gate.Broken:
		a.Sign, a.Style = "✕", "bad"
	default:
		a.Sign, a.Style = "?", "unsure"
	}
	if !r.Judged {
		a.Style = "unjudged"
		a.Word += ", not judged"
	}
	return a
}

// ruleValues are the figures that a rule's condition consulted; those of its metric
// have the metric's unit.
func ruleValues(s *Source, r *gate.RuleResult) string {
	unit := unitOf(s, r.Metric)
	parts := make([]string, len(r.Values))
	for i, v := range r.Values {
		switch v.Name {
		case "ref", "treat", "diff", "diff_low", "diff_high":
			parts[i] = v.Name + " " + withUnit(float64(v.Num), unit)
		default:
			parts[i] = valuesText(r.Values[i : i+1])
		}
	}
	return strings.Join(parts, ", ")
}

func unitOf(s *Source, metric string) string {
	if m := s.Run.Protocol.Metric(metric); m != nil {
		return m.Unit
	}
	return ""
}
