package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/protocol"
)

// pageOrigin is where the figures come from: everything that an auditor would
// ask for.
type pageOrigin struct {
	Hypotheses, Asymmetries []string
	Expectation             string
	Deviations              []pageDeviation
	Lock                    []pageFact
	Receipts                []pageReceipt
	Inputs                  []pageInput
	Machine, Build          []pageFact
	Unavailable             []string
	Events                  []pageEvent
	Protocol                string
	ProtocolCut             string
}

type pageDeviation struct {
	Version                         int
	When, Reason, Changed, Previous string
}

type pageReceipt struct {
	Arm, Executes, Program, SHA256, Version, Rev string
}

type pageInput struct{ Path, SHA256, Bytes string }

type pageEvent struct{ When, What string }

func newPageOrigin(s *Source) *pageOrigin {
	p, l := s.Run.Protocol, s.Run.Lock
	v := &pageOrigin{
		Hypotheses: firstOf(p.Hypotheses, pageItems), Asymmetries: firstOf(p.Asymmetries, pageItems), Expectation: shorten(p.Expectation),
		Lock: []pageFact{
			{Term: "Digest", Value: l.Digest, Mono: true}, {Term: "Protocol SHA-256", Value: l.SHA256, Mono: true},
			{Term: "Version", Value: strconv.Itoa(l.Version)}, {Term: "Frozen", Value: stamp(l.Frozen)}, {Term: "By", Value: "assay " + shorten(l.Tool)},
			{Term: "From", Value: shorten(l.Source)}, {Term: "Sealed", Value: sealedWord(s.Run.Sealed)},
		},
		Events: newPageEvents(s),
	}
	if len(v.Asymmetries) == 0 {
		v.Asymmetries = []string{"The protocol names none."}
	}
	for _, t := range p.Settings[:min(len(p.Settings), pageRows)] {
		v.Lock = append(v.Lock, pageFact{Term: "Setting " + t.Name, Value: shorten(cmp.Or(t.Value, none)), Mono: true})
	}
	for _, d := range l.Deviations[:min(len(l.Deviations), pageRows)] {
		v.Deviations = append(v.Deviations, pageDeviation{d.Version, stamp(d.When), shorten(d.Reason), strings.Join(d.Changed, ", "), shortDigest(d.Previous)})
	}
	for i := range p.Arms[:min(len(p.Arms), pageRows)] {
		v.Receipts = append(v.Receipts, newPageReceipt(&p.Arms[i], l.Receipts))
	}
	for _, f := range l.Inputs[:min(len(l.Inputs), pageRows)] {
		v.Inputs = append(v.Inputs, pageInput{shorten(f.Path), f.SHA256, thousands(strconv.FormatInt(f.Bytes, 10))})
	}
	v.environment(s.Env)
	v.protocol(l)
	return v
}

func sealedWord(sealed bool) string {
	if sealed {
		return "yes, the run folder is closed for good"
	}
	return "no"
}

// newPageReceipt is what an arm executes and what it was at the freeze.
func newPageReceipt(a *protocol.Arm, receipts []protocol.Receipt) pageReceipt {
	v := pageReceipt{Arm: a.Name, Program: none}
	switch {
	case a.Func != "":
		v.Executes = "function " + a.Func
	case a.Shell != "":
		v.Executes = shorten(a.Shell)
	default:
		v.Executes = shorten(strings.Join(a.Command, " "))
	}
	for _, r := range receipts {
		if r.Arm != a.Name {
			continue
		}
		v.Program, v.SHA256, v.Version, v.Rev = shorten(r.Program), r.SHA256, shorten(r.Version), r.Rev
		if r.Dirty {
			v.Rev = strings.TrimSpace(v.Rev + " with changes on top")
		}
	}
	return v
}

func (v *pageOrigin) environment(e *host.Provenance) {
	if e == nil {
		v.Machine = []pageFact{{Term: "Environment", Value: "was not recorded"}}
		return
	}
	add := func(to *[]pageFact, term, value string, mono bool) {
		if value != "" {
			*to = append(*to, pageFact{term, shorten(value), mono})
		}
	}
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	m := &v.Machine
	add(m, "System", strings.TrimSpace(e.Distribution+" ("+e.OS+"/"+e.Arch+")"), false)
	add(m, "Kernel", e.Kernel, false)
	add(m, "CPU", e.CPUModel, false)
	add(m, "CPUs online", count(e.CPUs), false)
	add(m, "CPUs allowed", e.CPUsAllowed, false)
	if e.MHz > 0 {
		add(m, "Clock", num(e.MHz)+" MHz", false)
	}
	if e.MaxMHz > 0 {
		add(m, "Highest clock", num(e.MaxMHz)+" MHz", false)
	}
	if e.MemoryBytes > 0 {
		add(m, "Memory", withUnit(float64(e.MemoryBytes), "B"), false)
	}
	add(m, "Governor", e.Governor, false)
	add(m, "Turbo", e.Turbo, false)
	add(m, "SMT", e.SMT, false)
	add(m, "ASLR", e.ASLR, false)
	add(m, "Huge pages", e.THP, false)
	add(m, "Hypervisor", e.Hypervisor, false)
	add(m, "Container", e.Container, false)
	add(m, "cgroup version", count(e.CgroupVersion), false)
	add(m, "cgroup quota", e.CgroupQuota, false)
	add(m, "Scratch file system", e.ScratchFS, false)
	add(m, "Scratch device", e.ScratchDevice, false)
	add(m, "Scratch options", strings.Join(e.ScratchOptions, ", "), false)
	add(m, "Scratch disk", e.ScratchDisk, false)
	b := &v.Build
	add(b, "Go", e.GoVersion, false)
	add(b, "GOMAXPROCS", count(e.GOMAXPROCS), false)
	add(b, "Tool", e.ToolVersion, false)
	add(b, "Tool SHA-256", e.ToolSHA256, true)
	add(b, "Build settings", strings.Join(e.ToolBuild, ", "), false)
	switch {
	case e.Git.State != host.OK:
		add(b, "Source revision", strings.TrimSuffix("unavailable: "+e.Git.Detail, ": "), false)
	case e.Git.Dirty:
		add(b, "Source revision", e.Git.Revision+" with changes on top", true)
	default:
		add(b, "Source revision", e.Git.Revision, true)
	}
	v.Unavailable = firstOf(e.Unavailable, pageItems)
}

func newPageEvents(s *Source) []pageEvent {
	var all []pageEvent
	for _, rec := range s.Run.Records {
		var e pageEvent
		switch {
		case rec.Begin != nil:
			e = pageEvent{stamp(rec.Begin.Time), "began, with environment " + shortDigest(rec.Begin.Environment)}
		case rec.Resume != nil:
			e = pageEvent{stamp(rec.Resume.Time), "resumed by assay " + shorten(rec.Resume.Tool)}
			if rec.Resume.Dropped > 0 {
				e.What += fmt.Sprintf("; %s that the stop had cut off were dropped", counted(int(rec.Resume.Dropped), "byte"))
			}
		case rec.Note != nil:
			e = pageEvent{stamp(rec.Note.Time), shorten(rec.Note.Text)}
			if rec.Note.Exploratory {
				e.What += " (makes the run exploratory)"
			}
		case rec.End != nil:
			e = pageEvent{stamp(rec.End.Time), "ended"}
		default:
			continue
		}
		if len(all) == pageRows {
			return append(all, pageEvent{"", "further events are left out here; the ledger has all of them"})
		}
		all = append(all, e)
	}
	return all
}

// protocol is the frozen protocol as people can read it: the canonical bytes
// with line breaks.
func (v *pageOrigin) protocol(l *protocol.Lock) {
	var b bytes.Buffer
	if json.Indent(&b, l.Protocol, "", "  ") != nil {
		b.Reset()
		b.Write(l.Protocol)
	}
	text := readable(b.String())
	if len(text) > pageProtocolBytes {
		v.ProtocolCut = fmt.Sprintf("Cut after %s; the whole protocol stands in lock.json of the run folder.", counted(pageProtocolBytes, "byte"))
		text = strings.ToValidUTF8(text[:pageProtocolBytes], "")
	}
	v.Protocol = text
}

// readable is JSON with the characters that a page may show as they are, where
// the encoder has escaped them.
func readable(text string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '\\')
		if at < 0 || at+1 == len(text) {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at])
		text = text[at:]
		n := 2 // an escape that stays, so that what follows a doubled backslash is none
		if len(text) >= 6 && text[1] == 'u' {
			n = 6
		}
		if plain, ok := map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"}[text[:n]]; ok {
			b.WriteString(plain)
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
}
