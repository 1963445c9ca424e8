package screening_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

// rival is a store on a client of its own, whose commands are not recorded.
func (f *fixture) rival(o screening.Options) *screening.Store {
	f.t.Helper()
	c, _ := dial(f.t, uri)
	s, err := screening.Open(f.t.Context(), c.Database(f.db.Name()), o)
	must(f.t, err)
	return s
}

// between calls fn after the loads of the attempts numbered.
func between(fn func(a screening.Attempt), numbers ...int) screening.Hooks {
	return screening.Hooks{Loaded: func(_ context.Context, a screening.Attempt) error {
		if slices.Contains(numbers, a.Number) {
			fn(a)
		}
		return nil
	}}
}

func (f *fixture) rivalSaves(path screening.SavePath) func(screening.Attempt) {
	rival := f.rival(screening.Options{})
	return func(a screening.Attempt) {
		_, err := rival.Save(within(f.t), path, decision(a.Study, fmt.Sprint("rival", a.Number), true))
		must(f.t, err)
	}
}

func causes(out screening.Outcome) (list []screening.Cause) {
	for _, k := range out.Conflicts {
		list = append(list, k.Cause)
	}
	return list
}

func TestASaveThatLostDoesNotWrite(t *testing.T) {
	for _, c := range []struct {
		path    screening.SavePath
		mode    screening.Mode
		guarded bool
		last    screening.Cause // of the third conflict
	}{
		{screening.SourceOnly, screening.ModeOff, false, screening.Unattributed},
		{screening.SourceOnly, screening.ModeOff, true, screening.StudySave},
		{screening.Fold, screening.ModeFold, false, screening.StudySave},
		{screening.Fold, screening.ModeFold, true, screening.StudySave},
		{screening.Transactional, screening.ModeTransactional, false, screening.Unattributed},
		{screening.ByMode, screening.ModeOff, false, screening.StudySave},
	} {
		t.Run(fmt.Sprint(c.path, c.guarded), func(t *testing.T) {
			f := begin(t)
			if c.mode != screening.ModeOff {
				f.mode(c.mode)
			}
			s := f.open(screening.Options{Hooks: between(f.rivalSaves(c.path), 1, 2, 3)})
			d := decision("s0", "loser", true)
			d.Guarded = c.guarded
			out, err := s.Save(within(t), c.path, d)
			if !errors.Is(err, screening.ErrExhausted) || !errors.Is(err, screening.ErrStale) || out.Attempts != 3 {
				t.Fatalf("%+v, %v", out, err)
			}
			if got := causes(out); !slices.Equal(got, []screening.Cause{screening.StudySave, screening.StudySave, c.last}) {
				t.Errorf("causes %v", got)
			}
			if cause, err := s.Attribute(within(t), out.Conflicts[2]); err != nil || cause != screening.StudySave {
				t.Errorf("attributed to %v, %v", cause, err)
			}
			study := f.study("s0")
			if len(study.Decisions) != 3 || slices.ContainsFunc(study.Decisions, func(d tally.Decision) bool { return d.Reviewer == "loser" }) {
				t.Errorf("an exhausted save left %+v", study.Decisions)
			}
			f.drain()
			f.parity()
		})
	}
}

func TestBudgetChargedRetry(t *testing.T) {
	for _, c := range []struct {
		name    string
		path    screening.SavePath
		mode    screening.Mode
		both    bool // namespaces
		guarded bool
		want    []string // of the retry
	}{
		{"source-only", screening.SourceOnly, screening.ModeOff, false, false, []string{"find study", "findAndModify study"}},
		{"source-only guarded", screening.SourceOnly, screening.ModeOff, false, true, []string{"find study", "find study", "findAndModify study"}},
		{"fold", screening.Fold, screening.ModeFold, false, false,
			[]string{"find statisticsControl", "find statisticsGlobalControl", "find statisticsQuarantine", "find statisticsSourceOperationReceipt", "find study", "findAndModify study"}},
		{"fold, two namespaces", screening.Fold, screening.ModeFold, true, false,
			[]string{"find statisticsControl", "find statisticsGlobalControl", "find statisticsQuarantine", "find statisticsSourceOperationReceipt", "find study", "findAndModify study"}},
		{"fold guarded", screening.Fold, screening.ModeFold, false, true,
			[]string{"find study", "find statisticsControl", "find statisticsGlobalControl", "find statisticsQuarantine", "find statisticsSourceOperationReceipt", "find study", "findAndModify study"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := begin(t)
			first := 2
			if c.mode == screening.ModeFold {
				f.mode(c.mode)
				first = 4
			}
			s := f.open(screening.Options{Hooks: between(f.rivalSaves(c.path), 1)})
			got := f.seen.during(func() {
				d := decision("s0", "r", true)
				d.Guarded = c.guarded
				if c.both {
					d.Session = &screening.Session{ID: "n"}
				}
				out, err := s.Save(within(t), c.path, d)
				must(t, err)
				if want := map[bool]int{false: 1, true: 2}[c.both]; c.mode == screening.ModeFold && out.Entries != want {
					t.Errorf("%d entries, want %d", out.Entries, want)
				}
			})[first:]
			if c.guarded {
				slices.Sort(got[1 : len(got)-1])
			} else {
				slices.Sort(got[:len(got)-1])
			}
			tell(t, c.name, "retry", got)
			wantCommands(t, c.name, got, c.want)
		})
	}
}

// TestBudgetRounds holds each command back until all that should be in its round have
// been sent: a save with more rounds than it should have never gets on.
func TestBudgetRounds(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	held := make(chan struct{})
	var mu sync.Mutex
	waiting := 0
	round := []int{3, 1, 5, 1} // first attempt, charged retry
	f.seen.watch(func(string) {
		mu.Lock()
		if waiting++; waiting == round[0] {
			waiting, round = 0, round[1:]
			close(held)
			held = make(chan struct{})
			mu.Unlock()
			return
		}
		gate := held
		mu.Unlock()
		select {
		case <-gate:
		case <-time.After(20 * time.Second):
			t.Errorf("a command of a round was not sent while another was under way")
		}
	})
	s := f.open(screening.Options{Hooks: between(f.rivalSaves(screening.Fold), 1)})
	_, err := s.Save(within(t), screening.Fold, decision("s0", "r", true))
	must(t, err)
	f.seen.watch(nil)
	if len(round) != 0 {
		t.Errorf("rounds %v were not reached", round)
	}
}

func TestAFoldBetweenLoadAndWriteIsAFreeRetry(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	rival := f.rival(screening.Options{})
	_, err := rival.Save(within(t), screening.Fold, decision("s0", "before", true))
	must(t, err)
	var frees int
	s := f.open(screening.Options{Hooks: between(func(a screening.Attempt) {
		// Numbers 1 to 4 meet a fold, which needs an entry to fold; that of the next comes here.
		d, err := rival.Drain(within(t), project)
		must(t, err)
		frees += d.Entries
		if a.Charged != 0 {
			t.Errorf("attempt %d was charged %d", a.Number, a.Charged)
		}
	}, 1)})
	out, err := s.Save(within(t), screening.Fold, decision("s0", "r", false))
	must(t, err)
	if out.Attempts != 1 || out.Free != 1 || frees != 1 || len(out.Conflicts) != 1 || out.Conflicts[0].Cause != screening.StudyFold || !out.Conflicts[0].Free {
		t.Errorf("%+v", out)
	}
	f.drain()
	f.parity()
}

// fold pretends to be the worker on a study without entries.
func (f *fixture) fold(study string) {
	f.t.Helper()
	_, err := f.db.Collection("study").UpdateOne(within(f.t), bson.M{"_id": study}, bson.M{"$inc": bson.M{"version": 1, "folds": 1}})
	must(f.t, err)
}

func TestFreeRetriesDoNotUseUpAttemptsAndEnd(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	other := f.rival(screening.Options{})
	// Folds meet every attempt but the sixth and seventh, which a save meets: two charges, five free.
	s := f.open(screening.Options{Hooks: between(func(a screening.Attempt) {
		switch {
		case a.Number == 6 || a.Number == 7:
			_, err := other.Save(within(t), screening.Fold, decision("s0", fmt.Sprint("rival", a.Number), true))
			must(t, err)
		case a.Number < 9:
			f.fold("s0")
		}
	}, 1, 2, 3, 4, 5, 6, 7, 8, 9)})
	out, err := s.Save(within(t), screening.Fold, decision("s0", "r", true))
	must(t, err)
	if out.Attempts != 3 || out.Free != 6 {
		t.Errorf("%d charged and %d free, want 3 and 6", out.Attempts, out.Free)
	}
	s = f.open(screening.Options{Hooks: screening.Hooks{Loaded: func(context.Context, screening.Attempt) error { f.fold("s1"); return nil }}})
	out, err = s.Save(within(t), screening.Fold, decision("s1", "r", true))
	if !errors.Is(err, screening.ErrExhausted) || out.Free < 10 {
		t.Errorf("a study that is folded for ever: %+v, %v", out, err)
	}
	if last := out.Conflicts[len(out.Conflicts)-1]; last.Cause != screening.StudyFold || last.Free {
		t.Errorf("the last conflict is %+v", last)
	}
}

func TestReviewersOfOneStudyLoseNothing(t *testing.T) {
	for path, mode := range map[screening.SavePath]screening.Mode{
		screening.SourceOnly: screening.ModeOff, screening.Transactional: screening.ModeTransactional, screening.Fold: screening.ModeFold,
	} {
		t.Run(path.String(), func(t *testing.T) {
			f := begin(t)
			if mode != screening.ModeOff {
				f.mode(mode)
			}
			ctx := within(t)
			working, stop := context.WithCancel(ctx)
			var wg sync.WaitGroup
			worker := f.rival(screening.Options{})
			var done sync.WaitGroup
			done.Go(func() {
				worker.Work(working, project, time.Millisecond, func(_ screening.Drained, err error) {
					if err != nil && working.Err() == nil {
						t.Error(err)
					}
				})
			})
			const reviewers, rounds = 6, 5
			for r := range reviewers {
				s := f.open(screening.Options{})
				wg.Go(func() {
					for i := range rounds {
						for {
							d := decision("s0", fmt.Sprint("r", r), (i+r)%3 != 0)
							d.Session = &screening.Session{ID: fmt.Sprint(i)}
							_, err := s.Save(ctx, path, d)
							if err == nil {
								break
							}
							if !errors.Is(err, screening.ErrExhausted) {
								t.Error(err)
								return
							}
						}
					}
				})
			}
			wg.Wait()
			stop()
			done.Wait()
			study := f.study("s0")
			if len(study.Decisions) != reviewers || len(study.Sessions) != reviewers*rounds {
				t.Errorf("%d decisions and %d sessions", len(study.Decisions), len(study.Sessions))
			}
			for _, d := range study.Decisions {
				var r int
				fmt.Sscanf(d.Reviewer, "r%d", &r)
				if d.Include != ((rounds-1+r)%3 != 0) {
					t.Errorf("%s: not the last decision", d.Reviewer)
				}
			}
			f.drain()
			p := f.parity()
			// Every session moves statistics, and most decisions do.
			if mode != screening.ModeOff && (p.Receipts < reviewers*rounds || p.Pending != 0 || p.Receipts != p.Operations && mode == screening.ModeFold) {
				t.Errorf("%+v", p)
			}
		})
	}
}
