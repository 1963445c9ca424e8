package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/report"
	"github.com/assaylab/assay/lab/trial"
)

// Bounds of a comparison whose number of rounds was not given: enough rounds
// for a test, and about as long as a person waits.
const (
	compareFor     = 3 * time.Second
	leastRounds    = 10
	mostRounds     = 1000
	compareTimeout = 10 * time.Minute
)

// comparison is `compare` on the command line.
type comparison struct {
	runFlags
	commands []string
	names    []string
	rounds   int
	warmup   int
	seed     uint64
	noShell  bool
	setup    string
	prepare  string
	cleanup  string
	ignore   string
	params   []string
	scans    []string
	revs     []string
	timeout  time.Duration
	exports  map[string]*string
}

func (s *session) compareVerb() *cobra.Command {
	cmp := &comparison{exports: map[string]*string{}}
	c := &cobra.Command{
		Use: "compare COMMAND COMMAND...", GroupID: "run", Short: "Compare commands now, without a protocol (exploratory)",
		Long: `Compare commands now, without a protocol.

Runs the commands interleaved, in a balanced random order, and reports their
times with a paired interval. Go benchmarks (go test -bench) are recognised and
compared line by line. With --rev the same command runs at several git
revisions, each in a worktree of its own.

Ahead of it each command runs once, with its set-up and clean-up, to see how
long it takes and what it prints.

A comparison is exploratory: nothing was fixed before the data, so it decides
nothing and exits 3. --fail-on no-go makes that 0.`,
		Example: s.example(`  PROGRAM compare 'gzip -6 -c corpus' 'gzip -9 -c corpus'
  PROGRAM compare -L n=1,2,4 'old --jobs {n}' 'new --jobs {n}'
  PROGRAM compare --rev main --rev HEAD 'go test -run - -bench Sort ./sort'`),
		Args: cobra.MinimumNArgs(1),
		RunE: func(cobraCmd *cobra.Command, args []string) error {
			cmp.commands = args
			return s.compare(cobraCmd.Context(), cmp)
		},
	}
	cmp.add(c)
	f := c.Flags()
	f.Lookup("out").Usage = "run `folder`, new or empty (default: one for temporary files)"
	f.StringArrayVarP(&cmp.names, "command-name", "n", nil, "`name` of a command (repeat, in their order)")
	f.IntVarP(&cmp.rounds, "runs", "r", 0, "`n` runs of each command (default: about 3 s in all, at least 10)")
	f.IntVarP(&cmp.warmup, "warmup", "w", 1, "`n` runs before them, not counted")
	f.Uint64Var(&cmp.seed, "seed", 1, "`seed` of the order")
	f.BoolVarP(&cmp.noShell, "no-shell", "N", false, "split commands at spaces and run them without a shell")
	f.StringVarP(&cmp.setup, "setup", "s", "", "shell `line` run once per command before its first run")
	f.StringVarP(&cmp.prepare, "prepare", "p", "", "shell `line` run before each run")
	f.StringVarP(&cmp.cleanup, "cleanup", "c", "", "shell `line` run after the last run")
	f.StringVarP(&cmp.ignore, "ignore-failure", "i", "", "exit `statuses` that are no failure, such as =1,2 (without a list: all)")
	f.Lookup("ignore-failure").NoOptDefVal = "all"
	f.StringArrayVarP(&cmp.params, "parameter-list", "L", nil, "`name`=a,b,c: run for each value; {name} in the commands")
	f.StringArrayVarP(&cmp.scans, "parameter-scan", "P", nil, "`name`=min:max[:step]: the same for a range")
	f.StringArrayVar(&cmp.revs, "rev", nil, "git `revision` to run the command at (repeat)")
	f.DurationVar(&cmp.timeout, "timeout", compareTimeout, "longest `time` of one run")
	for _, format := range []string{"json", "csv", "markdown"} {
		cmp.exports[format] = f.String("export-"+format, "", "write the results to `file` (- is stdout)")
	}
	return c
}

func (s *session) compare(ctx context.Context, c *comparison) error {
	go func() { _, _ = host.ToolSHA256() }() // beside the pilot
	if err := c.check(); err != nil {
		return err
	}
	draft, err := c.draft()
	if err != nil {
		return err
	}
	plan, err := draft.plan()
	if err != nil {
		return err
	}
	// What does not exist is told before anything runs.
	if _, err := flow.Freeze(ctx, plan, "to look"); err != nil {
		return usageError{err}
	}
	pilot, err := s.pilot(ctx, plan)
	if err != nil {
		return err
	}
	draft.fit(c, pilot, len(plan.Protocol.Cells()))
	if plan, err = draft.plan(); err != nil {
		return err
	}
	lock, err := flow.Freeze(ctx, plan, "a comparison on the command line, nothing was fixed before")
	if err != nil {
		return err
	}
	f := c.runFlags
	if f.out == "" {
		if f.out, err = os.MkdirTemp("", "assay-compare-"); err != nil {
			return err
		}
	}
	data := s.out
	for _, path := range c.exports {
		if *path == "-" {
			s.out = s.err // stdout is for what was asked for
		}
	}
	var outcome *flow.Outcome
	if err := s.carryOut(f, func(o flow.Options) (*flow.Outcome, error) {
		outcome, err = flow.Run(ctx, plan, lock, o)
		return outcome, err
	}); err != nil || outcome == nil {
		return err
	}
	s.out = data
	src, err := outcome.Source()
	if err != nil {
		return err
	}
	for _, e := range []struct {
		flag  string
		write func(io.Writer, *report.Source) error
	}{{"json", report.Hyperfine}, {"csv", report.CSV}, {"markdown", report.Markdown}} {
		if path := *c.exports[e.flag]; path != "" {
			if err := s.write(path, func(w io.Writer) error { return e.write(w, src) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *comparison) check() error {
	switch {
	case len(c.revs) == 1:
		return usage("give --rev at least twice; --rev HEAD is the current commit")
	case len(c.revs) > 0 && len(c.commands) > 1:
		return usage("with --rev there is one command, run at each revision; %d were given", len(c.commands))
	case len(c.revs) == 0 && len(c.commands) < 2:
		return usage("one command; a comparison needs two (or --rev twice)")
	case c.rounds < 0 || c.rounds == 1:
		return usage("--runs is at least 2")
	case c.warmup < 0:
		return usage("--warmup is 0 or more")
	case len(c.names) > max(len(c.commands), len(c.revs)):
		return usage("%d names for %d commands", len(c.names), max(len(c.commands), len(c.revs)))
	}
	for i, line := range c.commands {
		if strings.TrimSpace(line) == "" {
			return usage("command %d is empty", i+1)
		}
	}
	for flag, path := range c.exports {
		if *path == "" || *path == "-" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(*path)); err != nil || !info.IsDir() {
			return usage("--export-%s: there is no folder %s", flag, filepath.Dir(*path))
		}
	}
	return c.runFlags.check()
}

// pilotRun is what running each command once has shown.
type pilotRun struct {
	round time.Duration      // all arms once
	bench map[string]float64 // Go benchmark figures of the first arm
}

// pilot runs each command once, in the first cell, to see how long it takes
// and whether it prints Go benchmarks. A command that fails is told at once.
func (s *session) pilot(ctx context.Context, plan *flow.Plan) (pilotRun, error) {
	var p pilotRun
	dir, err := os.MkdirTemp("", "assay-pilot-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(dir)
	q := *plan.Protocol
	// Asking for benchmark lines makes the executor keep what is printed.
	q.Metrics = append(slices.Clone(q.Metrics), protocol.Metric{Name: "any", Source: protocol.SourceGoBench, Unit: "ns/op", Better: "lower"})
	x, err := trial.NewExecutor(&q, trial.Options{Scratch: filepath.Join(dir, "scratch"), Dir: plan.Dir})
	if err != nil {
		return p, err
	}
	defer x.Close(context.WithoutCancel(ctx), true)
	cell := q.Cells()[0]
	for i, a := range q.Arms {
		if err := x.Setup(ctx, a.Name); err != nil {
			return p, err
		}
		o, err := x.Run(ctx, trial.Slot{Cell: cell.Name, Warmup: true, Arm: a.Name, Slot: i, Seed: q.Design.Seed}, cell)
		if err != nil {
			return p, err
		}
		if o.Status != trial.StatusOK && o.Status != trial.StatusOutput {
			return p, fmt.Errorf("%s: %s: %s%s%s", a.Name, o.Status, strings.Join(o.Notes, "; "), said(o.Stderr), wayOut[o.Status])
		}
		p.round += o.Usage.Wall
		if i == 0 {
			p.bench = o.Bench
		}
	}
	return p, nil
}

// wayOut is what helps against a command that does not run well.
var wayOut = map[trial.Status]string{
	trial.StatusFailed:  "\nPut it right, or say --ignore-failure to measure it anyway.",
	trial.StatusTimeout: "\nGive it more with --timeout.",
}
