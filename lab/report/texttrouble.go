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
