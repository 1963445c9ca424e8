package screeningwrite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// strike has the fault of the cell happen while submissions run. What it returns waits
// for it, and says whether it happened.
func (f *fixture) strike(ctx context.Context) (wait func() (bool, error)) {
	fault := f.cell.regime.fault
	if fault == "" {
		return func() (bool, error) { return false, nil }
	}
	done := make(chan error, 1)
	go func() {
		timer := time.NewTimer(5 * time.Millisecond) // a few submissions in
		defer timer.Stop()
		select {
		case <-timer.C:
			done <- f.run.harm(ctx, fault)
		case <-ctx.Done():
			done <- ctx.Err()
		}
	}()
	return func() (bool, error) {
		err := <-done
		return err == nil, err
	}
}

func (r *run) harm(ctx context.Context, fault string) error {
	if r.set == nil {
		return errors.New("faults are for a set of the run's own")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	switch fault {
	case faultStepDown:
		return r.set.StepDown(ctx)
	case faultKill:
		p, err := r.set.AwaitPrimary(ctx)
		if err != nil {
			return err
		}
		r.killed = p
		return r.set.Kill(p)
	}
	return fmt.Errorf("no fault %q", fault)
}

// restore brings the set back to full strength after a fault, and the reviewers'
// connections to whoever leads it now.
func (r *run) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if r.killed >= 0 {
		if err := r.set.Restart(r.killed); err != nil {
			return err
		}
		r.killed = -1
	}
	if _, err := r.set.AwaitPrimary(ctx); err != nil {
		return err
	}
	if err := r.desk.Ping(ctx, readpref.Primary()); err != nil {
		return err
	}
	for _, c := range r.reviewers {
		if _, _, _, err := c.fill(ctx); err != nil {
			return err
		}
	}
	return nil
}
