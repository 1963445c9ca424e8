package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/report"
)

// runFlags are the flags that run, resume and compare share.
type runFlags struct {
	out     string
	scratch string
	failOn  string
}

func (f *runFlags) add(c *cobra.Command) {
	c.Flags().StringVarP(&f.out, "out", "o", "", "run `folder`, new or empty (default runs/NAME-TIME)")
	c.Flags().StringVar(&f.scratch, "scratch", "", "`folder` where trials work (default: in the run folder)")
	f.addFailOn(c)
}

func (f *runFlags) addFailOn(c *cobra.Command) {
	c.Flags().StringVar(&f.failOn, "fail-on", "all", "which `verdicts` exit non-zero: all, no-go (inconclusive exits 0), never")
}

func (s *session) runVerb() *cobra.Command {
	var f runFlags
	var variant string
	var quick, profiles bool
	n := flow.Narrowing{Warmup: -1}
	c := &cobra.Command{
		Use: "run [PROTOCOL]", GroupID: "run", Short: "Carry out a protocol and give its verdict",
		Long: `Carry out a protocol and give its verdict.

A protocol that is not frozen yet is frozen first. Its lock stands beside it
(exp.yaml: exp.lock.json); a protocol that changed after the freeze is refused.
--rounds, --warmup, --arm and --cell run less than the plan and make the run
exploratory: it then decides nothing. So do --quick, the shortest run that
tries everything, and --profile, one round in which each arm that is a Go
function leaves CPU, mutex and block profiles.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("rounds") && n.Rounds < 1:
				return usage("--rounds is 1 or more")
			case cmd.Flags().Changed("warmup") && n.Warmup < 0:
				return usage("--warmup is 0 or more")
			}
			if err := f.check(); err != nil {
				return err
			}
			if quick {
				s.shorten(first(args), &variant, &n)
			}
			if profiles {
				once(&n)
			}
			plan, err := s.plan(first(args), variant)
			if err != nil {
				return err
			}
			if n.Settings, err = settings(cmd, plan); err != nil {
				return err
			}
			lock, err := s.lockFor(cmd.Context(), plan, n, quick)
			if err != nil {
				return usageError{err}
			}
			return s.carryOut(f, func(o flow.Options) (*flow.Outcome, error) {
				o.Profiles = profiles
				return flow.Run(cmd.Context(), plan, lock, o)
			})
		},
	}
	f.add(c)
	c.Flags().StringVar(&variant, "protocol", "", "`which` of the study's protocols")
	c.Flags().IntVarP(&n.Rounds, "rounds", "r", 0, "`n` measured rounds per cell (exploratory)")
	c.Flags().IntVarP(&n.Warmup, "warmup", "w", -1, "`n` warm-up rounds per cell (exploratory)")
	c.Flags().StringArrayVar(&n.Arms, "arm", nil, "only this `arm` beside the reference (exploratory; repeat for more)")
	c.Flags().StringArrayVar(&n.Cells, "cell", nil, "only this `cell`, by name (exploratory; repeat for more)")
	c.Flags().Lookup("warmup").DefValue = "0" // -1 stands for the plan's, which is no number to print
	c.Flags().BoolVar(&quick, "quick", false, "the shortest run that tries everything (exploratory)")
	c.Flags().BoolVar(&profiles, "profile", false, "one round with profiles of each Go function (exploratory)")
	c.Flags().StringArray("set", nil, "give a setting of the protocol a value, as `name=value` (repeat for more)")
	if s.running {
		s.settingFlags(c)
	}
	return c
}

// quickVariant is the name of the protocols that --quick runs.
const quickVariant = "quick"

// shorten chooses the study's own short form of a protocol or, where it has
// none, one round without warm-up.
func (s *session) shorten(arg string, variant *string, n *flow.Narrowing) {
	short := strings.TrimPrefix(*variant+"-"+quickVariant, "-")
	if st := s.study(arg); st != nil && st.Protocols[short] != nil {
		*variant = short
		return
	}
	once(n)
}

// once narrows to one round without warm-up, where the command line says
// nothing else.
func once(n *flow.Narrowing) {
	if n.Rounds == 0 {
		n.Rounds = 1
	}
	if n.Warmup < 0 {
		n.Warmup = 0
	}
}

// settingFlags makes a flag of every setting of every study. It reads all their protocols for that.
func (s *session) settingFlags(c *cobra.Command) {
	for _, st := range s.app.Studies {
		for _, variant := range slices.Sorted(maps.Keys(st.Protocols)) {
			plan, err := flow.ReadStudy(st, variant)
			if err != nil {
				continue // to run it will say why
			}
			for _, set := range plan.Protocol.Settings {
				name := strings.ReplaceAll(set.Name, "_", "-")
				if c.Flags().Lookup(name) != nil {
					continue
				}
				about := set.About
				if set.Effect == protocol.EffectPlan {
					about += " (exploratory)"
				}
				c.Flags().String(name, set.Value, strings.TrimSpace(about+"; of "+st.Name))
				c.Flags().Lookup(name).Annotations = map[string][]string{settingMark: {set.Name}}
				if set.Value == "off" {
					c.Flags().Lookup(name).NoOptDefVal = "on"
				}
			}
		}
	}
}

// settings are the settings that the command line gives.
func settings(cmd *cobra.Command, plan *flow.Plan) (map[string]string, error) {
	given := map[string]string{}
	for i := range plan.Protocol.Settings {
		set := &plan.Protocol.Settings[i]
		if fl := cmd.Flags().Lookup(strings.ReplaceAll(set.Name, "_", "-")); fl != nil && fl.Changed && isSetting(fl) {
			given[set.Name] = fl.Value.String()
		}
	}
	var foreign []string
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		if isSetting(fl) && plan.Protocol.Setting(strings.ReplaceAll(fl.Name, "-", "_")) == nil {
			foreign = append(foreign, "--"+fl.Name)
		}
	})
	if len(foreign) > 0 {
		return nil, usage("%s has no setting for %s", plan.Source, strings.Join(foreign, ", "))
	}
	pairs, err := cmd.Flags().GetStringArray("set")
	if err != nil {
		return nil, err
	}
	for _, kv := range pairs {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, usage("--set takes name=value, not %q", kv)
		}
		if _, twice := given[name]; twice {
			return nil, usage("setting %s is given twice", name)
		}
		given[name] = value
	}
	return given, nil
}

// isSetting says whether the flag was made by settingFlags.
func isSetting(fl *pflag.Flag) bool { return fl.Annotations[settingMark] != nil }

const settingMark = "assay_setting"

// lockFor freezes what is about to run, or finds that it is frozen.
func (s *session) lockFor(ctx context.Context, plan *flow.Plan, n flow.Narrowing, quick bool) (*protocol.Lock, error) {
	if !n.Empty() || quick || plan.LockPath() == "" {
		reason, err := n.Apply(plan)
		if err != nil {
			return nil, err
		}
		if quick {
			reason = strings.TrimSuffix("the quick form; "+reason, "; ")
		}
		if reason != "" {
			s.say("exploratory: %s", reason)
		}
		return flow.Freeze(ctx, plan, reason)
	}
	lock, fresh, err := flow.FreezeFile(ctx, plan)
	if err == nil && fresh {
		s.say("froze %s as %s (version %d, sha256 %.12s…)", plan.Path, plan.LockPath(), lock.Version, lock.Digest)
	}
	return lock, err
}

// carryOut runs with progress, prints the end and sets the exit status. An error
// from before the run began is a fault of the plan or of the command line; an
// integrity failure is one at any time.
func (s *session) carryOut(f runFlags, run func(flow.Options) (*flow.Outcome, error)) error {
	if err := f.check(); err != nil {
		return err
	}
	p := newProgress(s.err, s.quiet)
	o := flow.Options{Out: f.out, Scratch: f.scratch, Lock: lockPath(), Events: p.events()}
	outcome, err := run(o)
	p.end()
	switch {
	case err == nil:
		return s.conclude(f, outcome)
	case p.dir == "":
		return usageError{err}
	case errors.Is(err, context.Canceled):
		s.say("interrupted; everything measured so far is kept. Go on with:\n  %s resume %s", s.app.Name, p.dir)
		s.status = exitInterrupted
		return nil
	}
	return runError{fmt.Errorf("%w\nEverything measured so far is kept. Once this is put right, go on with:\n  %s resume %s", err, s.app.Name, p.dir)}
}

func (f *runFlags) check() error {
	switch f.failOn {
	case "all", "no-go", "never":
		return nil
	}
	return usage("--fail-on is all, no-go or never, not %q", f.failOn)
}

// conclude prints the end of a run and sets the exit status.
func (s *session) conclude(f runFlags, o *flow.Outcome) error {
	src, err := o.Source()
	if err != nil {
		return err
	}
	if err := (report.Terminal{Colour: s.colour()}).Write(s.out, src); err != nil {
		return err
	}
	if o.Run.Sealed {
		fmt.Fprintf(s.out, "page  %s\n", filepath.Join(o.Run.Dir, ledger.ReportFile))
	}
	s.status = f.status(o.Verdict)
	return nil
}

func (f *runFlags) status(v *gate.Verdict) int {
	switch {
	case f.failOn == "never":
		return 0
	case f.failOn != "all" && f.failOn != "" && v.Class == gate.Inconclusive:
		return 0
	}
	return v.Exit
}

func (s *session) resumeVerb() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "resume RUN", GroupID: "run", Short: "Go on with a run that was stopped", Args: cobra.ExactArgs(1),
		Long: `Go on with a run that was stopped by a crash, a kill or ^C.

The schedule is the same, nothing is measured twice and nothing is lost but
the trial that was under way.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.carryOut(f, func(o flow.Options) (*flow.Outcome, error) {
				return flow.Resume(cmd.Context(), filepath.Clean(args[0]), s.app.Studies, o)
			})
		},
	}
	f.addFailOn(c)
	return c
}
