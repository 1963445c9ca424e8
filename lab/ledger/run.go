package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// Run is what a folder holds, read once.
type Run struct {
	Dir      string
	Lock     *protocol.Lock
	Protocol *protocol.Protocol
	Records  []Record
	Sealed   bool

	files       fs.FS  // nil: the folder Dir
	head        string // sum of the last record
	chainBytes  int64  // of observations.jsonl up to the last whole record
	tornBytes   int64  // after it
	sampleBytes int64  // of samples.bin that records refer to
}

// Begin returns the first record.
func (r *Run) Begin() *Begin { return r.Records[0].Begin }

// Ended says whether the run ran to its end.
func (r *Run) Ended() bool {
	return len(r.Records) > 0 && r.Records[len(r.Records)-1].Kind == KindEnd
}

// folder is where the run's files are read.
func (r *Run) folder() fs.FS {
	if r.files != nil {
		return r.files
	}
	return os.DirFS(r.Dir)
}

// ReadFile returns a file of the folder as it is, verified or not.
func (r *Run) ReadFile(name string) ([]byte, error) {
	b, err := fs.ReadFile(r.folder(), name)
	if err != nil {
		return nil, fmt.Errorf("run folder %s: %w", r.Dir, err)
	}
	return b, nil
}

// Environment returns environment.json.
func (r *Run) Environment() (*host.Provenance, error) {
	b, err := r.ReadFile(EnvironmentFile)
	if err != nil {
		return nil, err
	}
	env := &host.Provenance{}
	return env, json.Unmarshal(b, env)
}

// Samples reads the samples that a reference names.
func (r *Run) Samples(ref trial.SampleRef) ([]int64, error) {
	f, err := openAt(r.folder(), SamplesFile)
	if err != nil {
		return nil, fmt.Errorf("run folder %s: %w", r.Dir, err)
	}
	defer f.Close()
	return readSamples(f, ref)
}

func readSamples(f io.ReaderAt, ref trial.SampleRef) ([]int64, error) {
	b := make([]byte, 8*ref.Count)
	if _, err := f.ReadAt(b, ref.Offset); err != nil {
		return nil, fmt.Errorf("%s: samples %q at byte %d: %w", SamplesFile, ref.Name, ref.Offset, err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != ref.SHA256 {
		return nil, fmt.Errorf("%s: samples %q at byte %d were changed", SamplesFile, ref.Name, ref.Offset)
	}
	return trial.DecodeSamples(b), nil
}

// Open reads a run folder for analysis. It returns ErrNotRun, ErrNewer, or an
// *IntegrityError where the chain is broken; a torn tail of an unfinished run
// is not an error.
func Open(dir string) (*Run, error) {
	r, problems, err := read(dir)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, &IntegrityError{dir, problems}
	}
	return r, nil
}

// Exists says whether the folder holds a run that has begun: at least one whole
// record.
func Exists(dir string) bool {
	ok, err := begun(os.DirFS(dir))
	return ok && err == nil
}

// begun is Exists with the reason why it cannot be told.
func begun(files fs.FS) (bool, error) {
	f, err := files.Open(ObservationsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	first := make([]byte, 64<<10)
	n, err := io.ReadFull(f, first)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return bytes.IndexByte(first[:n], '\n') >= 0, err
}

// isRun returns an error that wraps ErrNotRun where no run has begun. A folder
// whose chain is gone but not what was made of it is still a run: a damaged
// one.
func isRun(dir string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: %w: %w", dir, ErrNotRun, err)
	case err != nil:
		return fmt.Errorf("run folder: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s: %w; give the folder, not a file in it", dir, ErrNotRun)
	}
	return isRunIn(os.DirFS(dir), dir)
}

func isRunIn(files fs.FS, dir string) error {
	ok, err := begun(files)
	if err != nil {
		return fmt.Errorf("run folder %s: %w", dir, err)
	}
	if ok || has(files, ResultsFile) || has(files, SealFile) || has(files, VerdictFile) {
		return nil
	}
	return &protocol.RemedyError{Err: fmt.Errorf("%s: %w: it has no record in %s", dir, ErrNotRun, ObservationsFile), What: "start one with", Verb: "run PROTOCOL"}
}
