package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/check"
)

var errArm = errors.New("arm says no")

var armFuncs = map[string]ArmFunc{
	"say": func(_ context.Context, t *T) error {
		t.Record("ops", 5)
		t.Record("half", 0.5)
		t.Samples("lat", []int64{3, 1})
		t.Samples("lat", []int64{2})
		t.Note("round %d of %s", t.Round, t.Cell)
		t.Report(check.Result{Name: "c", Verdict: check.Pass, Operations: 7, Kinds: map[string]int{"w": 2}, Faults: map[string]int{"cut": 1}, Examples: []string{"e"}, Message: "m"})
		return nil
	},
	"told": func(_ context.Context, t *T) error {
		// It speaks of itself in a file, since its fields are not recorded.
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if os.Getenv(childVar) != "" {
			return errors.New("what it starts would take itself for a trial")
		}
		return os.WriteFile(filepath.Join(t.Scratch, "told"), b, 0o644)
	},
	"contend": func(_ context.Context, t *T) error {
		t.Begin()
		contend()
		t.End()
		return nil
	},
	"env":   func(_ context.Context, t *T) error { t.Record("ops", float64(len(os.Getenv("MINE")))); return nil },
	"error": func(_ context.Context, t *T) error { t.Record("ops", 5); return errArm },
	"panic": func(_ context.Context, t *T) error { t.Record("ops", 5); panic("arm fell over") },
	"panic elsewhere": func(_ context.Context, t *T) error {
		go func() { panic("arm fell over elsewhere") }()
		select {}
	},
	"exit":   func(_ context.Context, t *T) error { t.Record("ops", 5); os.Exit(0); return nil },
	"goexit": func(_ context.Context, t *T) error { t.Record("ops", 5); runtime.Goexit(); return nil },
	"heed": func(ctx context.Context, t *T) error {
		t.Record("ops", 5)
		wait(ctx.Done())
		return nil
	},
	"heed with error": func(ctx context.Context, t *T) error {
		wait(ctx.Done())
		return ctx.Err()
	},
	"hang": func(ctx context.Context, t *T) error {
		t.Record("ops", 5)
		wait(released)
		return nil
	},
	"regions": func(_ context.Context, t *T) error {
		spin(40 * time.Millisecond)
		for range 2 {
			t.Begin()
			spin(5 * time.Millisecond)
			t.End()
		}
		t.End()
		t.Record("ops", t.Timed().Seconds())
		return nil
	},
	"open region": func(_ context.Context, t *T) error {
		spin(40 * time.Millisecond)
		t.Begin()
		spin(5 * time.Millisecond)
		return nil
	},
	"whole": func(_ context.Context, t *T) error { spin(5 * time.Millisecond); return nil },
	"bad": func(_ context.Context, t *T) error {
		zero := 0.0
		t.Record("nan", zero/zero)
		t.Record("inf", 1/zero)
		t.Record("twice", 1)
		t.Record("twice", 1)
		t.Record("assay_timed_ns", 1)
		t.Record("fine", 1)
		t.Samples("minus", []int64{1})
		t.Samples("minus", []int64{-1})
		t.Samples("fine", []int64{1})
		t.Report(check.Result{Name: "c", Verdict: check.Verdict(99)})
		return nil
	},
	"too many checks": func(_ context.Context, t *T) error {
		for range maxChecks + 1 {
			t.Report(check.Result{Name: "c", Verdict: check.Pass, Operations: 1})
		}
		return nil
	},
	"late": func(_ context.Context, t *T) error {
		// The goroutine outlives the function and goes on reporting.
		go func() {
			for i := range 20_000 {
				t.Record(fmt.Sprint("late", i), 1)
				t.Samples("late", []int64{1})
				t.Note("late")
				t.Report(check.Result{Name: "late"})
				runtime.Gosched()
			}
		}()
		return nil
	},
	"hungry": func(_ context.Context, t *T) error {
		b := make([]byte, 64<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		hwm, err := ownPeak()
		t.Record("hwm", float64(hwm))
		runtime.KeepAlive(b)
		return err
	},
	"hungry child": func(_ context.Context, t *T) error {
		return exec.Command("sh", "-c", "head -c 50000000 /dev/zero | tail -c 50000000 > /dev/null; true").Run()
	},
	"reporter": func(_ context.Context, t *T) error {
		v := check.Pass
		if t.Round == 1 {
			v = check.Fail
		}
		t.Report(check.Result{Name: "c", Verdict: v, Operations: 1})
		return nil
	},
}

// released never is: functions that hang end with the test binary.
var released chan struct{}

// wait keeps a timer, without which the runtime would take a function that
// hangs in a process of its own for a deadlock.
func wait(c <-chan struct{}) {
	select {
	case <-c:
	case <-time.After(time.Hour):
	}
}

func spin(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
		runtime.Gosched()
	}
}

func ownPeak() (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib int64
			_, err := fmt.Sscan(rest, &kib)
			return kib << 10, err
		}
	}
	return 0, errors.New("no VmHWM")
}

func function(name string, more ...string) string {
	return fmt.Sprintf("  - {name: a, func: %q%s}\n  - {name: other, func: say}", name, strings.Join(append([]string{""}, more...), ", "))
}

var isolations = map[string]string{
	"process": "design: {rounds: 12, seed: 7, isolation: process}",
	"shared":  "design: {rounds: 12, seed: 7, isolation: shared}",
}

func each(t *testing.T, do func(t *testing.T, design string)) {
	for name, design := range isolations {
		t.Run(name, func(t *testing.T) { do(t, design) })
	}
}

func TestAFunctionReports(t *testing.T) {
	each(t, func(t *testing.T, design string) {
		o := newRig(t, function("say"), design).once()
		want(t, o, StatusOK)
		if !maps.Equal(o.Values, map[string]float64{"ops": 5, "half": 0.5}) || !reflect.DeepEqual(o.Bulk, map[string][]int64{"lat": {3, 1, 2}}) {
			t.Errorf("%v %v", o.Values, o.Bulk)
		}
		noted(t, o, "round 0 of all")
		sound := check.Result{Name: "c", Verdict: check.Pass, Operations: 7, Kinds: map[string]int{"w": 2}, Faults: map[string]int{"cut": 1}, Examples: []string{"e"}, Message: "m"}
		if len(o.Checks) != 1 || !reflect.DeepEqual(o.Checks[0], sound) {
			t.Errorf("reported %+v", o.Checks)
		}
		if o.Garbled || o.Exit != 0 || o.Usage.Wall <= 0 {
			t.Errorf("%+v", o)
		}
	})
}

func TestAFunctionIsToldWhatItIs(t *testing.T) {
	each(t, func(t *testing.T, design string) {
		r := newRig(t, function("told", "env: {MINE: x}"), design, "factors: [{name: size, levels: [16]}]")
		want(t, r.trial("a", 3), StatusOK)
		var got T
		if err := json.Unmarshal([]byte(read(t, r.scratchFile("told"))), &got); err != nil {
			t.Fatal(err)
		}
		scratch := filepath.Join(r.dir, "scratch")
		want := T{
			Arm: "a", Cell: "size=16", Factors: map[string]string{"size": "16"}, Round: 3, Seed: 103,
			Scratch: filepath.Join(scratch, "trial", "a"), ArmDir: filepath.Join(scratch, "arms", "a"), Env: map[string]string{"MINE": "x"},
		}
		if !reflect.DeepEqual(&got, &want) {
			t.Errorf("told %+v", &got)
		}
	})
	if o := newRig(t, function("env", "env: {MINE: abc}")).once(); o.Values["ops"] != 3 {
		t.Errorf("in a process of its own its environment is not set: %v", o.Values)
	}
}

func TestAFunctionFails(t *testing.T) {
	each(t, func(t *testing.T, design string) {
		for name, note := range map[string]string{"error": "arm says no", "panic": "panic: arm fell over", "goexit": "instead of returning"} {
			r := newRig(t, function(name, "ok_exit: [0, 1, 2]"), design)
			o := r.once()
			if o.Status != StatusFailed || o.Values != nil {
				t.Errorf("%s: %s %v", name, o.Status, o.Values)
			}
			noted(t, o, note)
			if o := r.trial("other", 0); o.Status != StatusOK {
				t.Errorf("after %s: %s %q", name, o.Status, o.Notes)
			}
		}
	})
}

// In a process of its own a function may do its worst.
func TestAFunctionEndsItsProcess(t *testing.T) {
	r := newRig(t, function("exit"))
	o := r.once()
	want(t, o, StatusFailed)
	noted(t, o, "it must return")
	if o.Values != nil {
		t.Errorf("kept %v", o.Values)
	}
	o = newRig(t, function("panic elsewhere")).once()
	want(t, o, StatusFailed)
	if !strings.Contains(o.Stderr, "arm fell over elsewhere") {
		t.Errorf("stderr is %q", o.Stderr)
	}
}

func TestAFunctionRunsOutOfTime(t *testing.T) {
	each(t, func(t *testing.T, design string) {
		for _, name := range []string{"heed", "heed with error"} {
			o := newRig(t, function(name, "timeout: 300ms"), design).once()
			if o.Status != StatusTimeout || o.Values != nil || o.Exit != -1 {
				t.Errorf("%s: %s, exit %d, %v", name, o.Status, o.Exit, o.Values)
			}
		}
	})
	o := newRig(t, function("hang", "timeout: 300ms")).once()
	want(t, o, StatusTimeout)

	r := newRig(t, function("hang", "timeout: 100ms"), isolations["shared"])
	o, err := r.Run(context.Background(), r.slot("a", 0), r.p.Cells()[0])
	if !errors.Is(err, ErrHang) || !strings.Contains(err.Error(), "arm a, cell all, round 0") {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestTheTimedRegion(t *testing.T) {
	each(t, func(t *testing.T, design string) {
		for name, c := range map[string]struct{ least, most time.Duration }{
			"regions": {10 * time.Millisecond, 40 * time.Millisecond}, "open region": {5 * time.Millisecond, 40 * time.Millisecond}, "whole": {5 * time.Millisecond, time.Minute},
		} {
			o := newRig(t, function(name), design).once()
			want(t, o, StatusOK)
			// The upper bound is what is spent outside; a loaded machine can
			// stretch what is inside.
			if o.Usage.Wall < c.least || o.Usage.Wall > c.most+time.Second {
				t.Errorf("%s took %s", name, o.Usage.Wall)
			}
			if got := o.Values["ops"]; name == "regions" && got != o.Usage.Wall.Seconds() {
				t.Errorf("Timed says %v, the observation %v", got, o.Usage.Wall.Seconds())
			}
		}
	})
}

func TestWhatAFunctionMayNotReport(t *testing.T) {
	each(t, func(t *testing.T, design string) {
		o := newRig(t, function("bad"), design).once()
		want(t, o, StatusOK)
		delete(o.Values, "assay_timed_ns")
		if !maps.Equal(o.Values, map[string]float64{"fine": 1}) || !reflect.DeepEqual(o.Bulk, map[string][]int64{"fine": {1}}) {
			t.Errorf("%v %v", o.Values, o.Bulk)
		}
		if o.Usage.Wall == 1 {
			t.Error("the function set its own time")
		}
		if len(o.Checks) != 1 || o.Checks[0].Verdict != check.Unknown {
			t.Errorf("a verdict that is none became %+v", o.Checks)
		}
		o = newRig(t, function("too many checks"), design).once()
		if !o.Garbled || reported("c", []*Observation{o}).Verdict != check.Unknown {
			t.Errorf("garbled %v, %d checks", o.Garbled, len(o.Checks))
		}
	})
}

func TestAGoroutineThatOutlivesItsFunction(t *testing.T) {
	r := newRig(t, function("late"), isolations["shared"])
	for round := range 3 {
		o := r.trial("a", round)
		want(t, o, StatusOK)
		// The ledger encodes it now; the race detector is the judge.
		for range 100 {
			if _, err := json.Marshal(o); err != nil {
				t.Fatal(err)
			}
			_ = fmt.Sprint(o.Values, o.Bulk)
		}
	}
}

func TestChildLeavesOtherProcessesAlone(t *testing.T) {
	if _, ok := Child(context.Background(), Funcs{}); ok {
		t.Error("this process took itself for a trial")
	}
	for spec, why := range map[string]string{"{": "trial", `{"func":"none","t":{}}`: `"none"`} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVar+"="+spec)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 70 || !strings.Contains(string(out), why) {
			t.Errorf("with %s: %v, %s", spec, err, out)
		}
	}
}

func TestPeakMemoryIsTheTrialsOwn(t *testing.T) {
	metrics := "metrics: [{name: wall, source: wall, better: lower}, {name: mem, source: peak_memory, better: lower}, {name: hwm, source: json, better: lower}]"
	// The harness itself is large.
	ballast := make([]byte, 300<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	if own := peak(t); own < 300<<20 {
		t.Fatalf("the harness has a peak of %d MiB only", own>>20)
	}
	o := newRig(t, shell("true"), metrics).once()
	want(t, o, StatusOK)
	if m := o.Usage.PeakMemory; m <= 0 || m > 20<<20 {
		t.Errorf("a small command is said to have used %d MiB", m>>20)
	}
	o = newRig(t, function("hungry"), metrics).once()
	want(t, o, StatusOK)
	hwm := int64(o.Values["hwm"])
	// The kernel adds both up from per-processor counts and is a little off.
	const off = 2 << 20
	if m := o.Usage.PeakMemory; hwm < 64<<20 || m < hwm-off || m > hwm+off+8<<20 {
		t.Errorf("a function that saw itself use %d KiB is said to have used %d", hwm>>10, m>>10)
	}
	// tail keeps all of it.
	o = newRig(t, function("hungry child"), metrics).once()
	want(t, o, StatusOK)
	if m := o.Usage.PeakMemory; m < 45<<20 {
		t.Errorf("its child used 50 MB; it is said to be %d MiB", m>>20)
	}
	o = newRig(t, function("say"), isolations["shared"]).once()
	if o.Usage.PeakMemory != 0 {
		t.Errorf("in shared isolation peak memory is nobody's own, and is said to be %d", o.Usage.PeakMemory)
	}
	runtime.KeepAlive(ballast)
}
