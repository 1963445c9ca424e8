package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/cli"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/trial"
)

// calls counts trials in this process: with isolation shared it goes on, with
// isolation process every trial is the first.
var calls atomic.Int64

// unruly is a program as someone writes it around cli.App, whose functions go
// wrong in every way a function can.
func unruly() {
	protocol, err := os.ReadFile("unruly.yaml")
	if err != nil {
		protocol = nil
	}
	work := func(ops float64) trial.ArmFunc {
		return func(_ context.Context, t *trial.T) error {
			t.Record("ops", ops+float64((int(ops)+5*t.Round)%7))
			t.Record("calls", float64(calls.Add(1)))
			t.Report(check.Result{Name: "sound", Verdict: check.Pass, Operations: 5})
			return nil
		}
	}
	old := work(1000)
	study := &flow.Study{
		Name: "unruly", About: "what happens when a function goes wrong?",
		Protocols: map[string][]byte{"": protocol},
		Arms: map[string]trial.ArmFunc{
			"old": old, "new": work(1200),
			"panics": func(ctx context.Context, t *trial.T) error {
				if t.Round == 3 {
					panic("the arm's own defect")
				}
				return old(ctx, t)
			},
			"errs": func(context.Context, *trial.T) error { return errors.New("the store is gone") },
			"exits": func(context.Context, *trial.T) error {
				os.Exit(7)
				return nil
			},
			"hangs": func(context.Context, *trial.T) error { select {} },
			"waits": func(ctx context.Context, _ *trial.T) error {
				<-ctx.Done()
				return ctx.Err()
			},
		},
		Checks: map[string]trial.CheckFunc{
			"panics":  func(context.Context, *trial.Judging) check.Result { panic("the check's own defect") },
			"nothing": func(context.Context, *trial.Judging) check.Result { return check.Result{Verdict: check.Pass} },
			"left": func(_ context.Context, j *trial.Judging) check.Result {
				res := check.Result{Verdict: check.Pass, Operations: len(j.Observations)}
				if _, err := os.Stat(filepath.Join(j.Scratch, "left")); err == nil {
					res.Verdict, res.Message = check.Fail, "something was left behind"
				}
				return res
			},
		},
	}
	extra := &cobra.Command{Use: "defect", Short: "Fail as only a defect can", RunE: func(*cobra.Command, []string) error {
		panic("index out of range")
	}}
	os.Exit(cli.App{Name: "unruly", Studies: []*flow.Study{study}, Extra: []*cobra.Command{extra}}.Main())
}
