package report

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

func htmlOf(t testing.TB, s *Source) string {
	t.Helper()
	return string(page(t, HTML, s))
}

// htmlRuns are the runs that every page must get right.
var htmlRuns = []struct {
	name string
	make func(testing.TB) *Source
}{
	{"go", goRun}, {"no-go", noGoRun}, {"abort", abortRun}, {"exploratory", exploratoryRun}, {"matrix", matrixRun}, {"crowded", crowdedRun},
	{"interrupted", interruptedRun}, {"one round", oneRound}, {"gaps", gapsRun}, {"nothing", nothingRun},
	{"hostile", func(t testing.TB) *Source { return hostileRun(t, check.Pass) }},
	{"hostile abort", func(t testing.TB) *Source { return hostileRun(t, check.Fail) }},
}

func interruptedRun(t testing.TB) *Source {
	return makeRun(t, writePath, made{until: 11, trial: writePathTrial(0.8)})
}

func oneRound(t testing.TB) *Source {
	yaml := strings.Replace(writePath, "rounds: 12, warmup: 2", "rounds: 1", 1)
	return makeRun(t, yaml, made{exploratory: "one round cannot show anything", trial: writePathTrial(0.8)})
}

// gapsRun has missing values, and results with every number that is none.
func gapsRun(t testing.TB) *Source {
	s := makeRun(t, writePath, made{trial: func(slot trial.Slot, o *trial.Observation) {
		writePathTrial(0.8)(slot, o)
		if slot.Round%3 == 0 {
			delete(o.Values, "throughput")
		}
		if slot.Arm == "treatment" {
			delete(o.Values, "retries")
		}
	}})
	s.Env = nil
	for i, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		n := analysis.Number(x)
		m := &s.Results.Cells[0].Metrics[i]
		m.Arms[0].Mean, m.Arms[0].Max, m.Arms[1].Values[2] = n, n, n
		c := &m.Comparisons[0]
		c.Change, c.Diff, c.Dz, c.RatioCI = n, n, n, &analysis.Interval{Low: n, High: n, Level: n}
	}
	s.Results.Primary.Cells[0].CI = analysis.Interval{Low: nan, High: analysis.Number(math.Inf(1)), Level: nan}
	s.Results.Primary.Power = nil
	return s
}

// nothingRun has as little as a source can have.
func nothingRun(t testing.TB) *Source {
	p, faults := protocol.Parse("protocol.yaml", []byte(writePath), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	s := &Source{Run: &ledger.Run{Lock: &protocol.Lock{}, Protocol: p}, Results: &analysis.Results{}}
	s.Verdict = gate.Decide(p, s.Results)
	return s
}

var (
	voidTag   = regexp.MustCompile(`<(meta|wbr|br)\b([^>]*)>`)
	boolean   = regexp.MustCompile(` open>`)
	idOf      = regexp.MustCompile(` id="([^"]*)"`)
	labelled  = regexp.MustCompile(` aria-labelledby="([^"]*)"`)
	inPageRef = regexp.MustCompile(` href="#([^"]*)"`)
	style     = regexp.MustCompile(`(?s)<style>.*?</style>`)
)

func TestEveryPage(t *testing.T) {
	for _, r := range htmlRuns {
		t.Run(r.name, func(t *testing.T) {
			s := r.make(t)
			html := htmlOf(t, s)
			if again := htmlOf(t, s); again != html {
				t.Error("the same source gives other bytes")
			}
			body := style.ReplaceAllString(html, "")
			wellFormed(t, boolean.ReplaceAllString(voidTag.ReplaceAllString(strings.TrimPrefix(body, "<!DOCTYPE html>"), "<$1$2/>"), ` open="">`))
			ids := idsOf(t, body)
			for _, m := range labelled.FindAllStringSubmatch(body, -1) {
				for _, id := range strings.Fields(m[1]) {
					if !ids[id] {
						t.Errorf("no element %q", id)
					}
				}
			}
			for _, m := range inPageRef.FindAllStringSubmatch(body, -1) {
				if !ids[m[1]] {
					t.Errorf("a link leads to %q, which is not there", m[1])
				}
			}
			lacksNothing(t, body)
		})
	}
}

func idsOf(t *testing.T, body string) map[string]bool {
	ids := map[string]bool{}
	for _, m := range idOf.FindAllStringSubmatch(body, -1) {
		if ids[m[1]] {
			t.Errorf("id %q stands twice", m[1])
		}
		ids[m[1]] = true
	}
	return ids
}

// lacksNothing looks for what no page may have and what each must.
func lacksNothing(t *testing.T, body string) {
	t.Helper()
	for _, bad := range []string{"<script", "<link", "<img", "<iframe", "<object", "javascript:", "http://", "https://", " src=", "NaN", "+Inf", "%!", "ZgotmplZ", "<no value>", "\x1b", "\x00", "\u202e", "&lt;nil"} {
		if at := strings.Index(strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), bad); at >= 0 {
			t.Errorf("has %q: %.200q", bad, body[max(0, at-80):])
		}
	}
	for _, want := range []string{
		`content="default-src 'none'; style-src 'unsafe-inline'; img-src data:`, `<html lang="en">`, `name="viewport"`, `<a class="skip"`,
		"<main", `id="checks"`, `id="decision"`, `id="trials"`, `id="host"`, `id="provenance"`, "Exit code",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("lacks %q", want)
		}
	}
	for i, at := 0, strings.Index(body, "<table"); at >= 0 && i < 1000; i++ {
		table := body[at:]
		table, rest, _ := strings.Cut(table, "</table>")
		if !strings.Contains(table, "<caption>") || !strings.Contains(table, `scope="col"`) {
			t.Errorf("a table without caption or scope: %.200s", table)
		}
		if body, at = rest, strings.Index(rest, "<table"); at < 0 {
			break
		}
	}
}

// inOrder checks that the texts follow each other on the page.
func inOrder(t *testing.T, html string, texts ...string) {
	t.Helper()
	html = strings.ReplaceAll(html, "<wbr>", "")
	at := 0
	for _, s := range texts {
		i := strings.Index(html[at:], s)
		if i < 0 {
			t.Errorf("%q is not on the page, or not after what should be ahead of it", s)
			continue
		}
		at += i + len(s)
	}
}

func TestPageInOrder(t *testing.T) {
	s := makeRun(t, writePath, made{trial: writePathTrial(0.82), windows: []ledger.HostWindow{busy(31), busy(11)},
		deviations: []protocol.Deviation{{Version: 2, Reason: "The first freeze named the wrong input.", Changed: []string{"inputs"}}}})
	inOrder(t, htmlOf(t, s),
		"May the statistics of a project", ">GO <", "PROCEED", "The gain is real",
		"Compared", "treatment", "control", "12 rounds", "Checked", "All 2 correctness checks passed", ", over 28,028 operations", "Measured", "wall", " -17.6 %, interval [-17.9, -17.3] %, towards better; p &lt; 0.0001", "10.53 ± 0.20 ms with treatment",
		"Vetoes", "The only one holds", "Gates", "The only one holds", "Exit code", "0", "write-path", "2026-03-04 05:06 UTC",
		"Primary comparison</h2>", "treatment has 10.53 ± 0.20 ms where control has 12.77 ± 0.22 ms", "95 % interval of [-2.298, -2.198] ms", "towards better; p &lt; 0.0001",
		"dz of 0.8", "power of 0.8", "Order effect", "Drift of control",
		"Gates and vetoes</h2>", "tail", "holds", "ratio_high", "of p99 in ns, pooled", "users notice a slow save", "no_retries", "treat 0",
		"Checks</h2>", "completed", "28", "conserved", "28,000",
		"Decision</h2>", " decided: ", "PROCEED", "ABORT", "guard", "false", "PROCEED", "primary.significant", "true", "decided here", "NO-BENEFIT", "not reached",
		"Work counts</h2>", "commands", "36", "3 in every round", "24", "-33.3 % better",
		"Changes against the reference</h2>", "commands, lower is better", "wall, lower is better",
		"Cells</h2>", "All rounds, 12 rounds", "Each round in the order of the run", "Distribution over rounds", "Tail of all samples of latency",
		"Trials</h2>", "24 trials measured, 24 ended well", "Context switches",
		"Host</h2>", "warn: psi_cpu 31 %", "psi_cpu", "at most 20: warn",
		"Provenance</h2>", "Keeping them costs", "one document more per save", "The first freeze named the wrong input.", "bench on", "Example CPU", "ended", "Frozen protocol", "&#34;assay&#34;: 1",
	)
}

func TestVerdictHasShapeAndWord(t *testing.T) {
	shapes := map[string]string{}
	for _, c := range []gate.Class{gate.Go, gate.NoGo, gate.Inconclusive, gate.Invalid, "", "odd"} {
		s := goRun(t)
		s.Verdict.Class = c
		html := htmlOf(t, s)
		inOrder(t, html, `class="shape"`, ">"+classWord(c)+" <")
		shape := string(classShape(c))
		if word, dup := shapes[shape]; dup && word != classWord(c) && c != "" && c != "odd" {
			t.Errorf("%s and %s look the same", word, c)
		}
		shapes[shape] = classWord(c)
	}
}

// Before every check has passed no figure may be shown, and the page must be
// whole without.
func TestWithheldPage(t *testing.T) {
	for _, s := range []*Source{abortRun(t), interruptedRun(t)} {
		html := htmlOf(t, s)
		inOrder(t, html, "Figures are withheld", "No effect is computed or shown before every check has passed", "conserved", "Checks</h2>")
		for _, not := range []string{`class="chart"`, `id="primary"`, `id="rules"`, `id="changes"`, `id="cells"`, `id="counts"`, "Context switches", "User CPU"} {
			if strings.Contains(html, not) {
				t.Errorf("has %q", not)
			}
		}
	}
	inOrder(t, htmlOf(t, abortRun(t)), ">NO-GO <", "ABORT", "acknowledged at 17 and never read", "failed", "bench: connection refused")
	inOrder(t, htmlOf(t, interruptedRun(t)), ">INCONCLUSIVE <", "INCOMPLETE", "has no end", "What did not run", "control: 3 of 12 rounds ran")
}

func TestGapsAreSaid(t *testing.T) {
	html := htmlOf(t, gapsRun(t))
	inOrder(t, html, "4 missing: the arm reported no number under the key")
	inOrder(t, html, "treatment has no value")
	inOrder(t, html, "Environment", "was not recorded")
	if one := htmlOf(t, oneRound(t)); !strings.Contains(one, "There is one round") || strings.Contains(one, "by round</title>") {
		t.Error("one round is no series")
	}
	inOrder(t, htmlOf(t, oneRound(t)), ">INCONCLUSIVE <", "EXPLORATORY", "one round cannot show anything")
}

func TestStressIsNotJudged(t *testing.T) {
	html := htmlOf(t, matrixRun(t))
	inOrder(t, html, "Gates and vetoes</h2>", "unsafe_too", "not judged", "Each rule in each cell", "size=16, keys=hot", "stress", "not judged", "size=16, keys=hot (stress)", "stress: reported, never judged")
}

func TestNoSourceNoPage(t *testing.T) {
	whole := goRun(t)
	for _, s := range []*Source{{}, {Run: &ledger.Run{}}, {Run: whole.Run, Results: whole.Results}, {Run: whole.Run, Verdict: whole.Verdict}} {
		var b bytes.Buffer
		if err := HTML(&b, s); err == nil || b.Len() > 0 {
			t.Errorf("%v, %d bytes", err, b.Len())
		}
	}
}

// The time in which a run stood still is not on its time axis.
func TestTimelineLeavesOutStops(t *testing.T) {
	window := func(min int) ledger.Record {
		return ledger.Record{Host: &ledger.HostWindow{Time: begun.Add(time.Duration(min) * time.Minute), Readings: []host.Reading{{Probe: "steal", State: host.OK, Value: 1}}}}
	}
	tl := newTimeline(&ledger.Run{Records: []ledger.Record{
		{Begin: &ledger.Begin{Time: begun}}, window(1), window(2), {Resume: &ledger.Resumption{Time: begun.Add(1000 * time.Minute)}}, window(1001), window(900), window(1003),
	}})
	var at []time.Duration
	for _, p := range tl.points["steal"] {
		at = append(at, p.at/time.Minute)
	}
	if want := []time.Duration{1, 2, 3, 3, 5}; !slices.Equal(at, want) {
		t.Errorf("%v, want %v", at, want)
	}
	if want := []time.Duration{2 * time.Minute}; !slices.Equal(tl.resumed, want) {
		t.Errorf("resumed at %v, want %v", tl.resumed, want)
	}
}

const grid = `
assay: 1
name: grid
question: Does a page with sixteen cells, three arms and a hundred rounds stay small and quick?
arms:
  - {name: control, command: [a]}
  - {name: treatment, command: [b]}
  - {name: other, command: [c], class: reported}
factors:
  - {name: size, levels: [%s]}
  - {name: distribution, levels: [uniform, zipfian, sequential, latest]}
design: {rounds: %d, seed: 3}
checks: [{name: conserved, scope: trial, reported: true}]
primary: {metric: metric_0, floor: {change: 0.02}}
vetoes: [{name: tail, metric: metric_1, require: ratio <= 1.2}]
gates: [{name: gate_1, metric: metric_2, require: ratio <= 1.01}]
decision: {preset: four-branch}
metrics:
`

// gridRun fills in the results by hand: the analysis of a large run takes far
// longer than its page.
func gridRun(t testing.TB, sizes string, rounds, metrics int) *Source {
	yaml := fmt.Sprintf(grid, sizes, rounds)
	for i := range metrics {
		yaml += fmt.Sprintf("  - {name: metric_%d, source: json, unit: ms, better: lower}\n", i)
	}
	p, faults := protocol.Parse("protocol.yaml", []byte(yaml), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	lock, err := protocol.Freeze(p, protocol.Evidence{Now: begun, Exploratory: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	r := &analysis.Results{Name: p.Name, Question: p.Question, Complete: true, Clear: true, Checks: []check.Result{{Name: "conserved", Verdict: check.Pass}}}
	r.Primary = &analysis.Primary{Metric: "metric_0", Treatment: "treatment", Test: "paired", Alpha: 0.05, Weakest: p.Cells()[0].Name}
	for _, c := range p.Cells() {
		cell := analysis.Cell{Name: c.Name, Class: c.Class, Rounds: c.Rounds}
		for i := range metrics {
			cell.Metrics = append(cell.Metrics, gridMetric(p, &c, i))
		}
		r.Cells = append(r.Cells, cell)
		r.Primary.Cells = append(r.Primary.Cells, analysis.PrimaryCell{Cell: c.Name, P: 0.01, AdjustedP: 0.02, N: c.Rounds})
		for _, a := range p.Arms {
			r.Trials = append(r.Trials, analysis.TrialCount{Cell: c.Name, Arm: a.Name, Planned: c.Rounds, Status: map[string]int{"ok": c.Rounds}})
		}
	}
	s := &Source{Run: &ledger.Run{Lock: lock, Protocol: p, Records: []ledger.Record{{Begin: &ledger.Begin{Time: begun}}}}, Env: machine, Results: r}
	for i := range 5 * rounds {
		w := busy(10 + 20*noise(i))
		w.Time = begun.Add(time.Duration(i) * time.Minute)
		s.Run.Records = append(s.Run.Records, ledger.Record{Host: &w})
	}
	s.Verdict = gate.Decide(p, r)
	return s
}

func gridMetric(p *protocol.Protocol, c *protocol.Cell, i int) analysis.CellMetric {
	m := analysis.CellMetric{Metric: fmt.Sprint("metric_", i), Unit: "ms"}
	for k, a := range p.Arms {
		one := analysis.ArmSummary{Arm: a.Name, N: c.Rounds, Mean: 10, SD: 1, Median: 10, Min: 9, Max: 11, Drift: &analysis.Drift{PerRound: 0.1, P: 0.5}}
		for round := range c.Rounds {
			one.Values = append(one.Values, analysis.Number(10+noise(c.Name, i, k, round)))
		}
		m.Arms = append(m.Arms, one)
		if k > 0 {
			m.Comparisons = append(m.Comparisons, analysis.Comparison{Arm: a.Name, N: c.Rounds, Diff: 0.1, Change: 0.01, Ratio: 1.01, RatioCI: &analysis.Interval{Low: 0.99, High: 1.03, Level: 0.95}, D: 0.1, Dz: 0.1, G: 0.1})
		}
	}
	return m
}

func TestBigPage(t *testing.T) {
	const most = 3 << 20
	for _, c := range []struct {
		name            string
		sizes           string
		rounds, metrics int
		cut             bool
	}{
		{"16 cells of 100 rounds", "1, 4, 16, 64", 100, 8, false},
		{"16 cells and more metrics than fit", "1, 4, 16, 64", 100, 24, true},
		{"few cells of very many rounds", "1", 20_000, 3, false},
		{"hundreds of cells", strings.TrimSuffix(strings.Repeat("x%d, ", 100), ", "), 3, 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n := strings.Count(c.sizes, "%d"); n > 0 {
				var levels []any
				for i := range n {
					levels = append(levels, i)
				}
				c.sizes = fmt.Sprintf(c.sizes, levels...)
			}
			s := gridRun(t, c.sizes, c.rounds, c.metrics)
			start := time.Now()
			html := htmlOf(t, s)
			took := time.Since(start)
			t.Logf("%d bytes in %v", len(html), took)
			if len(html) > most {
				t.Errorf("%d bytes, more than %d", len(html), most)
			}
			said := strings.Contains(html, "to keep the page small")
			if said != c.cut || c.cut && !strings.Contains(html, "csv format of this report") {
				t.Errorf("says that it was cut: %v, want %v", said, c.cut)
			}
			idsOf(t, html)
		})
	}
}

// The first lines say what a reader needs who reads no further, whatever the end.
func TestInShort(t *testing.T) {
	broken := htmlOf(t, noGoRun(t))
	inOrder(t, broken, ">NO-GO <", "Compared", "Checked", "passed", "Measured", "worse", "Vetoes", "Gates", "1 of 1 broken", ": no_retries", "Primary comparison</h2>")
	failed := htmlOf(t, abortRun(t))
	inOrder(t, failed, ">NO-GO <", "ABORT", "Compared", "Checked", " failed", "conserved", "Measured", "Withheld: no figure is shown before every check has passed")
	many := htmlOf(t, matrixRun(t))
	inOrder(t, many, "Compared", "fold", "control", "4 cells of 8 rounds each", "Beside them", "unsafe-2", "Measured", "latency", "interval", "adjusted p", "the weakest of 3 cells")
	for _, part := range []string{"Work counts", "Changes against the reference", "Cells", "Trials", "Host", "Provenance"} {
		inOrder(t, many, `<details class="part"><summary><h2>`+part+`</h2>`)
	}
}

func TestRulesInShort(t *testing.T) {
	s := matrixRun(t)
	names := newCellNames(s.Run.Protocol)
	v := newPageMatrix(s, names)
	if len(v.Rules) != 2 || v.Rules[0].Name != "conflicts" || v.Rules[1].Name != "unsafe_too" {
		t.Fatalf("%+v", v.Rules)
	}
	r := v.Rules[0]
	if r.Word != "broken in 1 of 3 cells, and reported in 1 more" || r.Style != "bad" || len(r.Found) != 1 || r.Found[0].Cell != "size=1, keys=hot" || !strings.HasPrefix(r.Found[0].Values, "ratio 1.") {
		t.Errorf("%+v", r)
	}
	if r := v.Rules[1]; r.Style != "unjudged" || !strings.HasSuffix(r.Word, "not judged") {
		t.Errorf("%+v", r)
	}
	// Without an answer is worse than an answer that holds, and no pass.
	for i := range s.Verdict.Gates {
		if g := &s.Verdict.Gates[i]; g.Rule == "conflicts" && g.Judged {
			g.State, g.Missing = gate.Missing, "no value"
		}
	}
	if r := newPageMatrix(s, names).Rules[0]; r.Style != "unsure" || r.Word != "missing in all 3 cells, and reported in 1 more" || r.Found[0].Values == "" {
		t.Errorf("%+v", r)
	}
	lines := rulesInShort(s, names)
	if len(lines) != 1 || lines[0].Style != "unsure" || lines[0].Word != "1 of 1 without an answer" || lines[0].Text != ": conflicts." {
		t.Errorf("%+v", lines)
	}
	// What nothing was said of is asked nowhere, and is not said to hold.
	s.Verdict.Gates = nil
	if r := newPageMatrix(s, names).Rules[0]; r.Word != "asked nowhere" || len(rulesInShort(s, names)) != 0 {
		t.Errorf("%+v, %+v", r, rulesInShort(s, names))
	}
}

func TestWhatIsZeroEverywhereIsSaidOnce(t *testing.T) {
	v := newPageCounts(goRun(t), &cellNames{})
	if !slices.Equal(v.Zero, []string{"retries"}) || len(v.Rows) != 1 || v.Rows[0].Metric != "commands" {
		t.Errorf("%+v", v)
	}
	// A round without a value is not a zero.
	gaps := makeRun(t, writePath, made{trial: func(slot trial.Slot, o *trial.Observation) {
		writePathTrial(0.8)(slot, o)
		if slot.Round == 5 {
			delete(o.Values, "retries")
		}
	}})
	if v := newPageCounts(gaps, &cellNames{}); len(v.Zero) > 0 || len(v.Rows) != 2 {
		t.Errorf("%+v", v)
	}
	// Nor is an arm without a value; a cell in which nobody counts is named.
	for _, c := range []struct {
		without func(trial.Slot) bool
		zero    []string
	}{
		{func(s trial.Slot) bool { return strings.HasPrefix(s.Cell, "size=1,") }, []string{"conflicts (no value in 2 cells)"}},
		{func(s trial.Slot) bool { return strings.HasPrefix(s.Cell, "size=1,") && s.Arm == "fold" }, nil},
		{func(s trial.Slot) bool { return true }, nil},
	} {
		s := makeRun(t, matrix, made{trial: func(slot trial.Slot, o *trial.Observation) {
			matrixTrial(slot, o)
			if o.Values["conflicts"] = 0; c.without(slot) {
				delete(o.Values, "conflicts")
			}
		}})
		if v := newPageCounts(s, &cellNames{}); !slices.Equal(v.Zero, c.zero) || len(v.Rows) != map[bool]int{true: 0, false: 4}[c.zero != nil] {
			t.Errorf("%+v, want %q", v, c.zero)
		}
	}
}

// That a run decides nothing is said once: by the verdict, or above another one.
func TestExploratoryIsSaidOnce(t *testing.T) {
	const banner = `class="banner"`
	if strings.Contains(htmlOf(t, exploratoryRun(t)), banner) {
		t.Error("the verdict says it, and the banner too")
	}
	s := makeRun(t, writePath, made{exploratory: "just looking", trial: func(slot trial.Slot, o *trial.Observation) {
		writePathTrial(0.8)(slot, o)
		o.Checks[0].Verdict = check.Fail
	}})
	inOrder(t, htmlOf(t, s), banner, "EXPLORATORY", "just looking", ">NO-GO <", "ABORT")
}

// A veto's figures have the unit of its metric, and cells the names that tell them apart.
func TestFoundInAFamily(t *testing.T) {
	yaml := strings.Replace(matrix, "  - {name: keys, levels: [hot, uniform-8]}\n", "  - {name: keys, levels: [hot, uniform-8, cold]}\n", 1)
	yaml = strings.Replace(yaml, "metric: conflicts, require: ratio <= 1.1}", "metric: latency, cells: {size: 16}, require: treat <= 0.001}", 1)
	yaml = strings.Replace(yaml, "  - {cells: {size: 16, keys: hot}, class: stress}", "  - {cells: {size: 1, keys: hot}, class: stress}", 1)
	s := makeRun(t, yaml, made{trial: matrixTrial})
	r := newPageMatrix(s, newCellNames(s.Run.Protocol)).Rules[0]
	if r.Word != "broken in all 3 cells" || r.Common != "size=16" || len(r.Found) != 3 || r.Found[0].Cell != "keys=hot" || !strings.HasSuffix(r.Found[0].Values, " ms") {
		t.Errorf("%+v", r)
	}
	inOrder(t, htmlOf(t, s), "Gates and vetoes</h2>", "in size=16:", "keys=hot: treat ", " ms")
}

func TestTheProtocolCanBeRead(t *testing.T) {
	for in, want := range map[string]string{
		`"a \u003e b \u003c c \u0026 d"`: `"a > b < c & d"`, `"\\u003e \n \u00e9 \""`: `"\\u003e \n \u00e9 \""`, `\`: `\`, `\u00`: `\u00`, ``: ``, `a\`: `a\`,
	} {
		if got := readable(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

// A chart leaves out cells in which nobody has a value, and says how many.
func TestForestWithoutValues(t *testing.T) {
	html := htmlOf(t, makeRun(t, matrix, made{trial: func(slot trial.Slot, o *trial.Observation) {
		matrixTrial(slot, o)
		if strings.HasPrefix(slot.Cell, "size=1,") {
			delete(o.Values, "conflicts")
		}
	}}))
	inOrder(t, html, "Changes against the reference", "conflicts, lower is better. No value in 2 cells<", "latency, lower is better<")
}
