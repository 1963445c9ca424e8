package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/protocol"
)

// dumpVar makes the test binary, run as an arm's command, write its
// environment to a file: unlike a shell it does not tidy it up first.
const dumpVar = "TRIAL_TEST_DUMP"

func TestMain(m *testing.M) {
	if exit, ok := Child(context.Background(), Funcs{Arms: armFuncs}); ok {
		os.Exit(exit)
	}
	if path := os.Getenv(dumpVar); path != "" {
		if err := os.WriteFile(path, []byte(strings.Join(os.Environ(), "\n")+"\n"), 0o644); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	hangGrace = 300 * time.Millisecond
	// The race detector would make every trial of a function wait a second
	// before it ends.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// rig is an executor with the folder of its protocol.
type rig struct {
	*Executor
	t   *testing.T
	dir string
}

// newRig makes an executor for a protocol of which only what matters is
// given: the arms, and what else may follow at the top level.
func newRig(t *testing.T, arms string, rest ...string) *rig {
	t.Helper()
	return newRigIn(t, t.TempDir(), Options{}, arms, rest...)
}

func newRigIn(t *testing.T, dir string, o Options, arms string, rest ...string) *rig {
	t.Helper()
	p := parse(t, arms, rest...)
	if o.Dir == "" {
		o.Dir = dir
	}
	if o.Scratch == "" {
		o.Scratch = filepath.Join(dir, "scratch")
	}
	o.Funcs = Funcs{Arms: armFuncs, Checks: checkFuncs}
	e, err := NewExecutor(p, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{e, t, dir}
	t.Cleanup(func() { r.Close(context.Background(), false) })
	return r
}

func parse(t *testing.T, arms string, rest ...string) *protocol.Protocol {
	t.Helper()
	text := `
assay: 1
name: rig
question: Does it run?
arms:
` + arms + `
primary: {metric: wall}
decision: {preset: four-branch}
` + strings.Join(rest, "\n") + "\n"
	for key, def := range map[string]string{
		"design:":  "design: {rounds: 12, seed: 7}\n",
		"metrics:": "metrics: [{name: wall, source: wall, better: lower}, {name: ops, source: json, better: higher}]\n",
	} {
		if !strings.Contains(text, "\n"+key) {
			text += def
		}
	}
	p, faults := protocol.Parse("exp.yaml", []byte(text), &protocol.Known{
		Arms: slices.Sorted(maps.Keys(armFuncs)), Checks: slices.Sorted(maps.Keys(checkFuncs)),
	})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return p
}

// shell is an arm list of one shell line and a bystander.
func shell(line string, more ...string) string {
	return fmt.Sprintf("  - {name: a, shell: %q%s}\n  - {name: other, command: [\"true\"]}", line, strings.Join(append([]string{""}, more...), ", "))
}

func (r *rig) slot(arm string, round int) Slot {
	return Slot{Cell: r.p.Cells()[0].Name, Round: round, Arm: arm, Seed: 100 + uint64(round)}
}

// once runs one trial of the first arm.
func (r *rig) once() *Observation {
	r.t.Helper()
	return r.trial("a", 0)
}

func (r *rig) trial(arm string, round int) *Observation {
	r.t.Helper()
	if err := r.Setup(context.Background(), arm); err != nil {
		r.t.Fatal(err)
	}
	o, err := r.Run(context.Background(), r.slot(arm, round), r.p.Cells()[0])
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

func (r *rig) scratchFile(name string) string {
	return filepath.Join(r.dir, "scratch", "trial", "a", name)
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func want(t *testing.T, o *Observation, status Status) {
	t.Helper()
	if o.Status != status {
		t.Fatalf("status is %s, not %s: %q %q", o.Status, status, o.Notes, o.Stderr)
	}
}

func noted(t *testing.T, o *Observation, part string) {
	t.Helper()
	if !slices.ContainsFunc(o.Notes, func(n string) bool { return strings.Contains(n, part) }) {
		t.Errorf("no note says %q: %q", part, o.Notes)
	}
}

// gone says whether there is no such process, or only a dead one.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// underRace is set where the race detector makes everything larger and slower.
var underRace bool
