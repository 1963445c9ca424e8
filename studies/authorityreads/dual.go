package authorityreads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/assaylab/assay/authority"
	"github.com/assaylab/assay/lab/check"
)

// dual is what a trial with two primaries saw.
type dual struct {
	before, after bool // the old primary believed it was one, before and after the arm's read
	revoked       int64
	record        authority.Record // the old primary's answer to the arm
	err           error            // or its refusal
	took          time.Duration
}

// dualPrimary cuts the primary off from its peers only, makes another member primary,
// revokes a role there, and then asks the old one.
func (e *experiment) dualPrimary(ctx context.Context) error {
	if err := e.run.release(); err != nil {
		return err
	}
	s, err := e.run.fresh(ctx, e.plan, e.plan.elections(e.scenario))
	if err != nil {
		return err
	}
	defer e.tearDown(s)
	ctx, cancel := context.WithTimeout(ctx, 2*startTimeout)
	defer cancel()
	old, err := s.embedded.AwaitPrimary(ctx)
	if err != nil {
		return err
	}
	heir := (old + 1) % members

	ofOld, ofHeir := s.embedded.MemberURI(old), s.embedded.MemberURI(heir)
	whole, wholeClient, err := e.reader(s.uri)
	if err != nil {
		return err
	}
	defer disconnect(wholeClient)
	toOld, oldClient, err := e.reader(ofOld)
	if err != nil {
		return err
	}
	defer disconnect(oldClient)
	probe, err := connect(ofOld, nil)
	if err != nil {
		return err
	}
	defer disconnect(probe)
	toHeir, err := connect(ofHeir, nil)
	if err != nil {
		return err
	}
	defer disconnect(toHeir)
	hot, err := s.seed(ctx, peopleOf(probe), plan{people: 1, hot: 1})
	if err != nil {
		return err
	}
	id := hot[0]
	for _, src := range []authority.Source{whole, toOld} {
		if rec, err := src.Read(ctx, id); err != nil || !rec.Has(role) {
			return fmt.Errorf("before the fault: %+v, %w", rec, err)
		}
	}

	if err := s.embedded.Partition([]int{old}, []int{heir, (old + 2) % members}); err != nil {
		return err
	}
	cut := time.Now()
	if err := s.embedded.StepUp(ctx, heir); err != nil {
		return fmt.Errorf("member %d did not become primary: %w", heir, err)
	}
	var d dual
	if d.revoked, err = e.revoke(ctx, peopleOf(toHeir), id); err != nil {
		return err
	}
	acknowledged := time.Since(cut)
	// An error here is a no: the iteration is then not conclusive.
	d.before, _ = believes(ctx, probe)
	start := time.Now()
	d.record, d.err = toOld.Read(ctx, id)
	d.took = time.Since(start)
	local, localErr := newWeak(peopleOf(probe), e.plan.shape(), readconcern.Local()).Read(ctx, id)
	d.after, _ = believes(ctx, probe)

	start = time.Now()
	rec, err := whole.Read(ctx, id)
	viaSet := time.Since(start)
	e.Record("old_primary_ms", ms(d.took))
	e.Record("stale_on_old", flag(d.stale()))
	e.Record("via_set_ms", ms(viaSet))
	e.memory(s)
	e.Note("revoked at +%.2f s as revision %d; the old primary believed before %v, after %v; it answered revision %d, %v in %.1f ms, local revision %d, %v; through the set revision %d, %v in %.0f ms",
		acknowledged.Seconds(), d.revoked, d.before, d.after, d.record.Revision, d.err, ms(d.took), local.Revision, localErr, rec.Revision, err, ms(viaSet))
	if e.arm.strong {
		e.Report(d.judge())
		e.Report(d.bounded(e.plan.deadline))
	}
	return nil
}

// revoke takes the role away and gives the revision at which it is gone, whatever
// comes in between.
func (e *experiment) revoke(ctx context.Context, coll *mongo.Collection, id authority.ID) (int64, error) {
	w, err := authority.NewWriter(coll, e.plan.shape())
	if err != nil {
		return 0, err
	}
	r, err := authority.NewReader(coll, e.plan.shape())
	if err != nil {
		return 0, err
	}
	for {
		rec, err := r.Read(ctx, id)
		if err == nil && !rec.Has(role) {
			return rec.Revision, nil // acknowledged: a linearizable read shows it
		}
		if err == nil {
			if o, _ := w.Revoke(ctx, id, role, rec.Revision); o == authority.Applied {
				return rec.Revision + 1, nil
			}
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("the new primary did not acknowledge the revocation: %w", errors.Join(err, ctx.Err()))
		}
	}
}

// stale says whether the old primary vouched for the revoked role.
func (d dual) stale() bool { return d.err == nil && d.record.Revision < d.revoked }

// conclusive says whether there were two primaries when the old one was asked.
func (d dual) conclusive() bool { return d.before }

func (d dual) judge() check.Result {
	res := check.Result{Name: checkDual, Operations: 1, Faults: map[string]int{}}
	if d.conclusive() {
		res.Faults[kindDual] = 1
	}
	switch reason := authority.ReasonOf(d.err); {
	case d.stale():
		res.Verdict = check.Fail
		res.Message = fmt.Sprintf("the old primary answered revision %d after revision %d, without the role, had been acknowledged", d.record.Revision, d.revoked)
	case !d.conclusive():
		res.Verdict, res.Message = check.Unknown, "the old primary no longer believed that it was one when it was asked"
	case d.err == nil:
		res.Verdict, res.Message = check.Unknown, fmt.Sprintf("the old primary answered revision %d: it was not cut off", d.record.Revision)
	case reason != authority.Deadline && reason != authority.NotPrimary && reason != authority.NoMajority:
		res.Verdict, res.Message = check.Unknown, fmt.Sprintf("neither the server nor the deadline refused the read: %v", d.err)
	default:
		res.Verdict, res.Message = check.Pass, fmt.Sprintf("refused as %s after %.0f ms", reason, ms(d.took))
	}
	return res
}

func (d dual) bounded(deadline time.Duration) check.Result {
	return bounded([]read{{end: d.took, reason: authority.ReasonOf(d.err)}}, 0, deadline)
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
