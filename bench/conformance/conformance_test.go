package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// The short form of the whole thing. ASSAY_LONG=1 is the long one.
func TestTheDriversOwnTestsPass(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	list, err := readKnown()
	if err != nil {
		t.Fatal(err)
	}
	d, err := prepare(ctx)
	if errors.Is(err, errNoModule) {
		t.Skipf("SKIPPED, the driver's own tests did not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer d.remove()
	long := os.Getenv("ASSAY_LONG") != ""
	var sum summary
	for _, f := range folders {
		if !long && !f.short {
			continue
		}
		results, err := d.runFolder(ctx, f)
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		sum.add(f, results)
	}
	sum.print(t.Output())
	if err := errors.Join(list.compare(sum.results)...); err != nil {
		t.Error(err)
		for _, r := range sum.results {
			if r.outcome == "fail" && list[r.name] == "" {
				t.Logf("%s\n%s", r.name, r.output)
			}
		}
	}
	// A binary that runs next to nothing would pass as well.
	if n := sum.total.pass; n < 200 {
		t.Errorf("only %d tests passed", n)
	}
	if share := sum.total.share(); share < 95 {
		t.Errorf("%.1f %% pass, the bar is 95 %%", share)
	}
	if left := list.unlisted(sum.results); long && len(left) > 0 {
		t.Errorf("known-failures.txt names tests that do not exist: %v", left)
	}
}

func TestTheListRejects(t *testing.T) {
	list := known{"a/x": "because", "a/y": "because"}
	for name, c := range map[string]struct {
		results []result
		want    string
	}{
		"what is known":                 {[]result{{name: "a/x", outcome: "fail"}, {name: "b", outcome: "pass"}}, ""},
		"a failure that is not listed":  {[]result{{name: "b", outcome: "fail"}}, "b"},
		"a listed one that passes":      {[]result{{name: "a/x", outcome: "pass"}}, "a/x"},
		"a listed one that is left out": {[]result{{name: "a/y", outcome: "skip"}}, "a/y"},
	} {
		err := errors.Join(list.compare(c.results)...)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnlyWhatIsUnsteadyIsRunAgain, and fails if it always does.
func TestOnlyWhatIsUnsteadyIsRunAgain(t *testing.T) {
	var name string
	for name = range unsteady {
	}
	for _, c := range []struct {
		test      string
		outcomes  []string
		want      string
		runsAgain int
	}{
		{name, []string{"pass"}, "pass", 0},
		{name, []string{"fail", "pass"}, "pass", 1},
		{name, []string{"fail", "fail", "fail", "pass"}, "fail", unsteadyRuns - 1},
		{name, []string{"fail", "skip", "skip"}, "fail", unsteadyRuns - 1},
		{"crud/other", []string{"fail", "pass"}, "fail", 0},
	} {
		results, runs := []result{{name: c.test, outcome: c.outcomes[0]}}, 0
		err := again(results, func(test string) ([]result, error) {
			runs++
			return []result{{name: test, outcome: c.outcomes[runs]}}, nil
		})
		if err != nil || results[0].outcome != c.want || runs != c.runsAgain {
			t.Errorf("%s with %v: %s after %d more runs, %v", c.test, c.outcomes, results[0].outcome, runs, err)
		}
	}
	if got := prose("^Test").alone("prose", "prose/TestA/b_(c)").tests; got != `^TestA$/^b_\(c\)$` {
		t.Errorf("alone it is %s", got)
	}
}

func TestLeavesAreTheTestsThatRan(t *testing.T) {
	lines := []string{
		`{"Action":"run","Test":"T"}`, `{"Action":"run","Test":"T/a"}`, `{"Action":"run","Test":"T/a/b"}`, `{"Action":"run","Test":"T/a/c"}`,
		`{"Action":"fail","Test":"T/a/b"}`, `{"Action":"pass","Test":"T/a/c","Elapsed":0.5}`, `{"Action":"fail","Test":"T/a"}`,
		`{"Action":"run","Test":"T/setup"}`, `{"Action":"run","Test":"T/setup/z"}`, `{"Action":"pass","Test":"T/setup/z"}`, `{"Action":"fail","Test":"T/setup"}`,
		`{"Action":"fail","Test":"T"}`, `{"Action":"run","Test":"U"}`, // which never ended
	}
	got, _ := leaves("f", part{}, []byte(strings.Join(lines, "\n")))
	var names []string
	for _, r := range got {
		names = append(names, r.name+" "+r.outcome)
	}
	want := "f/T/a/b fail, f/T/a/c pass, f/T/setup fail, f/T/setup/z pass, f/U fail"
	if s := strings.Join(names, ", "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	_, rest := leaves("f", part{}, []byte(`{"Action":"output","Test":"T","Output":"panic: gone\n"}`))
	if !strings.Contains(rest, "panic: gone") {
		t.Errorf("a panic was not noticed: %q", rest)
	}
}

func TestTheFirstFormatBecomesTheSecond(t *testing.T) {
	in := `{"data": [], "tests": [{"description": "d", "operation": {"name": "insertOne", "arguments": {"b": 1, "a": 2}},
		"outcome": {"error": true, "result": {"n": 1}, "collection": {"data": []}}}]}`
	out, err := modernize([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"operations":[{`, `"error":true`, `{"b": 1, "a": 2}`, `"outcome":{"collection"`, `"database_name"`} {
		if !strings.Contains(strings.ReplaceAll(string(out), `{"b":1,"a":2}`, `{"b": 1, "a": 2}`), want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	if strings.Contains(string(out), `"operation":`) || strings.Contains(string(out), `"n"`) {
		t.Errorf("something of the first format is left: %s", out)
	}
	second := `{"tests": [{"operations": []}]}`
	if out, err := modernize([]byte(second)); string(out) != second || err != nil {
		t.Errorf("a file of the second format became %s, %v", out, err)
	}
}
