package screening_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

// TestADuplicateIsToldOfWhatLasts takes back what the load of a resubmission has seen,
// as a fail-over does with a write that the primary alone has. The set here never does
// that by itself, so the study is put back by hand between the load and the read
// of the majority.
func TestADuplicateIsToldOfWhatLasts(t *testing.T) {
	for _, path := range []screening.SavePath{screening.SourceOnly, screening.Fold} {
		t.Run(path.String(), func(t *testing.T) {
			t.Parallel()
			f := begin(t)
			if path == screening.Fold {
				f.mode(screening.ModeFold)
			}
			ctx := within(t)
			d := decision("s0", "r", true)
			d.Operation, d.Resubmission = bson.NewObjectID(), true
			before := f.study("s0")
			_, err := f.admin.Save(ctx, path, d)
			must(t, err)
			side, _ := dial(t, uri)
			var majority, back atomic.Int32
			c, _ := dial(t, uri, options.Client().SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
				if level, _ := e.Command.Lookup("readConcern", "level").StringValueOK(); e.CommandName != "find" || level != "majority" {
					return
				}
				majority.Add(1)
				if back.CompareAndSwap(1, 2) {
					_, err := side.Database(f.db.Name()).Collection("study").ReplaceOne(ctx, bson.M{"_id": "s0"}, before)
					if err != nil {
						t.Error(err)
					}
				}
			}}))
			s, err := screening.Open(ctx, c.Database(f.db.Name()), screening.Options{WriterGrace: 500 * time.Millisecond})
			must(t, err)
			if _, err := s.Save(ctx, path, d); !errors.Is(err, screening.ErrDuplicate) {
				t.Errorf("got %v", err)
			}
			if majority.Load() == 0 {
				t.Error("the majority was not asked")
			}
			back.Store(1)
			_, err = s.Save(ctx, path, d)
			var unknown *screening.UnknownError
			if !errors.As(err, &unknown) {
				t.Fatalf("got %v of what was rolled back", err)
			}
			if saved, err := f.admin.Resolve(ctx, unknown.Ticket); saved || !errors.Is(err, screening.ErrOutcomeUnknown) {
				t.Errorf("resolved: %v, %v", saved, err)
			}
			if _, err := s.Save(ctx, path, d); err != nil {
				t.Errorf("sent again: %v", err)
			}
		})
	}
}

// begun waits until a transition is under way.
func (f *fixture) begun(ctx context.Context) {
	f.t.Helper()
	for {
		c, err := f.admin.Control(ctx, project)
		must(f.t, err)
		if c.Transition != nil {
			return
		}
	}
}

// TestNobodyRebuildsOnTheWayFromOff has a save that has read off come after everything
// but the owner's wait. Rows that somebody published before it would not have it.
func TestNobodyRebuildsOnTheWayFromOff(t *testing.T) {
	t.Parallel()
	f := begin(t)
	ctx := within(t)
	s := f.open(screening.Options{Hooks: between(func(screening.Attempt) {
		f.unfinished(ctx, screening.ModeFold)
		f.refused("rebuild on the way from off", f.admin.Rebuild(ctx, project, tally.ProjectScreening), screening.ErrModeDisagrees)
	}, 1)})
	_, err := s.Save(ctx, screening.ByMode, decision("s0", "r", true))
	must(t, err)
	_, err = f.admin.Read(ctx, project, tally.ProjectScreening)
	f.refused("read during the wait", err, screening.ErrNotServing)
	must(t, f.rival(screening.Options{PreWriteDeadline: time.Millisecond, WriterGrace: time.Second}).SetMode(ctx, project, screening.ModeFold))
	f.parity()
	must(t, f.admin.Rebuild(ctx, project, tally.ProjectScreening))
}

// unfinished begins a change of mode whose owner is gone before its wait is over.
func (f *fixture) unfinished(ctx context.Context, to screening.Mode) {
	f.t.Helper()
	owner, die := context.WithCancel(ctx)
	defer die()
	done := make(chan error, 1)
	s := f.rival(screening.Options{PreWriteDeadline: time.Hour})
	go func() { done <- s.SetMode(owner, project, to) }()
	f.begun(ctx)
	die()
	<-done
}

// TestAnOwnerKnowsItsTransition has an owner sleep after its wait until another has
// ended the transition, and a later one of the same kind is under way.
func TestAnOwnerKnowsItsTransition(t *testing.T) {
	for held, before := range map[int32]string{2: "it looks", 3: "the guard is darkened"} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			f := begin(t)
			ctx := within(t)
			o := screening.Options{PreWriteDeadline: time.Millisecond, WriterGrace: time.Second}
			other := f.rival(o)
			var controls atomic.Int32
			f.seen.watch(func(line string) {
				if line == "find statisticsControl" && controls.Add(1) == held {
					for _, to := range []screening.Mode{screening.ModeFold, screening.ModeOff} {
						if err := other.SetMode(ctx, project, to); err != nil {
							t.Error(err)
						}
					}
					f.unfinished(ctx, screening.ModeFold)
				}
			})
			f.refused("the first owner", f.open(o).SetMode(ctx, project, screening.ModeFold), screening.ErrModeDisagrees)
			f.seen.watch(nil)
			c, err := f.admin.Control(ctx, project)
			if err != nil || c.Transition == nil {
				t.Errorf("%+v, %v", c, err)
			}
			_, err = f.admin.Read(ctx, project, tally.ProjectScreening)
			f.refused("read during the second wait", err, screening.ErrNotServing)
		})
	}
}
