// Command bars holds the project against the limits that it set itself: it runs the
// commands that measure them, takes the figures out of what they print, judges each
// against its limit and writes docs/figures.md. It knows the list of bars, how figures
// are printed and what a finished run of a study says; it must never know how anything is
// measured, and has no figure of its own.
//
//	go run ./bench/bars                  what takes a minute or two each
//	go run ./bench/bars -full            everything: some hours
//	go run ./bench/bars -only lab,artrie.peers   these, long or not, by the start of their ids
//	go run ./bench/bars -list
//	go run ./bench/bars -render          the page again from docs/figures.json
//
// The record is docs/figures.json. A bar that is not measured this time keeps its last
// figure, with the machine and the date that belong to it. A bar whose command was
// run and gave no figure has none from then on: it says why, and is not met.
//
// A command prints a figure as a line, possibly behind what a test log puts before it:
//
//	figure: NAME VALUE [UNIT]
//
// The bars of a study read finished runs. ASSAY_BARS_SCREENING_WRITE and the like (see
// -list) name their folders, separated as in PATH; where it is unset, -full makes the runs. A folder
// that does not pass assay verify, or is no full run of that study, gives no figure.
//
// The reason for a miss is not written here but in the docs, as a paragraph that begins
// with "Why missed (ID, ID):".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	full := flag.Bool("full", false, "also what takes long")
	only := flag.String("only", "", "bars whose ids begin with one of these `words`, separated by commas, long or not")
	list := flag.Bool("list", false, "print the bars and run nothing")
	render := flag.Bool("render", false, "make the page again from the record and run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case flag.NArg() > 0:
		err = fmt.Errorf("unknown argument %q; see -help", flag.Arg(0))
	case *list:
		err = printList(os.Stdout)
	default:
		err = run(ctx, os.Stdout, *only, *full, *render)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bars:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, only string, full, render bool) error {
	root, err := repository()
	if err != nil {
		return err
	}
	all := sections()
	chosen, err := choose(all, only, full)
	if err != nil {
		return err
	}
	docs := filepath.Join(root, "docs")
	if render {
		return note(docs, all, nil)
	}
	if _, err := readRecord(filepath.Join(docs, recordFile)); err != nil {
		return err
	}
	// What is wrong there is better known before hours of measuring than after.
	if _, err := readReasons(docs, all); err != nil {
		return err
	}
	r, err := newRunner(root, w)
	if err != nil {
		return err
	}
	defer r.close()
	blank := 0
	for _, s := range chosen {
		if why := s.unmet(); why != "" {
			fmt.Fprintf(w, "not run: %s: %s\n", s.line, why)
			continue
		}
		m := r.measure(ctx, s)
		if ctx.Err() != nil {
			// What was cut off says nothing, and the last figure stays.
			return fmt.Errorf("interrupted; figures up to here are in %s", filepath.Join("docs", recordFile))
		}
		var found []entry
		for _, b := range barsOf(all, s) {
			e := m.entry(b)
			if e.blank() {
				blank++
			}
			found = append(found, e)
			fmt.Fprintf(w, "  %-12s %s: %s, wanted %s%s\n", b.judge(e), b.id, b.said(e), b.want, b.inUnit())
		}
		if err := note(docs, all, found); err != nil {
			return err
		}
	}
	if blank > 0 {
		return fmt.Errorf("%d bars have no figure although their commands were run; %s says why", blank, filepath.Join("docs", pageFile))
	}
	return nil
}

// repository is the folder of the module, from which all commands are run.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "bench", "bars")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a copy of the repository", dir)
		}
	}
}

// choose returns the sources to run, in the order of the list. Words choose by id, and
// then also what is long.
func choose(all []section, only string, full bool) ([]*source, error) {
	var words []string
	if only != "" {
		words = strings.Split(only, ",")
	}
	used := map[string]bool{}
	var out []*source
	for _, b := range bars(all) {
		take := len(words) == 0 && (full || !b.by.long || len(b.by.given()) > 0)
		for _, w := range words {
			if w != "" && strings.HasPrefix(b.id, w) {
				take, used[w] = true, true
			}
		}
		if take && !slices.Contains(out, b.by) {
			out = append(out, b.by)
		}
	}
	for _, w := range words {
		if !used[w] {
			return nil, fmt.Errorf("no bar's id begins with %q; -list prints them", w)
		}
	}
	return out, nil
}

func printList(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, b := range bars(sections()) {
		class := "short"
		if b.by.long {
			class = "full"
		}
		from := b.by.line
		if b.by.study != "" {
			from += " (or runs named by " + b.by.variable() + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s%s\t%s\n", b.id, class, b.want, b.inUnit(), from)
	}
	return t.Flush()
}

// unmet says why a source cannot be run on this machine, "" if it can.
func (s *source) unmet() string {
	if len(s.given()) > 0 {
		return ""
	}
	var missing []string
	for _, p := range s.needs {
		if _, err := exec.LookPath(p); err != nil {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "it needs " + strings.Join(missing, " and ") + ", which is not installed; the last figures stay"
}

// took is how long something ran, as it is told.
func took(d time.Duration) string { return d.Round(time.Second).String() }

var errNoFigure = errors.New("no figure in the output")
