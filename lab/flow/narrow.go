package flow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/protocol"
)

// Narrowing runs less than a protocol plans. Whatever it leaves out was chosen
// after the protocol was written, so that the run is exploratory.
type Narrowing struct {
	Rounds int      // measured rounds per cell; 0 keeps the protocol's
	Warmup int      // warm-up rounds per cell; negative keeps the protocol's
	Arms   []string // arms kept beside the reference; none keeps all
	Cells  []string // cells kept, by name; none keeps all

	Settings map[string]string // other values than the protocol's
}

// Empty says whether nothing is left out.
func (n Narrowing) Empty() bool {
	return n.Rounds == 0 && n.Warmup < 0 && len(n.Arms) == 0 && len(n.Cells) == 0 && len(n.Settings) == 0
}

// Apply changes the plan's protocol and returns why the run is exploratory: ""
// where nothing was changed but where a built-in study is carried out.
func (n Narrowing) Apply(plan *Plan) (reason string, err error) {
	p := plan.Protocol
	var said []string
	settings, err := n.set(plan)
	if err != nil {
		return "", err
	}
	said = append(said, settings...)
	if n.Rounds > 0 {
		p.Design.Rounds = n.Rounds
		for i := range p.Overrides {
			p.Overrides[i].Rounds = 0
		}
		said = append(said, fmt.Sprintf("rounds set to %d", n.Rounds))
	}
	if n.Warmup >= 0 {
		p.Design.Warmup = n.Warmup
		for i := range p.Overrides {
			p.Overrides[i].Warmup = nil
		}
		said = append(said, fmt.Sprintf("warm-up set to %d", n.Warmup))
	}
	if len(n.Arms) > 0 {
		if err := n.keepArms(p); err != nil {
			return "", err
		}
		said = append(said, "only arms "+strings.Join(n.Arms, ", "))
	}
	if len(n.Cells) > 0 {
		if err := n.keepCells(p); err != nil {
			return "", err
		}
		said = append(said, "only cells "+strings.Join(n.Cells, " "))
	}
	if left := plan.skip(); len(left) > 0 {
		said = append(said, "without cells "+strings.Join(left, " "))
	}
	if len(p.Cells()) == 0 {
		return "", errors.New("nothing would run: every cell is left out")
	}
	if len(said) == 0 {
		return "", nil
	}
	return "not the frozen plan: " + strings.Join(said, ", "), nil
}

// set gives settings their values and says which of them change the plan.
func (n Narrowing) set(plan *Plan) (said []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(n.Settings)) {
		s := plan.Protocol.Setting(name)
		if s == nil {
			return nil, fmt.Errorf("the protocol has no setting %q", name)
		}
		v := n.Settings[name]
		if strings.ContainsAny(v, "\x00\r\n") {
			return nil, fmt.Errorf("setting %s: a value is one line of text", name)
		}
		// The lock beside a file holds the file's own value.
		if v != s.Value && (s.Effect != protocol.EffectPlace || plan.Path != "") {
			said = append(said, fmt.Sprintf("%s set to %q", name, v))
		}
		s.Value = v
	}
	return said, nil
}

// skip leaves out the cells that the study cannot run with the settings, and
// names them.
func (p *Plan) skip() []string {
	if p.Study == nil || p.Study.Skip == nil {
		return nil
	}
	told := p.Protocol.Told()
	var keep, left []string
	for _, c := range p.Protocol.Cells() {
		if p.Study.Skip(told, c) {
			left = append(left, c.Name)
		} else {
			keep = append(keep, c.Name)
		}
	}
	if len(left) > 0 && len(keep) > 0 {
		leaveOut(p.Protocol, keep)
	}
	if len(keep) == 0 {
		p.Protocol.Exclude = append(p.Protocol.Exclude, protocol.Selector{})
	}
	return left
}

func (n Narrowing) keepArms(p *protocol.Protocol) error {
	for _, a := range n.Arms {
		if p.Arm(a) == nil {
			return fmt.Errorf("the protocol has no arm %q", a)
		}
	}
	gone := func(arm string) bool { return arm != p.Reference() && !slices.Contains(n.Arms, arm) }
	ref := p.Reference()
	p.Arms = slices.DeleteFunc(p.Arms, func(a protocol.Arm) bool { return a.Name != ref && !slices.Contains(n.Arms, a.Name) })
	if len(p.Arms) < 2 {
		return fmt.Errorf("only the reference %q would be left; name another arm", ref)
	}
	if gone(p.Primary.Treatment) {
		p.Primary.Treatment = p.Arms[1].Name
	}
	keep := func(rules []protocol.Rule) []protocol.Rule {
		return slices.DeleteFunc(rules, func(r protocol.Rule) bool { return gone(r.Arm) })
	}
	p.Vetoes, p.Gates = keep(p.Vetoes), keep(p.Gates)
	// A check that names only arms that are gone must go too: with no name
	// left it would mean all arms.
	p.Checks = slices.DeleteFunc(p.Checks, func(c protocol.Check) bool {
		return len(c.Arms) > 0 && !slices.ContainsFunc(c.Arms, func(a string) bool { return !gone(a) })
	})
	for i := range p.Checks {
		p.Checks[i].Arms = slices.DeleteFunc(p.Checks[i].Arms, gone)
	}
	for i := range p.Overrides {
		p.Overrides[i].Arms = slices.DeleteFunc(p.Overrides[i].Arms, gone)
	}
	// A cell where only the reference would run has nothing to compare.
	var cells []string
	for _, c := range p.Cells() {
		if len(c.Arms) > 1 {
			cells = append(cells, c.Name)
		}
	}
	if len(cells) == 0 {
		return fmt.Errorf("no cell would be left in which two arms run; name another arm beside %s", strings.Join(n.Arms, ", "))
	}
	leaveOut(p, cells)
	return nil
}

func (n Narrowing) keepCells(p *protocol.Protocol) error {
	var names []string
	for _, c := range p.Cells() {
		names = append(names, c.Name)
	}
	for _, c := range n.Cells {
		if !slices.Contains(names, c) {
			return fmt.Errorf("the protocol has no cell %q; it has: %s", c, strings.Join(names, " "))
		}
	}
	leaveOut(p, n.Cells)
	return nil
}

// leaveOut excludes every cell but those to keep. Where those that the primary
// is about are gone, it is about what is left.
func leaveOut(p *protocol.Protocol, keep []string) {
	for _, c := range p.Cells() {
		if slices.Contains(keep, c.Name) {
			continue
		}
		out := protocol.Selector{}
		for i, f := range c.Factors() {
			out[f] = protocol.Levels{protocol.Scalar(c.Levels[i])}
		}
		p.Exclude = append(p.Exclude, out)
	}
	if len(p.PrimaryCells()) == 0 {
		p.Primary.Cells = nil
		for i := range p.Overrides {
			p.Overrides[i].Class = ""
		}
	}
	dropIdleChecks(p)
}

// dropIdleChecks takes out the checks that no cell is left for: nobody can make them,
// and a run that leaves cells out is incomplete, not one whose correctness was not
// established. A check that an outcome consults stays.
func dropIdleChecks(p *protocol.Protocol) {
	cells := p.Cells()
	p.Checks = slices.DeleteFunc(p.Checks, func(c protocol.Check) bool {
		consulted := slices.ContainsFunc(p.Decision.Outcomes, func(o protocol.Outcome) bool { return strings.Contains(o.When, "check."+c.Name) })
		return c.Scope != protocol.ScopeRun && !consulted && !slices.ContainsFunc(cells, c.Cells.Match)
	})
}
