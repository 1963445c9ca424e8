package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

func TestJSONIsOneObject(t *testing.T) {
	s := goRun(t)
	b := page(t, JSON, s)
	if again := page(t, JSON, goRun(t)); !bytes.Equal(b, again) {
		t.Error("the same run gives other bytes")
	}
	var got jsonPage
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != 1 || got.Outcome != "PROCEED" || got.Class != "go" || got.Exit != 0 || got.Lock.Digest != s.Run.Lock.Digest ||
		got.Verdict.Why != s.Verdict.Why || len(got.Results.Cells) != 1 || got.Environment.CPUModel != machine.CPUModel {
		t.Errorf("%+v", got)
	}
}

func TestJUnitCounts(t *testing.T) {
	for _, r := range goldenRuns {
		var root junitRoot
		if err := xml.Unmarshal(page(t, JUnit, r.make(t)), &root); err != nil {
			t.Fatal(err)
		}
		tests, failures, errors := 0, 0, 0
		for _, suite := range root.Suites {
			f, e := 0, 0
			for _, c := range suite.Cases {
				if c.Failure != nil {
					f++
				}
				if c.Error != nil {
					e++
				}
			}
			if suite.Tests != len(suite.Cases) || suite.Failures != f || suite.Errors != e {
				t.Errorf("%s, suite %s: the counts are %+v", r.name, suite.Name, suite.junitCounts)
			}
			tests, failures, errors = tests+len(suite.Cases), failures+f, errors+e
		}
		if root.Tests != tests || root.Failures != failures || root.Errors != errors {
			t.Errorf("%s: the counts are %+v", r.name, root.junitCounts)
		}
		if green := failures+errors == 0; green != (r.name == "go") {
			t.Errorf("%s: all green is %v", r.name, green)
		}
	}
}

func TestJUnitShowsStressAsPassed(t *testing.T) {
	var root junitRoot
	if err := xml.Unmarshal(page(t, JUnit, matrixRun(t)), &root); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, suite := range root.Suites {
		for _, c := range suite.Cases {
			if c.Name == "gate unsafe_too" {
				seen++
				if c.Failure != nil || c.Error != nil || !strings.HasPrefix(c.Out, "reported, not judged: ") {
					t.Errorf("%+v", c)
				}
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d cases", seen)
	}
}

func TestCSVRows(t *testing.T) {
	s := abortRun(t)
	b := page(t, CSV, s)
	if !bytes.Contains(b, []byte("\r\n")) {
		t.Error("lines end without CR LF")
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 2*14*5; len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	col := func(name string) int { return slices.Index(rows[0], name) }
	warm, failed := 0, 0
	for _, r := range rows[1:] {
		if r[col("warmup")] == "true" {
			warm++
		}
		if r[col("status")] == "failed" {
			failed++
			if r[col("value")] != "" || r[col("missing")] != "the trial ended with status failed" || r[col("exit")] != "3" {
				t.Errorf("%q", r)
			}
		} else if _, err := strconv.ParseFloat(r[col("value")], 64); err != nil || r[col("missing")] != "" {
			t.Errorf("%q", r)
		}
	}
	if warm != 2*2*5 || failed != 5 {
		t.Errorf("%d rows of warm-up, %d of failed trials", warm, failed)
	}
}

func TestCSVKeepsNumbersNumbers(t *testing.T) {
	p := &protocol.Protocol{Factors: []protocol.Factor{
		{Name: "shift", Levels: []protocol.Scalar{"-1", "+2", "3e-4"}}, {Name: "sign", Levels: []protocol.Scalar{"-1", "-x"}}, {Name: "odd", Levels: []protocol.Scalar{"-Inf"}},
	}}
	if got := numericFactors(p); !slices.Equal(got, []bool{true, false, false}) {
		t.Error(got)
	}
}

func TestHyperfineShape(t *testing.T) {
	s := exploratoryRun(t)
	var got struct {
		Results []map[string]any `json:"results"`
	}
	if err := json.Unmarshal(page(t, Hyperfine, s), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != 2 {
		t.Fatalf("%d results", len(got.Results))
	}
	r := got.Results[1]
	for _, key := range []string{"command", "mean", "stddev", "median", "user", "system", "min", "max", "times", "exit_codes", "memory_usage_byte"} {
		if _, ok := r[key]; !ok {
			t.Errorf("no %s", key)
		}
	}
	wall := s.Results.Cell("all").Metric("wall").Arm("sort-v2")
	if r["command"] != "sort-v2" || len(r["times"].([]any)) != 10 || r["mean"] != float64(wall.Mean) || r["stddev"] != float64(wall.SD) {
		t.Errorf("%v, the results say %v", r, wall)
	}
	if err := json.Unmarshal(page(t, Hyperfine, matrixRun(t)), &got); err != nil || len(got.Results) != 12 {
		t.Fatalf("%v, %d results", err, len(got.Results))
	}
	if params, ok := got.Results[11]["parameters"].(map[string]any); !ok || params["size"] != "16" || params["keys"] != "uniform-8" {
		t.Errorf("%v", got.Results[11])
	}
}

// TestFiguresAreWithheld looks for figures of a run whose checks have not
// passed in every page that compares.
func TestFiguresAreWithheld(t *testing.T) {
	pages := everyPage(t, abortRun(t))
	for ext, text := range pages {
		if ext == "csv" {
			continue // the ledger as a table, without comparison
		}
		for _, word := range []string{" ± ", "-17.", "12.7", "sec/op", `"mean"`} {
			if strings.Contains(text, word) {
				t.Errorf("%s has %q", ext, word)
			}
		}
	}
}

func TestSamplesAreReadOnce(t *testing.T) {
	s := goRun(t)
	l := sampler{s: s}
	m := s.Run.Protocol.Metric("p99")
	for _, o := range s.trials() {
		if _, missing := l.value(m, o); missing != "" {
			t.Fatal(missing)
		}
	}
	o := s.trials()[0]
	s.Run.Dir = t.TempDir()
	if _, missing := l.value(m, o); !strings.Contains(missing, "samples.bin") {
		t.Errorf("samples that are gone: %q", missing)
	}
	if _, missing := l.value(m, &trial.Observation{Status: trial.StatusOK}); !strings.Contains(missing, "no samples") {
		t.Error(missing)
	}
}
