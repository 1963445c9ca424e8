// Package cli puts a run of the study screening-write into forms that others read: an
// artifact with the keys that the measurements before it had, and tables for its page in
// docs. It knows the names of cells, arms and metrics, and what a finished run says; it
// must never know how a batch runs, and judges nothing.
package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/studies/screeningwrite"
)

// Command is the verb screening-write with its own.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use: screeningwrite.Name, Short: "Export a run of the study screening-write",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown verb %q; see: %s --help", args[0], cmd.CommandPath())}
			}
			return cmd.Help()
		},
	}
	c.AddCommand(
		verb("artifact RUN", "Print the run as one JSON artifact, by the names of cells and arms", func(r *results) (string, error) {
			b, err := json.MarshalIndent(r.artifact(), "", "  ")
			return string(b) + "\n", err
		}),
		verb("tables RUN", "Print the run's tables in Markdown", func(r *results) (string, error) { return r.tables(), nil }),
	)
	return c
}

func verb(use, short string, print func(*results) (string, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flow.Load(args[0])
			if err != nil {
				return err
			}
			r, err := newResults(o)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			text, err := print(r)
			if err == nil {
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			}
			return err
		},
	}
}

// usageError is a fault of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// ExitStatus is what the program ends with.
func (e usageError) ExitStatus() int { return 2 }
