package protocol

import (
	"slices"
	"strings"
)

// Cell is one combination of factor levels.
type Cell struct {
	Name   string   // "size=16,keys=hot", or "all" where nothing is varied
	Levels []string // one per factor, in the order of the protocol's factors
	Rounds int      // measured rounds
	Warmup int      // rounds before them
	Class  string   // gated or stress
	Arms   []string // that run in it, in the order of the protocol

	factors []string
}

// NoFactors is the name of the only cell of a protocol that varies nothing.
const NoFactors = "all"

// Level is the cell's level of the factor, "" for an unknown factor.
func (c Cell) Level(factor string) string {
	if i := slices.Index(c.factors, factor); i >= 0 {
		return c.Levels[i]
	}
	return ""
}

// Runs says whether the arm runs in the cell.
func (c Cell) Runs(arm string) bool { return slices.Contains(c.Arms, arm) }

// Factors are the factor names, in the order of Levels.
func (c Cell) Factors() []string { return c.factors }

// Match says whether the cell is one that the selector names.
func (s Selector) Match(c Cell) bool {
	for factor, levels := range s {
		if !slices.Contains(levels, Scalar(c.Level(factor))) {
			return false
		}
	}
	return true
}

// Cells lists the cells that run, the last factor varying fastest.
func (p *Protocol) Cells() []Cell {
	cells := []Cell{{}}
	for _, f := range p.Factors {
		next := make([]Cell, 0, len(cells)*len(f.Levels))
		for _, c := range cells {
			for _, l := range f.Levels {
				next = append(next, Cell{
					Levels:  append(slices.Clip(c.Levels), string(l)),
					factors: append(slices.Clip(c.factors), f.Name),
				})
			}
		}
		cells = next
	}
	cells = slices.DeleteFunc(cells, func(c Cell) bool {
		return slices.ContainsFunc(p.Exclude, func(s Selector) bool { return s.Match(c) })
	})
	for i := range cells {
		c := &cells[i]
		c.Name = NoFactors
		if len(c.Levels) > 0 {
			parts := make([]string, len(c.Levels))
			for j, l := range c.Levels {
				parts[j] = c.factors[j] + "=" + l
			}
			c.Name = strings.Join(parts, ",")
		}
		c.Rounds, c.Warmup, c.Class = p.Design.Rounds, p.Design.Warmup, ClassGated
		var only []string // nil: all arms
		for _, o := range p.Overrides {
			if !o.Cells.Match(*c) {
				continue
			}
			if o.Rounds > 0 {
				c.Rounds = o.Rounds
			}
			if o.Warmup != nil {
				c.Warmup = *o.Warmup
			}
			if o.Class != "" {
				c.Class = o.Class
			}
			if len(o.Arms) > 0 {
				only = o.Arms
			}
		}
		for _, a := range p.Arms {
			if only == nil || slices.Contains(only, a.Name) {
				c.Arms = append(c.Arms, a.Name)
			}
		}
	}
	return cells
}

// combinations is how many cells there are before any is left out, counted
// only as far as to see that they are too many.
func (p *Protocol) combinations() int {
	n := 1
	for _, f := range p.Factors {
		n = min(n*max(len(f.Levels), 1), maxCells+1)
	}
	return n
}

// trials is how many trials all arms have in the cells.
func (p *Protocol) trials(cells []Cell) int {
	n := 0
	for _, c := range cells {
		n += (c.Rounds + c.Warmup) * len(c.Arms)
	}
	return n
}

// Cell returns the cell of that name.
func (p *Protocol) Cell(name string) (Cell, bool) {
	for _, c := range p.Cells() {
		if c.Name == name {
			return c, true
		}
	}
	return Cell{}, false
}

// PrimaryCells are the cells of the confirmatory family.
func (p *Protocol) PrimaryCells() []Cell {
	return slices.DeleteFunc(p.Cells(), func(c Cell) bool {
		return c.Class == ClassStress || !p.Primary.Cells.Match(c)
	})
}

// RuleCells are the cells that a gate or veto is evaluated in. A stress cell
// is among them: it is reported there, and Judged says that it does not count.
func (p *Protocol) RuleCells(r *Rule) []Cell {
	return slices.DeleteFunc(p.Cells(), func(c Cell) bool { return !r.Cells.Match(c) })
}

// Judged says whether the rule's answer in the cell counts.
func (r *Rule) Judged(c Cell) bool { return r.Class != ClassStress && c.Class != ClassStress }
