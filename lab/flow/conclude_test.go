package flow

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/assaylab/assay/lab/ledger"
)

// ordinary is the number of a user without rights.
const ordinary = 65534

// Trials may leave folders without the right to write, such as a module cache, of which
// an ordinary user cannot remove the content. A run that was cut off before they were
// removed comes to its verdict all the same.
func TestWhatTrialsLeaveMayBeReadOnly(t *testing.T) {
	b := newBench(t, told)
	b.run("run")
	// In a folder that an ordinary user gets to.
	at, err := os.MkdirTemp(disk, "flow-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(at) })
	dir := filepath.Join(at, "run")
	if err := os.CopyFS(dir, os.DirFS(b.path("run"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ledger.ResultsFile, ledger.SealFile, ledger.VerdictFile, ledger.ReportFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	module := filepath.Join(dir, ledger.ScratchDir, workDir, "cache", "module")
	if err := os.MkdirAll(filepath.Join(module, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.WriteFile(filepath.Join(module, "go.mod"), nil, 0o444), os.Chmod(filepath.Join(module, "below"), 0o555), os.Chmod(module, 0o555), os.Chmod(at, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 { // who may remove anything, and becomes somebody else
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, ordinary, ordinary)
		})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), childVar+"=analyze "+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	} else if _, err := Analyze(dir, false); err != nil {
		t.Fatal(err)
	}
	if !missing(filepath.Join(dir, ledger.ScratchDir)) {
		t.Error("the scratch folder is still there")
	}
	if !intact(t, dir).Sealed {
		t.Error("the run is not sealed")
	}
}
