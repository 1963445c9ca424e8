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
	"syscall"
	"time"

	"github.com/assaylab/assay/internal/spawn"
	"github.com/assaylab/assay/lab/protocol"
)

// sampleTree is how often a trial's process tree is looked at when its peak
// memory is asked for. Peaks of single processes are exact; only their sum
// depends on it.
const sampleTree = 10 * time.Millisecond

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
	if err := RemoveAll(filepath.Join(e.scratch, "out", "report.jsonl")); err != nil {
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
