package flow

import (
	"fmt"
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
}

// Empty says whether nothing is left out.
func (n Narrowing) Empty() bool {
	return n.Rounds == 0 && n.Warmup < 0 && len(n.Arms) == 0 && len(n.Cells) == 0
}

// Apply changes the plan's protocol and returns why the run is exploratory.
func (n Narrowing) Apply(plan *Plan) (reason string, err error) {
	p := plan.Protocol
	var said []string
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
	return "not the frozen plan: " + strings.Join(said, ", "), nil
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
	return nil
}

func (n Narrowing) keepCells(p *protocol.Protocol) error {
	var names []string
	for _, c := range p.Cells() {
		names = append(names, c.Name)
		if slices.Contains(n.Cells, c.Name) {
			continue
		}
		out := protocol.Selector{}
		for i, f := range c.Factors() {
			out[f] = protocol.Levels{protocol.Scalar(c.Levels[i])}
		}
		p.Exclude = append(p.Exclude, out)
	}
	for _, c := range n.Cells {
		if !slices.Contains(names, c) {
			return fmt.Errorf("the protocol has no cell %q; it has: %s", c, strings.Join(names, " "))
		}
	}
	if len(p.PrimaryCells()) == 0 {
		p.Primary.Cells = nil
		for i := range p.Overrides {
			p.Overrides[i].Class = ""
		}
	}
	return nil
}
