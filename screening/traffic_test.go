package screening_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

// rounds is how often a test does something, by default and in its long form.
func rounds(n, longer int) int {
	if long() {
		return longer
	}
	return n
}

// traffic saves by a path until it is stopped, and says how often it did.
type traffic struct {
	saved atomic.Int64
	wg    sync.WaitGroup
	stop  context.CancelFunc
}

func (f *fixture) traffic(ctx context.Context, reviewers int, path screening.SavePath, o screening.Options) *traffic {
	tr := &traffic{}
	var working context.Context
	working, tr.stop = context.WithCancel(ctx)
	for r := range reviewers {
		s := f.rival(o)
		tr.wg.Go(func() {
			for i := 0; working.Err() == nil; i++ {
				study := fmt.Sprint("s", (i+r)%10)
				d := decision(study, fmt.Sprint("r", r), i%3 != 0)
				if i%4 == 0 {
					d.Session = &screening.Session{ID: fmt.Sprint(i % 8)}
				}
				_, err := s.Save(ctx, path, d)
				if err == nil && i%5 == 0 {
					_, err = s.SaveSession(ctx, path, screening.SessionChange{Submission: sub(study), Reviewer: fmt.Sprint("r", r), Stage: title, ID: fmt.Sprint(i % 8)})
				}
				switch {
				case err == nil:
					tr.saved.Add(1)
				case errors.Is(err, screening.ErrOutcomeUnknown):
					f.t.Logf("a machine this slow leaves outcomes open: %v", err)
				case !errors.Is(err, screening.ErrExhausted) && !errors.Is(err, screening.ErrDeadline) && !errors.Is(err, screening.ErrUnknownSession):
					f.t.Error(err)
					return
				}
			}
		})
	}
	return tr
}

// await waits for n more saves, so that something went on meanwhile.
func (tr *traffic) await(ctx context.Context, t *testing.T, n int64) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for from := tr.saved.Load(); tr.saved.Load() < from+n; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the traffic stands")
		}
	}
}

func (tr *traffic) end() {
	tr.stop()
	tr.wg.Wait()
}

// TestOverlayEqualsRecountAtAnyTime reads parity, which is at one timestamp, while
// reviewers save and workers drain.
func TestOverlayEqualsRecountAtAnyTime(t *testing.T) {
	for path, mode := range map[screening.SavePath]screening.Mode{screening.Transactional: screening.ModeTransactional, screening.Fold: screening.ModeFold} {
		t.Run(path.String(), func(t *testing.T) {
			f := begin(t)
			f.t = t
			f.mode(mode)
			ctx := within(t)
			tr := f.traffic(ctx, 4, path, screening.Options{})
			working, stop := context.WithCancel(ctx)
			var workers sync.WaitGroup
			for range 2 {
				w := f.rival(screening.Options{})
				workers.Go(func() { w.Work(working, project, time.Millisecond, nil) })
			}
			overlaid := 0
			for i := 0; i < rounds(5, 40) || overlaid == 0 && mode == screening.ModeFold; i++ {
				p := f.parity()
				if p.Pending > 0 {
					overlaid++
				}
				for _, fam := range tally.Families() {
					v, err := f.admin.Read(ctx, project, fam)
					must(t, err)
					if !v.Exact {
						t.Errorf("%s is not exact", fam)
					}
				}
				tr.await(ctx, t, 1)
			}
			tr.end()
			stop()
			workers.Wait()
			f.drain()
			p := f.parity()
			for _, fam := range tally.Families() {
				v, err := f.admin.Read(ctx, project, fam)
				must(t, err)
				right, err := f.admin.Recount(ctx, project, fam)
				must(t, err)
				if !v.Rows.Equal(right) || !v.Stored.Equal(right) || len(right) == 0 {
					t.Errorf("%s: %v, stored %v, recount %v", fam, v.Rows, v.Stored, right)
				}
			}
			if p.Pending != 0 {
				t.Errorf("%d entries are left", p.Pending)
			}
		})
	}
}

func TestRebuildWhileSavesGoOn(t *testing.T) {
	for path, mode := range map[screening.SavePath]screening.Mode{screening.Transactional: screening.ModeTransactional, screening.Fold: screening.ModeFold} {
		t.Run(path.String(), func(t *testing.T) {
			f := begin(t)
			f.t = t
			f.mode(mode)
			ctx := within(t)
			working, stop := context.WithCancel(ctx)
			var worker sync.WaitGroup
			w := f.rival(screening.Options{})
			worker.Go(func() { w.Work(working, project, time.Millisecond, nil) })
			tr := f.traffic(ctx, 3, path, screening.Options{})
			for range rounds(1, 5) {
				for _, fam := range tally.Families() {
					tr.await(ctx, t, 3)
					must(t, f.admin.Rebuild(ctx, project, fam))
					f.parity()
				}
			}
			tr.end()
			stop()
			worker.Wait()
			f.drain()
			f.parity()
		})
	}
}

// TestModesUnderTraffic goes through all changes of mode while saves by mode go on.
func TestModesUnderTraffic(t *testing.T) {
	t.Parallel()
	f := begin(t)
	ctx := within(t)
	// Stores of one project agree on these, and a test can wait for them.
	o := screening.Options{PreWriteDeadline: 300 * time.Millisecond, WriterGrace: 2500 * time.Millisecond}
	admin := f.rival(o)
	working, stop := context.WithCancel(ctx)
	var worker sync.WaitGroup
	worker.Go(func() { f.admin.Work(working, project, 5*time.Millisecond, nil) })
	tr := f.traffic(ctx, 3, screening.ByMode, o)
	all := []screening.Mode{screening.ModeFold, screening.ModeTransactional, screening.ModeOff, screening.ModeTransactional, screening.ModeFold, screening.ModeOff, screening.ModeFold}
	for _, to := range all[:rounds(3, len(all))] {
		tr.await(ctx, t, 5)
		must(t, admin.SetMode(ctx, project, to))
		p := f.parity()
		if p.Control.Mode != to || p.Control.Transition != nil {
			t.Fatalf("%+v", p.Control)
		}
		for fam, fp := range p.Families {
			if (fp.State == screening.Serving) != (to != screening.ModeOff) {
				t.Errorf("%s is %s while %s", fam, fp.State, to)
			}
		}
	}
	tr.end()
	stop()
	worker.Wait()
}

func TestATransitionGoesOnWhereItWasLeft(t *testing.T) {
	f := begin(t)
	_, err := f.admin.Save(within(t), screening.SourceOnly, decision("s0", "r", true))
	must(t, err)
	gone, cancel := context.WithCancel(within(t))
	admin := f.rival(screening.Options{PreWriteDeadline: time.Hour})
	go func() {
		defer cancel()
		for {
			c, err := f.admin.Control(context.WithoutCancel(gone), project)
			if err != nil || c.Transition != nil || gone.Err() != nil {
				return
			}
		}
	}()
	if err := admin.SetMode(gone, project, screening.ModeFold); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	_, err = f.admin.Read(within(t), project, tally.ProjectScreening)
	f.refused("read during the wait", err, screening.ErrNotServing)
	f.refused("another mode", f.admin.SetMode(within(t), project, screening.ModeTransactional), screening.ErrModeDisagrees)
	_, err = f.admin.Save(within(t), screening.ByMode, decision("s1", "r", true))
	must(t, err)
	heir := f.rival(screening.Options{PreWriteDeadline: time.Millisecond, WriterGrace: time.Second})
	must(t, heir.SetMode(within(t), project, screening.ModeFold))
	v, err := f.admin.Read(within(t), project, tally.ProjectScreening)
	if err != nil || !v.Exact || v.Rows[tally.Scope{}]["includes"] != 2 {
		t.Errorf("%+v, %v", v, err)
	}
	f.parity()
}

// TestAnyOrderOfStepsKeepsParity drives one project through random steps of all kinds
// and compares after each.
func TestAnyOrderOfStepsKeepsParity(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	mode := screening.ModeFold
	names := []string{"r0", "r1", "r2"}
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			study := rapid.SampledFrom([]string{"s0", "s1", "s2"}).Draw(rt, "study")
			who := rapid.SampledFrom(names).Draw(rt, "reviewer")
			stage := rapid.SampledFrom([]string{title, "full text"}).Draw(rt, "stage")
			s := screening.Submission{Project: project, Study: study}
			var err error
			switch rapid.IntRange(0, 8).Draw(rt, "step") {
			case 0, 1, 2:
				d := screening.Decision{Submission: s, Reviewer: who, Stage: stage, Include: rapid.Bool().Draw(rt, "include")}
				if rapid.Bool().Draw(rt, "with a session") {
					d.Session = &screening.Session{ID: "n"}
				}
				_, err = f.admin.Save(ctx, screening.ByMode, d)
			case 3:
				_, err = f.admin.SaveSession(ctx, screening.ByMode, screening.SessionChange{Submission: s, Reviewer: who, Stage: stage, ID: "n", Session: &screening.Session{}})
			case 4:
				_, err = f.admin.SaveSession(ctx, screening.ByMode, screening.SessionChange{Submission: s, Reviewer: who, Stage: stage, ID: "n"})
			case 5:
				_, err = f.admin.Claim(ctx, screening.ByMode, screening.Claim{Submission: s, Reviewer: who, Stage: stage})
			case 6:
				_, err = f.admin.Release(ctx, screening.ByMode, screening.Release{Submission: s, Reviewer: who, Stage: stage})
			case 7:
				_, err = f.admin.Drain(ctx, project)
			case 8:
				if mode == screening.ModeFold {
					mode = screening.ModeTransactional
				} else {
					mode = screening.ModeFold
				}
				heir, oerr := screening.Open(ctx, f.db, screening.Options{PreWriteDeadline: 1, WriterGrace: 20 * time.Millisecond})
				if oerr != nil {
					rt.Fatal(oerr)
				}
				for err = heir.SetMode(ctx, project, mode); err != nil && ctx.Err() == nil; err = heir.SetMode(ctx, project, mode) {
				}
			}
			if err != nil && !errors.Is(err, screening.ErrUnknownSession) && !errors.Is(err, screening.ErrNoReservation) && !errors.Is(err, screening.ErrNothingToClaim) {
				rt.Fatal(err)
			}
			p, err := f.admin.Parity(ctx, project)
			if err != nil || len(p.Faults) > 0 {
				rt.Fatalf("%v\n%v", err, p.Faults)
			}
		}
	})
}
