package screening_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assaylab/assay/internal/defect"
	"github.com/assaylab/assay/screening"
)

// shape is a kind of change with the commands it may cost.
type shape struct {
	name    string
	options screening.Options
	prepare func(f *fixture, s *screening.Store, path screening.SavePath)
	do      func(f *fixture, s *screening.Store, path screening.SavePath) error
	source  int // commands with statistics off
	fold    int
	commits int // of both
}

func sub(study string) screening.Submission {
	return screening.Submission{Project: project, Study: study}
}

func session(f *fixture, s *screening.Store, path screening.SavePath, n *screening.Session) error {
	_, err := s.SaveSession(within(f.t), path, screening.SessionChange{Submission: sub("s0"), Reviewer: "r", Stage: title, ID: "n", Session: n})
	return err
}

func claim(project, study string) func(f *fixture, s *screening.Store, path screening.SavePath) error {
	return func(f *fixture, s *screening.Store, path screening.SavePath) error {
		_, err := s.Claim(within(f.t), path, screening.Claim{Submission: screening.Submission{Project: project, Study: study}, Reviewer: "r", Stage: title})
		return err
	}
}

func save(change func(*screening.Decision)) func(f *fixture, s *screening.Store, path screening.SavePath) error {
	return func(f *fixture, s *screening.Store, path screening.SavePath) error {
		d := decision("s0", "r", true)
		change(&d)
		_, err := s.Save(within(f.t), path, d)
		return err
	}
}

func eligible(f *fixture, _ *screening.Store, _ screening.SavePath) {
	f.t.Helper()
	must(f.t, f.admin.SetPolicy(within(f.t), project, true))
	must(f.t, f.admin.SetMembership(within(f.t), project, "r", true))
	must(f.t, f.admin.SetGrant(within(f.t), project, title, "r", true))
}

func shapes() []shape {
	elig := screening.Options{Eligibility: true}
	tracked := screening.Options{Tracking: true}
	open := func(f *fixture, s *screening.Store, path screening.SavePath) {
		must(f.t, session(f, s, path, &screening.Session{}))
	}
	return []shape{
		{name: "plain", do: save(func(*screening.Decision) {}), source: 2, fold: 4},
		{name: "guarded", do: save(func(d *screening.Decision) { d.Guarded = true }), source: 2, fold: 4},
		{name: "two namespaces", do: save(func(d *screening.Decision) { d.Session = &screening.Session{ID: "n"} }), source: 2, fold: 4},
		{name: "eligibility", options: elig, prepare: eligible, do: save(func(*screening.Decision) {}), source: 7, fold: 9, commits: 1},
		{name: "eligibility, guarded", options: elig, prepare: eligible, do: save(func(d *screening.Decision) { d.Guarded = true }), source: 7, fold: 9, commits: 1},
		{name: "session", do: func(f *fixture, s *screening.Store, path screening.SavePath) error {
			return session(f, s, path, &screening.Session{})
		}, source: 2, fold: 4},
		{name: "session, tracked", options: tracked, do: func(f *fixture, s *screening.Store, path screening.SavePath) error {
			return session(f, s, path, &screening.Session{})
		}, source: 4, fold: 6, commits: 1},
		{name: "session deleted", prepare: open, do: func(f *fixture, s *screening.Store, path screening.SavePath) error {
			return session(f, s, path, nil)
		}, source: 2, fold: 4},
		{name: "reservation released", prepare: func(f *fixture, s *screening.Store, path screening.SavePath) {
			must(f.t, claim(project, "s0")(f, s, path))
		}, do: func(f *fixture, s *screening.Store, path screening.SavePath) error {
			_, err := s.Release(within(f.t), path, screening.Release{Submission: sub("s0"), Reviewer: "r", Stage: title})
			return err
		}, source: 2, fold: 4},
		{name: "claim", do: claim(project, ""), source: 1, fold: 3},
		{name: "claim without the project", do: claim("", "s0"), source: 2, fold: 4},
		{name: "admission", options: elig, prepare: eligible, do: claim(project, "s0"), source: 5, fold: 7, commits: 1},
	}
}

// cost is what a call did, as the driver saw it.
type cost struct {
	commands         []string
	commits, tokens  int
	statisticsWrites []string
}

func costOf(commands []string) cost {
	c := cost{commands: commands}
	for _, line := range commands {
		name, collection, _ := strings.Cut(line, " ")
		write := name == "update" || name == "insert" || name == "delete" || name == "findAndModify"
		switch {
		case name == "commitTransaction":
			c.commits++
		case write && collection == "project":
			c.tokens++
		case write && strings.HasPrefix(collection, screening.StatisticsPrefix):
			c.statisticsWrites = append(c.statisticsWrites, line)
		}
	}
	return c
}

func measure(t *testing.T, sh shape, path screening.SavePath, d defect.Defect) cost {
	t.Helper()
	f := begin(t)
	must(t, f.admin.SetTracking(within(t), sh.options.Tracking))
	if path != screening.SourceOnly {
		f.mode(map[screening.SavePath]screening.Mode{screening.Fold: screening.ModeFold, screening.Transactional: screening.ModeTransactional, screening.ByMode: screening.ModeFold}[path])
	}
	o := sh.options
	o.Defect = d
	s := f.open(o)
	if sh.prepare != nil {
		sh.prepare(f, s, path)
	}
	c := costOf(f.seen.during(func() {
		if err := sh.do(f, s, path); err != nil {
			t.Errorf("%s by %v: %v", sh.name, path, err)
		}
	}))
	if path != screening.SourceOnly {
		f.drain()
		f.parity()
	}
	return c
}

// overBudget says what a fold shape does that it must not.
func overBudget(sh shape, off, fold cost) (faults []string) {
	if len(fold.commands) != sh.fold {
		faults = append(faults, fmt.Sprintf("%d commands, the budget is %d: %q", len(fold.commands), sh.fold, fold.commands))
	}
	if len(fold.statisticsWrites) > 0 {
		faults = append(faults, fmt.Sprintf("writes to statistics: %q", fold.statisticsWrites))
	}
	if off.commits != fold.commits || off.tokens != fold.tokens {
		faults = append(faults, fmt.Sprintf("%d commits and %d admission tokens, with statistics off %d and %d", fold.commits, fold.tokens, off.commits, off.tokens))
	}
	return faults
}

// tell prints how many commands a call took, for bench/bars.
func tell(t *testing.T, shape string, how any, commands []string) {
	t.Helper()
	t.Logf("figure: commands.%s.%v %d commands", strings.NewReplacer(", ", "-", " ", "-").Replace(shape), how, len(commands))
}

func TestNoFoldShapeWritesStatistics(t *testing.T) {
	for _, sh := range shapes() {
		t.Run(sh.name, func(t *testing.T) {
			off := measure(t, sh, screening.SourceOnly, defect.Defect{})
			tell(t, sh.name, screening.SourceOnly, off.commands)
			if len(off.commands) != sh.source || off.commits != sh.commits || off.tokens != sh.commits && sh.options.Eligibility {
				t.Errorf("source-only: %+v, the budget is %d commands and %d commits", off, sh.source, sh.commits)
			}
			for _, path := range []screening.SavePath{screening.Fold, screening.ByMode} {
				c := measure(t, sh, path, defect.Defect{})
				tell(t, sh.name, path, c.commands)
				for _, fault := range overBudget(sh, off, c) {
					t.Errorf("%v: %s", path, fault)
				}
			}
		})
	}
}

// TestTheDetectorsDetect is the positive control of the test above.
func TestTheDetectorsDetect(t *testing.T) {
	for _, sh := range shapes() {
		c := measure(t, sh, screening.Transactional, defect.Defect{})
		tell(t, sh.name, screening.Transactional, c.commands)
		if len(c.statisticsWrites) == 0 || c.commits != 1 {
			t.Errorf("%s: the transactional path writes no statistics: %+v", sh.name, c)
		} else if len(c.commands) > 21 {
			t.Errorf("%s: the transactional path costs %d commands: %q", sh.name, len(c.commands), c.commands)
		}
	}
	plain := shapes()[0]
	off := measure(t, plain, screening.SourceOnly, defect.Defect{})
	if faults := overBudget(plain, off, measure(t, plain, screening.Fold, defect.ExtraCommand())); len(faults) != 1 || !strings.Contains(faults[0], "5 commands") {
		t.Errorf("an extra command: %v", faults)
	}
	if faults := overBudget(plain, off, measure(t, plain, screening.Transactional, defect.Defect{})); len(faults) != 3 {
		t.Errorf("a transactional save passed for a fold: %v", faults)
	}
}
