package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/ledger"
)

// childVar makes the test binary run or resume a run, to be killed meanwhile, or
// analyse one as an ordinary user.
const childVar = "FLOW_TEST_CHILD"

func child(spec string) int {
	verb, rest, _ := strings.Cut(spec, " ")
	dir, rest, _ := strings.Cut(rest, " ")
	scratch, file, _ := strings.Cut(rest, " ")
	err := func() error {
		switch verb {
		case "resume":
			_, err := Resume(context.Background(), dir, nil, Options{})
			return err
		case "analyze":
			if err := syscall.Setuid(ordinary); err != nil {
				return err
			}
			_, err := Analyze(dir, false)
			return err
		}
		plan, err := ReadFile(file, nil)
		if err != nil {
			return err
		}
		lock, err := ReadLockFile(plan.LockPath())
		if err != nil {
			return err
		}
		_, err = Run(context.Background(), plan, lock, Options{Out: dir, Scratch: scratch})
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// killing is a run that is killed again and again.
type killing struct {
	*bench
	rng     *rand.Rand
	dir     string // run folder
	scratch string
	side    string
	mark    string // in the environment of every process of the run
	whole   time.Duration
	ran     map[string]int // trial to how often it had run when it was recorded
	kills   int
	late    int // kills after the last trial
}

func (k *killing) start() (*exec.Cmd, *os.File) {
	k.t.Helper()
	verb := "run"
	if ledger.Exists(k.dir) {
		verb = "resume"
	}
	said, err := os.Create(k.bench.path("said"))
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+strings.Join([]string{verb, k.dir, k.scratch, k.plan.Path}, " "), "SIDE="+k.side, k.mark)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	return cmd, said
}

// moment is closed when the run is to be killed: at a random time, or a random
// time after it has written so much.
func (k *killing) moment(ended <-chan struct{}) <-chan struct{} {
	now := make(chan struct{})
	var delay time.Duration
	reached := func() bool { return true }
	switch k.rng.IntN(4) {
	case 0:
		delay = time.Duration(k.rng.Int64N(int64(k.whole)))
	case 1, 2:
		size := func() int64 {
			info, err := os.Stat(filepath.Join(k.dir, ledger.ObservationsFile))
			if err != nil {
				return 0
			}
			return info.Size()
		}
		goal := size() + 1 + k.rng.Int64N(5000)
		reached = func() bool { return size() >= goal }
		delay = time.Duration(k.rng.Int64N(int64(5 * time.Millisecond)))
	default:
		// The end of a run is short and has many steps.
		work := filepath.Join(k.dir, ledger.ScratchDir, workDir)
		if k.scratch != "" {
			work = filepath.Join(k.scratch, "assay-"+filepath.Base(k.dir)+"-*")
		}
		begun := false
		removed := func() bool {
			there := len(glob(k.t, work)) > 0
			begun = begun || there
			return begun && !there
		}
		written := filepath.Join(k.dir, []string{ledger.ResultsFile, ledger.SealFile, ledger.VerdictFile}[k.rng.IntN(3)])
		reached = func() bool { return !missing(written) }
		if k.rng.IntN(2) == 0 {
			reached = removed
		}
		delay = time.Duration(k.rng.Int64N(int64(time.Millisecond)))
	}
	go func() {
		defer close(now)
		tick := time.NewTicker(50 * time.Microsecond)
		defer tick.Stop()
		for !reached() {
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
		select {
		case <-time.After(delay):
		case <-ended:
		}
	}()
	return now
}

// live starts the run and kills it; it says whether the run had ended by
// itself before.
func (k *killing) live() (done bool) {
	k.t.Helper()
	cmd, said := k.start()
	defer said.Close()
	ended := make(chan struct{})
	var failed error
	go func() {
		failed = cmd.Wait()
		close(ended)
	}()
	<-k.moment(ended)
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		k.t.Fatal(err)
	}
	<-ended
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		k.kills++
	case failed != nil:
		k.t.Fatalf("the run failed by itself: %v\n%s", failed, slurp(k.t, k.bench.path("said")))
	default:
		done = true
	}
	k.alone()
	k.inspect()
	// Only the page may be missing then.
	return done || !missing(filepath.Join(k.dir, ledger.VerdictFile))
}

// alone waits until no process of the run is left.
func (k *killing) alone() {
	k.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
		var left []string
		all, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			k.t.Fatal(err)
		}
		for _, path := range all {
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(k.mark)) {
				left = append(left, filepath.Base(filepath.Dir(path)))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("processes %v of the killed run are still there", left)
		}
	}
}

// inspect checks what a kill has left.
func (k *killing) inspect() {
	k.t.Helper()
	if !ledger.Exists(k.dir) {
		return
	}
	run := intact(k.t, k.dir)
	plan := scheduled(k.plan.Protocol)
	got := trials(run)
	if len(got) > len(plan) || !slices.Equal(got, plan[:len(got)]) {
		k.t.Fatalf("the ledger has the trials %q; the schedule is %q", got, plan)
	}
	if len(got) == len(plan) && !run.Sealed {
		k.late++
	}
	now := side(k.t, k.side)
	for _, name := range got {
		if _, known := k.ran[name]; !known {
			k.ran[name] = now[name]
		}
		if now[name] != k.ran[name] || now[name] == 0 {
			k.t.Fatalf("trial %q was recorded after %d runs and has run %d times", name, k.ran[name], now[name])
		}
	}
}

// The figures of a run that was killed are those of one that was not.
func TestKillsCostNothingButTime(t *testing.T) {
	b := newBench(t, with("{name: control,", "{name: control, setup: 'sleep 1000 &',"))
	began := time.Now()
	b.run("whole")
	whole := time.Since(began)
	want := found(t, b.path("whole"))
	least := 20
	if long() {
		least = 250
	}
	rng := seeded(t)
	kills, late, runs := 0, 0, 0
	for ; kills < least; runs++ {
		k := &killing{
			bench: b, rng: rng, dir: b.path(fmt.Sprintf("run%d", runs)), side: b.path(fmt.Sprintf("side%d", runs)), mark: fmt.Sprintf("FLOW_TEST_RUN=%s.", b.path(fmt.Sprint(runs))),
			whole: whole, ran: map[string]int{},
		}
		if runs%2 == 1 {
			k.scratch = b.path("elsewhere")
		}
		for !k.live() {
		}
		kills, late = kills+k.kills, late+k.late
		if run := intact(t, k.dir); !run.Sealed {
			t.Fatal("it is done and not sealed")
		}
		if got := found(t, k.dir); got != want {
			t.Fatalf("after %d kills it found\n%s\nand not\n%s", k.kills, got, want)
		}
		if !missing(filepath.Join(k.dir, ledger.ScratchDir)) {
			t.Error("the scratch folder is still there")
		}
		if runs%2 == 1 {
			// A kill between making the folder and noting it leaves it empty.
			for _, left := range glob(t, b.path("elsewhere/*")) {
				if inside := glob(t, filepath.Join(left, "*")); len(inside) > 0 {
					t.Errorf("left behind: %q", inside)
				}
			}
		}
	}
	t.Logf("%d kills in %d runs, %d of them after the last trial; one run without takes %s", kills, runs, late, whole)
	t.Logf("figure: flow.kills %d kills", kills)
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
