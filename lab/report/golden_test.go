package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// goldenRuns are the runs of which every page is kept.
var goldenRuns = []struct {
	name string
	make func(testing.TB) *Source
}{
	{"go", goRun}, {"no-go", noGoRun}, {"abort", abortRun}, {"exploratory", exploratoryRun}, {"matrix", matrixRun},
}

// goldenFormats are the pages that a reader of a change can judge by eye. JSON
// holds what two other packages write and is tested by its keys.
var goldenFormats = []struct {
	ext   string
	write func(io.Writer, *Source) error
}{
	{"txt", Text}, {"md", Markdown}, {"xml", JUnit}, {"csv", CSV}, {"bench", Benchfmt}, {"hyperfine.json", Hyperfine},
}

func page(t testing.TB, write func(io.Writer, *Source) error, s *Source) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; look at the change and run: go test ./lab/report -update\n%s", path, got)
	}
}

func TestGolden(t *testing.T) {
	for _, r := range goldenRuns {
		s, again := r.make(t), r.make(t)
		for _, f := range goldenFormats {
			t.Run(r.name+"."+f.ext, func(t *testing.T) {
				got := page(t, f.write, s)
				if !bytes.Equal(got, page(t, f.write, again)) {
					t.Fatal("the same run gives other bytes")
				}
				golden(t, r.name+"."+f.ext, got)
			})
		}
	}
}
