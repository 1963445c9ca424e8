package authorityreads

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
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
	dir, err := os.MkdirTemp("/dev/shm", "authority-reads-test-")
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

// short are settings of a run that takes seconds.
func short() map[string]string {
	return map[string]string{
		"settle": "100ms", "measure": "600ms", "before": "300ms", "after": "2s", "outage": "1s",
		"deadline": "800ms", "people": "200", "hot": "8", "write_every": "20ms", "timing": "fast", "fault_load": "1x8",
	}
}

// compared is the quick protocol with another arm in the place of the treatment and
// the linearizable reader as its reference, all checks asked of both.
func compared(treatment string) []byte {
	s := string(quick)
	from, to := strings.Index(s, "\narms:\n"), strings.Index(s, "\nfactors:\n")
	s = s[:from] + fmt.Sprintf("\narms:\n  - {name: linearizable, func: linearizable}\n  - {name: %[1]s, func: %[1]s}\n", treatment) + s[to:]
	s = strings.ReplaceAll(s, "arms: [linearizable, shared]", "arms: [linearizable, "+treatment+"]")
	s = strings.ReplaceAll(s, "treatment: linearizable", "treatment: "+treatment)
	s = strings.NewReplacer("latency-3x32", "latency-1x8", "hot-3x32", "hot-1x8").Replace(s)
	return []byte(strings.ReplaceAll(s, "arm: shared,", "arm: "+treatment+","))
}

// carryOut runs the quick protocol's cells with an arm beside the linearizable reader.
func carryOut(t *testing.T, member []string, treatment string, extra arm, settings map[string]string, cells ...string) *flow.Outcome {
	t.Helper()
	all := arms()
	if extra.source != nil {
		all[treatment] = extra
	}
	study := newStudy(member, all, map[string][]byte{"": compared(treatment)})
	plan, err := flow.ReadStudy(study, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range cells {
		cells[i] = "scenario=" + cells[i]
	}
	reason, err := flow.Narrowing{Rounds: 1, Warmup: -1, Cells: cells, Settings: settings}.Apply(plan)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := flow.Freeze(context.Background(), plan, reason)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	o, err := flow.Run(context.Background(), plan, lock, flow.Options{Out: dir, Events: flow.Events{Note: func(s string) { t.Log(s) }}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// verdicts are the verdicts of the checks of an arm, worst of all its trials.
func verdicts(o *flow.Outcome, arm string) map[string]check.Result {
	out := map[string]check.Result{}
	for _, r := range o.Run.Records {
		if r.Trial == nil || r.Trial.Arm != arm {
			continue
		}
		for _, c := range r.Trial.Checks {
			worst, seen := out[c.Name]
			if !seen || check.Merge(worst.Verdict, c.Verdict) != worst.Verdict {
				out[c.Name] = c
			}
		}
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
		if r.Trial != nil {
			t.Logf("%s %s: %s %v %v", r.Trial.Cell, r.Trial.Arm, r.Trial.Status, r.Trial.Values, r.Trial.Notes)
			for _, c := range r.Trial.Checks {
				t.Logf("    %s %s %s %v %v", c.Name, c.Verdict, c.Message, c.Kinds, c.Examples)
			}
		}
	}
}
