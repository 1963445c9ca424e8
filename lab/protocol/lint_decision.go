package protocol

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ReservedOutcomes are decided before a protocol's own rule is looked at.
var ReservedOutcomes = []string{"ABORT", "UNCHECKED", "INCOMPLETE", "MISSING-DATA", "HOST-LIMITS", "PROVISIONAL", "EXPLORATORY", "VETOED"}

func (r *reader) lintRules(p *Protocol, kind, list string, rules []Rule) {
	r.unique(list, kind, len(rules), func(i int) string { return rules[i].Name })
	for i := range rules {
		g, at := &rules[i], fmt.Sprintf("%s[%d]", list, i)
		if g.Name != "" && !ident.MatchString(g.Name) || g.Name == "any" || g.Name == "all" {
			r.badName(at+".name", "%q is not a rule name; use at most 64 lower-case letters, digits, underscores, and neither any nor all", cut(g.Name, 40))
		}
		r.metricName(p, at+".metric", g.Metric)
		if r.given(at + ".arm") { // the default is the primary's, and looked at there
			r.armName(p, at+".arm", g.Arm)
			if len(p.Arms) > 0 && g.Arm == p.Arms[0].Name {
				r.bad(at+".arm", "%q is the reference itself", g.Arm)
			}
		}
		r.selector(p, at+".cells", g.Cells)
		if m := p.Metric(g.Metric); m != nil && m.Source != "" && g.Statistic == StatPooled && m.Source != SourceSamples {
			r.bad(at+".statistic", "only samples can be pooled; %q reads %s", m.Name, m.Source)
		}
		cells := r.selected(g.Cells)
		judged := slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return !g.Judged(c) })
		if r.cellsKnown && g.Class != ClassStress && len(cells) > 0 && len(judged) == 0 {
			r.bad(at, "%s %q is judged nowhere: all the cells it selects are stress cells; make it class: stress, or select others", kind, g.Name)
		}
		for _, c := range judged {
			if p.Arm(g.Arm) != nil && !c.Runs(g.Arm) {
				r.bad(at+".arm", "%q does not run in cell %s, which the %s judges", g.Arm, c.Name, kind)
				break
			}
		}
		if g.Require != "" && !r.broken[at+".statistic"] {
			s := search{scope: RuleScope(g.Statistic), fixed: map[string]float64{}}
			if n, same := sameRounds(cells); same && r.roundsKnown(p) {
				s.fixed["n"] = n
			}
			r.condition(at+".require", g.Require, s)
		}
	}
}

// sameRounds is the number of rounds that all of the cells have.
func sameRounds(cells []Cell) (float64, bool) {
	if len(cells) == 0 {
		return 0, false
	}
	n := cells[0].Rounds
	return float64(n), !slices.ContainsFunc(cells, func(c Cell) bool { return c.Rounds != n })
}

// condition compiles a condition and looks for one that decides nothing. It
// returns nil after a fault.
func (r *reader) condition(at, src string, s search) *Condition {
	c, err := Compile(src, s.scope)
	if err != nil {
		var ce *ConditionError
		if !errors.As(err, &ce) {
			ce = &ConditionError{Message: err.Error()}
		}
		if !r.undefined(ce.unknown) {
			r.insideCondition(at, src, ce)
		}
		return nil
	}
	switch canHold, canFail := s.answers(c); {
	case !canFail:
		r.bad(at, "holds whatever is measured, so that it decides nothing")
		return nil
	case !canHold:
		r.bad(at, "never holds, whatever is measured")
		return nil
	}
	return c
}

// undefined says whether a name may be one that a broken list would define.
func (r *reader) undefined(name string) bool {
	of, _, _ := strings.Cut(name, ".")
	list := map[string]string{"veto": "vetoes", "gate": "gates", "effect": "metrics"}[of]
	return list != "" && !r.complete(list)
}

// insideCondition puts the caret on the fault where the condition stands
// plainly on its line, and on the condition otherwise.
func (r *reader) insideCondition(at, src string, ce *ConditionError) {
	if r.broken[at] {
		return
	}
	where := r.at(at)
	if where.line <= len(r.lines) {
		line := []rune(r.lines[where.line-1])
		for _, quote := range []string{"", `"`, "'"} {
			if rest := string(line[min(where.column-1, len(line)):]); strings.HasPrefix(rest, quote+src) {
				where.column += len(quote) + ce.Offset
				break
			}
		}
	}
	r.fault(where, at, "%s", ce.Message)
}

func (r *reader) lintDecision(p *Protocol) {
	d := &p.Decision
	switch {
	case !r.given("decision") || !r.sound("decision", "preset", "outcomes"):
		return
	case r.given("decision.preset") && r.given("decision.outcomes"):
		r.bad("decision", "give a preset or outcomes, not both")
		return
	case d.Preset == "" && len(d.Outcomes) == 0:
		r.bad("decision", "no rule; give preset: four-branch, or a list of outcomes")
		return
	}
	if d.Caveat != "" && d.Preset == "" {
		r.bad("decision.caveat", "only the preset four-branch has a caveat")
	}
	s := search{scope: p.OutcomeScope(), fixed: map[string]float64{}}
	cells := r.primaryCells(p)
	if p.Primary != nil {
		s.fixed["primary.alpha"] = p.Primary.Alpha
	}
	if n, same := sameRounds(cells); same && r.roundsKnown(p) {
		s.fixed["primary.n"] = n
		for _, m := range p.Metrics {
			s.fixed["effect."+m.Name+".n"] = n
		}
	}
	if d.Preset == "" {
		r.lintOutcomes(p, s)
		return
	}
	if d.Caveat == "" {
		return
	}
	c := r.condition("decision.caveat", d.Caveat, s)
	if c == nil {
		return
	}
	r.oneCell(cells, "decision.caveat", c)
	r.emptyNames(p, "decision.caveat", c)
	var conditions []*Condition
	for _, o := range d.Outcomes[:len(d.Outcomes)-1] {
		c, err := Compile(o.When, s.scope)
		if err != nil {
			r.bad("decision.caveat", "cannot stand in the preset: %v", err)
			return
		}
		conditions = append(conditions, c)
	}
	if _, found := s.goOnNothing(d.Outcomes, conditions); found {
		r.bad("decision.caveat", onNothing)
	}
}

const onNothing = "go would be reached with nothing shown: the primary comparison not significant, and no gate holding; let it depend on primary.significant, on primary.diff_low or diff_high, or on a gate"

func (r *reader) lintOutcomes(p *Protocol, s search) {
	d := &p.Decision
	cells := r.primaryCells(p)
	consulted := map[string]bool{}
	var conditions []*Condition
	r.unique("decision.outcomes", "outcome", len(d.Outcomes), func(i int) string { return d.Outcomes[i].Name })
	for i := range d.Outcomes {
		o, at := &d.Outcomes[i], fmt.Sprintf("decision.outcomes[%d]", i)
		if o.Name != "" && !label.MatchString(o.Name) {
			r.bad(at+".name", "%q is not an outcome's name; use at most 64 letters, digits, dots, dashes, underscores", cut(o.Name, 40))
		}
		if slices.ContainsFunc(ReservedOutcomes, func(s string) bool { return strings.EqualFold(s, o.Name) }) {
			r.bad(at+".name", "%q is an outcome that assay itself decides; choose another name", o.Name)
		}
		if i == len(d.Outcomes)-1 {
			if o.When != "" {
				r.bad(at+".when", "the last outcome is the default and has no condition; add one after it")
			}
			if o.Class == "go" && r.sound(at, "when") {
				r.bad(at+".class", "the last outcome is the default and may not be go: what no condition recognises is not a success")
			}
			continue
		}
		if o.When == "" {
			if r.sound(at, "when") {
				r.bad(at, "outcome %q has no condition; only the last may have none", o.Name)
			}
			continue
		}
		c := r.condition(at+".when", o.When, s)
		if c == nil {
			continue
		}
		conditions = append(conditions, c)
		for _, n := range c.Names {
			consulted[n] = true
		}
		r.oneCell(cells, at+".when", c)
		r.emptyNames(p, at+".when", c)
		if o.Class == "go" && !slices.ContainsFunc(c.Names, func(n string) bool { return strings.HasPrefix(n, "primary.") || strings.HasPrefix(n, "gate.") }) {
			r.bad(at+".when", "a go outcome must consult the primary comparison or a gate")
		}
	}
	// Only a rule whose every condition could be read is looked at as a whole.
	if len(conditions) != len(d.Outcomes)-1 {
		return
	}
	if i, found := s.goOnNothing(d.Outcomes, conditions); found {
		r.bad(fmt.Sprintf("decision.outcomes[%d].when", i), onNothing)
		return
	}
	reached, matters, known := s.effects(conditions)
	for i := range conditions {
		if known && !reached[i] {
			r.bad(fmt.Sprintf("decision.outcomes[%d].when", i), "outcome %q is never reached: wherever it holds, one above it holds too; put it first", d.Outcomes[i].Name)
			known = false // what depends on it is a consequence
		}
	}
	for i, g := range p.Gates {
		at := fmt.Sprintf("gates[%d].name", i)
		switch {
		case g.Class == ClassStress:
		case !consulted["gate."+g.Name] && !consulted["gate.all"]:
			r.bad(at, "no outcome consults gate %q; use gate.%s or gate.all, or make it class: stress", g.Name, g.Name)
		case known && !matters["gate."+g.Name] && !matters["gate.all"]:
			r.bad(at, "gate %q changes no outcome, although one names it", g.Name)
		}
	}
}

// oneCell refuses effect names where they would have several values.
func (r *reader) oneCell(cells []Cell, at string, c *Condition) {
	if len(cells) <= 1 {
		return
	}
	for _, n := range c.Names {
		if strings.HasPrefix(n, "effect.") {
			r.bad(at, "%s is defined only where the primary comparison has one cell; it has %d: use a gate", n, len(cells))
			return
		}
	}
}

// emptyNames refuses names that stand for no judged rule: gate.all of no gates
// is true, and veto.any of no vetoes is false, whatever is measured.
func (r *reader) emptyNames(p *Protocol, at string, c *Condition) {
	for _, kind := range []struct {
		name, sum, list string
		rules           []Rule
	}{{"gate", "all", "gates", p.Gates}, {"veto", "any", "vetoes", p.Vetoes}} {
		judged := func(g Rule) bool { return g.Class != ClassStress }
		for _, n := range c.Names {
			rule, ok := strings.CutPrefix(n, kind.name+".")
			i := slices.IndexFunc(kind.rules, func(g Rule) bool { return g.Name == rule })
			switch {
			case !ok:
			case rule == kind.sum && !slices.ContainsFunc(kind.rules, judged) && r.complete(kind.list):
				r.bad(at, "%s consults nothing: the protocol has no %s that is judged", n, kind.name)
			case i >= 0 && !judged(kind.rules[i]):
				r.bad(at, "%s is class: stress, which is reported and never judged", n)
			}
		}
	}
}
