package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden file")

// someBars are two sections in every state.
func someBars() []section {
	bench := &source{line: "go run ./bench/lab -only harness", limit: time.Minute}
	study := &source{line: `assay run s -o "$RUN"`, long: true, limit: time.Minute, study: "s", times: 2}
	tests := &source{line: "go test ./x -run 'A|B'", limit: time.Minute}
	return []section{
		{title: "One", doc: "one.md", bars: []bar{
			{id: "one.met", about: "a ratio", want: atMost(1), by: bench, take: figure("a")},
			{id: "one.missed", about: "another", want: atMost(1), by: bench, take: figure("b")},
			{id: "one.missed-too", about: "for the same reason", want: atLeast(3), by: bench, take: figure("c")},
			{id: "one.unexplained", about: "without one", want: atLeast(3), by: bench, take: figure("d")},
			{id: "one.failed", about: "what a command did not print", want: exactly(1), by: tests, take: figure("e")},
		}},
		{title: "Two", bars: []bar{
			{id: "two.runs", about: "of two runs", want: between(1, 2), by: study, take: ofRun(minutes), runs: 2},
			{id: "two.half", about: "of one run", want: atMost(2), by: study, take: ofRun(minutes), runs: 2},
			{id: "two.never", about: "what nobody has measured", want: atMost(2), by: tests, take: figure("f")},
			{id: "two.no-reason", about: "no page gives reasons", want: atMost(2), by: tests, take: figure("g")},
		}},
	}
}

func someRecord() *record {
	at, other := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC), 0.034
	here, there := "2 × AMD EPYC, virtual, 23.5 GiB, ext4, Debian GNU/Linux 12 (bookworm), linux/amd64, go1.26.8", "8 × Something, linux/arm64, go1.26.9"
	e := func(id, command, why string, values ...float64) entry {
		return entry{Bar: id, Values: values, Why: why, Unit: "×", Command: command, Machine: here, Revision: "0123456789ab", Time: at, Seconds: 3, Others: &other}
	}
	r := &record{Schema: recordSchema, Figures: []entry{
		e("one.met", "go run ./bench/lab -only harness", "", 0.98),
		e("one.missed", "go run ./bench/lab -only harness", "", 1.174),
		e("one.missed-too", "go run ./bench/lab -only harness", "", 2.9997),
		e("one.unexplained", "go run ./bench/lab -only harness", "", 1),
		e("one.failed", "go test ./x -run 'A|B'", "the command ended with status 1"),
		e("two.runs", `assay run s -o "$RUN"`, "", 1.5, 1.75),
		e("two.half", `assay run s -o "$RUN"`, "", 1.5),
		e("two.no-reason", "go test ./x -run 'A|B'", "", 4),
		e("two.gone", "go run ./bench/gone", "", 4),
	}}
	r.Figures[5].Machine, r.Figures[5].Others, r.Figures[5].Revision = there, nil, ""
	return r
}

func TestThePage(t *testing.T) {
	got := page(someBars(), someRecord(), map[string]string{"one.missed": "It waits | twice.", "one.missed-too": "It waits | twice.", "one.met": "It was slow once."})
	path := filepath.Join("testdata", "figures.md")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s\nif you mean it: go test ./bench/bars -update", got, want)
	}
}

func docs(t *testing.T, one string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "one.md"), []byte(one), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReasonsAreReadFromTheDocs(t *testing.T) {
	got, err := readReasons(docs(t, "# One\n\nText.\n\nWhy missed (one.missed, `one.missed-too`): It\nwaits\ntwice.\n\nMore.\n"), someBars())
	if err != nil || len(got) != 2 || got["one.missed"] != "It waits twice." || got["one.missed-too"] != "It waits twice." {
		t.Errorf("%q, %v", got, err)
	}
	for text, says := range map[string]string{
		"Why missed (one.mised): a.":                                  "none of its bars",
		"Why missed (two.runs): a.":                                   "none of its bars",
		"Why missed (): a.":                                           "none of its bars",
		"Why missed (one.missed): a.\n\nWhy missed (one.missed): b.":  "two reasons",
		"Why missed (one.missed):":                                    "is empty",
		"Some text.\nWhy missed (one.missed): inside of a paragraph.": "a paragraph of its own",
	} {
		if got, err := readReasons(docs(t, text), someBars()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %q, %v; want an error with %q", text, got, err, says)
		}
	}
	if _, err := readReasons(t.TempDir(), someBars()); err == nil {
		t.Error("a page that is not there gives reasons")
	}
}

// The pages that are in the repository give reasons of bars that exist.
func TestTheReasonsInTheRepository(t *testing.T) {
	if _, err := readReasons(filepath.Join(root, "docs"), sections()); err != nil {
		t.Error(err)
	}
}

// What is committed is what the record gives: nobody has typed a figure into the page.
func TestTheCommittedPageIsMadeFromTheRecord(t *testing.T) {
	dir := filepath.Join(root, "docs")
	rec, err := readRecord(filepath.Join(dir, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := readReasons(dir, sections())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page(sections(), rec, reasons)) {
		t.Errorf("docs/%s is not what docs/%s and the list of bars give; make it again: go run ./bench/bars -render", pageFile, recordFile)
	}
}

func TestTheRecordKeepsWhatWasNotMeasured(t *testing.T) {
	dir := docs(t, "# One\n")
	r := someRecord()
	before := r.find("one.missed")
	r.put(entry{Bar: "one.met", Values: []float64{0.5}, Command: "go run ./new", Machine: "m"})
	r.put(entry{Bar: "two.never", Why: "no figure in the output", Command: "go test ./x"})
	if err := r.write(dir, someBars()); err != nil {
		t.Fatal(err)
	}
	again, err := readRecord(filepath.Join(dir, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	if got := again.find("one.missed"); got.Values[0] != before.Values[0] || !got.Time.Equal(before.Time) || got.Machine != before.Machine || *got.Others != *before.Others {
		t.Errorf("what was not measured became %+v", got)
	}
	if got := again.find("one.met"); got.Values[0] != 0.5 || got.Command != "go run ./new" {
		t.Errorf("what was measured is %+v", got)
	}
	if !again.find("two.never").blank() {
		t.Error("a bar without a figure has one")
	}
	var order []string
	for _, e := range again.Figures {
		order = append(order, e.Bar)
	}
	if got := strings.Join(order, " "); got != "one.met one.missed one.missed-too one.unexplained one.failed two.runs two.half two.never two.no-reason" {
		t.Errorf("the record is in the order %s", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, pageFile))
	if err != nil || !bytes.Contains(text, []byte("9 bars: 2 met")) {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestTwoRunsAtOnceKeepEachOthersFigures: the one that began first ends last.
func TestTwoRunsAtOnceKeepEachOthersFigures(t *testing.T) {
	dir := docs(t, "# One\n")
	if err := someRecord().write(dir, someBars()); err != nil {
		t.Fatal(err)
	}
	for _, e := range []entry{
		{Bar: "one.met", Values: []float64{0.25}, Command: "go run ./second", Machine: "m"},
		{Bar: "one.missed", Values: []float64{7}, Command: "go run ./first", Machine: "m"},
	} {
		if err := note(dir, someBars(), []entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := readRecord(filepath.Join(dir, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := r.find("one.met"), r.find("one.missed"); a.Values[0] != 0.25 || b.Values[0] != 7 {
		t.Errorf("the record has %v and %v", a.Values, b.Values)
	}
}

func TestRecordsThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, recordFile)
	if r, err := readRecord(path); err != nil || len(r.Figures) != 0 {
		t.Errorf("no file: %+v, %v", r, err)
	}
	for text, says := range map[string]string{
		`{"schema": 2}`: "schema 2", `{"schema": 1, "figures": [{"values": ["7"]}]}`: "restore it", `{`: "restore it", ``: "restore it",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := readRecord(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

func TestNoFolderOfTheMachineIsRecorded(t *testing.T) {
	for in, want := range map[string]string{
		"open /home/me/runs/x: no such file":      "open …: no such file",
		"scratch in /tmp":                         "scratch in …",
		"(/var/tmp/a/b.txt) and MB/s or 1/2":      "(…) and MB/s or 1/2",
		"a run of s: /a: b":                       "a run of s: …: b",
		"line 1\nof /usr/lib/x\n":                 "line 1 of …",
		"writes/s, overlay: 8 / S":                "writes/s, overlay: 8 / S",
		"figure: peers.best 2.48":                 "figure: peers.best 2.48",
		`exec: "/usr/bin/x": file does not exist`: `exec: "…": file does not exist`,
	} {
		if got := withoutPaths(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	b, err := json.Marshal(someRecord())
	if err != nil || bytes.Contains(b, []byte("NaN")) {
		t.Errorf("%s, %v", b, err)
	}
}
