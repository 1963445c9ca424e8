package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// judgeChecks merges what the checks said. For every trial, round and cell that
// a check covers there must be a result: one that is not there is unchecked.
// Results are taken in the order of the schedule, so that messages do not
// depend on the order in which cells ran.
func (r *Results) judgeChecks(run *ledger.Run, p *protocol.Protocol, schedule []trial.Round, planned, strays []*trial.Observation) check.Clearance {
	type place struct {
		check, scope, cell string
		round              int
		arm                string
	}
	results := []check.Result{r.completed(planned, strays)}
	seen := map[place]bool{}
	// What made a pass non-vacuous when it was judged is asked again: the
	// ledger may have been written by another program.
	judged := func(c check.Result) {
		if d := p.Check(c.Name); d != nil {
			c = c.Require(check.Requirement{Operations: d.Operations, Kinds: d.Kinds, Faults: d.Faults})
		}
		results = append(results, c)
	}
	for _, o := range slices.Concat(planned, strays) {
		for _, c := range o.Checks {
			if decl := p.Check(c.Name); decl == nil || decl.Scope != protocol.ScopeTrial {
				// An arm may report more than was declared; a failure counts anyway.
				if c.Verdict == check.Fail {
					results = append(results, c)
				}
				continue
			}
			seen[place{c.Name, protocol.ScopeTrial, o.Cell, o.Round, o.Arm}] = true
			judged(c)
		}
	}
	cells := map[string]protocol.Cell{}
	for _, c := range p.Cells() {
		cells[c.Name] = c
	}
	for _, j := range judgements(run, schedule) {
		seen[place{j.Result.Name, j.Scope, j.Cell, j.Round, ""}] = true
		judged(j.Result)
	}

	for i := range p.Checks {
		c := &p.Checks[i]
		need := func(cell string, round int, arm, format string, args ...any) {
			if !seen[place{c.Name, c.Scope, cell, round, arm}] {
				results = append(results, check.Result{Name: c.Name, Message: "not checked: " + fmt.Sprintf(format, args...)})
			}
		}
		if c.Scope == protocol.ScopeRun {
			need("", 0, "", "the run")
			continue
		}
		for _, round := range schedule {
			cell := cells[round.Cell]
			switch {
			case !c.Cells.Match(cell):
			case c.Scope == protocol.ScopeCell:
				if round.Round == cell.Warmup+cell.Rounds-1 {
					need(cell.Name, 0, "", "cell %s", cell.Name)
				}
			case c.Scope == protocol.ScopeRound:
				need(cell.Name, round.Round, "", "cell %s, round %d", cell.Name, round.Round)
			default:
				for _, s := range round.Slots {
					if c.Covers(s.Arm, cell) {
						need(cell.Name, round.Round, s.Arm, "cell %s, round %d, arm %s", cell.Name, round.Round, s.Arm)
					}
				}
			}
		}
	}
	required := []string{protocol.CompletedCheck}
	for _, c := range p.Checks {
		required = append(required, c.Name)
	}
	clearance, merged := check.Clear(required, results)
	r.Checks = append(merged, undeclared(required, results)...)
	r.Clear = clearance.Valid()
	return clearance
}

// undeclared are the failures under names that no check has, merged by name.
func undeclared(required []string, results []check.Result) []check.Result {
	failed := map[string]bool{}
	for _, res := range results {
		if res.Verdict == check.Fail && !slices.Contains(required, res.Name) {
			failed[res.Name] = true
		}
	}
	_, merged := check.Clear(slices.Sorted(maps.Keys(failed)), results)
	return merged
}

// completed judges the trials themselves: each that was planned ran, ran once,
// and ended well.
func (r *Results) completed(planned, strays []*trial.Observation) check.Result {
	res := check.Result{Name: protocol.CompletedCheck, Verdict: check.Pass, Operations: len(planned) + len(strays)}
	var why []string
	if len(planned) == 0 {
		res.Verdict, why = check.Unknown, append(why, "no trial ran")
	} else if len(r.Missing) > 0 {
		res.Verdict, why = check.Unchecked, append(why, "not every planned trial ran")
	}
	example := func(o *trial.Observation, what string) {
		if res.Verdict = check.Unknown; len(res.Examples) < 3 {
			res.Examples = append(res.Examples, fmt.Sprintf("arm %s, cell %s, %s", o.Arm, o.Cell, what))
		}
	}
	failed := false
	for _, o := range slices.Concat(planned, strays) {
		if o.Status != trial.StatusOK {
			failed = true
			example(o, explain(o))
		}
	}
	if failed {
		why = append(why, r.failedTrials())
	}
	for _, o := range strays {
		example(o, fmt.Sprintf("round %d: not in the schedule, or there already", o.Round))
	}
	if len(strays) > 0 {
		why = append(why, fmt.Sprintf("%d trials are in the ledger that the schedule does not have", len(strays)))
	}
	res.Message = strings.Join(why, "; ")
	return res
}

func (r *Results) failedTrials() string {
	s := ""
	for _, t := range r.Trials {
		bad := 0
		for st, n := range t.Status {
			if st != string(trial.StatusOK) {
				bad += n
			}
		}
		if bad > 0 {
			if s != "" {
				s += "; "
			}
			s += fmt.Sprintf("arm %s failed in %d of %d rounds of cell %s", t.Arm, bad, t.Planned, t.Cell)
		}
	}
	if s == "" {
		return "a trial that is not measured failed"
	}
	return s
}
