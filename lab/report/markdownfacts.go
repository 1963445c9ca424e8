package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

func mdTrace(s *Source) []string {
	var rows []string
	for _, st := range s.Verdict.Trace {
		condition := prose(st.Condition)
		switch {
		case st.Condition == "":
			condition = "otherwise"
		case !st.Guard:
			condition = code(st.Condition)
		}
		rows = append(rows, tableRow(prose(st.Result), code(st.Outcome), prose(string(st.Class)), condition, prose(valuesText(st.Values))))
	}
	return rows
}

func mdFacts(s *Source) []string {
	p := s.Run.Protocol
	var rows []string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, "- "+name+": "+value+"\n")
		}
	}
	for _, h := range p.Hypotheses {
		add("hypothesis", prose(h))
	}
	add("expected", prose(p.Expectation))
	for _, t := range p.Settings {
		add("setting "+code(t.Name), code(cmp.Or(t.Value, none)))
	}
	add("lock", code(s.Run.Lock.Digest))
	add("protocol, SHA-256", code(s.Run.Lock.SHA256))
	for _, r := range s.Run.Lock.Receipts {
		add("arm "+code(r.Arm), receiptText(r))
	}
	for _, l := range environmentLines(s) {
		add(l[0], prose(l[1]))
	}
	for _, h := range s.Results.Host.Probes {
		add("probe "+code(h.Probe), prose(probeText(&h)))
	}
	return rows
}

func receiptText(r protocol.Receipt) string {
	var parts []string
	for _, x := range []struct{ name, value string }{{"program", r.Program}, {"SHA-256", r.SHA256}, {"revision", r.Rev}, {"version", r.Version}} {
		if x.value != "" {
			parts = append(parts, x.name+" "+code(x.value))
		}
	}
	if r.Dirty {
		parts = append(parts, "with uncommitted changes")
	}
	if len(parts) == 0 {
		return "no receipt"
	}
	return strings.Join(parts, ", ")
}

func probeText(h *analysis.HostSummary) string {
	s := fmt.Sprintf("%s, %s", joinUnit(span(float64(h.Min), float64(h.Max), ""), h.Unit), counted(h.Readings, "reading"))
	if h.Readings == 0 {
		s = "unavailable"
	} else if h.Unavailable > 0 {
		s += fmt.Sprintf(", unavailable %d times", h.Unavailable)
	}
	if h.Detail != "" {
		s += " (" + h.Detail + ")"
	}
	return s
}
