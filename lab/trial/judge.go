package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assaylab/assay/internal/spawn"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/protocol"
)

// Judging is what a check sees. In scope trial there is one observation; in
// scope round one per arm, in the order they ran; in the wider scopes all of
// the cell or the run, warm-up included, since a wrong answer is wrong in a
// warm-up too.
type Judging struct {
	Check        *protocol.Check
	Cell         protocol.Cell // zero in scope run
	Round        int
	Scratch      string // scope trial: the trial's; otherwise the folder with one per arm
	ArmDir       string // scope trial: the arm's
	Observations []*Observation
}

// Judge runs the check and returns its result, fail closed: a judge that could
// not be started, crashed, ran out of time or saw too little is unknown.
func (e *Executor) Judge(ctx context.Context, c *protocol.Check, j Judging) check.Result {
	j.Check = c
	j.Scratch = filepath.Join(e.scratch, "trial")
	var arm *armState
	if c.Scope == protocol.ScopeTrial && len(j.Observations) == 1 {
		arm = e.arms[j.Observations[0].Arm]
		j.Scratch, j.ArmDir = arm.scratch, arm.home
	}
	var res check.Result
	switch {
	case c.Reported:
		res = reported(c.Name, j.Observations)
	case c.Func != "":
		res = check.Guard(c.Name, func() check.Result {
			inner, cancel := context.WithTimeout(ctx, time.Duration(c.Timeout))
			defer cancel()
			r := e.funcs.Checks[c.Func](inner, &j)
			if inner.Err() != nil && r.Verdict != check.Fail {
				r.Verdict, r.Message = check.Unknown, fmt.Sprintf("ran out of time (%s)", time.Duration(c.Timeout))
			}
			return r
		})
	default:
		res = e.judgeCommand(ctx, c, arm, j)
	}
	res.Name = c.Name
	return res.Require(check.Requirement{Operations: c.Operations, Kinds: c.Kinds, Faults: c.Faults})
}

// reported is what the arm said of itself. Said twice, all of it counts.
func reported(name string, obs []*Observation) check.Result {
	res := check.Result{Name: name, Message: "the arm did not report this check"}
	var found []check.Result
	for _, o := range obs {
		for _, c := range o.Checks {
			if c.Name == name {
				found = append(found, c)
			}
		}
	}
	if len(found) == 0 {
		return res
	}
	_, merged := check.Clear([]string{name}, found)
	return merged[0]
}

func (e *Executor) judgeCommand(ctx context.Context, c *protocol.Check, arm *armState, j Judging) check.Result {
	unknown := func(format string, args ...any) check.Result {
		return check.Result{Name: c.Name, Verdict: check.Unknown, Message: fmt.Sprintf(format, args...)}
	}
	out := filepath.Join(e.scratch, "out", "check.jsonl")
	tmp, err := os.CreateTemp(filepath.Join(e.scratch, "out"), "judge")
	if err != nil {
		return unknown("%v", err)
	}
	defer e.clearOut()
	defer tmp.Close()

	slot := Slot{Round: j.Round}
	if arm == nil {
		arm = &armState{arm: &protocol.Arm{}, env: os.Environ(), dir: e.dir}
	} else {
		o := j.Observations[0]
		slot = Slot{Arm: o.Arm, Round: o.Round, Slot: o.Slot, Seed: o.Seed}
	}
	env := append(e.env(arm, "check", j.Cell, slot, out), "ASSAY_SCRATCH="+j.Scratch)
	cmd := spawn.Cmd{Env: env, Dir: arm.dir, Stdout: tmp, Stderr: tmp, Timeout: time.Duration(c.Timeout)}
	if c.Shell != "" {
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", c.Shell}
	} else {
		for _, a := range c.Command {
			cmd.Args = append(cmd.Args, expand(a, env))
		}
		if cmd.Path, err = spawn.Look(cmd.Args[0], env, arm.dir); err != nil {
			return unknown("%v", err)
		}
	}
	r, err := e.launcher.Run(ctx, cmd)
	said := strings.TrimSpace(fileTail(tmp, stderrTail))
	switch {
	case err != nil:
		return unknown("%v", err)
	case r.TimedOut:
		return unknown("killed after %s", time.Duration(c.Timeout))
	case r.Signal != 0:
		return unknown("ended by %s. %s", signalName(r.Signal), said)
	}
	res := check.Result{Name: c.Name, Operations: 1, Message: said}
	switch r.Exit {
	case 0:
		res.Verdict = check.Pass
	case 1:
		res.Verdict = check.Fail
		if res.Message == "" {
			res.Message = "exit status 1"
		}
	default:
		return unknown("exit status %d (0 passes, 1 fails). %s", r.Exit, said)
	}
	return details(res, out)
}

// details takes in what a judge wrote to $ASSAY_OUT about what it looked at.
func details(res check.Result, path string) check.Result {
	b, err := os.ReadFile(path)
	if err != nil {
		return res
	}
	var in struct {
		Operations *int           `json:"operations"`
		Kinds      map[string]int `json:"kinds"`
		Faults     map[string]int `json:"faults"`
		Message    string         `json:"message"`
		Examples   []string       `json:"examples"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		if res.Verdict != check.Fail {
			res.Verdict = check.Unknown
		}
		res.Message = fmt.Sprintf("what it wrote to $ASSAY_OUT is not one JSON object: %v", err)
		return res
	}
	if in.Operations != nil {
		res.Operations = *in.Operations
	}
	if in.Message != "" {
		res.Message = in.Message
	}
	res.Kinds, res.Faults, res.Examples = in.Kinds, in.Faults, in.Examples
	return res
}
