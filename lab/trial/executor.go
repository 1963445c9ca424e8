package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/assaylab/assay/internal/spawn"
	"github.com/assaylab/assay/lab/protocol"
)

// sampleTree is how often a trial's process tree is looked at when its peak
// memory is asked for. Peaks of single processes are exact; only their sum
// depends on it.
const sampleTree = 10 * time.Millisecond

// hangGrace is how long a Go function may run on after its time-out in shared
// isolation, where nothing can kill it. Tests shorten it.
var hangGrace = 10 * time.Second

// ErrHang is returned when a Go function in shared isolation did not return
// after its time-out. The harness cannot go on: the function still runs.
var ErrHang = errors.New("arm function still runs after its time-out")

// Executor runs trials of one protocol, one at a time. It owns the scratch
// folder:
//
//	scratch/arms/ARM     lives as long as the run ($ASSAY_ARM_DIR)
//	scratch/arms/ARM/src the worktree of an arm with a rev; src.ready beside it
//	                     says that it is whole
//	scratch/trial/ARM    emptied before each trial ($ASSAY_SCRATCH), so that a
//	                     round's check still sees what all its arms left
//	scratch/out          what the running trial reports ($ASSAY_OUT)
type Executor struct {
	p        *protocol.Protocol
	funcs    Funcs
	launcher *spawn.Launcher
	stderr   *tail
	scratch  string
	dir      string // of the protocol file
	study    string
	memory   bool
	stdout   bool
	profiles string
	arms     map[string]*armState

	ownLauncher bool
}

type armState struct {
	arm     *protocol.Arm
	begun   bool              // its setup was at least tried
	ready   bool              // its setup succeeded
	env     []string          // of the harness, plus the arm's own
	dir     string            // working directory
	paths   map[string]string // programs, looked up
	scratch string
	home    string
}

// Options are what an Executor needs beside the protocol.
type Options struct {
	Scratch  string // created if missing
	Dir      string // of the protocol file; commands run there
	Study    string // name a re-executed program finds its functions by
	Funcs    Funcs
	Revs     map[string]string // arm to commit, from the lock's receipts
	Launcher *spawn.Launcher   // used and not closed; one is started where nil
	Profiles string            // folder for profiles of each Go function's trial; "" takes none
}

// NewExecutor prepares the folders. Close must be called.
func NewExecutor(p *protocol.Protocol, o Options) (_ *Executor, err error) {
	scratch, err := filepath.Abs(o.Scratch)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	profiles := o.Profiles
	if profiles != "" {
		if profiles, err = filepath.Abs(profiles); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(profiles, 0o755); err != nil {
			return nil, fmt.Errorf("folder for profiles: %w", err)
		}
	}
	e := &Executor{p: p, profiles: profiles, funcs: o.Funcs, scratch: scratch, dir: dir, study: o.Study, launcher: o.Launcher, arms: map[string]*armState{}}
	for _, m := range p.Metrics {
		e.memory = e.memory || m.Source == protocol.SourcePeakMemory
		e.stdout = e.stdout || slices.Contains([]string{protocol.SourceJSON, protocol.SourceGoBench, protocol.SourceSamples}, m.Source)
	}
	for _, c := range p.Checks {
		e.stdout = e.stdout || c.Reported
	}
	if _, err := os.Stat(filepath.Join(scratch, "arms")); err == nil {
		if err := awaitPredecessor(scratch); err != nil {
			return nil, err
		}
	}
	for _, d := range []string{"arms", "trial", "out"} {
		if err := os.MkdirAll(filepath.Join(scratch, d), 0o755); err != nil {
			return nil, fmt.Errorf("scratch folder: %w", err)
		}
	}
	if e.stderr, err = newTail(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.stderr.close())
		}
	}()
	if e.launcher == nil {
		if e.launcher, err = spawn.Start(); err != nil {
			return nil, fmt.Errorf("starting the launcher: %w", err)
		}
		e.ownLauncher = true
		defer func() {
			if err != nil {
				err = errors.Join(err, e.launcher.Close())
			}
		}()
	}
	for i := range p.Arms {
		a := &p.Arms[i]
		s := &armState{
			arm: a, env: armEnv(a), dir: filepath.Join(dir, a.Dir), paths: map[string]string{},
			scratch: filepath.Join(scratch, "trial", a.Name), home: filepath.Join(scratch, "arms", a.Name),
		}
		for _, d := range []string{s.scratch, s.home} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				return nil, fmt.Errorf("scratch folder: %w", err)
			}
		}
		if a.Rev != "" {
			if err := e.worktree(s, o.Revs[a.Name]); err != nil {
				return nil, fmt.Errorf("arm %s: %w", a.Name, err)
			}
		}
		e.arms[a.Name] = s
	}
	return e, nil
}

// Launcher is the launcher in use, for figures about it.
func (e *Executor) Launcher() *spawn.Launcher { return e.launcher }

// Setup runs the arm's setup line once. Its error ends the run: an arm that
// could not be built has nothing to measure.
func (e *Executor) Setup(ctx context.Context, arm string) error {
	s := e.arms[arm]
	if s.ready {
		return nil
	}
	s.begun = true
	if s.arm.Setup != "" {
		if out, err := e.hook(ctx, s, s.arm.Setup, "setup", protocol.Cell{}, Slot{Arm: arm}, true); err != nil {
			return fmt.Errorf("setup of arm %s: %w%s", arm, err, indent(out))
		}
	}
	s.ready = true
	return nil
}

func indent(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	return "\n    " + strings.ReplaceAll(s, "\n", "\n    ")
}

// Close runs the clean-up lines of the arms whose setup was at least begun and
// ends every process that is left. For a finished run it also removes the
// worktrees and the scratch folder; an unfinished one keeps them, because the
// checks of a round that was cut off need what its trials left. All is tried,
// and all errors are returned.
func (e *Executor) Close(ctx context.Context, finished bool) error {
	var errs []error
	for _, a := range e.p.Arms {
		s := e.arms[a.Name]
		if s.begun && a.Cleanup != "" {
			if out, err := e.hook(ctx, s, a.Cleanup, "cleanup", protocol.Cell{}, Slot{Arm: a.Name}, false); err != nil {
				errs = append(errs, fmt.Errorf("clean-up of arm %s: %w%s", a.Name, err, indent(out)))
			}
		}
	}
	if e.ownLauncher {
		errs = append(errs, e.launcher.Close())
	}
	errs = append(errs, e.stderr.close())
	if finished {
		for _, a := range e.p.Arms {
			if a.Rev != "" {
				errs = append(errs, e.dropWorktree(e.arms[a.Name]))
			}
		}
		errs = append(errs, removeAll(e.scratch))
	}
	return errors.Join(errs...)
}

// Run executes one trial. A trial that fails, crashes or runs out of time is an
// observation like any other; an error means that the run cannot go on
// (ErrHang, a cancelled context, a scratch folder that is gone).
func (e *Executor) Run(ctx context.Context, slot Slot, cell protocol.Cell) (*Observation, error) {
	s := e.arms[slot.Arm]
	obs := &Observation{
		Cell: slot.Cell, Round: slot.Round, Warmup: slot.Warmup, Slot: slot.Slot, Arm: slot.Arm, Seed: slot.Seed,
		Status: StatusOK,
	}
	if err := emptyDir(s.scratch); err != nil {
		return nil, err
	}
	if s.arm.Prepare != "" {
		if out, err := e.hook(ctx, s, s.arm.Prepare, "prepare", cell, slot, false); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			obs.Start, obs.Status, obs.Exit = time.Now(), StatusPrepare, -1
			obs.Notes = append(obs.Notes, "prepare: "+err.Error())
			obs.Stderr = out
			return obs, nil
		}
	}
	// What an earlier trial, a hook or a killed run left there is not this
	// trial's word.
	if err := e.clearReport(); err != nil {
		return nil, err
	}
	obs.Start = time.Now()
	var err error
	if s.arm.Func != "" && e.p.Design.Isolation == protocol.IsolationShared {
		err = e.runShared(ctx, s, slot, cell, obs)
	} else {
		err = e.runProcess(ctx, s, slot, cell, obs)
	}
	if err != nil {
		return nil, err
	}
	if e.profiles != "" && s.arm.Func != "" {
		profiles, notes := newProfiler(e.profiles, slot).read()
		obs.Profiles, obs.Notes = profiles, append(obs.Notes, notes...)
	}
	if obs.Status != StatusOK {
		// What a failed trial said of itself may be half a figure.
		obs.Values, obs.Bench, obs.Bulk = nil, nil, nil
	}
	return obs, nil
}

func (e *Executor) t(s *armState, slot Slot, cell protocol.Cell) *T {
	t := &T{
		Arm: slot.Arm, Cell: cell.Name, Round: slot.Round, Warmup: slot.Warmup, Slot: slot.Slot, Seed: slot.Seed,
		Scratch: s.scratch, ArmDir: s.home, Env: s.arm.Env, Factors: map[string]string{}, Settings: e.p.Told(),
	}
	for i, f := range cell.Factors() {
		t.Factors[f] = cell.Levels[i]
	}
	if e.profiles != "" {
		t.prof = newProfiler(e.profiles, slot)
	}
	return t
}

func (e *Executor) runShared(ctx context.Context, s *armState, slot Slot, cell protocol.Cell, obs *Observation) error {
	limit := e.p.TimeoutIn(s.arm, cell)
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// The function writes into an observation of its own, which is taken over
	// only once it has returned.
	mine := *obs
	done := make(chan struct{})
	before := selfUsage()
	go func() {
		defer close(done)
		e.t(s, slot, cell).call(inner, e.funcs.Arms[s.arm.Func], &mine)
	}()
	select {
	case <-done:
	case <-inner.Done():
		select {
		case <-done:
		case <-time.After(hangGrace):
			return fmt.Errorf("arm %s, cell %s, round %d: %w of %s; use isolation: process, or make it heed its context", slot.Arm, slot.Cell, slot.Round, ErrHang, limit)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	*obs = mine
	after := selfUsage()
	obs.Usage.User, obs.Usage.System = after.User-before.User, after.System-before.System
	if inner.Err() != nil {
		obs.Status, obs.Exit = StatusTimeout, -1
		obs.Notes = append(obs.Notes, fmt.Sprintf("ran out of time (%s)", limit))
	}
	return nil
}

func selfUsage() Usage {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return Usage{}
	}
	return Usage{User: time.Duration(ru.Utime.Nano()), System: time.Duration(ru.Stime.Nano())}
}

// runProcess runs a command, or this program again for one Go function.
func (e *Executor) runProcess(ctx context.Context, s *armState, slot Slot, cell protocol.Cell, obs *Observation) error {
	out := filepath.Join(e.scratch, "out", "report.jsonl")
	phase := "measure"
	if slot.Warmup {
		phase = "warmup"
	}
	env := e.env(s, phase, cell, slot, out)
	cmd := spawn.Cmd{Env: env, Dir: s.dir, Timeout: e.p.TimeoutIn(s.arm, cell)}
	switch {
	case s.arm.Func != "":
		self, err := os.Executable()
		if err != nil {
			return err
		}
		t := e.t(s, slot, cell)
		spec, err := json.Marshal(childSpec{Func: s.arm.Func, T: t, Profiler: t.prof})
		if err != nil {
			return err
		}
		cmd.Path, cmd.Args = self, []string{self, e.study}
		cmd.Env = append(cmd.Env, childVar+"="+string(spec))
	case s.arm.Shell != "":
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", s.arm.Shell}
	default:
		cmd.Args = make([]string, len(s.arm.Command))
		for i, a := range s.arm.Command {
			cmd.Args[i] = expand(a, env)
		}
		name := cmd.Args[0]
		if s.paths[name] == "" {
			path, err := spawn.Look(name, env, s.dir)
			if err != nil {
				obs.Status, obs.Exit = StatusNoStart, -1
				obs.Notes = append(obs.Notes, err.Error())
				return nil
			}
			s.paths[name] = path
		}
		cmd.Path = s.paths[name]
	}
	if e.memory {
		cmd.SampleTree = sampleTree
	}
	rep := newReport(obs, s.scratch)
	rep.child = s.arm.Func != ""
	if err := e.execute(ctx, cmd, s, obs, rep); err != nil {
		return err
	}
	found := rep.readOut(out)
	rep.finish()
	if rep.child && obs.Status == StatusOK {
		if rep.timed < 0 {
			obs.Status = StatusFailed
			obs.Notes = append(obs.Notes, "the function ended its process and said nothing; it must return")
		}
		obs.Usage.Wall = rep.timed
	}
	if found {
		return e.clearOut()
	}
	return nil
}

// clearReport takes away a report alone, which is all that could be mistaken
// for the word of the trial about to run.
func (e *Executor) clearReport() error {
	if info, err := os.Lstat(filepath.Join(e.scratch, "out")); err != nil || !info.IsDir() {
		// An arm took the folder away; the next one needs it.
		return e.clearOut()
	}
	if err := removeAll(filepath.Join(e.scratch, "out", "report.jsonl")); err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	return nil
}

func (e *Executor) clearOut() error { return emptyDir(filepath.Join(e.scratch, "out")) }

// execute runs the command and fills in how it ended and what it used.
func (e *Executor) execute(ctx context.Context, cmd spawn.Cmd, s *armState, obs *Observation, rep *report) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd.Stderr = e.stderr.w
	var outPipe *captured
	var err error
	if e.stdout && !rep.child {
		if outPipe, err = capture(0, MaxOutput, cancel); err != nil {
			return err
		}
		defer outPipe.close()
		cmd.Stdout = outPipe.w
	}
	e.stderr.begin()
	res, err := e.launcher.Run(inner, cmd)
	stderr := e.stderr.finish()
	var stdout []byte
	over := false
	if outPipe != nil {
		stdout = outPipe.finish()
		over = outPipe.over
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, spawn.ErrLost) || errors.Is(err, spawn.ErrClosed) || errors.Is(err, spawn.ErrStuck) {
		// Not the arm's failure: nothing can be measured any more.
		return err
	}
	if err != nil && !over {
		obs.Status, obs.Exit = StatusNoStart, -1
		obs.Notes = append(obs.Notes, err.Error())
		return nil
	}
	obs.Exit = res.Exit
	obs.Usage = Usage{
		Wall: res.Wall, User: res.User, System: res.System,
		Switches: res.VoluntarySwitches + res.InvoluntarySwitches, Faults: res.MajorFaults,
	}
	if e.memory {
		obs.Usage.PeakMemory = res.PeakMemory()
	}
	if res.Signal != 0 {
		obs.Signal = signalName(res.Signal)
	}
	switch {
	case over:
		obs.Status = StatusOutput
		obs.Notes = append(obs.Notes, fmt.Sprintf("printed more than %d MiB on stdout and was killed; write bulk data to a file and name it in $ASSAY_OUT", MaxOutput>>20))
	case res.TimedOut:
		obs.Status = StatusTimeout
		obs.Notes = append(obs.Notes, fmt.Sprintf("killed with its process group after %s", cmd.Timeout))
	case rep.child && res.Exit != 0, !rep.child && !slices.Contains(s.arm.OKExit, res.Exit):
		obs.Status = StatusFailed
		if res.Signal != 0 {
			obs.Notes = append(obs.Notes, "ended by "+obs.Signal)
		} else {
			obs.Notes = append(obs.Notes, fmt.Sprintf("exit status %d", res.Exit))
		}
	}
	if obs.Status != StatusOK {
		obs.Stderr = text(stderr)
	}
	if outPipe != nil {
		rep.read(bytes.NewReader(stdout), "stdout", false)
	}
	return nil
}

func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGKILL: "SIGKILL", syscall.SIGSEGV: "SIGSEGV", syscall.SIGABRT: "SIGABRT", syscall.SIGTERM: "SIGTERM",
		syscall.SIGPIPE: "SIGPIPE", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE", syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT",
	}
	if n, ok := names[s]; ok {
		return n
	}
	return "signal " + strconv.Itoa(int(s))
}

// hook runs one of an arm's untimed shell lines and returns what it printed.
func (e *Executor) hook(ctx context.Context, s *armState, line, phase string, cell protocol.Cell, slot Slot, keep bool) (string, error) {
	out := filepath.Join(e.scratch, "out", "report.jsonl")
	env := e.env(s, phase, cell, slot, out)
	if phase == "setup" || phase == "cleanup" {
		env = once(append(env, "ASSAY_SCRATCH="+s.home))
	}
	cmd := spawn.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", line}, Env: env, Dir: s.dir, Timeout: protocol.DefaultTimeout, Keep: keep}
	res, said, err := e.say(ctx, cmd)
	switch {
	case ctx.Err() != nil:
		return said, ctx.Err()
	case err != nil:
		return said, err
	case res.TimedOut:
		return said, fmt.Errorf("%q: killed after %s", line, protocol.DefaultTimeout)
	case res.Signal != 0:
		return said, fmt.Errorf("%q: ended by %s", line, signalName(res.Signal))
	case res.Exit != 0:
		return said, fmt.Errorf("%q: exit status %d", line, res.Exit)
	}
	return said, nil
}

// say runs a command that is not measured and returns the end of what it
// printed.
func (e *Executor) say(ctx context.Context, cmd spawn.Cmd) (spawn.Result, string, error) {
	if cmd.Keep {
		// What is kept goes on printing, which must not end in a broken pipe.
		tmp, err := os.CreateTemp(filepath.Join(e.scratch, "out"), "hook")
		if err != nil {
			return spawn.Result{}, "", err
		}
		defer os.Remove(tmp.Name())
		defer tmp.Close()
		cmd.Stdout, cmd.Stderr = tmp, tmp
		res, err := e.launcher.Run(ctx, cmd)
		return res, fileTail(tmp, stderrTail), err
	}
	pipe, err := capture(stderrTail, 0, nil)
	if err != nil {
		return spawn.Result{}, "", err
	}
	defer pipe.close()
	cmd.Stdout, cmd.Stderr = pipe.w, pipe.w
	res, err := e.launcher.Run(ctx, cmd)
	return res, text(pipe.finish()), err
}
