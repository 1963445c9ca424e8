package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/protocol"
)

// TestSessionsInPages keeps scripts, which run, equal to the sessions that pages
// show: the same commands, with the same exit statuses.
func TestSessionsInPages(t *testing.T) {
	for page, script := range map[string]string{"README.md": "readme.txtar", "docs/first-hour.md": "first-hour.txtar"} {
		blocks := fenced(t, page, "sh session")
		if len(blocks) == 0 {
			t.Fatalf("%s has no block ```sh session```", page)
		}
		same(t, lines(strings.Join(blocks, "\n")), executed(t, script))
	}
}

// TestTheFirstHourShowsWhatRuns: its protocol is the one that its script runs, and its
// Go code stands in the examples, which are compiled and tested.
func TestTheFirstHourShowsWhatRuns(t *testing.T) {
	const page = "docs/first-hour.md"
	script := read(t, filepath.Join("cmd", "assay", "testdata", "script", "first-hour.txtar"))
	protocols := fenced(t, page, "yaml")
	for _, p := range protocols {
		if !strings.Contains(script, p) {
			t.Errorf("first-hour.txtar does not run\n%s", p)
		}
	}
	examples, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range examples {
		all.WriteString(read(t, filepath.Join("examples", filepath.Base(filepath.Dir(path)), filepath.Base(path))))
	}
	code := fenced(t, page, "go")
	for _, c := range code {
		if !strings.Contains(all.String(), c) {
			t.Errorf("no example has\n%s", c)
		}
	}
	if len(protocols) == 0 || len(code) < 2 {
		t.Errorf("found %d protocols and %d pieces of Go", len(protocols), len(code))
	}
}

// TestDemoCommand sees to it that demo.txtar runs what `make demo` runs.
func TestDemoCommand(t *testing.T) {
	m := regexp.MustCompile(`(?m)^demo:\n\t\$\(GO\) run \./cmd/(assay .*)$`).FindStringSubmatch(read(t, "Makefile"))
	if m == nil {
		t.Fatal("the Makefile's demo is no single run of ./cmd/assay")
	}
	if cmds := executed(t, "demo.txtar"); !slices.Contains(cmds, m[1]) {
		t.Errorf("make demo runs %q; demo.txtar:\n%s", m[1], strings.Join(cmds, "\n"))
	}
}

// TestProtocolsInDocs lints every protocol that the documentation shows: a
// whole one as it is, a part of one in the place of the same keys of the
// protocol that init writes.
func TestProtocolsInDocs(t *testing.T) {
	docs, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{"README.md"}
	for _, d := range docs {
		pages = append(pages, filepath.Join("docs", filepath.Base(d)))
	}
	n := 0
	for _, page := range pages {
		for _, block := range fenced(t, page, "yaml") {
			whole := strings.Contains(block, "assay: 1")
			if !whole && page != "README.md" {
				continue
			}
			if !whole {
				block = graft(t, block)
			}
			n++
			if _, faults := protocol.Parse(page, []byte(block), nil); len(faults) > 0 {
				t.Errorf("%v\nin:\n%s", faults, block)
			}
		}
	}
	if n == 0 {
		t.Error("the documentation shows no protocol at all")
	}
}

var section = regexp.MustCompile(`(?m)^[a-z]+:`)

// graft replaces sections of the protocol that init writes.
func graft(t *testing.T, part string) string {
	t.Helper()
	whole := read(t, filepath.Join("lab", "cli", "template.yaml"))
	keys := section.FindAllString(part, -1)
	if len(keys) == 0 {
		t.Fatalf("no key at the start of a line in:\n%s", part)
	}
	starts := append(section.FindAllStringIndex(whole, -1), []int{len(whole)})
	kept := whole[:starts[0][0]]
	for i, s := range starts[:len(starts)-1] {
		text := whole[s[0]:starts[i+1][0]]
		replaced := false
		for _, k := range keys {
			replaced = replaced || strings.HasPrefix(text, k)
		}
		if !replaced {
			kept += text
		}
	}
	return kept + "\n" + part
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fenced are the code blocks of a page that carry the label.
func fenced(t *testing.T, page, label string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?ms)^```"+label+"\n(.*?)^```").FindAllStringSubmatch(read(t, page), -1) {
		out = append(out, m[1])
	}
	return out
}

func lines(s string) []string {
	var out []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

var withStatus = regexp.MustCompile(`^exitcode (\d+) (assay .*)$`)

// executed are the assay commands of a script, as the README writes them.
func executed(t *testing.T, script string) []string {
	t.Helper()
	text, _, _ := strings.Cut(read(t, filepath.Join("cmd", "assay", "testdata", "script", script)), "\n-- ")
	var out []string
	for _, line := range lines(text) {
		if m := withStatus.FindStringSubmatch(line); m != nil {
			out = append(out, m[2]+"   # exit "+m[1])
		} else if cmd, ok := strings.CutPrefix(line, "exec assay "); ok {
			out = append(out, "assay "+cmd)
		}
	}
	return out
}

func same(t *testing.T, want, got []string) {
	t.Helper()
	if w, g := strings.Join(want, "\n"), strings.Join(got, "\n"); w != g {
		t.Errorf("documented:\n%s\n\nrun:\n%s", w, g)
	}
}
