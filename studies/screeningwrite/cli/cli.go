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
	c := &cobra.Command{Use: screeningwrite.Name, Short: "Export a run of the study screening-write"}
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
		Use: use, Short: short, Args: cobra.ExactArgs(1),
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
