package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/trial"
)

// crowdedRun has 16 cells, 3 arms and 10 metrics.
func crowdedRun(t testing.TB) *Source {
	var b strings.Builder
	b.WriteString(`
assay: 1
name: crowded
question: How does it look with many cells?
arms:
  - {name: control, command: [a]}
  - {name: treatment-with-a-long-name, command: [b]}
  - {name: other, command: [c], class: reported}
factors:
  - {name: size, levels: [1, 4, 16, 64]}
  - {name: distribution, levels: [uniform, zipfian, sequential, latest]}
design: {rounds: 4, seed: 3}
checks: [{name: conserved, scope: trial, reported: true}]
primary: {metric: metric_0, floor: {change: 0.02}}
gates: [{name: gate_1, metric: metric_1, require: ratio <= 1.01}]
decision: {preset: four-branch}
metrics:
`)
	for i := range 10 {
		fmt.Fprintf(&b, "  - {name: metric_%d, source: json, unit: ms, better: lower}\n", i)
	}
	return makeRun(t, b.String(), made{exploratory: "a test", trial: func(slot trial.Slot, o *trial.Observation) {
		for i := range 10 {
			o.Values[fmt.Sprintf("metric_%d", i)] = 1000 + 100*noise(slot.Cell, slot.Round, slot.Arm, i)
		}
		o.Checks = []check.Result{{Name: "conserved", Verdict: check.Pass, Operations: 5}}
	}})
}

func TestMarkdownStaysBelowTheLimit(t *testing.T) {
	text := string(page(t, Markdown, crowdedRun(t)))
	if len(text) > markdownLimit || len(text) < markdownLimit/2 {
		t.Errorf("%d bytes", len(text))
	}
	if !strings.HasPrefix(text, "<!-- assay:crowded -->\n### INCONCLUSIVE: `EXPLORATORY`\n") {
		t.Error(text[:200])
	}
	for _, want := range []string{"**Left out** to stay below", "of “All other figures”", "`results.json`", "</details>\n\n**Left out**"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q: %s", want, text[len(text)-600:])
		}
	}
}

func TestTextOfManyCells(t *testing.T) {
	text := string(page(t, Text, crowdedRun(t)))
	wantNarrow(t, text, defaultWidth)
	if n := strings.Count(text, "\n"); n > 200 {
		t.Errorf("%d lines", n)
	}
	yaml := strings.NewReplacer("levels: [1, 16]", "levels: [1, 16, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 2, 17, 18]").Replace(matrix)
	for _, why := range []string{"", "a test"} {
		text := everyPage(t, makeRun(t, yaml, made{exploratory: why, trial: matrixTrial}))["txt"]
		if n := strings.Count(text, "\n"); n > 160 || !strings.Contains(text, "not shown") {
			t.Errorf("%d lines\n%s", n, text)
		}
	}
}

// everyPage writes all pages and fails the test where one cannot.
func everyPage(t *testing.T, s *Source) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, f := range goldenFormats {
		pages[f.ext] = string(page(t, f.write, s))
	}
	pages["json"] = string(page(t, JSON, s))
	wantNarrow(t, pages["txt"], defaultWidth)
	if !json.Valid([]byte(pages["json"])) || !json.Valid([]byte(pages["hyperfine.json"])) {
		t.Error("not JSON")
	}
	if err := xml.Unmarshal([]byte(pages["xml"]), &junitRoot{}); err != nil {
		t.Error(err)
	}
	return pages
}

func TestOneRound(t *testing.T) {
	yaml := strings.Replace(compareYAML, "rounds: 10, warmup: 1", "rounds: 1", 1)
	pages := everyPage(t, makeRun(t, yaml, made{exploratory: "one look", trial: func(slot trial.Slot, o *trial.Observation) {
		o.Usage.Wall = time.Second
		if slot.Arm == "sort-v2" {
			o.Usage.Wall = 2 * time.Second
		}
	}}))
	if want := "sort-v1 is 2.00 times faster than sort-v2 (wall: one round, so no interval)"; !strings.Contains(pages["txt"], want) {
		t.Error(pages["txt"])
	}
	if !strings.Contains(pages["hyperfine.json"], `"stddev": null`) {
		t.Error(pages["hyperfine.json"])
	}
	if !strings.Contains(pages["csv"], "peak memory is not the trial's own") {
		t.Error(pages["csv"])
	}
}

func TestIncompleteRun(t *testing.T) {
	s := makeRun(t, writePath, made{until: 21, trial: writePathTrial(0.82)})
	pages := everyPage(t, s)
	for ext, want := range map[string]string{
		"txt": "INCOMPLETE", "md": "**Incomplete**", "xml": `<failure type="inconclusive"`, "csv": "treatment,not-run,,,,wall,s,,the trial did not run",
	} {
		if !strings.Contains(pages[ext], want) {
			t.Errorf("%s lacks %q:\n%s", ext, want, pages[ext])
		}
	}
}

func TestNothingRan(t *testing.T) {
	s := makeRun(t, writePath, made{until: 1, trial: func(slot trial.Slot, o *trial.Observation) { o.Status, o.Exit = trial.StatusNoStart, -1 }})
	pages := everyPage(t, s)
	if strings.Contains(pages["bench"], "\nBenchmark") || !strings.Contains(pages["bench"], "assay-withheld: ") {
		t.Error(pages["bench"])
	}
}

// TestGapsInResults covers figures that other packages left out or that are no
// numbers, as an older results.json may have them.
func TestGapsInResults(t *testing.T) {
	s := matrixRun(t)
	inf, gap := analysis.Number(math.Inf(1)), analysis.Number(math.NaN())
	s.Results.Cells[0].Metrics = nil
	m := &s.Results.Cells[1].Metrics[0]
	m.Arms = m.Arms[:1]
	c := &s.Results.Cells[2].Metrics[0].Comparisons[0]
	c.Change, c.Diff, c.Ratio, c.RatioCI, c.Paired, c.Dz, c.D = inf, inf, inf, nil, nil, gap, -inf
	s.Results.Cells[3].Metrics[0].Arms[0].Mean = gap
	s.Results.Primary.Cells[0].Missing = "3 of 8 rounds lack a value of latency"
	s.Results.Primary.Cells[1].AdjustedP = gap
	everyPage(t, s)
	s.Results.Primary, s.Env, s.Results.Cells = nil, nil, nil
	everyPage(t, s)
}

func TestMissingValues(t *testing.T) {
	s := makeRun(t, writePath, made{trial: func(slot trial.Slot, o *trial.Observation) {
		writePathTrial(0.82)(slot, o)
		if slot.Round == 5 {
			delete(o.Values, "retries")
			delete(o.Bulk, "latency")
		}
	}})
	pages := everyPage(t, s)
	for ext, want := range map[string]string{
		"txt":   `missing     retries, arm control, 1 round: the arm reported no number under`,
		"md":    "missing: the arm reported no number under the key",
		"xml":   `<error type="missing" message="ratio_high &lt;= 1.25 of p99`,
		"csv":   `the arm reported no samples`,
		"bench": "assay-missing: 4 values",
	} {
		if !strings.Contains(pages[ext], want) {
			t.Errorf("%s lacks %q:\n%s", ext, want, pages[ext])
		}
	}
}

func TestBlockingHost(t *testing.T) {
	w := busy(90)
	w.Breaches[0].Action = "block"
	pages := everyPage(t, makeRun(t, writePath, made{trial: writePathTrial(0.82), windows: []ledger.HostWindow{w, w}}))
	if !strings.Contains(pages["txt"], "VERDICT  INVALID  HOST-LIMITS") || !strings.Contains(pages["xml"], `<error type="invalid"`) {
		t.Error(pages["txt"], pages["xml"])
	}
}
