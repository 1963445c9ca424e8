package flow

import (
	"context"
	"fmt"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

func (r *runner) judgeTrial(ctx context.Context, o *trial.Observation, slot trial.Slot, cell protocol.Cell) []check.Result {
	var results []check.Result
	taken := map[string]bool{} // reported checks that a judgement has taken in
	for i := range r.p.Checks {
		c := &r.p.Checks[i]
		if c.Scope != protocol.ScopeTrial || !c.Covers(slot.Arm, cell) {
			continue
		}
		if o.Status != trial.StatusOK {
			results = append(results, check.Result{Name: c.Name, Verdict: check.Unknown, Message: "the trial ended with status " + string(o.Status)})
			continue
		}
		results = append(results, r.exec.Judge(ctx, c, trial.Judging{Cell: cell, Round: slot.Round, Observations: []*trial.Observation{o}}))
		taken[c.Name] = c.Reported
	}
	// What else the arm reported stays with it. Of a check that the protocol
	// declares only a failure counts there: a pass that the arm was not asked
	// for, or that came before it failed, must not stand for a judgement.
	for _, c := range o.Checks {
		if !taken[c.Name] && (r.p.Check(c.Name) == nil || c.Verdict == check.Fail) {
			results = append(results, c)
		}
	}
	return results
}

func (r *runner) judgeScope(ctx context.Context, scope string, cell protocol.Cell, round int, obs []*trial.Observation) error {
	for i := range r.p.Checks {
		c := &r.p.Checks[i]
		if c.Scope != scope || scope != protocol.ScopeRun && !c.Cells.Match(cell) || r.judged[judgeKey{c.Name, scope, cell.Name, round}] {
			continue
		}
		var res check.Result
		if gone := r.gone(obs); gone != "" {
			res = check.Result{Name: c.Name, Verdict: check.Unknown, Message: fmt.Sprintf("what the trial of arm %s left went with the scratch folder when the run was stopped", gone)}
		} else {
			res = r.exec.Judge(ctx, c, trial.Judging{Cell: cell, Round: round, Observations: obs})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.append(ledger.Record{Kind: ledger.KindCheck, Check: &ledger.Judgement{Scope: scope, Cell: cell.Name, Round: round, Result: res}}); err != nil {
			return err
		}
	}
	return nil
}

// gone names an arm whose latest trial left something that is not there any
// more, "" if there is none: a judge that finds an empty folder may call that
// sound.
func (r *runner) gone(obs []*trial.Observation) string {
	if r.lost {
		for _, o := range obs {
			if !r.fresh[o.Arm] {
				return o.Arm
			}
		}
	}
	return ""
}

func (r *runner) allObservations() []*trial.Observation {
	var all []*trial.Observation
	for _, c := range r.p.Cells() {
		all = append(all, r.byCell[c.Name]...)
	}
	return all
}
