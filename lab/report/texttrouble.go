package report

import (
	"fmt"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/trial"
)

func (p *textPage) failures() {
	first := true
	for _, tc := range p.Results.Trials {
		text := statusText(tc.Status)
		if text == "" {
			continue
		}
		if first {
			p.heading("Failures")
			first = false
		}
		p.para("  - ", fmt.Sprintf("%s%s: %s of %d", tc.Arm, inCell(tc.Cell), text, tc.Planned))
		if tc.Example != "" {
			p.para("    ", "first: "+clipped(tc.Example, exampleLength))
		}
	}
}

// statusText counts the trials that did not end well, "" where all did.
func statusText(status map[string]int) string {
	var parts []string
	for _, st := range sortedKeys(status) {
		if st != string(trial.StatusOK) && status[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", status[st], oneLine(st)))
		}
	}
	return strings.Join(parts, ", ")
}

func (p *textPage) host() {
	if len(p.Results.Host.Breaches) == 0 {
		return
	}
	p.heading("Host")
	for _, b := range p.Results.Host.Breaches {
		p.para("  - ", breachText(&b))
	}
}

func breachText(b *analysis.HostBreach) string {
	if b.Times > 1 {
		return fmt.Sprintf("%s (%d times)", b.First, b.Times)
	}
	return b.First
}

func (p *textPage) remarks() {
	notes := remarksOf(p.Source)
	if len(notes) == 0 {
		return
	}
	p.heading("Notes")
	for _, n := range notes {
		p.lines("  - ", n)
	}
}

// remarksOf is what a reader must know to judge the figures.
func remarksOf(s *Source) []string {
	var notes []string
	for _, n := range s.Verdict.Notes {
		// The host's own part has said those.
		if !strings.HasPrefix(n, "host: ") {
			notes = append(notes, n)
		}
	}
	for _, a := range s.Run.Protocol.Asymmetries {
		notes = append(notes, "the arms differ: "+a)
	}
	for _, d := range s.Run.Lock.Deviations {
		notes = append(notes, fmt.Sprintf("deviation, version %d: %s (changed: %s)", d.Version, d.Reason, strings.Join(d.Changed, ", ")))
	}
	resumed := 0
	for _, rec := range s.Run.Records {
		switch {
		case rec.Note != nil:
			notes = append(notes, "during the run: "+rec.Note.Text)
		case rec.Resume != nil:
			resumed++
		}
	}
	if resumed > 0 {
		notes = append(notes, fmt.Sprintf("the run was stopped and resumed %d time(s)", resumed))
	}
	return notes
}
