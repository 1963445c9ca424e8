package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/assaylab/assay/internal/spawn"
	"github.com/assaylab/assay/lab/protocol"
)

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
			arm: a, env: ArmEnv(a), dir: filepath.Join(dir, a.Dir), paths: map[string]string{},
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
		errs = append(errs, RemoveAll(e.scratch))
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
