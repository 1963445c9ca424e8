package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/report"
)

func (s *session) analyzeVerb() *cobra.Command {
	var f runFlags
	var early bool
	c := &cobra.Command{
		Use: "analyze RUN", GroupID: "read", Short: "Judge a run again from disk", Args: cobra.ExactArgs(1),
		Long: `Judge a run again from disk: the same data gives the same bytes of results.json
and verdict.json and the same exit status.

A run that has not ended is refused: whoever looks at half of the data can stop
when he likes what he sees. --early looks anyway and leaves a mark in the run.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			o, err := flow.Analyze(filepath.Clean(args[0]), early)
			if err != nil {
				return err
			}
			return s.conclude(f, o)
		},
	}
	f.addFailOn(c)
	c.Flags().BoolVar(&early, "early", false, "look at a run that has not ended; it is exploratory for ever")
	return c
}

func (s *session) verifyVerb() *cobra.Command {
	return &cobra.Command{
		Use: "verify RUN", GroupID: "read", Short: "Check every hash of a run", Args: cobra.ExactArgs(1),
		Long: `Check every hash of a run: the lock, the environment, the chain of observations,
the samples and the seal, and that analysing the data again gives the results
and the verdict that stand there. What was touched is named, with its line, and
the exit status is 5.`,
		RunE: func(_ *cobra.Command, args []string) error {
			run, problems, err := flow.Verify(filepath.Clean(args[0]))
			if err != nil {
				return err
			}
			if len(problems) > 0 {
				return &ledger.IntegrityError{Dir: args[0], Problems: problems}
			}
			state := "sealed"
			switch {
			case !run.Ended():
				state = "not ended; go on with: " + s.app.Name + " resume " + args[0]
			case !run.Sealed:
				state = "ended, not decided yet; go on with: " + s.app.Name + " analyze " + args[0]
			}
			fmt.Fprintf(s.out, "%s: intact. lock %.12s…, %d records, %s\n", args[0], run.Lock.Digest, len(run.Records), state)
			return nil
		},
	}
}

func (s *session) reportVerb() *cobra.Command {
	var format, out, into string
	c := &cobra.Command{
		Use: "report RUN", GroupID: "read", Short: "Print a run as a page or as data", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, ok := report.Find(format)
			if !ok {
				var known []string
				for _, f := range report.Formats {
					known = append(known, f.Name)
				}
				return usage("unknown format %q; there are %s", format, strings.Join(known, ", "))
			}
			o, err := flow.Load(filepath.Clean(args[0]))
			if err != nil {
				return err
			}
			src, err := o.Source()
			if err != nil {
				return err
			}
			if out != "" && into != "" {
				return usage("--out makes a file and --into changes one; give one of them")
			}
			print := func(w io.Writer) error { return f.Write(w, src) }
			if into == "" {
				return s.write(out, print)
			}
			return s.write(into, func(w io.Writer) error { return putInto(w, into, o.Results.Name, print) })
		},
	}
	about := make([]string, 0, len(report.Formats))
	for _, f := range report.Formats {
		about = append(about, fmt.Sprintf("  %-10s %s", f.Name, f.About))
	}
	c.Long = "Print a run as a page or as data.\n\nFormats:\n" + strings.Join(about, "\n")
	c.Flags().StringVarP(&format, "format", "f", "text", "one of the `formats` above")
	c.Flags().StringVarP(&out, "out", "o", "", "`file` to write (default stdout)")
	c.Flags().StringVar(&into, "into", "", "`document` in which the page takes the place between <!-- assay:NAME --> and <!-- /assay:NAME -->")
	return c
}

// putInto prints the document with the page in its place.
func putInto(w io.Writer, document, name string, print func(io.Writer) error) error {
	old, err := os.ReadFile(document)
	if err != nil {
		return usageError{err}
	}
	var page bytes.Buffer
	if err := print(&page); err != nil {
		return err
	}
	whole, err := report.Into(old, name, page.Bytes())
	if err != nil {
		return usage("%s: %w", document, err)
	}
	_, err = w.Write(whole)
	return err
}

// write prints to stdout or replaces a file, whole or not at all.
func (s *session) write(path string, print func(io.Writer) error) error {
	if path == "" || path == "-" {
		return print(s.out)
	}
	var b bytes.Buffer
	if err := print(&b); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usage("%s is a folder; give the name of a file in it", path)
	}
	err := ledger.WriteFile(path, b.Bytes())
	var cause *fs.PathError
	if errors.As(err, &cause) {
		return usage("%s cannot be written: %w", path, cause.Err)
	}
	return err
}

func (s *session) compareRunsVerb() *cobra.Command {
	return &cobra.Command{
		Use: "compare-runs RUN RUN...", GroupID: "read", Short: "Show how figures vary from run to run", Args: cobra.MinimumNArgs(2),
		Long: `Show how figures vary from run to run: of each metric, arm and cell the value in
every run, and their spread. The runs must be of one protocol.`,
		RunE: func(_ *cobra.Command, args []string) error {
			var sources []*report.Source
			for _, dir := range args {
				o, err := flow.Load(filepath.Clean(dir))
				if err != nil {
					return err
				}
				if len(sources) > 0 && o.Results.Name != sources[0].Results.Name {
					return usage("%s is a run of protocol %q and %s of %q; only runs of one protocol can be compared", dir, o.Results.Name, args[0], sources[0].Results.Name)
				}
				src, err := o.Source()
				if err != nil {
					return err
				}
				sources = append(sources, src)
			}
			return report.Compare(s.out, sources)
		},
	}
}
