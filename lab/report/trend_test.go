package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/trial"
)

// around is a fragment as a document that can be parsed.
func around(fragment string) string {
	return boolean.ReplaceAllString(voidTag.ReplaceAllString("<div>"+fragment+"</div>", "<$1$2/>"), ` open="">`)
}

func TestSummarise(t *testing.T) {
	s := goRun(t)
	sum := Summarise(s)
	if sum.Name != "write-path" || sum.Class != gate.Go || sum.Outcome != "PROCEED" || !sum.Ended || sum.Sealed || sum.Took != time.Hour || !sum.Begun.Equal(begun) {
		t.Errorf("%+v", sum)
	}
	e := sum.Effect("")
	if e == nil || sum.Metric != "wall" || sum.Treatment != "treatment" || sum.Reference != "control" || !sum.LowerIsBetter {
		t.Fatalf("%+v", sum)
	}
	c := s.Results.Cells[0].Metric("wall").Against("treatment")
	if e.Change != float64(c.Change) || e.Low != float64(c.RatioCI.Low)-1 || !(e.Low < e.Change && e.Change < e.High && e.High < 0) || !e.Relative {
		t.Errorf("%+v of %+v", e, c)
	}
	if text := string(page(t, Text, s)); !strings.Contains(text, e.Text) || !strings.Contains(text, strings.TrimSuffix(e.Interval, " %")) {
		t.Errorf("says %s %s, which the report does not", e.Text, e.Interval)
	}
	if m := sum.Mark(); m.Word != "GO" || m.Sign == "" || m.Style != "good" {
		t.Errorf("%+v", m)
	}
	// Of all cells that the decision is about.
	if sum := Summarise(matrixRun(t)); len(sum.Effects) != 3 || sum.Effect("size=1,keys=hot") == nil || sum.Effect("size=16,keys=hot") != nil {
		t.Errorf("%+v", sum.Effects)
	}
}

// What the report withholds, no summary tells.
func TestSummariesWithhold(t *testing.T) {
	for name, s := range map[string]*Source{"abort": abortRun(t), "interrupted": interruptedRun(t), "nothing": nothingRun(t), "hostile": hostileRun(t, check.Fail)} {
		sum := Summarise(s)
		if len(sum.Effects) > 0 || sum.Metric != "" {
			t.Errorf("%s: %+v", name, sum)
		}
		if sum.Class == gate.Go {
			t.Errorf("%s: %s", name, sum.Class)
		}
	}
	if m := MarkOf(""); m.Word != "NO VERDICT" || m.Style == "good" {
		t.Errorf("no class is %+v", m)
	}
}

func TestTrend(t *testing.T) {
	other := makeRun(t, strings.Replace(writePath, "rounds: 12", "rounds: 13", 1), made{trial: writePathTrial(1.1)})
	runs := []*Summary{Summarise(goRun(t)), Summarise(shifted(t, 1.004)), Summarise(noGoRun(t)), Summarise(abortRun(t)), Summarise(other)}
	html := string(Trend(runs))
	wellFormed(t, around(html))
	for _, want := range []string{
		"Change of wall", "treatment against control, lower is better", "GO", "NO-GO",
		"<title>run 1: GO, -", "<title>run 4: NO-GO, no figure</title>", "<title>run 5: NO-GO, +", "run 2: ",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if n := strings.Count(html, `class="resume"`); n != 1 {
		t.Errorf("%d marks of another protocol, want one", n)
	}
	if n := strings.Count(html, `class="line c-`); n != 4 {
		t.Errorf("%d intervals, want four", n)
	}
	if again := string(Trend(runs)); again != html {
		t.Error("the same runs give other bytes")
	}
}

func TestTrendOfCells(t *testing.T) {
	html := string(Trend([]*Summary{Summarise(matrixRun(t)), Summarise(matrixRun(t))}))
	wellFormed(t, around(html))
	if n := strings.Count(html, "<svg"); n != 3 {
		t.Errorf("%d charts, want one per cell", n)
	}
	if !strings.Contains(html, "Change of latency in size=16,keys=uniform-8") {
		t.Error("a cell is not named")
	}
}

// A reference of zero has no relative change.
func TestTrendOfDifferences(t *testing.T) {
	run := func(treat float64) *Summary {
		return Summarise(makeRun(t, strings.Replace(matrix, "metric: latency, treatment", "metric: conflicts, treatment", 1), made{trial: func(slot trial.Slot, o *trial.Observation) {
			matrixTrial(slot, o)
			if o.Values["conflicts"] = 0; slot.Arm == "fold" {
				o.Values["conflicts"] = treat + float64(slot.Round%2)
			}
		}}))
	}
	html := string(Trend([]*Summary{run(3), run(4)}))
	wellFormed(t, around(html))
	if !strings.Contains(html, "Difference of conflicts") {
		t.Errorf("%.400s", html)
	}
}

func TestTrendIsBounded(t *testing.T) {
	one := Summarise(goRun(t))
	var runs []*Summary
	for range 3 * trendRuns {
		runs = append(runs, one)
	}
	html := string(Trend(runs))
	wellFormed(t, around(html))
	if n := strings.Count(html, "<g><title>run "); n != trendRuns || !strings.Contains(html, "The newest 60 of 180 runs are drawn") || !strings.Contains(html, "run 180: GO") {
		t.Errorf("%d runs are drawn", n)
	}
	many := *one
	many.Effects = nil
	for i := range 2 * trendCells {
		e := *one.Effect("")
		e.Cell = fmt.Sprintf("n=%d", i)
		many.Effects = append(many.Effects, e)
	}
	if n := strings.Count(string(Trend([]*Summary{&many, &many})), "<svg"); n != trendCells {
		t.Errorf("%d charts", n)
	}
	none := Summarise(abortRun(t))
	for _, runs := range [][]*Summary{nil, {none, none}, {one}, {none, one, none}} {
		if Trend(runs) != "" {
			t.Errorf("a trend of %d runs, of which fewer than two have a figure", len(runs))
		}
	}
}

func TestTrendOfStrangeNumbers(t *testing.T) {
	base := Summarise(goRun(t))
	with := func(change, lo, hi float64) *Summary {
		s := *base
		s.Effects = []Effect{{Change: change, Low: lo, High: hi, Relative: true, Text: "<text>", Interval: "[\u202e]"}}
		return &s
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, runs := range [][]*Summary{
		{with(0, 0, 0)}, {with(nan, nan, nan)}, {with(inf, -inf, inf), with(0.1, nan, nan)}, {with(1e300, -1e300, 1e300)}, {with(1e-300, 0, 1e-299)}, {with(9, 5, 20), with(-0.5, -0.9, 0)}, {with(-1, -1, -1)},
	} {
		html := string(Trend(append(runs, runs[0])))
		if html != "" {
			wellFormed(t, around(html))
		}
		for _, bad := range []string{"NaN", "Inf", "<text>]", "%!"} {
			if strings.Contains(html, bad) {
				t.Errorf("has %q: %.200s", bad, html)
			}
		}
	}
}

func TestCompareHTMLSaysWhatCompareSays(t *testing.T) {
	runs := []*Source{goRun(t), shifted(t, 0.97), shifted(t, 1.004), abortRun(t)}
	html, err := CompareHTML(runs)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, around(string(html)))
	var text bytes.Buffer
	if err := Compare(&text, runs); err != nil {
		t.Fatal(err)
	}
	// Every word of the one stands in the other, but for headings and question.
	said := runs[0].Verdict.Question + strings.Join(strings.Fields(string(html)), " ")
	for _, word := range strings.Fields(text.String()) {
		switch word {
		case "RUN", "TO", "RUN,", "runs", "write-path,", "4", "-", "Flips", "question":
			continue
		}
		if !strings.Contains(said, htmlEscaped(word)) {
			t.Errorf("lacks %q", word)
		}
	}
	if _, err := CompareHTML([]*Source{goRun(t), matrixRun(t)}); err == nil {
		t.Error("runs of two protocols are compared")
	}
	hostile, err := CompareHTML([]*Source{hostileRun(t, check.Pass), hostileRun(t, check.Pass)})
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, around(string(Inert([]byte(hostile)))))
	lacks(t, string(hostile), "<script", "<img", "javascript:")
}

func htmlEscaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "+", "&#43;").Replace(s)
}

func lacks(t *testing.T, page string, bad ...string) {
	t.Helper()
	for _, b := range bad {
		if strings.Contains(page, b) {
			t.Errorf("has %q", b)
		}
	}
}

func TestServedHasAWayBack(t *testing.T) {
	s := goRun(t)
	o := s.measured()[0]
	o.Profiles = []trial.Profile{{Kind: "cpu", File: "old.pb.gz", Total: 2, Top: []trial.ProfileEntry{{Function: "f", Seconds: 1}}}}
	var b bytes.Buffer
	trail := []Link{{"All runs", "/"}, {"<study>", "/studies/%3Cstudy%3E"}, {"run & run", ""}}
	if err := Served(&b, s, trail); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for _, want := range []string{`<a href="/"><bdi>All runs</bdi></a>`, `<a href="/studies/%3Cstudy%3E"><bdi>&lt;study&gt;</bdi></a>`, `<span aria-current="page"><bdi>run &amp; run</bdi></span>`, "<style>" + string(Style()) + "</style>"} {
		if !strings.Contains(html, want) {
			t.Errorf("lacks %s", want)
		}
	}
	const file = `href="profiles/old.pb.gz"`
	if strings.Contains(html, file) || !strings.Contains(htmlOf(t, s), file) {
		t.Error("a page from a server leads to a file beside it, or one in a folder does not")
	}
	if plain := htmlOf(t, s); strings.Contains(plain, "All runs") || !strings.Contains(plain, "<style>"+string(Style())+"</style>") {
		t.Error("the page of a file has a way back, or another style")
	}
}
