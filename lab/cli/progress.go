package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/trial"
)

// repaint is how often the progress line is drawn on a terminal; each redraw
// costs the machine under test a little.
const repaint = 200 * time.Millisecond

// progress draws one line on a terminal; elsewhere it prints a line every
// tenth of the run at most.
type progress struct {
	w      io.Writer
	quiet  bool
	live   bool
	drawn  time.Time
	tenth  int
	failed map[string]int
	noted  map[string]bool
	dir    string
	dirty  bool
}

func newProgress(w io.Writer, quiet bool) *progress {
	live := isTerminal(w) && os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
	return &progress{w: w, quiet: quiet, live: live, failed: map[string]int{}, noted: map[string]bool{}}
}

func (p *progress) events() flow.Events {
	return flow.Events{
		Begin: func(dir string, rounds int) {
			p.dir = dir
			if !p.quiet {
				fmt.Fprintf(p.w, "run folder %s, %d rounds\n", dir, rounds)
			}
		},
		Round: p.round,
		Trial: p.trial,
		Note:  func(text string) { p.line(text) },
	}
}

// trial tells of a trial that failed: at once the first time, then counted. An
// arm's first remark is told too, since it may say that what the arm printed
// could not be read.
func (p *progress) trial(o *trial.Observation) {
	why := ""
	if len(o.Notes) > 0 {
		line, _, _ := strings.Cut(o.Notes[0], "\n")
		if r := []rune(line); len(r) > longestNote {
			line = string(r[:longestNote]) + "…"
		}
		why = ": " + printable(line)
	}
	switch {
	case o.Status != trial.StatusOK:
		p.failed[o.Arm]++
		if p.failed[o.Arm] == 1 {
			p.line(fmt.Sprintf("arm %s, cell %s, round %d: %s%s%s", o.Arm, o.Cell, o.Round, o.Status, why, said(o.Stderr)))
		}
	case why != "" && !p.noted[o.Arm]:
		p.noted[o.Arm] = true
		p.line(fmt.Sprintf("arm %s, cell %s, round %d%s", o.Arm, o.Cell, o.Round, why))
	}
}

const (
	longestNote = 200 // characters of a remark; the ledger has all of it

	// lastLines is how much is shown of what a program left on stderr: the end,
	// where the reason stands.
	lastLines = 8
)

// said is the end of what a program wrote, indented, on lines of its own.
func said(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) > lastLines {
		lines = append([]string{"…"}, lines[len(lines)-lastLines:]...)
	}
	text := ""
	for _, l := range lines {
		if l = printable(strings.TrimRight(l, " \t\r")); l != "" {
			text += "\n  " + l
		}
	}
	return text
}

// printable leaves out what would make a terminal do something.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

func (p *progress) line(text string) {
	p.clear()
	fmt.Fprintln(p.w, text)
}

func (p *progress) clear() {
	if p.dirty {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.dirty = false
	}
}

func (p *progress) round(pr flow.Progress) {
	if p.quiet {
		return
	}
	if p.live {
		if time.Since(p.drawn) < repaint && pr.Done < pr.Total {
			return
		}
		p.drawn = time.Now()
		p.clear()
		fmt.Fprint(p.w, p.text(pr))
		p.dirty = true
		return
	}
	if tenth := 10 * pr.Done / pr.Total; tenth > p.tenth && time.Since(p.drawn) > time.Second {
		p.tenth, p.drawn = tenth, time.Now()
		fmt.Fprintln(p.w, p.text(pr))
	}
}

func (p *progress) text(pr flow.Progress) string {
	const barWidth = 20
	done := barWidth * pr.Done / pr.Total
	bar := strings.Repeat("█", done) + strings.Repeat("░", barWidth-done)
	phase := ""
	if pr.Warmup {
		phase = " warm-up"
	}
	cell := pr.Cell
	if r := []rune(cell); len(r) > 24 {
		cell = string(r[:23]) + "…"
	}
	fails := ""
	n := 0
	for _, k := range p.failed {
		n += k
	}
	if n > 0 {
		fails = fmt.Sprintf("  %d failed", n)
	}
	return fmt.Sprintf("%s %3d %%  %s %d/%d%s  %s left%s", bar, 100*pr.Done/pr.Total, cell, pr.Round, pr.Of, phase, flow.Short(pr.Left), fails)
}

func (p *progress) end() { p.clear() }
