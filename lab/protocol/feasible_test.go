package protocol

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// A plan that cannot work is refused with the reason and what to do; the same
// plan may run where it decides nothing.
func TestInfeasible(t *testing.T) {
	three := "factors:\n  - {name: size, levels: [1, 16]}"
	for _, c := range []struct {
		name  string
		edits []string
		want  []string // one part of each reason, in order
	}{
		{"feasible", nil, nil},
		{"three rounds", []string{"rounds: 20", "rounds: 3"}, nil},
		{"two rounds", []string{"rounds: 20", "rounds: 2"}, []string{"cell size=16: 2 rounds give no usable estimate of variation; use at least 3, better 10 or more"}},
		{"two rounds, welch", []string{"rounds: 20", "rounds: 2", "metric: wall, cells: {size: 16}}", "metric: wall, cells: {size: 16}, test: welch}"}, []string{"2 rounds give no usable estimate"}},
		{"too few rounds by an override", []string{three, three + "\noverrides: [{cells: {size: 16}, rounds: 1}]"}, []string{"cell size=16: 1 rounds give no usable"}},
		{"too few rounds elsewhere", []string{three, three + "\noverrides: [{cells: {size: 1}, rounds: 1}]"}, nil},

		{"mann-whitney", []string{"rounds: 20", "rounds: 4", "cells: {size: 16}}", "cells: {size: 16}, test: mann-whitney}"}, nil},
		{"mann-whitney, n too small", []string{"rounds: 20", "rounds: 3", "cells: {size: 16}}", "cells: {size: 16}, test: mann-whitney}"},
			[]string{"with 3 rounds per arm the smallest p that Mann-Whitney can reach is 0.1, above 0.05; use at least 4 rounds"}},
		{"mann-whitney, family of two", []string{"rounds: 20", "rounds: 4", "primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, test: mann-whitney}"},
			[]string{"cell size=1: with 4 rounds per arm the smallest p that Mann-Whitney can reach is 0.0286, above 0.025 (alpha 0.05 over a family of 2 cells); use at least 5 rounds, or name fewer primary cells", "cell size=16: with 4 rounds"}},
		{"mann-whitney, small alpha", []string{"rounds: 20", "rounds: 9", "cells: {size: 16}}", "cells: {size: 16}, test: mann-whitney, alpha: 0.00001}"},
			[]string{"4.11e-05, above 1e-05; use at least 11 rounds"}},

		{"floor in reach", []string{"cells: {size: 16}}", "cells: {size: 16}, floor: {d: 0.8}}"}, nil},
		{"floor d out of reach", []string{"cells: {size: 16}}", "cells: {size: 16}, floor: {d: 0.5}}"},
			[]string{"with 20 rounds an effect of exactly the floor would be missed more often than found (power 0.34 at alpha 0.05); use at least 32 rounds"}},
		{"floor dz out of reach", []string{"cells: {size: 16}}", "cells: {size: 16}, floor: {dz: 0.4}}"}, []string{"power 0.40 at alpha 0.05); use at least 26 rounds"}},
		{"floor d out of reach for welch", []string{"cells: {size: 16}}", "cells: {size: 16}, test: welch, floor: {d: 0.5}}"}, []string{"power 0.34"}},
		{"floor out of any reach", []string{"cells: {size: 16}}", "cells: {size: 16}, floor: {d: 0.000001}}"}, []string{"no number of rounds that can run finds it: raise the floor"}},
		{"floor beyond the most rounds", []string{"cells: {size: 16}}", "cells: {size: 16}, floor: {dz: 0.001}}"}, []string{"no number of rounds that can run finds it"}},
		{"floor, family of two", []string{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, floor: {dz: 0.5}}"},
			[]string{"cell size=1: with 20 rounds an effect of exactly the floor", "at alpha 0.025 (alpha 0.05 over a family of 2 cells)"}},
		{"a relative floor needs a pilot", []string{"cells: {size: 16}}", "cells: {size: 16}, floor: {change: 0.001}}"}, nil},

		{"no checks", []string{"checks:\n  - {name: same, scope: trial, shell: ./check}\n", ""}, []string{"an outcome is go, but nothing checks that the arms do their work correctly: add a check, or make no outcome go"}},
		{"no checks and no go", []string{"checks:\n  - {name: same, scope: trial, shell: ./check}\n", "", "name: SHIP, class: go", "name: SHIP, class: inconclusive"}, nil},
		{"the preset has go outcomes", []string{"checks:\n  - {name: same, scope: trial, shell: ./check}\n", "", ownRule, "decision: {preset: four-branch}"}, []string{"an outcome is go, but nothing checks"}},
		{"primary cell unchecked", []string{"shell: ./check", "shell: ./check, cells: {size: 1}"}, []string{`cell size=16: no check covers arm "old" there, so go could be reached with that arm unchecked`, `arm "new" there`}},
		{"treatment unchecked", []string{"shell: ./check", "shell: ./check, arms: [old]"}, []string{`cell size=1: no check covers arm "new"`, `cell size=16: no check covers arm "new"`}},
		{"reference unchecked", []string{"shell: ./check", "shell: ./check, arms: [new]"}, []string{`cell size=1: no check covers arm "old"`, `cell size=16: no check covers arm "old"`}},
		{"gate's cell unchecked", []string{"shell: ./check", "shell: ./check, cells: {size: 16}"}, []string{`cell size=1: no check covers arm "old"`, `cell size=1: no check covers arm "new"`}},
		{"each arm has its check", []string{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, shell: ./check, arms: [old]}\n  - {name: same2, scope: trial, shell: ./check, arms: [new]}"}, nil},
		{"a run check covers all", []string{"scope: trial, shell", "scope: run, shell"}, nil},
		{"gate's arm unchecked", []string{"{name: new, shell: ./new}", "{name: new, shell: ./new}\n  - {name: third, shell: ./third}", "shell: ./check", "shell: ./check, arms: [old, new]", "metric: wall, cells: {size: 1}", "metric: wall, arm: third, cells: {size: 1}"},
			[]string{`cell size=1: no check covers arm "third"`}},
		{"unjudged arm unchecked", []string{"{name: new, shell: ./new}", "{name: new, shell: ./new}\n  - {name: third, shell: ./third}", "shell: ./check", "shell: ./check, arms: [old, new]"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := base
			for i := 0; i < len(c.edits); i += 2 {
				if strings.Count(src, c.edits[i]) != 1 {
					t.Fatalf("%q stands %d times", c.edits[i], strings.Count(src, c.edits[i]))
				}
				src = strings.Replace(src, c.edits[i], c.edits[i+1], 1)
			}
			// The base's veto would widen what must be checked.
			src = strings.Replace(src, "require: ratio <= 1.2", "require: ratio <= 1.2, cells: {size: 16}", 1)
			p := parse(t, src)
			why := p.Infeasible()
			if len(why) < len(c.want) || len(c.want) == 0 && len(why) > 0 {
				t.Fatalf("reasons: %q", why)
			}
			for i, want := range c.want {
				if !strings.Contains(why[i], want) && !slices.ContainsFunc(why, func(w string) bool { return strings.Contains(w, want) }) {
					t.Errorf("reason %d is %q; want %q", i, why[i], want)
				}
			}
			_, err := Freeze(p, Evidence{})
			var infeasible *InfeasibleError
			if got := errors.As(err, &infeasible); got != (len(c.want) > 0) || got && !slices.Equal(infeasible.Reasons, why) {
				t.Errorf("freeze: %v", err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "the plan cannot work:\n  - ") {
				t.Error(err)
			}
			if lock, err := Freeze(p, Evidence{Exploratory: "a first look"}); err != nil || lock.Exploratory != "a first look" {
				t.Errorf("exploratory: %v", err)
			}
		})
	}
}

// Lint catches these in a file; what narrows a protocol afterwards does not go
// through lint.
func TestInfeasibleAfterNarrowing(t *testing.T) {
	p := parse(t, base)
	p.Checks[0].Arms = []string{"gone"}
	if why := strings.Join(p.Infeasible(), "\n"); !strings.Contains(why, `check "same" matches no trial that runs`) {
		t.Error(why)
	}
	p = parse(t, base)
	p.Exclude = []Selector{{"size": {"16"}}}
	if why := strings.Join(p.Infeasible(), "\n"); !strings.Contains(why, "no cell is left for the primary comparison") {
		t.Error(why)
	}
	p = parse(t, base)
	p.Primary = nil
	if _, err := Freeze(p, Evidence{}); err == nil || !strings.Contains(err.Error(), "there is no primary comparison") {
		t.Error(err)
	}
}

func TestCovers(t *testing.T) {
	p := &Protocol{Factors: factors("size=1,16")}
	cells := p.Cells()
	for _, c := range []struct {
		check Check
		arm   string
		cell  Cell
		want  bool
	}{
		{Check{}, "new", cells[0], true},
		{Check{Arms: []string{"old"}}, "new", cells[0], false},
		{Check{Arms: []string{"old", "new"}}, "new", cells[0], true},
		{Check{Cells: Selector{"size": {"16"}}}, "new", cells[0], false},
		{Check{Cells: Selector{"size": {"16"}}}, "new", cells[1], true},
		{Check{Arms: []string{"old"}, Cells: Selector{"size": {"16"}}}, "old", cells[1], true},
		{Check{Arms: []string{"old"}, Cells: Selector{"size": {"16"}}}, "old", cells[0], false},
	} {
		if got := c.check.Covers(c.arm, c.cell); got != c.want {
			t.Errorf("%+v covers %s in %s: %v", c.check, c.arm, c.cell.Name, got)
		}
	}
}
