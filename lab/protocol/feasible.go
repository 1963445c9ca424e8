package protocol

import (
	"fmt"
	"slices"

	"github.com/assaylab/assay/lab/stats"
)

// leastPower is the power at the floor below which a plan is refused: a coin
// finds as much.
const leastPower = 0.5

// Infeasible lists why the plan cannot end in what its rule promises. Freeze
// refuses such a plan: a comparison that cannot reach its own alpha would
// spend the machine's time on a foregone conclusion.
func (p *Protocol) Infeasible() []string {
	var why []string
	refuse := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }

	if p.Primary == nil {
		return []string{"there is no primary comparison"}
	}
	all, cells := p.Cells(), p.PrimaryCells()
	m := len(cells)
	if m == 0 {
		refuse("no cell is left for the primary comparison")
	}
	alpha := p.Primary.Alpha / float64(max(m, 1))
	family := ""
	if m > 1 {
		family = fmt.Sprintf(" (alpha %v over a family of %d cells)", p.Primary.Alpha, m)
	}
	for _, c := range cells {
		n := c.Rounds
		switch p.Primary.Test {
		case TestMannWhitney:
			if least := stats.MannWhitneyMinP(n, n); least > alpha {
				refuse("cell %s: with %d rounds per arm the smallest p that Mann-Whitney can reach is %.3g, above %.3g%s; use at least %d rounds%s",
					c.Name, n, least, alpha, family, roundsForMannWhitney(alpha), fewerCells(m))
			}
		default:
			if n < 3 {
				refuse("cell %s: %d rounds give no usable estimate of variation; use at least 3, better 10 or more", c.Name, n)
				continue
			}
			if pw, need, ok := p.powerAtFloor(n, alpha); ok && !(pw >= leastPower) {
				use := fmt.Sprintf("use at least %d rounds%s", need, fewerCells(m))
				if need == 0 || need > maxRounds {
					use = "no number of rounds that can run finds it: raise the floor"
				}
				refuse("cell %s: with %d rounds an effect of exactly the floor would be missed more often than found (power %.2f at alpha %.3g%s); %s",
					c.Name, n, pw, alpha, family, use)
			}
		}
	}

	goes := slices.ContainsFunc(p.Decision.Outcomes, func(o Outcome) bool { return o.Class == "go" })
	if goes && len(p.Checks) == 0 {
		refuse("an outcome is go, but nothing checks that the arms do their work correctly: add a check, or make no outcome go")
	}
	for _, c := range p.Checks {
		if !p.everRuns(&c, all) {
			refuse("check %q matches no trial that runs: it would stay unchecked, and go would be out of reach", c.Name)
		}
	}
	if goes && len(p.Checks) > 0 {
		for _, cell := range all {
			for _, arm := range p.decidesOn(cell) {
				if !slices.ContainsFunc(p.Checks, func(c Check) bool { return c.Covers(arm, cell) }) {
					refuse("cell %s: no check covers arm %q there, so go could be reached with that arm unchecked", cell.Name, arm)
				}
			}
		}
	}
	return why
}

// decidesOn are the arms whose figures in the cell the decision looks at.
func (p *Protocol) decidesOn(c Cell) []string {
	arms := []string{}
	add := func(arm string) {
		for _, a := range []string{p.Reference(), arm} {
			if !slices.Contains(arms, a) {
				arms = append(arms, a)
			}
		}
	}
	if c.Class != ClassStress && p.Primary.Cells.Match(c) {
		add(p.Primary.Treatment)
	}
	for _, rules := range [][]Rule{p.Gates, p.Vetoes} {
		for _, r := range rules {
			if r.Judged(c) && r.Cells.Match(c) {
				add(r.Arm)
			}
		}
	}
	return arms
}

func fewerCells(m int) string {
	if m > 1 {
		return ", or name fewer primary cells"
	}
	return ""
}

func roundsForMannWhitney(alpha float64) int {
	n := 2
	for stats.MannWhitneyMinP(n, n) > alpha && n < 1000 {
		n++
	}
	return n
}

// powerAtFloor is the power against an effect of exactly the floor, and the
// rounds that would do, 0 where none would; ok is false where the floor is a
// relative change, whose power needs a pilot.
func (p *Protocol) powerAtFloor(n int, alpha float64) (power float64, need int, ok bool) {
	f := p.Primary.Floor
	switch {
	case f.Dz > 0 && p.Primary.Test == TestPaired:
		power = stats.PowerPaired(f.Dz, n, alpha)
		need, _ = stats.RoundsForPaired(f.Dz, leastPower, alpha)
	case f.D > 0:
		// For the paired test this is its power where the rounds share no
		// noise, which is the worst that a non-negative correlation allows.
		power = stats.PowerWelch(f.D, n, alpha)
		need, _ = stats.RoundsForWelch(f.D, leastPower, alpha)
	default:
		return 0, 0, false
	}
	return power, need, true
}

// Covers says whether the check judges the arm in the cell.
func (c *Check) Covers(arm string, cell Cell) bool {
	return c.Cells.Match(cell) && (len(c.Arms) == 0 || slices.Contains(c.Arms, arm))
}

func (p *Protocol) everRuns(c *Check, cells []Cell) bool {
	for _, cell := range cells {
		if slices.ContainsFunc(cell.Arms, func(a string) bool { return c.Covers(a, cell) }) {
			return true
		}
	}
	return false
}
