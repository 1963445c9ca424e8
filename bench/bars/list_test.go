package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
	"github.com/assaylab/assay/studies"
)

const root = "../.."

func TestTheListIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range bars(sections()) {
		switch {
		case seen[b.id]:
			t.Errorf("two bars are called %s", b.id)
		case !regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)+$`).MatchString(b.id):
			t.Errorf("%q is no id", b.id)
		case b.about == "" || b.by == nil || b.by.line == "":
			t.Errorf("%s does not say what it measures, or how", b.id)
		case b.by.limit < time.Second:
			t.Errorf("%s has no deadline", b.id)
		case !(b.want.low <= b.want.high):
			t.Errorf("%s wants %v", b.id, b.want)
		case (b.take.run != nil || b.take.outcomes) != (b.by.study != ""):
			t.Errorf("%s takes its figure from runs that its command does not make, or not from those that it makes", b.id)
		case b.runs > max(1, b.by.times):
			t.Errorf("%s needs %d runs and its command makes %d", b.id, b.runs, b.by.times)
		}
		seen[b.id] = true
	}
	if len(seen) < 80 {
		t.Errorf("only %d bars", len(seen))
	}
}

// named is what a command line names.
type named struct {
	dir             string // where it is run, from the repository
	program         string // go run: a folder
	test            string // go test: a folder
	runs, benches   string // its patterns
	script          string
	file            string // assay run: a protocol
	study, protocol string // assay run: a study, and which of its protocols
}

func read(t *testing.T, line string) (n named) {
	t.Helper()
	if rest, ok := strings.CutPrefix(line, "cd "); ok {
		n.dir, line, _ = strings.Cut(rest, " && ")
	}
	words := strings.Fields(line)
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:]
	}
	value := func(flag string) string {
		if i := slices.Index(words, flag); i >= 0 && i+1 < len(words) {
			return strings.Trim(words[i+1], "'")
		}
		return ""
	}
	switch {
	case len(words) > 2 && words[0] == "go" && words[1] == "run":
		n.program = words[2]
	case len(words) > 2 && words[0] == "go" && words[1] == "test":
		n.test, n.runs, n.benches = words[2], value("-run"), value("-bench")
	case len(words) > 2 && words[0] == "assay" && words[1] == "run" && strings.HasSuffix(words[2], ".yaml"):
		n.file = words[2]
	case len(words) > 2 && words[0] == "assay" && words[1] == "run":
		n.study, n.protocol = words[2], value("--protocol")
		if slices.Contains(words, "--quick") {
			n.protocol = "quick"
		}
	case strings.HasPrefix(words[0], "scripts/"):
		n.script = words[0]
	case words[0] == "awk":
	default:
		t.Errorf("nobody knows what %q names; teach this test to read it", line)
	}
	return n
}

// Every command names packages, tests, scripts and studies that exist.
func TestWhatCommandsNameExists(t *testing.T) {
	for _, b := range bars(sections()) {
		n := read(t, b.by.line)
		switch {
		case n.program != "":
			if dir := filepath.Join(root, n.dir, n.program); len(parse(t, dir).mains) == 0 {
				t.Errorf("%s: %s is no program", b.id, dir)
			}
		case n.test != "":
			code := parse(t, filepath.Join(root, n.dir, n.test))
			for pattern, names := range map[string][]string{n.runs: code.tests, n.benches: code.benches} {
				for part := range strings.SplitSeq(pattern, "|") {
					if part == "" || part == "^$" {
						continue
					}
					if re := regexp.MustCompile(part); !slices.ContainsFunc(names, re.MatchString) {
						t.Errorf("%s: %s has nothing that %q matches", b.id, n.test, part)
					}
				}
			}
			if n.runs == "" && n.benches == "" {
				t.Errorf("%s runs all tests of %s; name those that measure", b.id, n.test)
			}
		case n.script != "":
			if info, err := os.Stat(filepath.Join(root, n.script)); err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("%s: %s is no script: %v", b.id, n.script, err)
			}
		case n.file != "":
			if _, err := os.Stat(filepath.Join(root, n.file)); err != nil {
				t.Errorf("%s: %v", b.id, err)
			}
		case n.study != "":
			p := protocolOf(t, n.study, n.protocol)
			if b.by.study != "" && p.Name != b.by.study {
				t.Errorf("%s: %q makes runs of %s, and runs of %s are asked for", b.id, b.by.line, p.Name, b.by.study)
			}
		}
	}
}

func protocolOf(t *testing.T, study, variant string) *protocol.Protocol {
	t.Helper()
	for _, s := range studies.All() {
		if s.Name != study {
			continue
		}
		source, ok := s.Protocols[variant]
		if !ok {
			t.Fatalf("%s has no protocol %q", study, variant)
		}
		p, faults := protocol.Parse(study, source, s.Known())
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		return p
	}
	t.Fatalf("there is no study %q", study)
	return nil
}

// code is what the Go files of a folder have.
type code struct {
	mains, tests, benches []string
	literals              []string // of all files
}

func parse(t *testing.T, dir string) (c code) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		test := strings.HasSuffix(path, "_test.go")
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				switch name := n.Name.Name; {
				case test && strings.HasPrefix(name, "Test"):
					c.tests = append(c.tests, name)
				case test && strings.HasPrefix(name, "Benchmark"):
					c.benches = append(c.benches, name)
				case name == "main" && f.Name.Name == "main":
					c.mains = append(c.mains, path)
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					c.literals = append(c.literals, text)
				}
			}
			return true
		})
	}
	return c
}

// prints says whether code can print a line with the figure of that name. What a format leaves
// open must be a text of the code, or a number.
func (c code) prints(name string) bool {
	verb := regexp.MustCompile(`%[a-z]`)
	open := `([a-z0-9-]+)`
	for _, text := range c.literals {
		for line := range strings.Lines(text) {
			f := strings.Fields(line)
			if len(f) < 3 || f[0] != "figure:" {
				continue
			}
			re := regexp.MustCompile("^" + verb.ReplaceAllString(regexp.QuoteMeta(f[1]), open) + "$")
			parts := re.FindStringSubmatch(name)
			if parts != nil && !slices.ContainsFunc(parts[1:], func(part string) bool { return !c.has(part) }) {
				return true
			}
		}
	}
	return false
}

func (c code) has(part string) bool {
	if _, err := strconv.Atoi(part); err == nil {
		return true
	}
	slug := strings.NewReplacer(", ", "-", " ", "-")
	return slices.ContainsFunc(c.literals, func(text string) bool { return slug.Replace(text) == part })
}

var runsProgram = regexp.MustCompile(`go run (\./\S+)`)

// Every figure and every test that a bar counts has its name in what the command runs.
func TestFiguresHaveTheirNamesInTheCode(t *testing.T) {
	for _, b := range bars(sections()) {
		n := read(t, b.by.line)
		var c code
		text := b.by.line
		switch {
		case n.program != "":
			c = parse(t, filepath.Join(root, n.dir, n.program))
		case n.test != "":
			c = parse(t, filepath.Join(root, n.dir, n.test))
		case n.script != "":
			script, err := os.ReadFile(filepath.Join(root, n.script))
			if err != nil {
				t.Error(err)
				continue
			}
			text = string(script)
			if m := runsProgram.FindStringSubmatch(text); m != nil {
				c = parse(t, filepath.Join(root, m[1]))
			}
		}
		switch {
		case b.take.figure != "" && !c.prints(b.take.figure) && !strings.Contains(text, "figure: "+b.take.figure):
			t.Errorf("%s: %q prints no figure %s", b.id, b.by.line, b.take.figure)
		case b.take.benchmark != "" && !slices.Contains(c.benches, b.take.benchmark):
			t.Errorf("%s: %s has no %s", b.id, n.test, b.take.benchmark)
		case b.take.passes != nil:
			// A subtest's name is known only once it has run.
			if !slices.ContainsFunc(c.tests, func(name string) bool {
				return b.take.passes.MatchString(name) || b.take.passes.MatchString(name+"/x")
			}) {
				t.Errorf("%s: %s has no test that %s counts", b.id, n.test, b.take.passes)
			}
		}
	}
}

func TestThePrintedNamesReject(t *testing.T) {
	c := code{literals: []string{"figure: a.%s %d\n", "b", "c, d", "figure: %s.%s %g\n", "text", "figure: e"}}
	for name, want := range map[string]bool{"a.b": true, "a.c-d": true, "a.7": true, "a.x": false, "b.text": true, "b.x": false, "a": false, "e": false} {
		if c.prints(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// Every cell, metric, arm, gate and check that a bar reads is in the protocol: a run that has
// them all, and nothing else, has every figure.
func TestRunsHaveWhatBarsRead(t *testing.T) {
	for _, b := range bars(sections()) {
		if b.by.study == "" {
			continue
		}
		n := read(t, b.by.line)
		m := &measured{source: b.by}
		for range max(1, b.runs) {
			m.runs = append(m.runs, planned(protocolOf(t, n.study, n.protocol)))
		}
		got, err := b.take.from(m, b.want)
		if err != nil || len(got.values) != len(m.runs) {
			t.Errorf("%s: %+v, %v", b.id, got, err)
		}
	}
}

// planned is a run in which every figure of the protocol is 1, every check passed and
// every gate holds.
func planned(p *protocol.Protocol) *finished {
	one := analysis.Number(1)
	f := &finished{
		results: &analysis.Results{Name: p.Name, Complete: true, Clear: true, Lock: "0123456789abcdef"},
		verdict: &gate.Verdict{Outcome: "GO"}, began: time.Unix(0, 0), took: time.Minute,
	}
	for _, c := range p.Cells() {
		cell := analysis.Cell{Name: c.Name}
		for _, metric := range p.Metrics {
			cm := analysis.CellMetric{Metric: metric.Name}
			for i, arm := range c.Arms {
				cm.Arms = append(cm.Arms, analysis.ArmSummary{Arm: arm, N: 1, Mean: 1, Median: 1, Min: 1, Max: 1, Sum: 1, Pooled: &one})
				if i > 0 {
					cm.Comparisons = append(cm.Comparisons, analysis.Comparison{Arm: arm, N: 1, Ratio: 1})
				}
			}
			cell.Metrics = append(cell.Metrics, cm)
		}
		for _, arm := range c.Arms {
			f.results.Trials = append(f.results.Trials, analysis.TrialCount{Cell: c.Name, Arm: arm, Planned: 1, Status: map[string]int{string(trial.StatusOK): 1}})
		}
		for _, g := range p.Gates {
			f.verdict.Gates = append(f.verdict.Gates, gate.RuleResult{Rule: g.Name, Cell: c.Name, Judged: true, State: gate.Holds})
		}
		f.results.Cells = append(f.results.Cells, cell)
	}
	for _, c := range p.Checks {
		f.results.Checks = append(f.results.Checks, check.Result{Name: c.Name, Verdict: check.Pass, Operations: 1})
	}
	return f
}

func TestChoosing(t *testing.T) {
	all := sections()
	ids := func(sources []*source) (out []string) {
		for _, s := range sources {
			out = append(out, barsOf(all, s)[0].id)
		}
		return out
	}
	short, err := choose(all, "", false)
	if err != nil || len(short) == 0 || slices.ContainsFunc(short, func(s *source) bool { return s.long }) {
		t.Errorf("%v, %v", ids(short), err)
	}
	full, err := choose(all, "", true)
	if err != nil || len(full) <= len(short) {
		t.Errorf("%v, %v", ids(full), err)
	}
	some, err := choose(all, "artrie.peers,lab.demo", false)
	if got := strings.Join(ids(some), " "); err != nil || got != "lab.demo artrie.peers" {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{"nothing", "lab,nothing", ",", "lab,,"} {
		if got, err := choose(all, bad, false); err == nil {
			t.Errorf("%q chose %v", bad, ids(got))
		}
	}
	t.Setenv("ASSAY_BARS_SCREENING_WRITE", "a"+string(os.PathListSeparator)+"b")
	given, err := choose(all, "", false)
	if err != nil || len(given) != len(short)+1 {
		t.Errorf("with runs given: %v, %v", ids(given), err)
	}
}
