package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// hostile holds what some format takes for more than text.
const hostile = "=1+1|`<script>alert(1)</script>\n\n# head\x1b[31m\x00\x7f\u202e --> ]]> @all #1 [a](b) \\| &amp; \xff\u2028,\";-7"

// hostileProtocol is past lint, so that names too hold anything: a report is
// also made of run folders that somebody sent.
func hostileProtocol(t testing.TB) *protocol.Protocol {
	t.Helper()
	p, faults := protocol.Parse("protocol.yaml", []byte(matrix), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	p.Name, p.Question, p.Expectation = hostile, hostile, hostile
	p.Hypotheses, p.Asymmetries = []string{hostile}, []string{hostile}
	for i := range p.Arms {
		p.Arms[i].Name = string(rune('a'+i)) + hostile
	}
	p.Arms[0].Name = hostile
	p.Primary.Treatment = p.Arms[1].Name
	for i := range p.Metrics {
		p.Metrics[i].Name += hostile
		p.Metrics[i].Key = "k" + p.Metrics[i].Name
		p.Metrics[i].Unit = hostile
	}
	p.Primary.Metric = p.Metrics[0].Name
	for i := range p.Gates {
		p.Gates[i].Name += hostile
		p.Gates[i].Because = hostile
		p.Gates[i].Metric = p.Metrics[i].Name
		p.Gates[i].Arm = p.Arms[1+i].Name
	}
	p.Factors[1].Levels = []protocol.Scalar{"hot", hostile}
	for i := range p.Decision.Outcomes {
		p.Decision.Outcomes[i].Name += hostile
		p.Decision.Outcomes[i].Say = hostile
	}
	return p
}

func hostileTrial(v check.Verdict) func(trial.Slot, *trial.Observation) {
	return func(slot trial.Slot, o *trial.Observation) {
		for _, key := range []string{"latency", "conflicts"} {
			o.Values["k"+key+hostile] = 1 + noise(slot.Cell, slot.Round, slot.Arm, key)
		}
		o.Checks = []check.Result{{Name: "conserved", Verdict: v, Operations: 5, Message: hostile, Examples: []string{hostile, hostile, hostile, hostile}}}
		if v == check.Fail {
			o.Checks = append(o.Checks, check.Result{Name: "undeclared" + hostile, Verdict: check.Fail, Message: hostile})
			if slot.Round == 2 {
				o.Status, o.Stderr, o.Signal, o.Notes = trial.Status("failed"+hostile), hostile, hostile, []string{hostile}
			}
		}
	}
}

func hostileRun(t testing.TB, v check.Verdict) *Source {
	s := makeRunOf(t, hostileProtocol(t), made{
		exploratory: hostile, deviations: []protocol.Deviation{{Version: 2, Reason: hostile, Changed: []string{hostile}}}, trial: hostileTrial(v),
	})
	env := *machine
	env.CPUModel, env.Kernel = hostile, hostile
	s.Env = &env
	return s
}

func hostileRuns(t testing.TB) []*Source {
	return []*Source{hostileRun(t, check.Pass), hostileRun(t, check.Fail), hostileRun(t, check.Unknown)}
}

func wantNarrow(t testing.TB, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%d characters: %q", n, line)
		}
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }); i >= 0 {
			t.Errorf("a character that cannot be seen, at byte %d: %q", i, line)
		}
	}
}

func TestTextOfHostileRuns(t *testing.T) {
	for _, s := range hostileRuns(t) {
		wantNarrow(t, string(page(t, Text, s)), defaultWidth)
		wantNarrow(t, string(page(t, Terminal{Width: 1}.Write, s)), leastWidth)
		wantNarrow(t, string(page(t, Terminal{Width: 200}.Write, s)), 200)
	}
}

func TestMarkdownOfHostileRuns(t *testing.T) {
	for _, s := range hostileRuns(t) {
		text := string(page(t, Markdown, s))
		if len(text) > markdownLimit {
			t.Errorf("%d bytes", len(text))
		}
		first, _, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(first, "<!-- assay:") || strings.Index(first, "-->") != len(first)-len("-->") {
			t.Errorf("the mark is %q", first)
		}
		columns := 0
		for line := range strings.Lines(text) {
			for _, bad := range []string{"<script", "\x1b", "\x00", "@all", "#1 ", "](b)", "`<"} {
				if strings.Contains(line, bad) {
					t.Errorf("%q stands in %q", bad, line)
				}
			}
			if !strings.HasPrefix(line, "|") {
				columns = 0
				continue
			}
			if n := strings.Count(line, "|"); columns == 0 {
				columns = n
			} else if n != columns {
				t.Errorf("%d bars instead of %d: %q", n, columns, line)
			}
		}
		if open, shut := strings.Count(text, "<details>"), strings.Count(text, "</details>"); open != shut {
			t.Errorf("%d details opened, %d closed", open, shut)
		}
	}
}

func TestLongNamesDoNotBurstThePage(t *testing.T) {
	long := strings.Repeat("|", 100_000)
	p := hostileProtocol(t)
	p.Question, p.Expectation, p.Asymmetries = long, long, []string{long, long}
	for i := range p.Metrics {
		p.Metrics[i].Unit = long
	}
	for i := range p.Decision.Outcomes {
		p.Decision.Outcomes[i].Name += long
	}
	s := makeRunOf(t, p, made{trial: hostileTrial(check.Pass)})
	if n := len(page(t, Markdown, s)); n > markdownLimit {
		t.Errorf("%d bytes", n)
	}
}

func TestXMLOfHostileRuns(t *testing.T) {
	for _, s := range hostileRuns(t) {
		b := page(t, JUnit, s)
		d := xml.NewDecoder(bytes.NewReader(b))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !utf8.Valid(b) || bytes.ContainsAny(b, "\x00\x1b") {
			t.Error("a character that XML cannot hold")
		}
	}
}

func TestCSVOfHostileRuns(t *testing.T) {
	for _, s := range hostileRuns(t) {
		rows, err := csv.NewReader(bytes.NewReader(page(t, CSV, s))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if want := 1 + 2*len(s.trials()); len(rows) != want {
			t.Errorf("%d rows, want %d", len(rows), want)
		}
		value := slices.Index(rows[0], "value")
		for _, r := range rows {
			for i, c := range r {
				if c != "" && i != value && strings.ContainsAny(c[:1], "=+-@") {
					t.Errorf("column %s: %q would be a formula", rows[0][i], c)
				}
			}
		}
	}
}

func TestOtherPagesOfHostileRuns(t *testing.T) {
	for _, s := range hostileRuns(t) {
		for _, write := range []func(io.Writer, *Source) error{JSON, Hyperfine} {
			if b := page(t, write, s); !json.Valid(b) || !utf8.Valid(b) {
				t.Error("not JSON")
			}
		}
	}
}
