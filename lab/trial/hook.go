package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assaylab/assay/internal/spawn"
	"github.com/assaylab/assay/lab/protocol"
)

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
