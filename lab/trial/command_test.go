package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assaylab/assay/internal/spawn"
	"github.com/assaylab/assay/lab/protocol"
)

func environ(t *testing.T, path string) map[string]string {
	t.Helper()
	env := map[string]string{}
	for line := range strings.Lines(read(t, path)) {
		k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if _, twice := env[k]; twice {
			t.Errorf("%s stands twice in the environment", k)
		}
		env[k] = v
	}
	return env
}

func TestATrialIsToldWhatItIs(t *testing.T) {
	t.Setenv("ASSAY_FACTOR_SIZE", "from outside")
	t.Setenv("ASSAY_NONSENSE", "from outside")
	r := newRig(t, shell("env > dump", "env: {MINE: \"1 2\"}"),
		"factors: [{name: size, levels: [16, 64]}]",
		"design: {rounds: 12, warmup: 1, seed: 7}")
	cell := r.p.Cells()[1]
	scratch := filepath.Join(r.dir, "scratch")
	for _, warmup := range []bool{false, true} {
		slot := Slot{Cell: cell.Name, Round: 3, Warmup: warmup, Slot: 1, Arm: "a", Seed: 1<<64 - 1}
		o, err := r.Run(context.Background(), slot, cell)
		if err != nil {
			t.Fatal(err)
		}
		want(t, o, StatusOK)
		if o.Cell != slot.Cell || o.Round != 3 || o.Slot != 1 || o.Arm != "a" || o.Seed != slot.Seed || o.Warmup != warmup || o.Start.IsZero() || o.Usage.Wall <= 0 {
			t.Errorf("the observation says %+v", o)
		}
		env := environ(t, filepath.Join(r.dir, "dump"))
		for k, v := range map[string]string{
			"ASSAY_ARM": "a", "ASSAY_CELL": "size=64", "ASSAY_ROUND": "3", "ASSAY_SLOT": "1", "ASSAY_SEED": "18446744073709551615",
			"ASSAY_PHASE": map[bool]string{true: "warmup", false: "measure"}[warmup], "ASSAY_SCRATCH": filepath.Join(scratch, "trial", "a"),
			"ASSAY_OUT": filepath.Join(scratch, "out", "report.jsonl"), "ASSAY_ARM_DIR": filepath.Join(scratch, "arms", "a"),
			"ASSAY_PROTOCOL_DIR": r.dir, "ASSAY_FACTOR_SIZE": "64", "MINE": "1 2", "PATH": os.Getenv("PATH"),
		} {
			if env[k] != v {
				t.Errorf("%s is %q, not %q", k, env[k], v)
			}
		}
		for _, name := range protocol.TrialVars {
			if _, ok := env[name]; !ok {
				t.Errorf("%s is promised and not there", name)
			}
		}
		if v, ok := env["ASSAY_NONSENSE"]; ok {
			t.Errorf("a variable of an outer run came through: %q", v)
		}
	}
}

// A program that asks for a variable gets the first of several, a shell the
// last: an arm's own value must be the only one.
func TestAnArmsVariableIsTheOnlyOne(t *testing.T) {
	t.Setenv("TRIAL_TEST_SHADOWED", "of the harness")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dump := filepath.Join(t.TempDir(), "dump")
	r := newRig(t, fmt.Sprintf("  - {name: a, command: [%s], env: {TRIAL_TEST_SHADOWED: of the arm, %s: %s}}\n  - {name: other, command: [\"true\"]}", self, dumpVar, dump))
	want(t, r.once(), StatusOK)
	if got := environ(t, dump)["TRIAL_TEST_SHADOWED"]; got != "of the arm" {
		t.Errorf("the arm sees %q", got)
	}
}

// The place of the stack must not be the same in all trials of an arm.
func TestTheEnvironmentVariesInSize(t *testing.T) {
	r := newRig(t, shell("true"))
	sizes := map[int]bool{}
	for round := range 20 {
		slot := r.slot("a", round)
		env := r.env(r.arms["a"], "measure", r.p.Cells()[0], slot, "out")
		sizes[len(strings.Join(env, ""))] = true
		if again := r.env(r.arms["a"], "measure", r.p.Cells()[0], slot, "out"); !slices.Equal(env, again) {
			t.Fatal("the same trial has another environment")
		}
	}
	if len(sizes) < 15 {
		t.Errorf("20 rounds have only %d sizes", len(sizes))
	}
}

func TestVariablesInArguments(t *testing.T) {
	r := newRig(t, `  - name: a
    command: [sh, -c, 'printf "%s\n" "$@" > args', x, "${ASSAY_ARM}", "a${ASSAY_FACTOR_SIZE}b${ASSAY_ROUND}", "${MINE}", "$MINE", "{MINE}"]
    env: {MINE: "${ASSAY_ARM}"}
  - {name: other, command: ["true"]}`, "factors: [{name: size, levels: [16]}]")
	want(t, r.once(), StatusOK)
	if got := read(t, filepath.Join(r.dir, "args")); got != "a\na16b0\n${ASSAY_ARM}\n$MINE\n{MINE}\n" {
		t.Errorf("arguments are %q", got)
	}
}

// The program itself may be what is varied.
func TestAProgramNamedByAFactor(t *testing.T) {
	r := newRig(t, "  - {name: a, command: [\"${ASSAY_FACTOR_PROGRAM}\"]}\n  - {name: other, command: [\"true\"]}",
		"factors: [{name: program, levels: [\"true\", \"false\", none]}]")
	for i, status := range []Status{StatusOK, StatusFailed, StatusNoStart, StatusOK} {
		cell := r.p.Cells()[i%3]
		o, err := r.Run(context.Background(), r.slot("a", 0), cell)
		if err != nil {
			t.Fatal(err)
		}
		if o.Status != status {
			t.Errorf("cell %s: %s, not %s", cell.Name, o.Status, status)
		}
	}
}

func TestTheWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := newRigIn(t, dir, Options{}, shell("pwd > $ASSAY_SCRATCH/pwd", "dir: sub"))
	want(t, r.once(), StatusOK)
	if got := read(t, r.scratchFile("pwd")); got != filepath.Join(dir, "sub")+"\n" {
		t.Errorf("it runs in %q", got)
	}
}

func TestHooksRunWhenTheyShould(t *testing.T) {
	log := `echo $ASSAY_PHASE $ASSAY_ROUND $(basename $ASSAY_SCRATCH) >> $ASSAY_PROTOCOL_DIR/log`
	r := newRig(t, fmt.Sprintf("  - {name: a, shell: %q, setup: %[1]q, prepare: %[1]q, cleanup: %[1]q}\n  - {name: other, shell: \"true\", cleanup: %[1]q}", log))
	for round := range 3 {
		want(t, r.trial("a", round), StatusOK)
	}
	if err := r.Close(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, filepath.Join(r.dir, "log")), "setup 0 a\nprepare 0 a\nmeasure 0 a\nprepare 1 a\nmeasure 1 a\nprepare 2 a\nmeasure 2 a\ncleanup 0 a\n"; got != want {
		t.Errorf("hooks ran as\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "scratch")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the scratch folder of a finished run is still there: %v", err)
	}
}

func TestCleanUpComesAfterAFailureToo(t *testing.T) {
	r := newRig(t, shell("exit 3", "setup: \"touch it; exit 1\"", "cleanup: \"touch cleaned\""))
	err := r.Setup(context.Background(), "a")
	if err == nil || !strings.Contains(err.Error(), "setup of arm a") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("setup says %v", err)
	}
	if err := r.Close(context.Background(), false); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "cleaned")); err != nil {
		t.Error("what a failed setup began was not cleaned up")
	}

	r = newRig(t, shell("exit 3", "cleanup: \"echo why; exit 7\""))
	want(t, r.once(), StatusFailed)
	err = r.Close(context.Background(), false)
	if err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "why") {
		t.Errorf("a clean-up that failed says %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "scratch")); err != nil {
		t.Error("an unfinished run lost its scratch folder")
	}
}

func TestAFailedPrepareIsAFailedTrial(t *testing.T) {
	r := newRig(t, shell("touch ran", "prepare: \"echo because >&2; exit 9\""))
	o := r.once()
	want(t, o, StatusPrepare)
	noted(t, o, "exit status 9")
	if o.Exit != -1 || o.Stderr != "because" || o.Start.IsZero() {
		t.Errorf("%+v", o)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "ran")); err == nil {
		t.Error("the trial ran all the same")
	}
	o = newRig(t, shell("true", "prepare: \"kill -9 $$\"")).once()
	want(t, o, StatusPrepare)
	noted(t, o, "SIGKILL")
}

// A daemon that setup starts serves all trials and ends with the run.
func TestWhatSetupStartsLivesAsLongAsTheRun(t *testing.T) {
	r := newRig(t, shell("kill -0 $(cat $ASSAY_ARM_DIR/pid)", "setup: \"sleep 300 & echo $! > $ASSAY_SCRATCH/pid\"", "cleanup: \"kill -0 $(cat $ASSAY_SCRATCH/pid)\""))
	for round := range 3 {
		want(t, r.trial("a", round), StatusOK)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(r.dir, "scratch", "arms", "a", "pid"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(context.Background(), false); err != nil {
		t.Error(err)
	}
	if !gone(pid) {
		t.Error("it outlived the run")
	}
}

func TestHowATrialEnds(t *testing.T) {
	for _, c := range []struct {
		what, arms string
		status     Status
		exit       int
		signal     string
		note       string
	}{
		{"success", shell("true"), StatusOK, 0, "", ""},
		{"failure", shell("exit 4"), StatusFailed, 4, "", "exit status 4"},
		{"an exit status that counts as success", shell("exit 3", "ok_exit: [0, 3]"), StatusOK, 3, "", ""},
		{"one that does not", shell("exit 2", "ok_exit: [0, 3]"), StatusFailed, 2, "", "exit status 2"},
		{"success that does not count", shell("exit 0", "ok_exit: [3]"), StatusFailed, 0, "", "exit status 0"},
		{"a crash", shell("kill -SEGV $$"), StatusFailed, -1, "SIGSEGV", "ended by SIGSEGV"},
		{"a kill", shell("kill -KILL $$"), StatusFailed, -1, "SIGKILL", "ended by SIGKILL"},
		{"a signal without a name of its own", shell("kill -USR1 $$"), StatusFailed, -1, "signal 10", "ended by signal 10"},
		{"a missing program in a shell", shell("no-such-program"), StatusFailed, 127, "", "exit status 127"},
		{"a missing program", "  - {name: a, command: [no-such-program]}\n  - {name: other, shell: \"true\"}", StatusNoStart, -1, "", "no-such-program"},
		{"a missing path", "  - {name: a, command: [./none/such]}\n  - {name: other, shell: \"true\"}", StatusNoStart, -1, "", "none/such"},
		{"a folder as a program", "  - {name: a, command: [/tmp]}\n  - {name: other, shell: \"true\"}", StatusNoStart, -1, "", "/tmp"},
		{"no interpreter", "  - {name: a, command: [./script]}\n  - {name: other, shell: \"true\"}", StatusNoStart, -1, "", "interpreter"},
		{"no program at all", "  - {name: a, command: [./text]}\n  - {name: other, shell: \"true\"}", StatusNoStart, -1, "", "neither a program"},
	} {
		r := newRig(t, c.arms)
		for name, text := range map[string]string{"script": "#!/no/such/interpreter\n", "text": "just words\n"} {
			if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		o := r.once()
		if o.Status != c.status || o.Exit != c.exit || o.Signal != c.signal {
			t.Errorf("%s: %s, exit %d, signal %q: %q", c.what, o.Status, o.Exit, o.Signal, o.Notes)
		}
		if c.note != "" {
			noted(t, o, c.note)
		}
		// Whatever happened, the next trial is another one.
		if o := r.trial("other", 0); o.Status != StatusOK {
			t.Errorf("after %s: %s %q", c.what, o.Status, o.Notes)
		}
	}
}

func TestAFailedTrialHasNoFigures(t *testing.T) {
	r := newRig(t, shell(`echo '{"ops": 5}'; echo '{"ops2": 6}' > $ASSAY_OUT; echo '{"samples": "s", "values": [1]}' >> $ASSAY_OUT; echo 'BenchmarkX 1 5 ns/op'; exit 1`))
	o := r.once()
	want(t, o, StatusFailed)
	if len(o.Values)+len(o.Bench)+len(o.Bulk) > 0 {
		t.Errorf("kept %v %v %v", o.Values, o.Bench, o.Bulk)
	}
}

func TestATimeOutEndsEveryProcess(t *testing.T) {
	r := newRig(t, shell(`cd $ASSAY_SCRATCH; sleep 300 & echo $! > pids; setsid sh -c 'echo $$ >> pids; exec sleep 300' & nohup sh -c 'sleep 300 & echo $! >> pids; wait' & sleep 300`, "timeout: 700ms"))
	began := time.Now()
	o := r.once()
	want(t, o, StatusTimeout)
	noted(t, o, "killed with its process group after 700ms")
	// The wall time begins with the process, the time-out a little before it.
	if took := time.Since(began); took > 20*time.Second || o.Usage.Wall < 350*time.Millisecond {
		t.Errorf("it took %s, and the trial says %s", took, o.Usage.Wall)
	}
	pids := strings.Fields(read(t, r.scratchFile("pids")))
	if len(pids) != 3 {
		t.Errorf("only %q had started", pids)
	}
	for _, s := range pids {
		if pid, err := strconv.Atoi(s); err != nil || !gone(pid) {
			t.Errorf("process %s is still there", s)
		}
	}
}

func TestNothingOutlivesATrial(t *testing.T) {
	r := newRig(t, shell(`cd $ASSAY_SCRATCH; sleep 300 & echo $! > pids; setsid sh -c 'echo $$ >> pids; exec sleep 300' > /dev/null & until [ $(wc -l < pids) = 2 ]; do :; done`))
	want(t, r.once(), StatusOK)
	for _, s := range strings.Fields(read(t, r.scratchFile("pids"))) {
		if pid, err := strconv.Atoi(s); err != nil || !gone(pid) {
			t.Errorf("process %s is still there", s)
		}
	}
}

func TestACancelledTrialIsNoObservation(t *testing.T) {
	r := newRig(t, shell("touch began; sleep 300"))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(r.dir, "began")); err == nil {
				cancel()
				return
			}
			runtime.Gosched()
		}
	}()
	if o, err := r.Run(ctx, r.slot("a", 0), r.p.Cells()[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", o, err)
	}
}

// If the launcher is gone, trials do not fail: there are none.
func TestALostLauncherIsNotTheArmsFailure(t *testing.T) {
	r := newRig(t, shell("true"))
	want(t, r.once(), StatusOK)
	if err := syscall.Kill(r.launcher.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o, err := r.Run(context.Background(), r.slot("a", 1), r.p.Cells()[0])
	if !errors.Is(err, spawn.ErrLost) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestALauncherThatIsLentStaysOpen(t *testing.T) {
	l, err := spawn.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		r := newRigIn(t, t.TempDir(), Options{Launcher: l}, shell("true"))
		want(t, r.once(), StatusOK)
		if err := r.Close(context.Background(), true); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheScratchFolder(t *testing.T) {
	r := newRig(t, shell(`test -z "$(ls -A $ASSAY_SCRATCH)" || exit 1; echo $ASSAY_ROUND >> $ASSAY_SCRATCH/left; echo $ASSAY_ROUND >> $ASSAY_ARM_DIR/kept; touch $ASSAY_SCRATCH/.hidden; mkdir $ASSAY_SCRATCH/sub; touch $ASSAY_SCRATCH/sub/file; chmod 555 $ASSAY_SCRATCH/sub`))
	for round := range 3 {
		want(t, r.trial("a", round), StatusOK)
		if got := read(t, r.scratchFile("left")); got != fmt.Sprintln(round) {
			t.Errorf("after round %d its scratch holds %q", round, got)
		}
		// Another arm's trial leaves it alone: a check of the round needs it.
		want(t, r.trial("other", round), StatusOK)
		if _, err := os.Stat(r.scratchFile("left")); err != nil {
			t.Error(err)
		}
	}
	if got := read(t, filepath.Join(r.dir, "scratch", "arms", "a", "kept")); got != "0\n1\n2\n" {
		t.Errorf("the arm's folder holds %q", got)
	}
	if n, err := r.ScratchBytes(); err != nil || n != int64(len("0\n1\n2\n")+len("2\n")) {
		t.Errorf("ScratchBytes says %d, %v", n, err)
	}
	// An ordinary user may not remove what is in a folder without the right to write.
	if err := r.Close(context.Background(), true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "scratch")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the scratch folder is still there: %v", err)
	}
}

func TestAnArmMayBreakItsScratchFolder(t *testing.T) {
	theirs := t.TempDir()
	if err := os.WriteFile(filepath.Join(theirs, "thesis"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, line := range map[string]string{
		"removed":           "rm -rf $ASSAY_SCRATCH",
		"a file now":        "rm -rf $ASSAY_SCRATCH; touch $ASSAY_SCRATCH",
		"a link to another": "rm -rf $ASSAY_SCRATCH; ln -s $THEIRS $ASSAY_SCRATCH",
		"a link in it":      "ln -s $THEIRS $ASSAY_SCRATCH/link",
		"no reports folder": "rm -rf $(dirname $ASSAY_OUT)",
		"reports elsewhere": "rm -rf $(dirname $ASSAY_OUT); ln -s $THEIRS $(dirname $ASSAY_OUT)",
	} {
		r := newRig(t, fmt.Sprintf("  - {name: a, shell: %q, env: {THEIRS: %s}}\n  - {name: other, shell: \"echo '{\\\"ops\\\": 1}' > $ASSAY_OUT\"}", line, theirs))
		for round := range 3 {
			if o := r.trial("a", round); o.Status != StatusOK {
				t.Errorf("%s: %s %q", what, o.Status, o.Notes)
			}
			if o := r.trial("other", round); o.Values["ops"] != 1 {
				t.Errorf("%s: the other arm's report is lost: %v %q", what, o.Values, o.Notes)
			}
		}
		if err := r.Close(context.Background(), true); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(filepath.Join(theirs, "thesis")); err != nil {
			t.Fatalf("%s: somebody's file is gone", what)
		}
	}
	r := newRig(t, shell("true"))
	if err := os.RemoveAll(filepath.Join(r.dir, "scratch")); err != nil {
		t.Fatal(err)
	}
	if o, err := r.Run(context.Background(), r.slot("a", 0), r.p.Cells()[0]); err == nil {
		t.Errorf("without any scratch folder: %+v", o)
	}
}

// A run is taken up again while the arm of the killed one still dies.
func TestARunWaitsForWhatAnEarlierPartLeft(t *testing.T) {
	dir := t.TempDir()
	first := newRigIn(t, dir, Options{}, shell("true"))
	cmd := exec.Command("sh", "-c", "read x")
	cmd.Env = append(os.Environ(), first.env(first.arms["a"], "measure", first.p.Cells()[0], first.slot("a", 0), "out")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if left := processesOf(filepath.Join(dir, "scratch")); !slices.Equal(left, []string{strconv.Itoa(cmd.Process.Pid)}) {
		t.Skip("processes cannot be told by their environment here: ", left)
	}
	ended := make(chan struct{})
	go func() {
		in.Close()
		cmd.Wait()
		close(ended)
	}()
	newRigIn(t, dir, Options{}, shell("true"))
	<-ended
	if left := processesOf(filepath.Join(dir, "scratch")); len(left) > 0 {
		t.Errorf("went on beside %v", left)
	}
}
