package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/assaylab/assay/lab/check"
)

// ArmFunc executes one trial of an arm written in Go. An error is a failed
// trial; so is a panic.
type ArmFunc func(ctx context.Context, t *T) error

// CheckFunc judges. It sees what a check command sees. A panic is unknown.
type CheckFunc func(ctx context.Context, j *Judging) check.Result

// Funcs are the Go functions that a protocol may name.
type Funcs struct {
	Arms   map[string]ArmFunc
	Checks map[string]CheckFunc
}

// T is one trial as its function sees it. Its methods may be called from
// several goroutines, until the function returns; the fields are read-only.
type T struct {
	Arm      string            `json:"arm"`
	Cell     string            `json:"cell"`
	Factors  map[string]string `json:"factors,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	Round    int               `json:"round"`
	Warmup   bool              `json:"warmup,omitempty"`
	Slot     int               `json:"slot"`
	Seed     uint64            `json:"seed"`    // the same for all arms of the round
	Scratch  string            `json:"scratch"` // empty folder; what is left in it stays for the round's checks
	ArmDir   string            `json:"arm_dir"` // folder that lives as long as the run
	Env      map[string]string `json:"env,omitempty"`

	mu    sync.Mutex
	obs   *Observation
	rep   *report // nil once the function has returned
	begun time.Time
	timed time.Duration
	prof  *profiler // nil: no profiles are taken
}

// Begin starts the timed region. Without Begin the whole function is timed.
func (t *T) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prof.begin()
	t.begun = time.Now()
}

// End ends the timed region. Several regions add up.
func (t *T) End() {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun.IsZero() {
		t.timed += now.Sub(t.begun)
		t.begun = time.Time{}
	}
	t.prof.end()
}

// Timed is the length of the timed regions that have ended.
func (t *T) Timed() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.timed
}

// say is for what a goroutine may still do that outlives the function: it is
// not kept, because the observation is on its way to the ledger.
func (t *T) say(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rep != nil {
		do()
	}
}

// Record keeps a scalar. The same key twice counts as missing.
func (t *T) Record(key string, v float64) { t.say(func() { t.rep.value(key, v) }) }

// SeriesSuffix ends the names of samples that are a series: one value for each second
// of the trial, in order. The page plots them over time.
const SeriesSuffix = "_per_second"

// Samples keeps bulk samples, usually nanoseconds; several calls with one
// name add up. With a negative one all of that name are missing. See
// SeriesSuffix for samples whose order means something.
func (t *T) Samples(name string, v []int64) { t.say(func() { t.rep.keep(name, v) }) }

// Report keeps a check's result, for checks that the protocol declares as
// reported.
func (t *T) Report(r check.Result) { t.say(func() { t.rep.result(r) }) }

// Note keeps a remark beside the observation.
func (t *T) Note(format string, args ...any) { t.say(func() { t.rep.note(format, args...) }) }

// call runs the function and fills in the observation. A panic is an error,
// and so is to leave by runtime.Goexit, as the assertions of tests do.
func (t *T) call(ctx context.Context, f ArmFunc, obs *Observation) {
	t.obs, t.rep = obs, newReport(obs, t.Scratch)
	err := errors.New("the function ended its goroutine instead of returning")
	start := time.Now()
	defer func() {
		end := time.Now()
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.prof.end()
		if t.prof != nil && t.prof.err != nil {
			t.rep.note("profiles: %v", t.prof.err)
		}
		if !t.begun.IsZero() {
			t.timed += end.Sub(t.begun)
		}
		obs.Usage.Wall = end.Sub(start)
		if t.timed > 0 {
			obs.Usage.Wall = t.timed
		}
		if err != nil {
			obs.Status, obs.Exit = StatusFailed, 1
			t.rep.note("%v", err)
		}
		t.rep.finish()
		t.rep = nil
	}()
	err = f(ctx, t)
}

// Variables by which the harness tells a re-executed program what to run.
const (
	childVar   = "ASSAY_TRIAL"
	timedKey   = "assay_timed_ns"
	garbledKey = "assay_garbled"
)

// Child runs the trial that this process was re-executed for and returns its
// exit status; ok is false in every other process.
func Child(ctx context.Context, funcs Funcs) (exit int, ok bool) {
	spec := os.Getenv(childVar)
	if spec == "" {
		return 0, false
	}
	var c childSpec
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		fmt.Fprintln(os.Stderr, "assay: trial:", err)
		return 70, true
	}
	f := funcs.Arms[c.Func]
	if f == nil {
		fmt.Fprintf(os.Stderr, "assay: trial: this program has no arm function %q\n", c.Func)
		return 70, true
	}
	c.T.prof = c.Profiler
	// What the function starts must not take itself for a trial.
	os.Unsetenv(childVar)
	obs := &Observation{Status: StatusOK}
	// Not in this goroutine, which a function may end.
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.T.call(ctx, f, obs)
	}()
	<-done
	if err := writeReport(os.Getenv("ASSAY_OUT"), c.T.Scratch, obs); err != nil {
		fmt.Fprintln(os.Stderr, "assay: trial:", err)
		return 70, true
	}
	return obs.Exit, true
}

type childSpec struct {
	Func     string    `json:"func"`
	T        *T        `json:"t"`
	Profiler *profiler `json:"profiler,omitempty"`
}

// writeReport says in the arms' own language what the function recorded.
func writeReport(path, scratch string, obs *Observation) error {
	var lines []any
	values := map[string]any{}
	for k, v := range obs.Values {
		values[k] = v
	}
	values[timedKey] = float64(obs.Usage.Wall)
	if obs.Garbled {
		values[garbledKey] = 1
	}
	lines = append(lines, values)
	for _, n := range obs.Notes {
		lines = append(lines, map[string]string{"note": n})
	}
	for _, c := range obs.Checks {
		lines = append(lines, map[string]any{
			"check": c.Name, "status": c.Verdict.String(), "message": c.Message, "operations": c.Operations,
			"kinds": c.Kinds, "faults": c.Faults, "examples": c.Examples,
		})
	}
	n := 0
	for name, s := range obs.Bulk {
		file := filepath.Join(filepath.Dir(path), fmt.Sprintf("samples-%d.i64", n))
		n++
		if err := os.WriteFile(file, EncodeSamples(s), 0o600); err != nil {
			return err
		}
		lines = append(lines, map[string]string{"samples": name, "file": file})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return f.Close()
}
