package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/report"
	"github.com/assaylab/assay/lab/trial"
)

// recordings are real runs, too long for a test, whose pages are looked at. Each is
// kept in testdata/runs as the run folder, packed, with one difference: samples that
// no page shows are zeros or cut off, and so cost nothing. The analysis needs them, so
// results are those that stand in the folder; the verdict is decided again, and the
// page is made anew.
//
// To make them again, which takes about ten minutes and wants a quiet machine:
//
//	ASSAY_UPDATE=1 go test ./internal/browser -run TestRecordings -timeout 1h
var recordings = []recording{
	{name: "screening-write", program: "./cmd/assay", study: "screening-write"},
	{name: "authority-reads", program: "./cmd/assay", study: "authority-reads"},
	{name: "lockfree-flip", program: "./cmd/assay", study: "lockfree-flip"},
	{name: "compressors", program: "./cmd/assay", file: "examples/compressors/compressors.yaml"},
	{name: "gomap", program: "./examples/gomap", file: "examples/gomap/protocol.yaml"},
	// The planted defect of the example.
	{name: "gomap-lossy", program: "./examples/gomap", file: "examples/gomap/protocol.yaml", old: "func: syncmap", new: "func: lossy"},
}

type recording struct {
	name    string
	program string // a main package of this module, that carries the run out
	study   string // in its quick form
	file    string // or a protocol file
	old     string // what the file has
	new     string // and what stands in its place
}

// packed are the files of a run folder that a page is made of.
var packed = []string{
	ledger.LockFile, ledger.EnvironmentFile, ledger.ObservationsFile, ledger.SamplesFile, ledger.ResultsFile, ledger.VerdictFile, ledger.SealFile,
}

const mostRecorded = 256 << 10 // bytes of one recording, packed

func (r recording) path() string { return filepath.Join("testdata", "runs", r.name+".tar.gz") }

// source is the recording as a page is made of it.
func (r recording) source(t testing.TB) *report.Source {
	t.Helper()
	dir := t.TempDir()
	if err := unpack(r.path(), dir); err != nil {
		t.Fatal(err)
	}
	run, problems, err := ledger.Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.File != ledger.SamplesFile {
			t.Errorf("%s: %v", r.path(), p)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, ledger.ResultsFile))
	if err != nil {
		t.Fatal(err)
	}
	results := &analysis.Results{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(results); err != nil {
		t.Fatalf("%s: %v; make it again, see recordings", r.path(), err)
	}
	env, err := run.Environment()
	if err != nil {
		t.Fatal(err)
	}
	return &report.Source{Run: run, Env: env, Results: results, Verdict: gate.Decide(run.Protocol, results)}
}

func TestRecordings(t *testing.T) {
	for _, r := range recordings {
		t.Run(r.name, func(t *testing.T) {
			if os.Getenv("ASSAY_UPDATE") != "" {
				r.renew(t)
			}
			info, err := os.Stat(r.path())
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > mostRecorded {
				t.Errorf("%s has %d bytes, more than %d", r.path(), info.Size(), mostRecorded)
			}
			s := r.source(t)
			if !s.Run.Ended() || !s.Run.Sealed {
				t.Error("a run without its end")
			}
			b, err := os.ReadFile(filepath.Join(s.Run.Dir, ledger.VerdictFile))
			if err != nil {
				t.Fatal(err)
			}
			var given gate.Verdict
			if err := json.Unmarshal(b, &given); err != nil {
				t.Fatal(err)
			}
			if s.Verdict.Outcome != given.Outcome || s.Verdict.Class != given.Class {
				t.Errorf("the verdict was %s (%s) and is %s (%s) now; make the run again, see recordings", given.Outcome, given.Class, s.Verdict.Outcome, s.Verdict.Class)
			}
		})
	}
}

// renew carries the run out and packs it.
func (r recording) renew(t *testing.T) {
	t.Helper()
	root := filepath.Join("..", "..")
	temp := t.TempDir()
	program, dir := filepath.Join(temp, "program"), filepath.Join(temp, "run")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, r.program)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	args := []string{"run", r.study, "--quick", "-o", dir}
	if r.file != "" {
		b, err := os.ReadFile(filepath.Join(root, r.file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(b), r.old) < 1 {
			t.Fatalf("%s has no %q", r.file, r.old)
		}
		file := filepath.Join(temp, filepath.Base(r.file))
		if err := os.WriteFile(file, []byte(strings.Replace(string(b), r.old, r.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		args = []string{"run", file, "-o", dir}
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%s", out)
	run, err := ledger.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := forgetSamples(run); err != nil {
		t.Fatal(err)
	}
	if err := pack(dir, r.path()); err != nil {
		t.Fatal(err)
	}
}

// forgetSamples puts zeros in the place of all samples that no page shows, and cuts off
// those at the end.
func forgetSamples(run *ledger.Run) error {
	path := filepath.Join(run.Dir, ledger.SamplesFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	last := int64(0)
	for _, rec := range run.Records {
		if rec.Trial == nil {
			continue
		}
		for _, ref := range rec.Trial.Samples {
			end := ref.Offset + 8*int64(ref.Count)
			if strings.HasSuffix(ref.Name, trial.SeriesSuffix) {
				last = end
			} else {
				clear(b[ref.Offset:end])
			}
		}
	}
	return os.WriteFile(path, b[:last], 0o644)
}

// pack writes a run folder as one file whose bytes depend on the folder's alone.
func pack(dir, path string) error {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, name := range packed {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func unpack(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w; make it with: ASSAY_UPDATE=1 go test ./internal/browser -run TestRecordings -timeout 1h", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o644); err != nil {
			return err
		}
	}
}
