package report

import (
	"strings"

	"github.com/assaylab/assay/lab/gate"
)

// rule is a veto's or gate's answer in a cell.
type rule struct {
	kind string // veto or gate
	gate.RuleResult
}

func (s *Source) rules() []rule {
	var all []rule
	for _, r := range s.Verdict.Vetoes {
		all = append(all, rule{"veto", r})
	}
	for _, r := range s.Verdict.Gates {
		all = append(all, rule{"gate", r})
	}
	return all
}

// ruleKey names a rule in a cell.
type ruleKey struct{ kind, name, cell string }

// answers are the rules by name. What the verdict says nothing of is not there.
func (s *Source) answers() map[ruleKey]*rule {
	all := map[ruleKey]*rule{}
	for _, r := range s.rules() {
		all[ruleKey{r.kind, r.Rule, r.Cell}] = &r
	}
	return all
}

// valuesText are the figures that a condition consulted.
func valuesText(values []gate.Value) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = v.Name + " " + num(float64(v.Num))
		if v.Bool != nil {
			parts[i] = v.Name + " " + map[bool]string{true: "true", false: "false"}[*v.Bool]
		}
	}
	return strings.Join(parts, ", ")
}

// state is how a rule's answer is printed: what stops the eye is in capitals.
func (r *rule) state() string {
	if r.State == gate.Broken && r.Judged {
		return "BROKEN"
	}
	return r.State
}

// badness orders rules for a reader in a hurry, on the scale of a figure's.
func (r *rule) badness() int {
	switch {
	case !r.Judged || r.State == gate.Holds:
		return 0
	case r.State == gate.Broken:
		return 4
	}
	return 3
}
