package screeningwrite

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/replset"
)

// TestMain is also the member of a set whose members are processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "member" {
		if err := replset.RunMember(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(inMemory(m.Run))
}

// inMemory runs the tests with their temporary files in memory: what is tested here
// does not depend on a disk, but waits for it at every write.
func inMemory(run func() int) int {
	dir, err := os.MkdirTemp("/dev/shm", "screening-write-test-")
	if err != nil {
		return run()
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	return run()
}

func memberCommand(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, "member"}
}

// small are settings of a set that costs little: one member, in this process, without
// waiting for a disk.
func small(more ...string) map[string]string {
	s := map[string]string{"members": "1", "processes": "off", "sync": "off", "studies": "200"}
	for i := 0; i+1 < len(more); i += 2 {
		s[more[i]] = more[i+1]
	}
	return s
}

func cellName(target string, reviewers int, eligibility, regime string) string {
	return fmt.Sprintf("target=%s,reviewers=%d,eligibility=%s,regime=%s", target, reviewers, eligibility, regime)
}

// carryOut runs the quick protocol with these arms and settings; no cells are all.
func carryOut(t *testing.T, member []string, all map[string]arm, rounds int, settings map[string]string, cells ...string) *flow.Outcome {
	t.Helper()
	study := newStudy(member, all, map[string][]byte{"": quick})
	plan, err := flow.ReadStudy(study, "")
	if err != nil {
		t.Fatal(err)
	}
	reason, err := flow.Narrowing{Rounds: rounds, Warmup: -1, Cells: cells, Settings: settings}.Apply(plan)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := flow.Freeze(context.Background(), plan, reason)
	if err != nil {
		t.Fatal(err)
	}
	o, err := flow.Run(context.Background(), plan, lock, flow.Options{Out: filepath.Join(t.TempDir(), "run"), Events: flow.Events{Note: func(s string) { t.Log(s) }}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { told(t, o) })
	return o
}

// with are the arms with a changed one.
func with(name string, change func(*arm)) map[string]arm {
	all := maps.Clone(arms())
	a := all[name]
	change(&a)
	all[name] = a
	return all
}

// worst are the results of the checks, worst of all trials, rounds and the run.
func worst(o *flow.Outcome) map[string]check.Result {
	out := map[string]check.Result{}
	for _, c := range o.Results.Checks {
		out[c.Name] = c
	}
	return out
}

// told logs what the trials say, when a test has failed.
func told(t *testing.T, o *flow.Outcome) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, r := range o.Run.Records {
		switch {
		case r.Trial != nil:
			t.Logf("%s %s round %d: %s %v %v", r.Trial.Cell, r.Trial.Arm, r.Trial.Round, r.Trial.Status, r.Trial.Values, r.Trial.Notes)
			for _, c := range r.Trial.Checks {
				if c.Verdict != check.Pass {
					t.Logf("    %s %s %s %v", c.Name, c.Verdict, c.Message, c.Examples)
				}
			}
		case r.Check != nil && r.Check.Result.Verdict != check.Pass:
			t.Logf("%s %s: %s", r.Check.Result.Name, r.Check.Result.Verdict, r.Check.Result.Message)
		}
	}
}

// planned are the cells of a protocol by name.
func planned(t *testing.T, variant string) map[string]protocol.Cell {
	t.Helper()
	plan, err := flow.ReadStudy(New(nil), variant)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]protocol.Cell{}
	for _, c := range plan.Protocol.Cells() {
		out[c.Name] = c
	}
	return out
}
