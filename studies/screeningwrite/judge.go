package screeningwrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

// The checks, as the protocols name them.
const (
	checkPersisted     = "persisted_decisions"
	checkTransactional = "transactional_parity"
	checkBefore        = "fold_before_drain"
	checkAfter         = "fold_after_drain"
	checkCauses        = "conflict_causes"
	checkLockstep      = "lockstep_counts"
	checkFault         = "through_" // and the fault
	checkBudget        = "command_budget"
)

// evidence is everything that the checks of a batch look at.
type evidence struct {
	b       *batch
	studies []screening.Study
	before  screening.Parity // as the batch left it; zero for source-only
	after   screening.Parity // fold: after the real worker has drained
	drain   drains           // after the window
	largest int
}

// examine gathers the evidence, outside of what is timed, and drains.
func (f *fixture) examine(ctx context.Context, b *batch) (*evidence, error) {
	e := &evidence{b: b}
	var err error
	if b.struck {
		if err := f.run.restore(ctx); err != nil {
			return nil, err
		}
	}
	if e.studies, err = f.reads(ctx); err != nil {
		return nil, err
	}
	if e.largest, err = f.largest(ctx, e.studies); err != nil { // with its pending entries
		return nil, err
	}
	if f.arm.mode != screening.ModeOff {
		if e.before, err = f.desk.Parity(ctx, f.project); err != nil {
			return nil, fmt.Errorf("parity after the batch: %w", err)
		}
	}
	if f.arm.path == screening.Fold {
		if e.drain.killed, err = f.killWorker(ctx); err != nil {
			return nil, err
		}
		begun := time.Now()
		d, err := f.worker.Drain(ctx, f.project)
		e.drain.took, e.drain.folded, e.drain.err = time.Since(begun), d.Entries, err
		e.drain.add(d)
		if e.after, err = f.desk.Parity(ctx, f.project); err != nil {
			return nil, fmt.Errorf("parity after the drain: %w", err)
		}
	}
	if e.studies, err = f.reads(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// results are the checks that the arm and the cell have.
func (e *evidence) results() []check.Result {
	f := e.b.f
	out := []check.Result{e.persisted(), e.causes()}
	switch f.arm.path {
	case screening.Transactional:
		out = append(out, e.transactional())
	case screening.Fold:
		out = append(out, e.beforeDrain(), e.afterDrain())
	}
	if f.cell.regime.lockstep && f.arm.path != screening.Transactional { // whose losers reload before the winner has committed
		out = append(out, e.lockstep())
	}
	if f.cell.regime.fault != "" {
		out = append(out, e.fault())
	}
	return out
}

// finding collects what is wrong.
type finding struct {
	check.Result
}

func find(name string, operations int) *finding {
	return &finding{check.Result{Name: name, Verdict: check.Pass, Operations: operations}}
}

func (f *finding) wrong(format string, args ...any) {
	f.Verdict = check.Fail
	const most, long = 5, 400
	s := fmt.Sprintf(format, args...)
	if f.Message == "" {
		f.Message = s[:min(len(s), long)]
	}
	if len(f.Examples) < most {
		f.Examples = append(f.Examples, s[:min(len(s), long)])
	}
}

// persisted: the decisions in the studies are those of the submissions that said
// saved, and each study's version counts exactly its saves and folds.
func (e *evidence) persisted() check.Result {
	f := e.b.f
	c := find(checkPersisted, len(e.b.submissions))
	found := map[place]bool{}
	spare := f.fences
	for _, s := range e.studies {
		for _, d := range s.Decisions {
			at := place{s.ID, d.Reviewer}
			if _, twice := found[at]; twice {
				c.wrong("%s has two decisions of %s", s.ID, d.Reviewer)
			}
			found[at] = d.Include
		}
		extra := s.Version - 1 - s.Folds - int64(f.saves[s.ID])
		if spare -= int(extra); extra < 0 || spare < 0 {
			c.wrong("%s has version %d with %d folds, %d submissions say that they saved it", s.ID, s.Version, s.Folds, f.saves[s.ID])
		}
	}
	open := map[place]bool{}
	for _, s := range e.b.submissions {
		if s.open {
			open[place{s.Study, s.Reviewer}] = true
		}
	}
	for at, include := range f.want {
		if got, there := found[at]; !open[at] && (!there || got != include) {
			c.wrong("%s of %s: saved as include=%v, found there=%v include=%v", at.reviewer, at.study, include, there, got)
		}
	}
	for at := range found {
		if _, wanted := f.want[at]; !wanted && !open[at] {
			c.wrong("%s has a decision of %s that no submission saved", at.study, at.reviewer)
		}
	}
	if len(open) > 0 && c.Verdict == check.Pass {
		c.Verdict, c.Message = check.Unknown, fmt.Sprintf("what became of %d submissions was never found out", len(open))
	}
	return c.Result
}

// counts are the decisions by what they say, the part of the statistics that this
// study counts by itself.
func (f *fixture) counts() (includes, excludes int64) {
	for _, include := range f.want {
		if include {
			includes++
		} else {
			excludes++
		}
	}
	return includes, excludes
}

// family compares what every check of statistics compares: the subject has no fault to
// tell, every family is served, its rows are the recount, and the recount is what this
// study has counted.
func (c *finding) family(f *fixture, p screening.Parity, rows func(screening.FamilyParity) tally.Rows, what string) {
	for _, fault := range p.Faults {
		c.wrong("%s: %s", what, fault)
	}
	if len(p.Families) != len(families) {
		c.wrong("%s: %d families are kept, %d were asked for", what, len(p.Families), len(families))
	}
	for name, fp := range p.Families {
		if fp.State != screening.Serving {
			c.wrong("%s: %s is %s", what, name, fp.State)
		}
		if !rows(fp).Equal(fp.Authoritative) {
			c.wrong("%s: %s: rows %v, authoritative %v", what, name, rows(fp), fp.Authoritative)
		}
	}
	includes, excludes := f.counts()
	row := p.Families[tally.ProjectScreening].Authoritative[tally.Scope{}]
	if row["includes"] != includes || row["excludes"] != excludes {
		c.wrong("%s: the recount has %d includes and %d excludes, submissions saved %d and %d", what, row["includes"], row["excludes"], includes, excludes)
	}
}

// clocks: everything that is folded or committed is in the clocks, and clients were
// told of it.
func (c *finding) clocks(p screening.Parity, what string) {
	k := p.Control
	if k.Source != k.Committed || k.Source != k.Client || p.Client != k.Client || p.Revisions != k.Source {
		c.wrong("%s: source %d, committed %d, client %d, slots %d, ledger %d; all must be the same", what, k.Source, k.Committed, k.Client, p.Client, p.Revisions)
	}
}

func stored(p screening.FamilyParity) tally.Rows   { return p.Stored }
func overlaid(p screening.FamilyParity) tally.Rows { return p.Overlaid }

// transactional: rows are the recount, with one receipt and one delta per save that
// moved something, and the clocks and the notification that go with it.
func (e *evidence) transactional() check.Result {
	f := e.b.f
	c := find(checkTransactional, len(e.b.submissions))
	c.family(f, e.before, stored, "after the batch")
	c.clocks(e.before, "after the batch")
	want := int64(f.entries)
	if e.before.Receipts != want || e.before.Operations != want || e.before.Revisions != want {
		c.wrong("%d receipts, %d operations in %d ledger lines for %d saves that move statistics", e.before.Receipts, e.before.Operations, e.before.Revisions, want)
	}
	if e.before.Pending != 0 {
		c.wrong("%d pending entries in a transactional project", e.before.Pending)
	}
	return c.Result
}

// beforeDrain: stored + pending is the recount, and there is one entry, pending or
// folded, per save that carries one.
func (e *evidence) beforeDrain() check.Result {
	f := e.b.f
	c := find(checkBefore, len(e.b.submissions))
	c.family(f, e.before, overlaid, "before the drain")
	if got := int64(e.before.Pending) + e.before.Receipts; got != int64(f.entries) {
		c.wrong("before the drain: %d entries pending and %d folded, saves carried %d", e.before.Pending, e.before.Receipts, f.entries)
	}
	batch := 0
	for _, s := range e.b.submissions {
		if s.moves {
			batch++
		}
		if s.saved && !s.resolved && s.out.Entries > 0 != s.moves {
			c.wrong("%s on %s: it says that it carried %d entries; that it moves statistics is %v", s.Reviewer, s.Study, s.out.Entries, s.moves)
		}
	}
	if pending := e.before.Pending + e.b.during.entries; !f.cell.regime.draining && pending != batch {
		c.wrong("before the drain: %d entries pending, the batch's saves carried %d", pending, batch)
	}
	return c.Result
}

// afterDrain: the stored rows alone are the recount, with one receipt per entry, and
// nothing is pending or quarantined.
func (e *evidence) afterDrain() check.Result {
	f := e.b.f
	c := find(checkAfter, len(e.b.submissions))
	if err := errors.Join(e.drain.err, e.b.during.err); err != nil && f.cell.regime.fault == "" {
		c.wrong("the worker failed: %v", err)
	}
	c.family(f, e.after, stored, "after the drain")
	c.clocks(e.after, "after the drain")
	want := int64(f.entries)
	if e.after.Receipts != want || e.after.Operations != want {
		c.wrong("after the drain: %d receipts and %d operations for %d entries", e.after.Receipts, e.after.Operations, want)
	}
	if e.after.Pending != 0 || e.after.Quarantine != 0 {
		c.wrong("after the drain: %d entries pending, %d quarantined", e.after.Pending, e.after.Quarantine)
	}
	return c.Result
}

// causes: what a conflict is said to have lost against must have been there. A save
// needs a save by somebody else of a later version than was loaded; a fold, a worker; the
// project's token, the policy; statistics, a protocol that writes them.
func (e *evidence) causes() check.Result {
	f := e.b.f
	c := find(checkCauses, len(e.b.submissions))
	for _, s := range e.b.submissions {
		for _, k := range s.out.Conflicts {
			possible := true
			switch k.Cause {
			case screening.StudySave: // resolving an unknown outcome moves a study too
				possible = f.cell.regime.fault != "" || slices.ContainsFunc(e.b.submissions, func(o *submission) bool {
					return o.Reviewer != s.Reviewer && o.saved && o.Study == k.Study && (o.out.Version > k.Version || o.out.Version == 0)
				})
			case screening.StudyFold:
				possible = f.arm.path == screening.Fold && f.cell.regime.draining
			case screening.ProjectToken:
				possible = f.cell.eligibility
			case screening.Statistics:
				possible = f.arm.path == screening.Transactional
			case screening.Interrupted:
				possible = f.cell.regime.fault != ""
			case screening.Unattributed:
				possible = f.arm.path == screening.Transactional || f.cell.eligibility || f.cell.regime.fault != ""
			case screening.ModeMoved:
				possible = false
			}
			if k.Free && k.Cause != screening.StudyFold {
				c.wrong("%s on %s was not charged for a conflict with %s, as only one with a fold is", s.Reviewer, s.Study, k.Cause)
			}
			if !possible {
				c.wrong("%s on %s lost against %s at version %d, which cannot be", s.Reviewer, s.Study, k.Cause, k.Version)
			}
		}
	}
	return c.Result
}

// lockstep: the counts of a batch are exact.
func (e *evidence) lockstep() check.Result {
	f := e.b.f
	c := find(checkLockstep, len(e.b.submissions))
	conflicts, exhausted := 0, 0
	for _, s := range e.b.submissions {
		conflicts += len(s.out.Conflicts)
		if errors.Is(s.err, screening.ErrExhausted) {
			exhausted++
		}
	}
	if k, x := lockstepCounts(f.cell.target, f.cell.reviewers); conflicts != k || exhausted != x {
		c.wrong("%d conflicts and %d exhausted submissions of %d reviewers, which must be %d and %d", conflicts, exhausted, f.cell.reviewers, k, x)
	}
	return c.Result
}

// fault: it struck, and submissions were saved after it.
func (e *evidence) fault() check.Result {
	c := find(checkFault+e.b.f.cell.regime.fault, len(e.b.submissions))
	if e.b.struck {
		c.Faults = map[string]int{e.b.f.cell.regime.fault: 1}
	}
	saved := 0
	for _, s := range e.b.submissions {
		if s.saved {
			saved++
		}
	}
	if saved == 0 {
		c.wrong("nothing was saved before the fault or after it")
	}
	return c.Result
}
