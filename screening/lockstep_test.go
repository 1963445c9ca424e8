package screening_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/assaylab/assay/screening"
)

// lockstep lets nobody write before all that are still in it have loaded.
type lockstep struct {
	mu      sync.Mutex
	members int
	arrived int
	open    chan struct{}
}

func (l *lockstep) release() {
	if l.arrived == l.members {
		l.arrived = 0
		close(l.open)
		l.open = make(chan struct{})
	}
}

func (l *lockstep) loaded(ctx context.Context, _ screening.Attempt) error {
	l.mu.Lock()
	gate := l.open
	l.arrived++
	l.release()
	l.mu.Unlock()
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lockstep) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members--
	l.release()
}

// TestLockstepCounts: of n reviewers that have loaded the same version, one saves per
// round, and there are three rounds.
func TestLockstepCounts(t *testing.T) {
	for path, mode := range map[screening.SavePath]screening.Mode{screening.SourceOnly: screening.ModeOff, screening.Fold: screening.ModeFold} {
		f := begin(t)
		if mode != screening.ModeOff {
			f.mode(mode)
		}
		for _, guarded := range []bool{false, true} {
			for _, c := range []struct {
				reviewers, conflicts, exhausted int
				different                       bool
			}{{1, 0, 0, false}, {2, 1, 0, false}, {5, 9, 2, false}, {10, 24, 7, false}, {10, 0, 0, true}} {
				for batch := range 2 {
					l := &lockstep{members: c.reviewers, open: make(chan struct{})}
					outs := make([]screening.Outcome, c.reviewers)
					errs := make([]error, c.reviewers)
					ctx := within(t)
					var wg sync.WaitGroup
					for r := range c.reviewers {
						s := f.open(screening.Options{Hooks: screening.Hooks{Loaded: l.loaded}})
						d := decision("s0", fmt.Sprint("r", r), batch == 0)
						if d.Guarded = guarded; c.different {
							d.Study = fmt.Sprint("s", r)
						}
						wg.Go(func() {
							defer l.leave()
							outs[r], errs[r] = s.Save(ctx, path, d)
						})
					}
					wg.Wait()
					conflicts, exhausted := 0, 0
					for r, err := range errs {
						conflicts += len(outs[r].Conflicts)
						if errors.Is(err, screening.ErrExhausted) {
							exhausted++
						} else if err != nil {
							t.Fatal(err)
						}
						for i, k := range outs[r].Conflicts {
							last := path == screening.SourceOnly && !guarded && i == 2
							if k.Cause != screening.StudySave && !(last && k.Cause == screening.Unattributed) {
								t.Errorf("%v: conflict %d is %v", path, i, k.Cause)
							}
						}
					}
					if conflicts != c.conflicts || exhausted != c.exhausted {
						t.Errorf("%v, guarded %v, %d reviewers, different studies %v: %d conflicts and %d exhausted, want %d and %d",
							path, guarded, c.reviewers, c.different, conflicts, exhausted, c.conflicts, c.exhausted)
					}
				}
			}
		}
		f.drain()
		f.parity()
	}
}
