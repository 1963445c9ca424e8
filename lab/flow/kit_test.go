package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// long turns the forms of the tests on that take minutes.
func long() bool { return os.Getenv("ASSAY_LONG") != "" }

func TestMain(m *testing.M) {
	for _, s := range studies {
		if exit, ok := trial.Child(context.Background(), s.funcs()); ok {
			os.Exit(exit)
		}
	}
	if spec := os.Getenv(childVar); spec != "" {
		os.Exit(child(spec))
	}
	// The race detector would make every child wait a second before it ends.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(inMemory(m.Run))
}

// disk is where temporary files are without inMemory.
var disk = os.TempDir()

// inMemory runs the tests with their temporary files in memory: what is tested
// here does not depend on a disk, but waits for it several times per run. The
// long forms use the disk.
func inMemory(run func() int) int {
	if long() {
		return run()
	}
	dir, err := os.MkdirTemp("/dev/shm", "flow-test-")
	if err != nil {
		return run()
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	return run()
}

// told is a protocol whose figures follow from seed and arm alone, so that all
// its runs have the same results, and whose every trial leaves a line in the
// file SIDE and a file in its scratch folder.
const told = `
assay: 1
name: told
question: Does it come out the same?
arms:
  - {name: control, command: [./arm.sh, "0"]}
  - {name: treatment, command: [./arm.sh, "1"]}
factors: [{name: size, levels: [1, 2]}]
design: {rounds: 3, warmup: 1, seed: 11}
metrics:
  - {name: ops, source: json, better: higher}
  - {name: lat, source: samples, quantile: 0.5, better: lower}
checks:
  - {name: sound, scope: trial, reported: true, operations: 2}
  - {name: left, scope: trial, shell: 'test -s "$ASSAY_SCRATCH/left"'}
  - {name: same, scope: round, shell: 'cmp "$ASSAY_SCRATCH/control/left" "$ASSAY_SCRATCH/treatment/left" && grep -q "^$ASSAY_ROUND " "$ASSAY_SCRATCH/control/left"'}
  - {name: cell, scope: cell, shell: 'test -s "$ASSAY_SCRATCH/control/left" && test -n "$ASSAY_FACTOR_SIZE"'}
  - {name: run, scope: run, shell: 'test -s "$ASSAY_SCRATCH/treatment/left"'}
primary: {metric: ops, alpha: 0.2}
decision: {preset: four-branch}
`

// script is arm.sh.
const script = `#!/bin/sh
echo "$ASSAY_CELL $ASSAY_ROUND $ASSAY_ARM" >> "$SIDE"
digits=${ASSAY_SEED#${ASSAY_SEED%????}}
value=$(( 1$digits + $1 * (500 + ${digits#???}) ))
echo "{\"ops\": $value}"
echo "{\"samples\": \"lat\", \"values\": [$value, 3, 2]}"
echo '{"check": "sound", "status": "pass", "operations": 2}'
echo "$ASSAY_ROUND $digits" > "$ASSAY_SCRATCH/left"
`

// with is told with replacements of its text.
func with(replace ...string) string { return strings.NewReplacer(replace...).Replace(told) }

// bench is a folder with a protocol file and its plan.
type bench struct {
	t    testing.TB
	dir  string
	plan *Plan
}

func newBench(t testing.TB, text string) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	b.write("exp.yaml", text)
	b.write("arm.sh", script)
	b.read()
	t.Setenv("SIDE", filepath.Join(b.dir, "side"))
	return b
}

func (b *bench) read() {
	b.t.Helper()
	plan, err := ReadFile(filepath.Join(b.dir, "exp.yaml"), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.plan = plan
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) freeze() *protocol.Lock {
	b.t.Helper()
	lock, _, err := FreezeFile(context.Background(), b.plan)
	if err != nil {
		b.t.Fatal(err)
	}
	return lock
}

// run runs the plan into a folder of that name.
func (b *bench) run(name string) *Outcome {
	b.t.Helper()
	o, err := Run(context.Background(), b.plan, b.freeze(), Options{Out: b.path(name)})
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

// stopAfter runs or resumes until n trials were recorded in this part, with
// nothing judged after them.
func (b *bench) stopAfter(n int, start func(context.Context, Options) (*Outcome, error)) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := Options{}
	o.Events.Trial = func(*trial.Observation) {
		if n--; n == 0 {
			cancel()
		}
	}
	if n == 0 {
		o.Events.Trial, o.Events.Begin = nil, func(string, int) { cancel() }
	}
	if _, err := start(ctx, o); !errors.Is(err, context.Canceled) {
		b.t.Fatalf("a stopped run says %v", err)
	}
}

func (b *bench) starting(name string, base Options) func(context.Context, Options) (*Outcome, error) {
	lock := b.freeze()
	return func(ctx context.Context, o Options) (*Outcome, error) {
		base.Out, base.Events = b.path(name), o.Events
		return Run(ctx, b.plan, lock, base)
	}
}

func (b *bench) resuming(name string) func(context.Context, Options) (*Outcome, error) {
	return func(ctx context.Context, o Options) (*Outcome, error) { return Resume(ctx, b.path(name), studies, o) }
}

func (b *bench) resume(name string) *Outcome {
	b.t.Helper()
	o, err := Resume(context.Background(), b.path(name), studies, Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

func slurp(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

func intact(t testing.TB, dir string) *ledger.Run {
	t.Helper()
	run, problems, err := Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) > 0 {
		t.Fatalf("%s is not intact: %v", dir, problems)
	}
	return run
}

// found is what a run found: its results without the state of the machine,
// which no two runs share, and its verdict.
func found(t testing.TB, dir string) string {
	t.Helper()
	var r analysis.Results
	if err := json.Unmarshal([]byte(slurp(t, filepath.Join(dir, ledger.ResultsFile))), &r); err != nil {
		t.Fatal(err)
	}
	r.Host = analysis.Host{}
	return string(r.Bytes()) + slurp(t, filepath.Join(dir, ledger.VerdictFile))
}

// trials lists the trials of a run in the order of the ledger.
func trials(run *ledger.Run) (out []string) {
	for _, rec := range run.Records {
		if o := rec.Trial; o != nil {
			out = append(out, fmt.Sprint(o.Cell, " ", o.Round, " ", o.Arm))
		}
	}
	return out
}

func scheduled(p *protocol.Protocol) (out []string) {
	for _, rd := range trial.Schedule(p) {
		for _, s := range rd.Slots {
			out = append(out, fmt.Sprint(s.Cell, " ", s.Round, " ", s.Arm))
		}
	}
	return out
}

// side counts the lines that trials have left behind.
func side(t testing.TB, path string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	n := map[string]int{}
	for line := range bytes.Lines(b) {
		n[strings.TrimSpace(string(line))]++
	}
	return n
}

// seeded is a random source whose seed is told with a failure.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("ASSAY_TEST_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with: ASSAY_TEST_SEED=%d go test -run '^%s$' ./lab/flow", seed, t.Name())
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}
