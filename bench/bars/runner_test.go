package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/cli"
	"github.com/assaylab/assay/lab/host"
)

func newTestRunner(t *testing.T) *runner {
	dir := t.TempDir()
	return &runner{root: dir, out: io.Discard, logs: dir, bin: dir, env: host.Provenance{OS: "linux", Arch: "amd64", GoVersion: "go1.26", CPUs: 2, CPUModel: "X"}}
}

func TestACommandThatMustNotCount(t *testing.T) {
	r := newTestRunner(t)
	for name, c := range map[string]struct {
		s   source
		why string
	}{
		"well":                    {source{line: "echo figure: a 1", limit: time.Minute}, ""},
		"fails after it printed":  {source{line: "echo figure: a 1; exit 1", limit: time.Minute}, "status 1"},
		"may fail":                {source{line: "echo figure: a 1; exit 1", limit: time.Minute, exits: []int{0, 1}}, ""},
		"must fail":               {source{line: "echo figure: a 1", limit: time.Minute, exits: []int{3}}, "status 0"},
		"does not exist":          {source{line: "nobody-has-this-program", limit: time.Minute}, "status 127"},
		"hangs":                   {source{line: "echo figure: a 1; sleep 600 & sleep 600", limit: 200 * time.Millisecond}, "was ended after"},
		"is killed":               {source{line: "echo figure: a 1; kill -9 $$", limit: time.Minute}, "the command"},
		"prints nothing":          {source{line: "true", limit: time.Minute}, "no figure"},
		"in another unit":         {source{line: "echo figure: a 1 µs", limit: time.Minute}, `in "µs"`},
		"prints on the other one": {source{line: "echo figure: a 1 >&2", limit: time.Minute}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := bar{id: "x", want: atMost(2), by: &c.s, take: figure("a")}
			e := r.measure(context.Background(), &c.s).entry(b)
			if e.blank() != (c.why != "") || !strings.Contains(e.Why, c.why) || e.Command != c.s.line || e.Machine == "" || e.Time.IsZero() {
				t.Errorf("%+v, want it to say %q", e, c.why)
			}
			if got := b.judge(e); got == met && c.why != "" {
				t.Errorf("it is %s", got)
			}
		})
	}
	logs, err := filepath.Glob(filepath.Join(r.logs, "*.log"))
	if err != nil || len(logs) != r.n || r.n == 0 {
		t.Fatalf("%d logs of %d commands, %v", len(logs), r.n, err)
	}
	if text, err := os.ReadFile(logs[0]); err != nil || !bytes.HasPrefix(text, []byte("$ ")) {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAMissingProgramIsSaid(t *testing.T) {
	s := source{needs: []string{"sh", "nobody-has-this-program"}}
	if got := s.unmet(); !strings.Contains(got, "nobody-has-this-program") || strings.Contains(got, "sh and") {
		t.Errorf("%q", got)
	}
	s.needs = []string{"sh"}
	if got := s.unmet(); got != "" {
		t.Errorf("%q", got)
	}
}

const tinyProtocol = `assay: 1
name: tiny
question: Is true as fast as true?
arms:
  - {name: control, command: ["true"]}
  - {name: treatment, command: ["true"]}
design: {rounds: 8, seed: 1}
metrics:
  - {name: wall, better: lower, source: wall}
checks:
  - {name: works, scope: trial, shell: "true"}
primary: {metric: wall}
decision: {preset: four-branch}
`

// Real run folders: one that counts, and what is done to it so that it does not.
func TestRunFolders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tiny.yaml")
	if err := os.WriteFile(file, []byte(tinyProtocol), 0o644); err != nil {
		t.Fatal(err)
	}
	app := cli.App{Name: "assay"}
	assay := func(args ...string) {
		t.Helper()
		var stderr bytes.Buffer
		if status := app.Run(context.Background(), append(args, "-q", "--fail-on", "never"), io.Discard, &stderr); status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, stderr.String())
		}
	}
	whole, looked := filepath.Join(dir, "whole"), filepath.Join(dir, "looked")
	assay("run", file, "-o", whole)
	assay("run", file, "-o", looked, "--rounds", "6")

	s := &source{line: "assay run tiny", study: "tiny", long: true, limit: time.Minute}
	b := bar{id: "x", want: atMost(15), by: s, take: ofRun(minutes), runs: 2}
	measure := func(dirs ...string) entry {
		t.Setenv(s.variable(), strings.Join(dirs, string(os.PathListSeparator)))
		return newTestRunner(t).measure(context.Background(), s).entry(b)
	}
	if e := measure(whole, whole); b.judge(e) != met || len(e.Values) != 2 || time.Since(e.Time) > time.Hour || !strings.Contains(e.Machine, "go1") || len(e.Output) != 2 {
		t.Errorf("two runs: %+v", e)
	}
	if e := measure(whole); b.judge(e) != notMeasured || len(e.Values) != 1 {
		t.Errorf("one run: %+v", e)
	}
	f, err := open(whole, "tiny")
	if err != nil || f.took <= 0 || f.took > time.Minute || f.outcome() == "" || f.others > 1 && !math.IsNaN(f.others) {
		t.Errorf("%+v, %v", f, err)
	}
	results := filepath.Join(dir, "spoilt")
	if err := os.CopyFS(results, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(results, "observations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(filepath.Join(results, "observations.jsonl"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, why string }{
		"exploratory": {looked, "exploratory"}, "touched": {results, "not what was recorded"}, "nothing": {filepath.Join(dir, "nothing"), "cannot be read"}, "no run": {dir, "cannot be read"},
	} {
		e := measure(whole, c.dir)
		if !e.blank() || !strings.Contains(e.Why, c.why) || b.judge(e) != notMeasured {
			t.Errorf("%s: %+v", name, e)
		}
		if strings.Contains(e.Why, dir) {
			t.Errorf("%s: a folder of the machine is in %q", name, e.Why)
		}
	}
	s.study = "other"
	if e := measure(whole); !strings.Contains(e.Why, "a run of tiny was given as one of other") {
		t.Errorf("%+v", e)
	}
}
