package cli

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/protocol"
)

// template is what init writes; in its comments PROGRAM stands for the program that runs.
//
//go:embed template.yaml
var template []byte

func (s *session) template() []byte {
	return bytes.ReplaceAll(template, []byte("PROGRAM"), []byte(s.app.Name))
}

func (s *session) initVerb() *cobra.Command {
	return &cobra.Command{
		Use: "init [FILE]", GroupID: "plan", Short: "Write a commented protocol to edit", Args: cobra.MaximumNArgs(1),
		Long: `Write a commented protocol to edit, to the file or to stdout. It runs as it is:
two settings of gzip on numbers that it makes itself. An existing file is left
as it is.`,
		RunE: func(_ *cobra.Command, args []string) error {
			path := first(args)
			if path == "" || path == "-" {
				_, err := s.out.Write(s.template())
				return err
			}
			if _, err := os.Stat(path); err == nil {
				return usage("%s exists; nothing was written", path)
			}
			if err := s.write(path, func(w io.Writer) error { _, err := w.Write(s.template()); return err }); err != nil {
				return err
			}
			s.say("wrote %s. Edit it, then:\n  %s lint %s\n  %s run %s", path, s.app.Name, path, s.app.Name, path)
			return nil
		},
	}
}

func (s *session) lintVerb() *cobra.Command {
	var variant string
	c := &cobra.Command{
		Use: "lint [PROTOCOL]", GroupID: "plan", Short: "Find every fault in a protocol", Args: cobra.MaximumNArgs(1),
		Long: `Find every fault in a protocol, each as file:line:column with the line and a
caret, and say what a sound one would run.`,
		RunE: func(_ *cobra.Command, args []string) error {
			plan, err := s.plan(first(args), variant)
			var faults protocol.Faults
			if errors.As(err, &faults) {
				for _, f := range faults {
					fmt.Fprintln(s.out, f.Error())
				}
				return usage("%d fault(s)", len(faults))
			}
			if err != nil {
				return err
			}
			p := plan.Protocol
			if why := p.Infeasible(); len(why) > 0 {
				return &protocol.InfeasibleError{Reasons: why}
			}
			rounds, trials := 0, 0
			for _, c := range p.Cells() {
				rounds += c.Warmup + c.Rounds
				trials += (c.Warmup + c.Rounds) * len(c.Arms)
			}
			fmt.Fprintf(s.out, "%s: no fault. %d arm(s), %d cell(s), %d rounds, %d trials.\n", plan.Source, len(p.Arms), len(p.Cells()), rounds, trials)
			return nil
		},
	}
	c.Flags().StringVar(&variant, "protocol", "", "`which` of the study's protocols")
	return c
}

func (s *session) freezeVerb() *cobra.Command {
	var amend string
	c := &cobra.Command{
		Use: "freeze PROTOCOL", GroupID: "plan", Short: "Seal a protocol before any data", Args: cobra.ExactArgs(1),
		Long: `Seal a protocol before any data.

The lock (exp.lock.json beside exp.yaml) holds the protocol's canonical bytes,
their SHA-256, what each arm's program is, and the hashes of the inputs. A plan
that cannot work is refused. --amend records a later change as version 2 and
keeps the first lock beside it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := s.plan(args[0], "")
			if err != nil {
				return err
			}
			if plan.Path == "" {
				return usage("%s is built into this program and is frozen by its run", args[0])
			}
			if cmd.Flags().Changed("amend") {
				if strings.TrimSpace(amend) == "" {
					return usage("--amend needs a reason")
				}
				lock, err := flow.AmendFile(cmd.Context(), plan, amend)
				if err != nil {
					return usageError{err}
				}
				d := lock.Deviations[len(lock.Deviations)-1]
				fmt.Fprintf(s.out, "amended %s: version %d, sha256 %s\nchanged: %s\n", plan.LockPath(), lock.Version, lock.Digest, strings.Join(d.Changed, ", "))
				return nil
			}
			lock, fresh, err := flow.FreezeFile(cmd.Context(), plan)
			if err != nil {
				return usageError{err}
			}
			word := "frozen already:"
			if fresh {
				word = "froze"
			}
			fmt.Fprintf(s.out, "%s %s\nversion %d, sha256 %s\n", word, plan.LockPath(), lock.Version, lock.Digest)
			s.say("The digest proves what was planned; to prove when, put it where others can see it: a commit, a tag, a message.")
			return nil
		},
	}
	c.Flags().StringVar(&amend, "amend", "", "record a change of a frozen protocol, with this `reason`")
	return c
}

func (s *session) schemaVerb() *cobra.Command {
	return &cobra.Command{
		Use: "schema", GroupID: "plan", Short: "Print the JSON Schema of protocol files, for editors", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := s.out.Write(protocol.JSONSchema())
			return err
		},
	}
}
