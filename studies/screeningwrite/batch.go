package screeningwrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/assaylab/assay/lab/trial"
	"github.com/assaylab/assay/screening"
)

// submission is one call of Save and all that came of it.
type submission struct {
	screening.Decision
	out      screening.Outcome
	err      error
	took     time.Duration // loads, writes and retries; not what settles an unknown outcome
	attempts []time.Duration
	commands []int // per attempt; nil where they are not counted
	resolved bool  // it was unknown, and then found out
	saved    bool
	moves    bool // it was saved and changes what the statistics count
	open     bool // it is not known, and never will be, whether it was saved
}

// batch is what all reviewers of a cell submitted, released together.
type batch struct {
	f           *fixture
	submissions []*submission
	window      time.Duration
	seen        counted
	during      drains // of the worker while the window was open
	struck      bool   // a fault did
	sync        time.Duration
}

// saveTimeout bounds a submission, so that one which hangs is a failed one.
const saveTimeout = 30 * time.Second

// batch submits, timed, and settles what stayed unknown.
func (f *fixture) batch(ctx context.Context, t *trial.T) (*batch, error) {
	b := &batch{f: f}
	work := f.work(t.Seed)
	f.batches++
	var err error
	if b.sync, err = syncOnce(t.Scratch); err != nil {
		return nil, err
	}
	var lock *barrier
	if f.cell.regime.lockstep {
		lock = newBarrier(len(work))
	}
	db := f.crowd.client.Database(f.run.database)
	release := make(chan struct{})
	each := make([][]*submission, len(work))
	var ready, all sync.WaitGroup
	for i, list := range work {
		ready.Add(1)
		all.Go(func() {
			ready.Done()
			<-release
			if lock != nil {
				defer lock.leave()
			}
			for _, d := range list {
				s := f.submit(ctx, db, d, lock)
				each[i] = append(each[i], s)
				if s.open {
					return // what it submitted next might overtake this one
				}
			}
		})
	}
	ready.Wait()
	stop := func() drains { return drains{} }
	if f.cell.regime.draining && f.arm.path == screening.Fold {
		stop = f.meanwhile(ctx)
	}
	struck := f.strike(ctx)
	begun := time.Now()
	t.Begin()
	f.crowd.meter.start()
	close(release)
	all.Wait()
	b.seen = f.crowd.meter.stop()
	t.End()
	b.window = time.Since(begun)
	b.during = stop()
	b.struck, err = struck()
	b.submissions = slices.Concat(each...)
	return b, err
}

// submit is one request: it owns its store.
func (f *fixture) submit(ctx context.Context, db *mongo.Database, d screening.Decision, lock *barrier) *submission {
	s := &submission{Decision: d}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	counting := f.run.plan.counting && f.cell.reviewers == 1
	var begun time.Time
	commands := 0
	hooks := screening.Hooks{
		Begin: func(screening.Attempt) {
			if begun = time.Now(); counting {
				commands = f.crowd.meter.total()
			}
		},
		End: func(screening.Attempt, error) {
			s.attempts = append(s.attempts, time.Since(begun))
			if counting {
				s.commands = append(s.commands, f.crowd.meter.total()-commands)
			}
		},
	}
	if lock != nil {
		hooks.Loaded = func(ctx context.Context, _ screening.Attempt) error { return lock.wait(ctx) }
	}
	start := time.Now()
	store, err := screening.Open(ctx, db, screening.Options{Eligibility: f.cell.eligibility, Hooks: hooks, Defect: f.arm.defect})
	if err != nil {
		s.err = err
		return s
	}
	s.out, s.err = store.Save(ctx, f.arm.path, d)
	s.took = time.Since(start)
	s.saved = s.err == nil
	var unknown *screening.UnknownError
	if errors.As(s.err, &unknown) {
		s.saved, s.open = f.find(ctx, store, unknown.Ticket)
		s.resolved = !s.open
		s.out.Version = 0 // it was not told
	}
	return s
}

// find asks until it is known what became of a write, as a caller would.
func (f *fixture) find(ctx context.Context, store *screening.Store, k screening.Ticket) (saved, open bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	for {
		saved, err := store.Resolve(ctx, k)
		if err == nil {
			return saved, false
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, true
		case <-timer.C:
		}
	}
}

// settle takes over into what must be there what the batch has saved, and attributes
// the conflicts that no reload did.
func (f *fixture) settle(ctx context.Context, b *batch) error {
	for _, s := range b.submissions {
		for i, k := range s.out.Conflicts {
			cause, err := f.worker.Attribute(ctx, k)
			if err != nil {
				return fmt.Errorf("attribute a conflict: %w", err)
			}
			s.out.Conflicts[i].Cause = cause
		}
		if s.resolved || s.out.Resolved {
			f.fences++
		}
		if !s.saved {
			continue
		}
		at := place{s.Study, s.Reviewer}
		old, decided := f.want[at]
		s.moves = f.arm.mode != screening.ModeOff && (!decided || old != s.Include)
		if s.moves {
			f.entries++
		}
		f.want[at] = s.Include
		f.saves[s.Study]++
	}
	return nil
}

// unexpected are the failures that contention does not explain.
func (b *batch) unexpected() []string {
	var out []string
	for _, s := range b.submissions {
		if s.err != nil && !errors.Is(s.err, screening.ErrExhausted) {
			out = append(out, fmt.Sprintf("%s on %s: %v", s.Reviewer, s.Study, s.err))
		}
	}
	return out
}
