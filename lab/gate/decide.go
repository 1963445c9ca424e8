package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/protocol"
)

// Decide applies the frozen rule. It never fails: what cannot be judged ends in
// an outcome that is not go.
//
// Ahead of the protocol's own rule stand guards, in this order, which no
// protocol can change:
//
//	ABORT         no-go         a check failed
//	INCOMPLETE    inconclusive  not everything that was planned ran
//	UNCHECKED     invalid       a check is unknown or was never made
//	HOST-LIMITS   invalid       a host limit that blocks was broken
//	EXPLORATORY   inconclusive  the run was not a frozen experiment
//	MISSING-DATA  invalid       a figure that the decision needs does not exist
//	PROVISIONAL   inconclusive  a host limit that makes figures provisional was broken
//
// and behind it one more: VETOED (no-go), when the rule says go although a
// veto is broken. A failed check comes first because it is true however little
// ran. Whether a host made figures provisional is asked last, since it matters
// only for a rule that could otherwise have been applied.
//
// The decision needs every figure that the rule's conditions consult, up to the
// one that holds; for a go also an answer from every veto, and at least one
// figure that was measured.
func Decide(p *protocol.Protocol, r *analysis.Results) *Verdict {
	d := &decision{p: p, r: r, clear: cleared(p, r), v: &Verdict{Schema: SchemaVersion, Name: r.Name, Question: r.Question, Checks: r.Checks}}
	d.evaluateRules()
	would := d.guards()
	if d.v.Outcome == "" {
		d.end(would.name, would.class, would.why)
	}
	d.v.Exit = d.v.Class.ExitCode()
	d.notes()
	return d.v
}

// cleared says whether the results show a pass for every check of the protocol.
// It does not take their word for it.
func cleared(p *protocol.Protocol, r *analysis.Results) bool {
	required := []string{protocol.CompletedCheck}
	for _, c := range p.Checks {
		required = append(required, c.Name)
	}
	clearance, _ := check.Clear(required, r.Checks)
	return clearance.Valid() && r.Clear
}

type decision struct {
	p      *protocol.Protocol
	r      *analysis.Results
	clear  bool
	v      *Verdict
	values protocol.Named
	absent map[string]string // names without a value, and why
}

// branch is what the protocol's own rule says.
type branch struct {
	name    string
	class   Class
	why     string
	missing []string
}

func (d *decision) end(outcome string, class Class, why string) {
	if d.v.Outcome == "" {
		d.v.Outcome, d.v.Class, d.v.Why = outcome, class, why
	}
}

// guard records a step and ends the decision if it fired and nothing has yet.
func (d *decision) guard(outcome string, class Class, condition string, fired bool, why string) {
	step := Step{Outcome: outcome, Class: class, Condition: condition, Guard: true, Result: "false"}
	switch {
	case d.v.Outcome != "":
		step.Result = "not reached"
	case fired:
		step.Result = "true"
		step.Note = why
		d.end(outcome, class, why)
	}
	d.v.Trace = append(d.v.Trace, step)
}

func (d *decision) guards() branch {
	failed := d.checksWith(check.Fail)
	d.guard("ABORT", NoGo, "a check failed", len(failed) > 0, "A correctness check failed, so no figure counts: "+strings.Join(failed, "; "))
	d.guard("INCOMPLETE", Inconclusive, "not everything planned has run", !d.r.Complete,
		"The run is not complete: "+cutList(d.r.Missing, 3, "it has no end"))
	unchecked := append(d.checksWith(check.Unknown), d.checksWith(check.Unchecked)...)
	d.guard("UNCHECKED", Invalid, "a check is unknown or was never made", !d.clear,
		"Correctness was not established, so no figure counts: "+strings.Join(unchecked, "; "))
	d.guard("HOST-LIMITS", Invalid, "a blocking host limit was broken", d.limitBroken(protocol.ActionBlock), "The machine was not fit to measure: "+d.breaches(protocol.ActionBlock))

	// The rule itself is looked at even where the run is exploratory or
	// provisional, to say what it would have been.
	would := branch{}
	var steps []Step
	if d.v.Outcome == "" {
		would, steps = d.rule()
	}
	if d.v.Outcome == "" {
		d.v.Would = would.name
	}
	hint := ""
	if would.name != "" {
		hint = fmt.Sprintf(" The rule alone would have said %s (%s).", would.name, would.class)
	}
	d.guard("EXPLORATORY", Inconclusive, "the run is exploratory", len(d.r.Exploratory) > 0,
		"An exploratory run decides nothing: "+strings.Join(d.r.Exploratory, "; ")+"."+hint)
	d.guard("MISSING-DATA", Invalid, "a figure that the decision needs is missing", len(would.missing) > 0,
		"The decision needs figures that do not exist: "+strings.Join(would.missing, "; "))
	d.guard("PROVISIONAL", Inconclusive, "a host limit made figures provisional", d.limitBroken(protocol.ActionProvisional),
		"The machine was not quiet enough for its timings to count: "+d.breaches(protocol.ActionProvisional)+"."+hint)
	for i := range steps {
		// The step that lacks a figure is what MISSING-DATA stands on.
		if d.v.Outcome != "" && steps[i].Result != "missing" {
			steps[i].Note = "not reached; shown for information"
		}
	}
	d.v.Trace = append(d.v.Trace, steps...)
	if d.v.Outcome == "" {
		broken := namesOf(judged(d.v.Vetoes, Broken))
		d.guard("VETOED", NoGo, "the rule says go and a veto is broken", would.class == Go && len(broken) > 0,
			"The rule says "+would.name+", but a veto is broken: "+strings.Join(broken, ", "))
	}
	return would
}

func cutList(list []string, n int, empty string) string {
	if len(list) == 0 {
		return empty
	}
	if len(list) > n {
		return fmt.Sprintf("%s; and %d more", strings.Join(list[:n], "; "), len(list)-n)
	}
	return strings.Join(list, "; ")
}

func (d *decision) checksWith(v check.Verdict) []string {
	var out []string
	for _, c := range d.r.Checks {
		if c.Verdict != v {
			continue
		}
		s := fmt.Sprintf("%s is %s", c.Name, c.Verdict)
		if c.Message != "" {
			s += " (" + cut(c.Message, 200) + ")"
		}
		out = append(out, s)
	}
	return out
}

func cut(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

func (d *decision) limitBroken(action string) bool {
	return d.r.Host.Worst == action ||
		slices.ContainsFunc(d.r.Host.Breaches, func(b analysis.HostBreach) bool { return b.Action == action })
}

func (d *decision) breaches(action string) string {
	var out []string
	for _, b := range d.r.Host.Breaches {
		if b.Action == action {
			s := b.First
			if b.Times > 1 {
				s += fmt.Sprintf(" (%d times)", b.Times)
			}
			out = append(out, s)
		}
	}
	return strings.Join(out, "; ")
}

// rule evaluates the protocol's outcomes in order. A name that has no value
// makes the whole rule unevaluable from there on: it is neither true nor false.
func (d *decision) rule() (branch, []Step) {
	var b branch
	var steps []Step
	scope := d.p.OutcomeScope()
	for _, o := range d.p.Decision.Outcomes {
		step := Step{Outcome: o.Name, Class: Class(o.Class), Condition: o.When, Result: "not reached"}
		if b.name != "" || len(b.missing) > 0 {
			steps = append(steps, step)
			continue
		}
		if o.When == "" {
			step.Result = "true"
			b = d.fires(o, nil)
			steps = append(steps, step)
			continue
		}
		c, err := protocol.Compile(o.When, scope)
		if err != nil {
			b.missing = append(b.missing, fmt.Sprintf("outcome %s: %v", o.Name, err))
			step.Result = "missing"
			steps = append(steps, step)
			continue
		}
		step.Values = d.named(d.values, c.Names)
		ok, err := c.Eval(d.values)
		var miss *protocol.MissingError
		switch {
		case errors.As(err, &miss):
			step.Result = "missing"
			for _, n := range miss.Names {
				s := n
				if why := d.absent[n]; why != "" {
					s += " (" + why + ")"
				}
				b.missing = append(b.missing, s)
			}
		case err != nil:
			step.Result = "missing"
			b.missing = append(b.missing, err.Error())
		case ok:
			step.Result = "true"
			b = d.fires(o, c.Names)
		default:
			step.Result = "false"
		}
		steps = append(steps, step)
	}
	if b.name == "" && len(b.missing) == 0 {
		// Lint demands a default; a rule without one must not pass by silence.
		b.missing = []string{"no outcome of the rule applies"}
	}
	return b, steps
}

// fires is the branch of an outcome whose condition holds. A go needs more than
// that: see Decide.
func (d *decision) fires(o protocol.Outcome, names []string) branch {
	b := branch{name: o.Name, class: Class(o.Class), why: d.why(o)}
	if b.class != Go {
		return b
	}
	if !slices.ContainsFunc(names, d.measured) {
		b.missing = append(b.missing, fmt.Sprintf("outcome %s is go and its condition consults nothing that was measured", o.Name))
	}
	if len(judged(d.v.Vetoes, Broken)) == 0 {
		for _, v := range judged(d.v.Vetoes, Missing) {
			b.missing = append(b.missing, fmt.Sprintf("veto.%s (cell %s: %s)", v.Rule, v.Cell, v.Missing))
		}
	}
	return b
}

// measured says whether a name stands for something that the run has shown. A
// constant does not, nor does the absence of a veto, nor do all of no gates.
func (d *decision) measured(name string) bool {
	switch {
	case name == "primary.alpha", strings.HasPrefix(name, "veto."):
		return false
	case name == "gate.all":
		return slices.ContainsFunc(d.v.Gates, func(g RuleResult) bool { return g.Judged })
	}
	return true
}

func (d *decision) why(o protocol.Outcome) string {
	parts := []string{}
	if o.Say != "" {
		parts = append(parts, o.Say)
	}
	for _, list := range []struct {
		what  string
		rules []RuleResult
		state string
	}{
		{"Broken vetoes", d.v.Vetoes, Broken}, {"Broken gates", d.v.Gates, Broken},
		{"Vetoes without an answer", d.v.Vetoes, Missing}, {"Gates without an answer", d.v.Gates, Missing},
	} {
		if names := namesOf(judged(list.rules, list.state)); len(names) > 0 {
			parts = append(parts, list.what+": "+strings.Join(names, ", ")+".")
		}
	}
	if len(parts) == 0 {
		return "The rule's outcome is " + o.Name + "."
	}
	return strings.Join(parts, " ")
}

func (d *decision) notes() {
	add := func(format string, args ...any) {
		if s := fmt.Sprintf(format, args...); !slices.Contains(d.v.Notes, s) {
			d.v.Notes = append(d.v.Notes, s)
		}
	}
	for _, b := range d.r.Host.Breaches {
		if b.Action == protocol.ActionWarn {
			add("host: %s", b.First)
		}
	}
	if d.r.Primary == nil {
		return
	}
	for _, pc := range d.r.Primary.Cells {
		c := d.r.Cell(pc.Cell).Metric(d.r.Primary.Metric).Against(d.r.Primary.Treatment)
		if c == nil {
			continue
		}
		for _, n := range c.Notes {
			add("%s: %s", pc.Cell, n)
		}
		if c.Order != nil && float64(c.Order.P) < 0.01 {
			add("%s: which arm goes first in a round matters (p %.2g); the balanced order keeps it out of the comparison", pc.Cell, float64(c.Order.P))
		}
	}
}
