package screening_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/assaylab/assay/screening"
)

func TestWhoIsNotEligibleIsRefused(t *testing.T) {
	everyPath(t, func(t *testing.T, f *fixture, path screening.SavePath) {
		ctx := within(t)
		f.t = t
		s := f.open(screening.Options{Eligibility: true})
		attempt := func() error {
			_, err := s.Save(ctx, path, decision("s0", "r", true))
			if _, cerr := s.Claim(ctx, path, screening.Claim{Submission: sub("s1"), Reviewer: "r", Stage: title}); errors.Is(cerr, screening.ErrNotEligible) != errors.Is(err, screening.ErrNotEligible) {
				t.Errorf("a claim says %v where a save says %v", cerr, err)
			}
			return err
		}
		must(t, f.admin.SetPolicy(ctx, project, true))
		f.refused("nobody", attempt(), screening.ErrNotEligible, "s0", "s1")
		must(t, f.admin.SetMembership(ctx, project, "r", true))
		f.refused("without a grant", attempt(), screening.ErrNotEligible, "s0", "s1")
		must(t, f.admin.SetGrant(ctx, project, "full text", "r", true))
		f.refused("with the grant of another stage", attempt(), screening.ErrNotEligible, "s0", "s1")
		must(t, f.admin.SetGrant(ctx, project, title, "r", true))
		must(t, f.admin.SetMembership(ctx, project, "r", false))
		f.refused("an inactive member", attempt(), screening.ErrNotEligible, "s0", "s1")
		must(t, f.admin.SetPolicy(ctx, project, false))
		must(t, attempt())
		must(t, f.admin.SetPolicy(ctx, project, true))
		must(t, f.admin.SetMembership(ctx, project, "r", true))
		must(t, attempt())
	})
}

// TestAPolicyChangeAndASaveDoNotPassEachOther changes the policy between an attempt's
// loads and its write.
func TestAPolicyChangeAndASaveDoNotPassEachOther(t *testing.T) {
	for name, take := range map[string]func(f *fixture) error{
		"policy":     func(f *fixture) error { return f.admin.SetPolicy(within(f.t), project, true) },
		"membership": func(f *fixture) error { return f.admin.SetMembership(within(f.t), project, "r", false) },
		"grant":      func(f *fixture) error { return f.admin.SetGrant(within(f.t), project, title, "r", false) },
	} {
		t.Run(name, func(t *testing.T) {
			everyPath(t, func(t *testing.T, f *fixture, path screening.SavePath) {
				f.t = t
				if name != "policy" {
					eligible(f, nil, path)
				}
				s := f.open(screening.Options{Eligibility: true, Hooks: between(func(screening.Attempt) { must(t, take(f)) }, 1)})
				out, err := s.Save(within(t), path, decision("s0", "r", true))
				f.refused(name, err, screening.ErrNotEligible, "s0")
				if got := causes(out); !slices.Equal(got, []screening.Cause{screening.ProjectToken}) {
					t.Errorf("causes %v", got)
				}
			})
		})
	}
}

// TestARevokedReviewerSavesNothingAfterwards revokes while the reviewer saves as fast
// as possible: when the revocation has returned, nothing more may be saved.
func TestARevokedReviewerSavesNothingAfterwards(t *testing.T) {
	for _, path := range []screening.SavePath{screening.SourceOnly, screening.Fold} {
		f := begin(t)
		if path == screening.Fold {
			f.mode(screening.ModeFold)
		}
		eligible(f, nil, path)
		ctx := within(t)
		var wg sync.WaitGroup
		started := make(chan struct{}, 100)
		for w := range 3 {
			s := f.open(screening.Options{Eligibility: true})
			wg.Go(func() {
				for i := 0; ; i++ {
					_, err := s.Save(ctx, path, decision(fmt.Sprint("s", w), "r", i%2 == 0))
					switch {
					case err == nil:
						select {
						case started <- struct{}{}:
						default:
						}
					case errors.Is(err, screening.ErrNotEligible):
						return
					case !errors.Is(err, screening.ErrExhausted):
						t.Error(err)
						return
					}
				}
			})
		}
		for range 3 {
			select {
			case <-started:
			case <-ctx.Done():
				t.Fatal("nobody saved")
			}
		}
		must(t, f.admin.SetGrant(context.WithoutCancel(ctx), project, title, "r", false))
		var before []int64
		for w := range 3 {
			before = append(before, f.study(fmt.Sprint("s", w)).Version)
		}
		wg.Wait()
		for w := range 3 {
			if now := f.study(fmt.Sprint("s", w)).Version; now != before[w] {
				t.Errorf("%v: study %d was saved after the revocation", path, w)
			}
		}
	}
}
