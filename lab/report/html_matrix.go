package report

import (
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
)

// pageMatrix is every cell against every veto and gate.
type pageMatrix struct {
	Rules []pageRule
	Rows  []pageMatrixRow
	More  string
}

type pageRule struct {
	Kind, Name, Metric, Arm, Statistic, Require, Because string
}

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

func newPageMatrix(s *Source) *pageMatrix {
	p := s.Run.Protocol
	v := &pageMatrix{}
	answers := map[[3]string]rule{}
	for _, r := range s.rules() {
		answers[[3]string{r.kind, r.Rule, r.Cell}] = r
	}
	for _, list := range []struct {
		kind  string
		rules []protocol.Rule
	}{{"veto", p.Vetoes}, {"gate", p.Gates}} {
		for _, r := range list.rules {
			v.Rules = append(v.Rules, pageRule{list.kind, r.Name, r.Metric, r.Arm, r.Statistic, shorten(r.Require), shorten(r.Because)})
		}
	}
	if len(v.Rules) == 0 {
		return nil
	}
	cells := p.Cells()
	for i, c := range cells {
		if i*len(v.Rules) > 4*pageRows {
			v.More = leftOut(len(cells)-i, "cell")
			break
		}
		row := pageMatrixRow{Cell: c.Name, Stress: c.Class == protocol.ClassStress}
		for _, r := range v.Rules {
			row.Asked = append(row.Asked, newPageAnswer(answers[[3]string{r.Kind, r.Name, c.Name}]))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

func newPageAnswer(r rule) pageAnswer {
	a := pageAnswer{Word: r.State, Values: valuesText(r.Values), Why: shorten(r.RuleResult.Missing)}
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
