package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
		res = e.judgeFunc(ctx, c, j)
	default:
		res = e.judgeCommand(ctx, c, arm, j)
	}
	res.Name = c.Name
	return bounded(res).Require(check.Requirement{Operations: c.Operations, Kinds: c.Kinds, Faults: c.Faults})
}

// judgeFunc runs a check function. Nothing can end one that does not heed its
// context; it is left behind, and the check is unknown.
func (e *Executor) judgeFunc(ctx context.Context, c *protocol.Check, j Judging) check.Result {
	limit := c.Timeout.Or(protocol.DefaultTimeout)
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// What is left behind must not write into what goes to the ledger.
	j.Observations = slices.Clone(j.Observations)
	for i, o := range j.Observations {
		seen := *o
		j.Observations[i] = &seen
	}
	done := make(chan check.Result, 1)
	go func() {
		res := check.Result{Verdict: check.Unknown, Message: "the judge ended its goroutine instead of returning"}
		defer func() { done <- res }()
		res = check.Guard(c.Name, func() check.Result { return e.funcs.Checks[c.Func](inner, &j) })
	}()
	var res check.Result
	select {
	case res = <-done:
	case <-inner.Done():
		select {
		case res = <-done:
		case <-time.After(hangGrace):
			return check.Result{Verdict: check.Unknown, Message: fmt.Sprintf("still runs after its time-out of %s", limit)}
		}
	}
	if inner.Err() != nil && res.Verdict != check.Fail {
		res.Verdict, res.Message = check.Unknown, fmt.Sprintf("ran out of time (%s)", limit)
	}
	return res
}

// reported is what the arm said of itself. Said twice, all of it counts; said
// in part, it is not known what the rest was.
func reported(name string, obs []*Observation) check.Result {
	res := check.Result{Name: name, Message: "the arm did not report this check"}
	var found []check.Result
	garbled := false
	for _, o := range obs {
		garbled = garbled || o.Garbled
		for _, c := range o.Checks {
			if c.Name == name {
				found = append(found, c)
			}
		}
	}
	if len(found) > 0 {
		_, merged := check.Clear([]string{name}, found)
		res = merged[0]
	}
	if garbled && res.Verdict != check.Fail {
		res.Verdict, res.Message = check.Unknown, "part of what the arm reported cannot be read"
	}
	return res
}

func (e *Executor) judgeCommand(ctx context.Context, c *protocol.Check, arm *armState, j Judging) check.Result {
	unknown := func(format string, args ...any) check.Result {
		return check.Result{Name: c.Name, Verdict: check.Unknown, Message: strings.TrimSpace(fmt.Sprintf(format, args...))}
	}
	// What another judge left there is not this one's word.
	if err := e.clearOut(); err != nil {
		return unknown("%v", err)
	}
	out := filepath.Join(e.scratch, "out", "check.jsonl")
	slot := Slot{Round: j.Round}
	if arm == nil {
		arm = &armState{arm: &protocol.Arm{}, env: ArmEnv(nil), dir: e.dir}
	} else {
		o := j.Observations[0]
		slot = Slot{Arm: o.Arm, Round: o.Round, Slot: o.Slot, Seed: o.Seed}
	}
	env := once(append(e.env(arm, "check", j.Cell, slot, out), "ASSAY_SCRATCH="+j.Scratch))
	limit := c.Timeout.Or(protocol.DefaultTimeout)
	cmd := spawn.Cmd{Env: env, Dir: arm.dir, Timeout: limit}
	if c.Shell != "" {
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", c.Shell}
	} else {
		for _, a := range c.Command {
			cmd.Args = append(cmd.Args, expand(a, env))
		}
		var err error
		if cmd.Path, err = spawn.Look(cmd.Args[0], env, arm.dir); err != nil {
			return unknown("%v", err)
		}
	}
	r, said, err := e.say(ctx, cmd)
	switch {
	case err != nil:
		return unknown("%v", err)
	case r.TimedOut:
		return unknown("killed after %s", limit)
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
			res.Message = "exit status 1, and it printed nothing"
		}
	default:
		return unknown("exit status %d (0 passes, 1 fails). %s", r.Exit, said)
	}
	return details(res, out)
}

// details takes in what a judge wrote to $ASSAY_OUT about what it looked at.
func details(res check.Result, path string) check.Result {
	var in struct {
		Operations *int           `json:"operations"`
		Kinds      map[string]int `json:"kinds"`
		Faults     map[string]int `json:"faults"`
		Message    string         `json:"message"`
		Examples   []string       `json:"examples"`
	}
	f, info, err := openRegular(path, syscall.O_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return res
	}
	if err == nil {
		defer f.Close()
		if info.Size() > MaxOutput {
			err = fmt.Errorf("it has %d bytes", info.Size())
		} else {
			var b []byte
			if b, err = io.ReadAll(f); err == nil {
				err = json.Unmarshal(b, &in)
			}
			if again := repeated(b); err == nil && len(again) > 0 {
				err = fmt.Errorf("key %q stands twice", again[0])
			}
		}
	}
	if err != nil {
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
