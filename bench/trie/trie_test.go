package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain measures one arm when the bench that a test runs starts this binary for it.
func TestMain(m *testing.M) {
	if os.Getenv(armEnv) != "" {
		exit(child(os.Stdout))
	}
	os.Exit(m.Run())
}

// TestQuick runs every section in its small form. The figures mean nothing; that each
// row has one is what is tested.
func TestQuick(t *testing.T) {
	var out strings.Builder
	if err := parent(&out, config{Dir: t.TempDir(), Quick: true}, "", 1); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, s := range sections() {
		if !strings.Contains(out.String(), "\n"+s.name+" (") {
			t.Errorf("section %s is missing", s.name)
		}
	}
	if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
		t.Error("a row has no figure")
	}
	if rows := strings.Count(out.String(), "met ") + strings.Count(out.String(), "missed "); rows < 25 {
		t.Errorf("only %d rows with a bar", rows)
	}
	names := map[string]int{}
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "figure:" {
			names[f[1]]++
		}
	}
	for name, n := range names {
		if n > 1 || strings.HasSuffix(name, ".") {
			t.Errorf("%d figures are called %q", n, name)
		}
	}
	if len(names) < 25 {
		t.Errorf("only %d figures have a name", len(names))
	}
	t.Log(out.String())
}

func TestUnknownSectionIsRefused(t *testing.T) {
	if err := parent(&strings.Builder{}, config{Dir: t.TempDir(), Quick: true}, "nothing", 1); err == nil {
		t.Error("a section that does not exist was run")
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		r   row
		met bool
	}{
		{atLeast("", 2, 2, "", ""), true}, {atLeast("", 2, 1.9, "", ""), false},
		{atMost("", 2, 2, "", ""), true}, {atMost("", 2, 2.1, "", ""), false},
		{atLeast("", 2, median(nil), "", ""), false}, {atMost("", 2, median(nil), "", ""), false},
	} {
		if c.r.met() != c.met {
			t.Errorf("%v: met is %v", c.r, c.r.met())
		}
	}
	r := results{"a": {{"x": 10}, {"x": 30}, {"x": 20}}, "b": {{"x": 1}, {"x": 10}, {"x": 4}}}
	if got := r.ratio("a", "b", "x"); got != 5 {
		t.Errorf("ratio %v, want the median of 10, 3 and 5", got)
	}
}
