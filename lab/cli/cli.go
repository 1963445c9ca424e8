// Package cli is the command line: one file per verb, each of which reads its
// flags, calls lab/flow and prints. It knows flags, words and exit statuses; it
// must never know what a figure means, and computes and decides nothing.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// The exit statuses that are no verdict. Those of a verdict are in gate.Class.
const (
	exitUsage       = 2
	exitInvalid     = 4
	exitIntegrity   = 5
	exitInternal    = 70
	exitInterrupted = 130
)

// App is a program with the lab's verbs.
type App struct {
	Name    string
	Studies []*flow.Study
	// Extra are verbs of the program's own. An error of theirs may have a method
	// ExitStatus() int, which is then the status of the program.
	Extra []*cobra.Command
}

// Main runs the program for this process and returns its exit status. A
// process that the harness started for one trial runs that trial.
func (a App) Main() int {
	if len(os.Args) > 1 {
		funcs := trial.Funcs{Arms: map[string]trial.ArmFunc{}}
		for _, s := range a.Studies {
			if s.Name == os.Args[1] {
				funcs = trial.Funcs{Arms: s.Arms, Checks: s.Checks}
			}
		}
		if exit, ok := trial.Child(context.Background(), funcs); ok {
			return exit
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first ^C ends the run in order; the second ends a clean-up that hangs.
	context.AfterFunc(ctx, stop)
	cobra.EnableCommandSorting = false // verbs stand in the order in which they are used
	return a.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// Run executes one command line and returns the exit status.
func (a App) Run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	s := &session{app: a, out: stdout, err: stderr, running: slices.Contains(args, "run")}
	root := s.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "%s: internal error: %v\nThis is a defect of assay itself; what was recorded is untouched.\n", a.Name, p)
			if os.Getenv("ASSAY_DEBUG") != "" {
				panic(p)
			}
			status = exitInternal
		}
	}()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return s.status
	}
	status = classify(err)
	if status == exitInterrupted {
		err = errors.New("interrupted before anything was measured")
	}
	s.say("%s: %s", a.Name, a.advised(err))
	return status
}

// advised is what an error says, and what to do about it in this program. A run that
// had begun says it already.
func (a App) advised(err error) string {
	var remedy *protocol.RemedyError
	var begun runError
	if errors.As(err, &begun) || !errors.As(err, &remedy) {
		return err.Error()
	}
	return err.Error() + "; " + remedy.Advice(a.Name)
}

// usageError is a fault of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// runError is what ended a run that had begun.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error }

// classify gives an error its exit status. What is not recognised is an invalid
// run: it is never a verdict.
func classify(err error) int {
	var (
		faults     protocol.Faults
		infeasible *protocol.InfeasibleError
		integrity  *ledger.IntegrityError
		bad        usageError
		begun      runError
		own        interface{ ExitStatus() int } // of the program's own verbs
	)
	switch {
	case errors.As(err, &own):
		return own.ExitStatus()
	case errors.As(err, &integrity), errors.Is(err, protocol.ErrLock), errors.Is(err, flow.ErrChanged):
		return exitIntegrity
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &begun):
		return exitInvalid
	case errors.As(err, &faults), errors.As(err, &infeasible), errors.As(err, &bad),
		errors.Is(err, ledger.ErrNotRun), errors.Is(err, ledger.ErrSealed), errors.Is(err, ledger.ErrBusy), errors.Is(err, ledger.ErrNewer),
		errors.Is(err, flow.ErrUnfinished), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, protocol.ErrUnchanged):
		return exitUsage
	}
	return exitInvalid
}

// session is one command line under way.
type session struct {
	app    App
	out    io.Writer // data
	err    io.Writer // progress and messages
	status int
	quiet  bool
	color  string

	running bool // the command line may be about the verb run
}

func (s *session) say(format string, args ...any) { fmt.Fprintf(s.err, format+"\n", args...) }

func (s *session) root() *cobra.Command {
	about := "Decide whether a risky change to a data path may ship."
	root := &cobra.Command{
		Use: s.app.Name, Short: about,
		Long: about + `

A protocol says, before any data, what is compared, what must be correct and
what would count as success. freeze seals it; run carries it out, interleaved
and checked; the verdict follows from the frozen rule alone.

Exit status: 0 go, 1 no-go, 2 usage or invalid protocol, 3 inconclusive,
4 invalid run, 5 integrity failure, 70 internal error, 130 interrupted.`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.PersistentFlags().BoolVarP(&s.quiet, "quiet", "q", false, "no progress on stderr")
	root.PersistentFlags().StringVar(&s.color, "color", "auto", "colours: auto, always, never")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains([]string{"auto", "always", "never"}, s.color) {
			return usage("--color is auto, always or never, not %q", s.color)
		}
		return nil
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage("%w; see: %s --help", err, c.CommandPath()) })
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.AddGroup(&cobra.Group{ID: "plan", Title: "Before the data:"}, &cobra.Group{ID: "run", Title: "The experiment:"}, &cobra.Group{ID: "read", Title: "After it:"})
	verbs := []*cobra.Command{
		s.initVerb(), s.lintVerb(), s.powerVerb(), s.freezeVerb(), s.schemaVerb(),
		s.runVerb(), s.resumeVerb(), s.compareVerb(), s.doctorVerb(),
		s.analyzeVerb(), s.verifyVerb(), s.reportVerb(), s.compareRunsVerb(), s.serveVerb(),
		s.versionVerb(),
	}
	if len(s.app.Studies) > 0 {
		verbs = append(verbs, s.studiesVerb())
	}
	root.AddCommand(append(verbs, s.app.Extra...)...)
	heed(root)
	return root
}

// example puts the program's name into the help of a verb.
func (s *session) example(text string) string {
	return strings.ReplaceAll(text, "PROGRAM", s.app.Name)
}

// heed makes wrong arguments, and verbs that a verb does not have, faults of the
// command line, from c all the way down. A verb that only has verbs prints its help.
func heed(c *cobra.Command) {
	for _, sub := range c.Commands() {
		heed(sub)
	}
	if c.HasSubCommands() && c.RunE == nil {
		c.SuggestionsMinimumDistance = 2
		c.Args = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
				return usage("unknown verb %q; did you mean %s?", args[0], strings.Join(like, " or "))
			}
			return usage("unknown verb %q; see: %s --help", args[0], cmd.CommandPath())
		}
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		return
	}
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage("%s: %w (usage: %s)", cmd.Name(), err, cmd.UseLine())
		}
		return nil
	}
}

// plan finds what the argument names: a protocol file, or a study of this
// program.
func (s *session) plan(arg, variant string) (*flow.Plan, error) {
	study := s.study(arg)
	if study != nil {
		plan, err := flow.ReadStudy(study, variant)
		if err != nil && variant != "" {
			return nil, usageError{err}
		}
		return plan, err
	}
	if variant != "" {
		return nil, usage("--protocol chooses among a study's protocols; %q is a file", arg)
	}
	if arg == "" {
		return nil, usage("give a protocol file; `%s init` writes one to start from", s.app.Name)
	}
	// A program of one study lends its functions to protocol files.
	plan, err := flow.ReadFile(arg, s.app.own())
	var cause *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !strings.ContainsAny(arg, "./\\") && len(s.app.Studies) > 0 {
			return nil, usage("%q is neither a protocol file nor a study; see: %s studies", arg, s.app.Name)
		}
		return nil, usage("there is no protocol file %s; `%s init %s` writes one", arg, s.app.Name, arg)
	case errors.As(err, &cause):
		return nil, usage("%s cannot be read as a protocol file: %w", arg, cause.Err)
	}
	return plan, err
}

// study is the study that the argument names; with none given, the program's own.
func (s *session) study(arg string) *flow.Study {
	for _, st := range s.app.Studies {
		if st.Name == arg {
			return st
		}
	}
	if arg == "" {
		return s.app.own()
	}
	return nil
}

// own is the study that the program was made for and has its name from; nil for
// a program that brings studies among other things.
func (a App) own() *flow.Study {
	if len(a.Studies) == 1 && a.Studies[0].Name == a.Name {
		return a.Studies[0]
	}
	return nil
}

func (s *session) colour() bool {
	switch s.color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(s.out)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// first is the only argument of a verb that may have none.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// lockPath is the file by which runs on this machine notice each other.
func lockPath() string { return filepath.Join(os.TempDir(), "assay.lock") }

func (s *session) versionVerb() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		fmt.Fprintln(s.out, s.app.Name, flow.ToolVersion())
		return nil
	}}
}

func (s *session) studiesVerb() *cobra.Command {
	return &cobra.Command{Use: "studies", GroupID: "plan", Short: "List the studies built into this program", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		for _, st := range s.app.Studies {
			fmt.Fprintf(s.out, "%-18s %s\n", st.Name, st.About)
		}
		return nil
	}}
}
