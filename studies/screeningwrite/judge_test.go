package screeningwrite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

// sound is the evidence of a batch of two reviewers on one study, one of whom lost once,
// in which everything is right.
func sound(path screening.SavePath) *evidence {
	mode := map[screening.SavePath]screening.Mode{screening.SourceOnly: screening.ModeOff, screening.Fold: screening.ModeFold, screening.Transactional: screening.ModeTransactional}[path]
	f := &fixture{
		arm: arm{path: path, mode: mode}, cell: cell{target: targetSame, reviewers: 2, regime: regime{lockstep: true}},
		want: map[place]bool{{"s", "a"}: true, {"s", "b"}: true}, saves: map[string]int{"s": 2},
	}
	moves := path != screening.SourceOnly
	carried := 0
	if moves {
		f.entries, carried = 2, 1
	}
	sub := func(reviewer string, version int64) *submission {
		return &submission{
			Decision: screening.Decision{Submission: screening.Submission{Study: "s"}, Reviewer: reviewer, Include: true},
			out:      screening.Outcome{Version: version, Entries: carried}, saved: true, moves: moves,
		}
	}
	a, b := sub("a", 2), sub("b", 3)
	b.out.Conflicts = []screening.Conflict{{Cause: screening.StudySave, Study: "s", Version: 1}}
	study := screening.Study{ID: "s", Version: 3, Study: tally.Study{Decisions: []tally.Decision{{Reviewer: "a", Include: true}, {Reviewer: "b", Include: true}}}}
	e := &evidence{b: &batch{f: f, submissions: []*submission{a, b}}, studies: []screening.Study{study}}
	row := tally.Rows{{}: {"included": 1, "includes": 2}}
	parity := func(stored, overlaid tally.Rows, pending int, folded int64) screening.Parity {
		return screening.Parity{
			Control:  screening.Control{Source: folded, Committed: folded, Client: folded},
			Families: map[tally.Family]screening.FamilyParity{tally.ProjectScreening: {State: screening.Serving, Authoritative: row, Stored: stored, Overlaid: overlaid}},
			Pending:  pending, Receipts: folded, Revisions: folded, Operations: folded, Client: folded,
		}
	}
	switch path {
	case screening.Transactional:
		e.before = parity(row, row, 0, 2)
	case screening.Fold:
		e.before, e.after = parity(tally.Rows{}, row, 2, 0), parity(row, row, 0, 2)
		e.studies[0].Version, e.studies[0].Folds = 4, 1
	}
	return e
}

func verdictOf(e *evidence, name string) check.Verdict {
	for _, r := range e.results() {
		if r.Name == name {
			return r.Verdict
		}
	}
	return check.Unchecked
}

func TestSoundEvidencePasses(t *testing.T) {
	for _, path := range []screening.SavePath{screening.SourceOnly, screening.Fold, screening.Transactional} {
		for _, r := range sound(path).results() {
			if r.Verdict != check.Pass || r.Operations == 0 {
				t.Errorf("%v: %s is %s: %s", path, r.Name, r.Verdict, r.Message)
			}
		}
	}
}

func TestWhatTheChecksReject(t *testing.T) {
	source, fold, transactional := screening.SourceOnly, screening.Fold, screening.Transactional
	edit := func(p *screening.Parity, change func(*screening.FamilyParity)) {
		fp := p.Families[tally.ProjectScreening]
		change(&fp)
		p.Families = map[tally.Family]screening.FamilyParity{tally.ProjectScreening: fp}
	}
	for _, c := range []struct {
		name  string
		path  screening.SavePath
		check string
		spoil func(*evidence)
	}{
		{"a decision that is gone", source, checkPersisted, func(e *evidence) { e.studies[0].Decisions = e.studies[0].Decisions[:1] }},
		{"a decision turned round", source, checkPersisted, func(e *evidence) { e.studies[0].Decisions[1].Include = false }},
		{"a decision twice", source, checkPersisted, func(e *evidence) { e.studies[0].Decisions = append(e.studies[0].Decisions, e.studies[0].Decisions[0]) }},
		{"a decision nobody made", source, checkPersisted, func(e *evidence) {
			e.studies[0].Decisions = append(e.studies[0].Decisions, tally.Decision{Reviewer: "c"})
		}},
		{"a decision of an exhausted submission", source, checkPersisted, func(e *evidence) { delete(e.b.f.want, place{"s", "b"}) }},
		{"a study that is gone", source, checkPersisted, func(e *evidence) { e.studies = nil }},
		{"two saves at one version", source, checkPersisted, func(e *evidence) { e.studies[0].Version-- }},
		{"a version that nobody made", source, checkPersisted, func(e *evidence) { e.studies[0].Version++ }},
		{"a fold that nobody made", source, checkPersisted, func(e *evidence) { e.studies[0].Folds++ }},

		{"a fault of the subject's own", transactional, checkTransactional, func(e *evidence) { e.before.Faults = []string{"clocks"} }},
		{"a row that lacks a delta", transactional, checkTransactional, func(e *evidence) {
			edit(&e.before, func(fp *screening.FamilyParity) { fp.Stored = tally.Rows{{}: {"includes": 1}} })
		}},
		{"a receipt that is gone", transactional, checkTransactional, func(e *evidence) { e.before.Receipts-- }},
		{"a delta that is gone", transactional, checkTransactional, func(e *evidence) { e.before.Operations-- }},
		{"a clock behind", transactional, checkTransactional, func(e *evidence) { e.before.Control.Committed-- }},
		{"a notification behind", transactional, checkTransactional, func(e *evidence) { e.before.Client-- }},
		{"an entry left pending", transactional, checkTransactional, func(e *evidence) { e.before.Pending++ }},
		{"a family that is not kept", transactional, checkTransactional, func(e *evidence) { e.before.Families = nil }},
		{"a recount that is wrong itself", transactional, checkTransactional, func(e *evidence) {
			wrong := tally.Rows{{}: {"includes": 1}}
			edit(&e.before, func(fp *screening.FamilyParity) { fp.Stored, fp.Overlaid, fp.Authoritative = wrong, wrong, wrong })
		}},

		{"an overlay that lacks an entry", fold, checkBefore, func(e *evidence) {
			edit(&e.before, func(fp *screening.FamilyParity) { fp.Overlaid = tally.Rows{{}: {"includes": 1}} })
		}},
		{"a family that stopped serving", fold, checkBefore, func(e *evidence) {
			edit(&e.before, func(fp *screening.FamilyParity) { fp.State = screening.Stale })
		}},
		{"an entry lost before the drain", fold, checkBefore, func(e *evidence) { e.before.Pending-- }},
		{"an entry folded without a worker", fold, checkBefore, func(e *evidence) { e.before.Pending--; e.before.Receipts++ }},
		{"a save that says it carried nothing", fold, checkBefore, func(e *evidence) { e.b.submissions[0].out.Entries = 0 }},

		{"a receipt without its delta", fold, checkAfter, func(e *evidence) {
			edit(&e.after, func(fp *screening.FamilyParity) { fp.Stored = tally.Rows{} })
		}},
		{"an entry applied twice", fold, checkAfter, func(e *evidence) {
			edit(&e.after, func(fp *screening.FamilyParity) { fp.Stored = tally.Rows{{}: {"included": 1, "includes": 3}} })
		}},
		{"a second receipt", fold, checkAfter, func(e *evidence) { e.after.Receipts++ }},
		{"an entry never folded", fold, checkAfter, func(e *evidence) { e.after.Pending++ }},
		{"an entry in quarantine", fold, checkAfter, func(e *evidence) { e.after.Quarantine++ }},
		{"a worker that fails", fold, checkAfter, func(e *evidence) { e.drain.err = errors.New("no") }},
		{"no drain", fold, checkAfter, func(e *evidence) { e.after = screening.Parity{} }},

		{"a conflict that had no winner", fold, checkCauses, func(e *evidence) { e.b.submissions[0].out.Version = 1 }},
		{"statistics in a fold", fold, checkCauses, func(e *evidence) { e.b.submissions[1].out.Conflicts[0].Cause = screening.Statistics }},
		{"a fold without a worker", fold, checkCauses, func(e *evidence) { e.b.submissions[1].out.Conflicts[0].Cause = screening.StudyFold }},
		{"a token without a policy", fold, checkCauses, func(e *evidence) { e.b.submissions[1].out.Conflicts[0].Cause = screening.ProjectToken }},
		{"a free retry for a save", fold, checkCauses, func(e *evidence) { e.b.submissions[1].out.Conflicts[0].Free = true }},
		{"a cause nobody knows", source, checkCauses, func(e *evidence) { e.b.submissions[1].out.Conflicts[0].Cause = screening.Unattributed }},

		{"a conflict too few in lockstep", source, checkLockstep, func(e *evidence) { e.b.submissions[1].out.Conflicts = nil }},
		{"an exhausted one in lockstep", fold, checkLockstep, func(e *evidence) { e.b.submissions[1].err = fmt.Errorf("%w", screening.ErrExhausted) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := sound(c.path)
			c.spoil(e)
			if v := verdictOf(e, c.check); v != check.Fail {
				t.Errorf("%s says %s", c.check, v)
			}
		})
	}
}

func TestAnOutcomeThatStayedUnknownIsNoPass(t *testing.T) {
	e := sound(screening.SourceOnly)
	e.b.submissions[1].open = true
	if v := verdictOf(e, checkPersisted); v != check.Unknown {
		t.Errorf("%s", v)
	}
}

func TestAFaultThatDidNotStrikeIsNoPass(t *testing.T) {
	e := sound(screening.SourceOnly)
	e.b.f.cell.regime = regimes()["kill"]
	name := checkFault + faultKill
	for _, r := range e.results() {
		if r.Name == name && r.Require(check.Requirement{Faults: []string{faultKill}}).Verdict != check.Unknown {
			t.Error("it passes")
		}
	}
	e.b.struck = true
	for _, s := range e.b.submissions {
		s.saved = false
	}
	if v := verdictOf(e, name); v != check.Fail {
		t.Errorf("nothing was saved: %s", v)
	}
}

func TestLockstepCounts(t *testing.T) {
	for n, want := range map[int][2]int{1: {0, 0}, 2: {1, 0}, 5: {9, 2}, 10: {24, 7}} {
		if c, x := lockstepCounts(targetSame, n); c != want[0] || x != want[1] {
			t.Errorf("%d reviewers: %d conflicts and %d exhausted, %v wanted", n, c, x, want)
		}
		if c, x := lockstepCounts(targetDifferent, n); c != 0 || x != 0 {
			t.Errorf("%d reviewers on different studies: %d and %d", n, c, x)
		}
	}
}

func TestTheBarrierHoldsEverybodyUntilAllWaitOrHaveLeft(t *testing.T) {
	const members, rounds = 7, 50
	b := newBarrier(members)
	var mu sync.Mutex
	at := map[int]int{}
	var all sync.WaitGroup
	for i := range members {
		all.Go(func() {
			defer b.leave()
			for n := range rounds - i { // they leave one after the other
				mu.Lock()
				at[i] = n
				mu.Unlock()
				if err := b.wait(t.Context()); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for k, reached := range at {
					if reached < min(n, rounds-k-1) {
						t.Errorf("member %d passed round %d while %d is at %d", i, n, k, reached)
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newBarrier(2).wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("alone at a barrier for two: %v", err)
	}
}

func TestTheWindowOfAMeter(t *testing.T) {
	m := newMeter()
	if c := m.stop(); c.commands != nil {
		t.Error("commands that were not counted are a number")
	}
	m.monitor()
	m.start()
	m.commands["find"]++
	if c := m.stop(); c.commands["find"] != 1 || m.total() != 1 {
		t.Errorf("%v", c)
	}
	if !statistics("statisticsCurrent") || statistics("study") || !writes("update") || writes("find") {
		t.Error("the detector of statistics writes is blind")
	}
}
