package screening_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

// paths are all paths, each with the mode that it is for.
func paths() map[screening.SavePath]screening.Mode {
	return map[screening.SavePath]screening.Mode{
		screening.SourceOnly: screening.ModeOff, screening.Transactional: screening.ModeTransactional,
		screening.Fold: screening.ModeFold, screening.ByMode: screening.ModeFold,
	}
}

// everyPath runs a test on a project of its own for each path.
func everyPath(t *testing.T, test func(t *testing.T, f *fixture, path screening.SavePath)) {
	for path, mode := range paths() {
		t.Run(path.String(), func(t *testing.T) {
			f := begin(t)
			if mode != screening.ModeOff {
				f.mode(mode)
			}
			test(t, f, path)
			f.drain()
			f.parity()
		})
	}
}

// refused fails unless err is want and nothing was written.
func (f *fixture) refused(what string, err, want error, touched ...string) {
	f.t.Helper()
	if !errors.Is(err, want) {
		f.t.Errorf("%s: got %v, want %v", what, err, want)
	}
	for _, id := range touched {
		if s := f.study(id); s.Version != 1 {
			f.t.Errorf("%s: it wrote %+v", what, s)
		}
	}
}

func TestWhatIsUnknownIsRefused(t *testing.T) {
	everyPath(t, func(t *testing.T, f *fixture, path screening.SavePath) {
		ctx := within(t)
		f.t = t
		must(t, f.admin.AddProject(ctx, screening.NewProject{ID: "other"}))
		for _, c := range []struct {
			what string
			d    screening.Decision
			want error
		}{
			{"project", screening.Decision{Submission: screening.Submission{Project: "nowhere", Study: "s0"}, Reviewer: "r"}, screening.ErrUnknownProject},
			{"study", screening.Decision{Submission: sub("s99"), Reviewer: "r"}, screening.ErrUnknownStudy},
			{"study of another project", screening.Decision{Submission: screening.Submission{Project: "other", Study: "s0"}, Reviewer: "r"}, nil},
			{"no project", screening.Decision{Submission: screening.Submission{Study: "s0"}, Reviewer: "r"}, screening.ErrUnknownProject},
			{"no study", screening.Decision{Submission: screening.Submission{Project: project}, Reviewer: "r"}, screening.ErrUnknownStudy},
			{"no reviewer", screening.Decision{Submission: sub("s0")}, screening.ErrNotEligible},
		} {
			_, err := f.admin.Save(ctx, path, c.d)
			if c.want == nil && (errors.Is(err, screening.ErrUnknownStudy) || errors.Is(err, screening.ErrModeDisagrees)) {
				c.want = err // the other project's mode is off, which may be found first
			}
			f.refused(c.what, err, c.want, "s0")
		}
		_, err := f.admin.SaveSession(ctx, path, screening.SessionChange{Submission: sub("s0"), Reviewer: "r", ID: "n"})
		f.refused("session to delete", err, screening.ErrUnknownSession, "s0")
		_, err = f.admin.Release(ctx, path, screening.Release{Submission: sub("s0"), Reviewer: "r"})
		f.refused("reservation", err, screening.ErrNoReservation, "s0")
		_, err = f.admin.Claim(ctx, path, screening.Claim{Submission: sub("s99"), Reviewer: "r"})
		f.refused("study to claim", err, screening.ErrUnknownStudy)
		_, err = f.admin.Claim(ctx, path, screening.Claim{Submission: screening.Submission{Project: "nowhere"}, Reviewer: "r"})
		f.refused("project to claim in", err, screening.ErrUnknownProject)
		_, err = f.admin.Claim(ctx, path, screening.Claim{Reviewer: "r"})
		f.refused("nothing named", err, screening.ErrUnknownProject)
		if _, err = f.admin.Save(ctx, 7, decision("s0", "r", true)); err == nil {
			t.Error("a path that there is not was followed")
		}
	})
}

func TestAPathThatIsNotTheProjectsModeIsRefused(t *testing.T) {
	f := begin(t)
	for _, mode := range []screening.Mode{screening.ModeOff, screening.ModeTransactional, screening.ModeFold} {
		f.mode(mode)
		for path, of := range map[screening.SavePath]screening.Mode{screening.Transactional: screening.ModeTransactional, screening.Fold: screening.ModeFold} {
			if of == mode {
				continue
			}
			_, err := f.admin.Save(within(t), path, decision("s0", "r", true))
			f.refused(fmt.Sprint(path, " while ", mode), err, screening.ErrModeDisagrees, "s0")
			_, err = f.admin.Claim(within(t), path, screening.Claim{Submission: sub("s0"), Reviewer: "r"})
			f.refused(fmt.Sprint("claim ", path, " while ", mode), err, screening.ErrModeDisagrees, "s0")
		}
	}
	must(t, f.admin.SetTracking(within(t), true))
	for path, mode := range paths() {
		if mode == screening.ModeOff {
			continue
		}
		f.mode(mode)
		_, err := f.admin.Save(within(t), path, decision("s0", "r", true))
		f.refused(fmt.Sprint(path, " with another reviewer mode"), err, screening.ErrModeDisagrees, "s0")
	}
	_, err := f.admin.Read(within(t), project, "Unheard")
	f.refused("unknown family", err, screening.ErrNotServing)
	f.mode(screening.ModeOff)
	_, err = f.admin.Read(within(t), project, tally.ProjectScreening)
	f.refused("read while off", err, screening.ErrNotServing)
	f.refused("rebuild while off", f.admin.Rebuild(within(t), project, tally.ProjectScreening), screening.ErrModeDisagrees)
}

func TestAStudyHasNoMoreReviewersThanSeats(t *testing.T) {
	everyPath(t, func(t *testing.T, f *fixture, path screening.SavePath) {
		ctx := within(t)
		f.t = t
		must(t, f.admin.AddStudies(ctx, project, screening.NewStudy{ID: "narrow", Capacity: 2}))
		// More reviewers than seats, at once: each must be told the truth.
		const reviewers = 5
		var wg sync.WaitGroup
		errs := make([]error, reviewers)
		for r := range reviewers {
			s := f.open(screening.Options{})
			wg.Go(func() {
				for {
					d := decision("narrow", fmt.Sprint("r", r), r%2 == 0)
					d.Guarded = true
					if _, errs[r] = s.Save(ctx, path, d); !errors.Is(errs[r], screening.ErrExhausted) {
						return
					}
				}
			})
		}
		wg.Wait()
		saved := 0
		for r, err := range errs {
			if err == nil {
				saved++
			} else if !errors.Is(err, screening.ErrAtCapacity) {
				t.Errorf("reviewer %d: %v", r, err)
			}
		}
		study := f.study("narrow")
		if saved != 2 || len(study.Decisions) != 2 || len(study.Holders) != 2 {
			t.Errorf("%d saved, the study has %+v", saved, study)
		}
		d := decision("narrow", study.Holders[0], false)
		d.Guarded = true
		_, err := f.admin.Save(ctx, path, d) // who has a seat may decide again
		must(t, err)
		_, err = f.admin.Claim(ctx, path, screening.Claim{Submission: sub("narrow"), Reviewer: "late"})
		f.refused("claim of a full study", err, screening.ErrAtCapacity)
		_, err = f.admin.Claim(ctx, path, screening.Claim{Submission: sub("narrow"), Reviewer: study.Holders[0]})
		f.refused("claim by who has a seat", err, screening.ErrNothingToClaim)
	})
}

func TestATrackedSessionNeedsASeat(t *testing.T) {
	f := begin(t)
	ctx := within(t)
	must(t, f.admin.SetTracking(ctx, true))
	f.mode(screening.ModeFold)
	must(t, f.admin.AddStudies(ctx, project, screening.NewStudy{ID: "narrow", Capacity: 1}))
	s := f.open(screening.Options{Tracking: true})
	_, err := s.SaveSession(ctx, screening.Fold, screening.SessionChange{Submission: sub("narrow"), Reviewer: "a", ID: "n", Session: &screening.Session{}})
	must(t, err)
	_, err = s.SaveSession(ctx, screening.Fold, screening.SessionChange{Submission: sub("narrow"), Reviewer: "b", ID: "n", Session: &screening.Session{}})
	f.refused("second reviewer", err, screening.ErrAtCapacity)
	_, err = s.SaveSession(ctx, screening.Fold, screening.SessionChange{Submission: sub("narrow"), Reviewer: "a", ID: "n"})
	must(t, err)
	_, err = s.SaveSession(ctx, screening.Fold, screening.SessionChange{Submission: sub("narrow"), Reviewer: "b", ID: "n", Session: &screening.Session{}})
	must(t, err)
	f.drain()
	f.parity()
}

func TestABulkUpdateLocksOthersOut(t *testing.T) {
	everyPath(t, func(t *testing.T, f *fixture, path screening.SavePath) {
		ctx := within(t)
		f.t = t
		// The lock comes between load and write: the version filter must refuse.
		s := f.open(screening.Options{Hooks: between(func(screening.Attempt) { must(t, f.admin.Lock(ctx, project, "import")) }, 1)})
		_, err := s.Save(ctx, path, decision("s0", "r", true))
		f.refused("a save that loaded before the lock", err, screening.ErrLocked)
		if n := len(f.study("s0").Decisions); n != 0 {
			t.Errorf("it wrote %d decisions", n)
		}
		_, err = f.admin.Claim(ctx, path, screening.Claim{Submission: sub("s1"), Reviewer: "r"})
		f.refused("claim", err, screening.ErrLocked)
		f.refused("a second lock", f.admin.Lock(ctx, project, "other"), screening.ErrLocked)
		must(t, f.admin.Lock(ctx, project, "import")) // what was interrupted goes on
		d := decision("s0", "r", true)
		d.Lock = "import"
		_, err = f.admin.Save(ctx, path, d)
		must(t, err)
		f.refused("the wrong key", f.admin.Unlock(ctx, project, "other"), screening.ErrLocked)
		must(t, f.admin.Unlock(ctx, project, "import"))
		d = decision("s0", "r", false)
		_, err = f.admin.Save(ctx, path, d)
		must(t, err)
		d.Lock = "import"
		_, err = f.admin.Save(ctx, path, d)
		f.refused("a lock that was given back", err, screening.ErrLocked)
	})
}

// jumping is a clock that can be set.
type jumping struct {
	mu sync.Mutex
	by time.Duration
}

func (j *jumping) now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Now().Add(j.by)
}

func (j *jumping) jump(by time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.by += by
}

func TestTheDeadlineComesBeforeTheWrite(t *testing.T) {
	for _, by := range []time.Duration{6 * time.Second, -time.Hour} {
		for _, path := range []screening.SavePath{screening.Fold, screening.ByMode} {
			f := begin(t)
			f.mode(screening.ModeFold)
			var clock jumping
			o := screening.Options{Now: clock.now, Hooks: screening.Hooks{Loaded: func(context.Context, screening.Attempt) error { clock.jump(by); return nil }}}
			_, err := f.open(o).Save(within(t), path, decision("s0", "r", true))
			f.refused(fmt.Sprint(path, by), err, screening.ErrDeadline, "s0")
			_, err = f.open(o).Claim(within(t), path, screening.Claim{Submission: sub("s0"), Reviewer: "r"})
			f.refused(fmt.Sprint("claim ", path, by), err, screening.ErrDeadline, "s0")
			o.Eligibility = true
			_, err = f.open(o).Save(within(t), path, decision("s0", "r", true))
			f.refused(fmt.Sprint("eligibility ", path, by), err, screening.ErrDeadline, "s0")
		}
	}
}

// TestClocksMayDisagree has reviewers whose clocks are hours apart and jump.
func TestClocksMayDisagree(t *testing.T) {
	everyPath(t, func(t *testing.T, f *fixture, path screening.SavePath) {
		for i, by := range []time.Duration{5 * time.Hour, -5 * time.Hour, 0} {
			clock := jumping{by: by}
			s := f.open(screening.Options{Now: clock.now})
			for j := range 3 {
				_, err := s.Save(within(t), path, decision("s0", fmt.Sprint("r", i), j%2 == 0))
				must(t, err)
				_, err = s.Drain(within(t), project)
				must(t, err)
				clock.jump(-by)
			}
		}
	})
}

func TestBadArguments(t *testing.T) {
	f := begin(t)
	ctx := within(t)
	if _, err := screening.Open(ctx, nil, screening.Options{}); err == nil {
		t.Error("no database was opened")
	}
	if _, err := screening.Open(ctx, f.db, screening.Options{WriterGrace: -1}); err == nil {
		t.Error("a negative grace was taken")
	}
	if err := f.admin.AddProject(ctx, screening.NewProject{ID: "q", Families: []tally.Family{"Unheard"}}); err == nil {
		t.Error("an unknown family was taken")
	}
	if err := f.admin.AddProject(ctx, screening.NewProject{ID: project}); err == nil {
		t.Error("a project was added twice")
	}
	if err := f.admin.AddProject(ctx, screening.NewProject{ID: "q", Mode: "sideways"}); err == nil {
		t.Error("a project was born in an unknown mode")
	}
	if err := f.admin.SetMode(ctx, project, "sideways"); err == nil {
		t.Error("an unknown mode was taken")
	}
	f.refused("mode of nothing", f.admin.SetMode(ctx, "nowhere", screening.ModeFold), screening.ErrUnknownProject)
	f.refused("studies of nothing", f.admin.AddStudies(ctx, "nowhere", screening.NewStudy{ID: "x"}), screening.ErrUnknownProject)
	f.refused("policy of nothing", f.admin.SetPolicy(ctx, "nowhere", true), screening.ErrUnknownProject)
	f.refused("lock of nothing", f.admin.Lock(ctx, "nowhere", "x"), screening.ErrUnknownProject)
	_, err := f.admin.Drain(ctx, "nowhere")
	f.refused("drain of nothing", err, screening.ErrUnknownProject)
	_, err = f.admin.Parity(ctx, "nowhere")
	f.refused("parity of nothing", err, screening.ErrUnknownProject)
	_, err = f.db.Collection("study").UpdateOne(ctx, bson.M{"_id": "s3"}, bson.M{"$set": bson.M{"decisions": "lost"}})
	must(t, err)
	_, err = f.admin.Save(ctx, screening.SourceOnly, decision("s3", "r", true))
	f.refused("a study that is none", err, screening.ErrCorrupt)
	_, err = f.admin.Recount(ctx, project, tally.ProjectScreening)
	f.refused("a recount over it", err, screening.ErrCorrupt)
}
