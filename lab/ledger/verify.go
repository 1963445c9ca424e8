package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/protocol"
)

// Problem is one place where a run folder is not what was written.
type Problem struct {
	File    string
	Line    int // 1-based; 0 where the file has no lines
	Message string
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s line %d: %s", p.File, p.Line, p.Message)
	}
	return p.File + ": " + p.Message
}

// IntegrityError says that a run folder was changed after it was written.
type IntegrityError struct {
	Dir      string
	Problems []Problem
}

func (e *IntegrityError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return fmt.Sprintf("%s is not what was recorded:\n  %s", e.Dir, strings.Join(lines, "\n  "))
}

// Verify checks every hash of the folder: lock, environment, chain, samples
// and, for a finished run, the seal over all files. It returns what it could
// read and every problem found, not the first only. The caller compares the
// analysis with one made again.
func Verify(dir string) (*Run, []Problem, error) { return read(dir) }

// VerifyIn is Verify for a folder whose files are read in files and nowhere
// else, now and later. dir is what messages call it. files needs ReaderAt in
// what it opens, and should be an fs.ReadLinkFS where it has symbolic links.
func VerifyIn(files fs.FS, dir string) (*Run, []Problem, error) {
	if err := isRunIn(files, dir); err != nil {
		return nil, nil, err
	}
	return readIn(files, dir)
}

// read reads and checks a folder. An error means that there is nothing to
// check; problems mean that it was changed.
func read(dir string) (*Run, []Problem, error) {
	if err := isRun(dir); err != nil {
		return nil, nil, err
	}
	return readIn(os.DirFS(dir), dir)
}

func readIn(files fs.FS, dir string) (*Run, []Problem, error) {
	r := &Run{Dir: dir, files: files, Sealed: has(files, SealFile) && has(files, VerdictFile)}
	v := &verifier{run: r, files: files}
	v.lock()
	if err := v.chain(); err != nil {
		return nil, nil, err
	}
	v.environment()
	v.samples()
	v.seal()
	return r, v.problems, nil
}

type verifier struct {
	run      *Run
	files    fs.FS
	problems []Problem
	sums     map[string]string // of files that were read whole anyway
}

func (v *verifier) problem(file string, line int, format string, args ...any) {
	v.problems = append(v.problems, Problem{file, line, fmt.Sprintf(format, args...)})
}

// reported says whether a problem of the file is known, with a line perhaps.
func (v *verifier) reported(file string) bool {
	return slices.ContainsFunc(v.problems, func(p Problem) bool { return p.File == file })
}

// why is an error of the file system without the path, which the problem names
// already.
func why(err error) error {
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("is missing")
	case errors.As(err, &at):
		return fmt.Errorf("cannot be read: %w", at.Err)
	}
	return err
}

func (v *verifier) lock() {
	b, err := fs.ReadFile(v.files, LockFile)
	if err != nil {
		v.problem(LockFile, 0, "%v", why(err))
		return
	}
	lock, p, err := protocol.ReadLock(b)
	if err != nil {
		v.problem(LockFile, 0, "%v", err)
		return
	}
	v.run.Lock, v.run.Protocol = lock, p
}

func (v *verifier) environment() {
	if len(v.run.Records) == 0 || v.run.Records[0].Begin == nil {
		return
	}
	sum, err := hashFile(v.files, EnvironmentFile)
	if err != nil {
		v.problem(EnvironmentFile, 0, "%v", why(err))
	} else if sum != v.run.Records[0].Begin.Environment {
		v.problem(EnvironmentFile, 0, "was changed")
	}
}

// samples checks that every reference follows the one before it without a gap
// and that its bytes are right.
func (v *verifier) samples() {
	f, err := openAt(v.files, SamplesFile)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && v.wantsNoSamples() {
			return
		}
		v.problem(SamplesFile, 0, "%v", why(err))
		return
	}
	defer f.Close()
	if v.reported(ObservationsFile) {
		// Where the records are damaged nobody knows what belongs here; the
		// seal's hash of the whole file does not need them.
		return
	}
	durable := v.durable()
	end := int64(0)
	h := sha256.New()
	buffer := make([]byte, 64<<10)
	for i, rec := range v.run.Records {
		if rec.Trial == nil {
			continue
		}
		for _, ref := range rec.Trial.Samples {
			size := int64(ref.Count) * 8
			what := ""
			if ref.Offset != end || ref.Count < 0 {
				what = fmt.Sprintf("samples %q are said to be at byte %d; the ones before end at %d", ref.Name, ref.Offset, end)
			} else {
				h.Reset()
				n, err := io.CopyBuffer(h, io.NewSectionReader(f, ref.Offset, size), buffer)
				if err != nil || n != size || hex.EncodeToString(h.Sum(nil)) != ref.SHA256 {
					what = fmt.Sprintf("samples %q of line %d, bytes %d to %d, were changed or cut", ref.Name, i+1, ref.Offset, ref.Offset+size)
				}
			}
			if what != "" {
				// A power failure may keep a record and lose its samples, but
				// none that a mark vouches for (see the package's third rule).
				if i >= durable {
					v.dropFrom(i)
					v.run.sampleBytes = v.referred()
					return
				}
				v.problem(SamplesFile, 0, "%s", what)
			}
			end = ref.Offset + size
		}
	}
	v.run.sampleBytes = end
	if info, err := f.Stat(); err == nil && v.run.Ended() && info.Size() != end {
		v.problem(SamplesFile, 0, "has %d bytes; the records refer to %d", info.Size(), end)
	}
}

// durable is how many records, with their samples, were on disk for certain.
func (v *verifier) durable() int {
	if v.run.Sealed || v.run.Ended() {
		return len(v.run.Records)
	}
	n := 1
	for _, rec := range v.run.Records {
		switch {
		case rec.Round != nil:
			n = max(n, rec.Round.Durable)
		case rec.Resume != nil:
			n = max(n, rec.Resume.Durable)
		}
	}
	return n
}

// referred is where the samples end that the records refer to.
func (v *verifier) referred() (end int64) {
	for _, rec := range v.run.Records {
		if rec.Trial == nil {
			continue
		}
		for _, ref := range rec.Trial.Samples {
			end = ref.Offset + int64(ref.Count)*8
		}
	}
	return end
}

func (v *verifier) wantsNoSamples() bool {
	return !slices.ContainsFunc(v.run.Records, func(r Record) bool { return r.Trial != nil && len(r.Trial.Samples) > 0 })
}

// dropFrom takes record i and what follows out of the run, as bytes that a
// resume will cut.
func (v *verifier) dropFrom(i int) {
	b, err := fs.ReadFile(v.files, ObservationsFile)
	if err != nil {
		v.problem(ObservationsFile, 0, "%v", why(err))
		return
	}
	keep := 0
	for range i {
		keep += bytes.IndexByte(b[keep:], '\n') + 1
	}
	v.run.Records = v.run.Records[:i]
	v.run.chainBytes, v.run.tornBytes = int64(keep), int64(len(b)-keep)
	lines := bytes.Split(bytes.TrimSuffix(b[:keep], []byte("\n")), []byte("\n"))
	if l, err := readLink(lines[len(lines)-1]); err != nil {
		v.problem(ObservationsFile, i, "%v", err)
	} else {
		v.run.head = l.sum
	}
}
