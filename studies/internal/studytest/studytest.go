// Package studytest is what the tests of studies on a replica set share: a test program
// that is also the members of a set, temporary files in memory, and a run that tells
// what happened in it when its test fails. It must never know a study.
package studytest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/replset"
)

// memberArg makes a test program a member of a set.
const memberArg = "member"

// Main is a TestMain. It does not return.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == memberArg {
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
	dir, err := os.MkdirTemp("/dev/shm", "studytest-")
	if err != nil {
		return run()
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	return run()
}

// MemberCommand starts this test program, whose TestMain is Main, as a member.
func MemberCommand(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, memberArg}
}

// CarryOut runs a variant of a study, narrowed, to its verdict. When the test has failed
// in the end, it logs what the trials say.
func CarryOut(t *testing.T, study *flow.Study, variant string, n flow.Narrowing) *flow.Outcome {
	t.Helper()
	plan, err := flow.ReadStudy(study, variant)
	if err != nil {
		t.Fatal(err)
	}
	reason, err := n.Apply(plan)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := flow.Freeze(t.Context(), plan, reason)
	if err != nil {
		t.Fatal(err)
	}
	o, err := flow.Run(t.Context(), plan, lock, flow.Options{Out: filepath.Join(t.TempDir(), "run"), Events: flow.Events{Note: func(s string) { t.Log(s) }}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			tell(t, o)
		}
	})
	return o
}

func tell(t *testing.T, o *flow.Outcome) {
	for _, r := range o.Run.Records {
		switch {
		case r.Trial != nil:
			t.Logf("%s %s round %d: %s %v %v", r.Trial.Cell, r.Trial.Arm, r.Trial.Round, r.Trial.Status, r.Trial.Values, r.Trial.Notes)
			for _, c := range r.Trial.Checks {
				if c.Verdict != check.Pass {
					t.Logf("    %s %s %s %v %v", c.Name, c.Verdict, c.Message, c.Kinds, c.Examples)
				}
			}
		case r.Check != nil && r.Check.Result.Verdict != check.Pass:
			t.Logf("%s %s: %s", r.Check.Result.Name, r.Check.Result.Verdict, r.Check.Result.Message)
		}
	}
}
