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
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

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

// maxLine bounds one record; an observation with 1,000 values and 20 notes is
// far below.
const maxLine = 4 << 20

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

func has(files fs.FS, name string) bool {
	_, err := fs.Lstat(files, name)
	return err == nil
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

type verifier struct {
	run      *Run
	files    fs.FS
	problems []Problem
	sums     map[string]string // of files that were read whole anyway
}

func (v *verifier) problem(file string, line int, format string, args ...any) {
	v.problems = append(v.problems, Problem{file, line, fmt.Sprintf(format, args...)})
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

// chain reads the records. A line whose own hash fails was changed; one whose
// own hash holds but whose prev is not the sum of the line before stands in
// the wrong place, and its number says what happened.
func (v *verifier) chain() error {
	b, err := fs.ReadFile(v.files, ObservationsFile)
	if err != nil {
		v.problem(ObservationsFile, 0, "%v", why(err))
		return nil
	}
	whole := bytes.LastIndexByte(b, '\n') + 1
	v.run.chainBytes, v.run.tornBytes = int64(whole), int64(len(b)-whole)
	v.sums = map[string]string{ObservationsFile: sumOf(b)}
	all := readLines(b[:whole])
	v.run.Records = make([]Record, 0, len(all))
	head := ""
	if v.run.Lock != nil {
		head = v.run.Lock.Digest
	}
	for i, l := range all {
		n := i + 1
		if l.err != nil {
			v.problem(ObservationsFile, n, "%v", l.err)
			// The next line cannot be compared with one that is wrong itself:
			// one flipped byte is one problem.
			head = ""
			v.run.Records = append(v.run.Records, Record{})
			continue
		}
		switch {
		case l.seq > i:
			v.problem(ObservationsFile, n, "%d line(s) before it were removed: it is number %d and stands at %d", l.seq-i, l.seq, i)
			return nil
		case l.seq < i:
			v.problem(ObservationsFile, n, "stands out of order or is repeated: it is number %d and stands at %d", l.seq, i)
			return nil
		case head != "" && l.prev != head:
			if i == 0 {
				v.problem(ObservationsFile, n, "begins from another lock than %s", LockFile)
			} else {
				v.problem(ObservationsFile, n, "does not follow the line before it: one of the two was replaced")
			}
		}
		if v.run.Ended() {
			v.problem(ObservationsFile, n, "stands after the end of the run")
		}
		switch {
		case l.unreadable != nil:
			v.problem(ObservationsFile, n, "cannot be read: %v", l.unreadable)
		case i > 0:
		case l.rec.Begin == nil:
			v.problem(ObservationsFile, n, "the first record is %q, not %q", l.rec.Kind, KindBegin)
		case l.rec.Begin.Schema > SchemaVersion:
			return fmt.Errorf("%s: %w: run folder format %d, this one reads up to %d", v.run.Dir, ErrNewer, l.rec.Begin.Schema, SchemaVersion)
		}
		head = l.sum
		v.run.Records = append(v.run.Records, l.rec)
	}
	v.run.head = head
	switch n := len(v.run.Records); {
	case n == 0:
		v.problem(ObservationsFile, 1, "is missing: the file has no whole line")
	case v.run.Ended() && v.run.tornBytes > 0:
		// Nothing is written after the end, so no crash can have cut it off.
		v.problem(ObservationsFile, n+1, "%d bytes stand after the last line", v.run.tornBytes)
	}
	return nil
}

// chainLine is a line taken apart.
type chainLine struct {
	link
	err        error // of the link
	rec        Record
	unreadable error // of the record
}

// readLines takes lines apart. Each can be judged by itself but for its order,
// and to read the records is most of the work of a verification, so it is
// spread over the processors.
func readLines(b []byte) []chainLine {
	all := make([]chainLine, bytes.Count(b, []byte("\n")))
	starts := make([]int, 0, len(all)+1)
	for at := 0; at < len(b); at += bytes.IndexByte(b[at:], '\n') + 1 {
		starts = append(starts, at)
	}
	starts = append(starts, len(b))
	const batch = 64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(all)/batch+1) {
		wg.Go(func() {
			for {
				from := int(next.Add(batch)) - batch
				if from >= len(all) {
					return
				}
				for i := from; i < min(from+batch, len(all)); i++ {
					all[i].read(b[starts[i] : starts[i+1]-1])
				}
			}
		})
	}
	wg.Wait()
	return all
}

func (l *chainLine) read(line []byte) {
	if l.link, l.err = readLink(line); l.err == nil {
		l.unreadable = decode(line, &l.rec)
	}
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

// Seal is what closes a run: nothing of it changes any more.
type Seal struct {
	Schema  int               `json:"schema"`
	Records int               `json:"records"`
	Head    string            `json:"head"`  // sum of the last record
	Files   map[string]string `json:"files"` // name to SHA-256
	Sum     string            `json:"sum"`   // SHA-256 of the seal without it, to tell a changed seal from a changed file
}

func (s *Seal) bytes() []byte {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("ledger: " + err.Error())
	}
	return append(b, '\n')
}

func (s *Seal) sum() string {
	c := *s
	c.Sum = ""
	sum := sha256.Sum256(c.bytes())
	return hex.EncodeToString(sum[:])
}

var sealed = []string{LockFile, EnvironmentFile, ObservationsFile, SamplesFile, ResultsFile, VerdictFile}

// Finish writes what the last two stages made of a run that has ended, and
// seals it. The order (results, seal, verdict) makes a verdict without a seal
// impossible by a crash: where one is found, the seal was taken away.
// Finishing a sealed run again is allowed with the same bytes only; otherwise
// it returns an error that wraps ErrSealed and writes nothing.
func (r *Run) Finish(results, verdict []byte) error {
	made := map[string][]byte{ResultsFile: results, VerdictFile: verdict}
	if r.Sealed {
		for _, name := range []string{ResultsFile, VerdictFile} {
			old, err := r.ReadFile(name)
			if err != nil {
				return err
			}
			if !bytes.Equal(old, made[name]) {
				return fmt.Errorf("%s: %w, and %s would come out differently now", r.Dir, ErrSealed, name)
			}
		}
		return nil
	}
	if !r.Ended() {
		return errors.New("a run that has not ended cannot be sealed")
	}
	s := &Seal{Schema: SchemaVersion, Records: len(r.Records), Head: r.head, Files: map[string]string{}}
	for _, name := range sealed {
		if b, ok := made[name]; ok {
			sum := sha256.Sum256(b)
			s.Files[name] = hex.EncodeToString(sum[:])
			continue
		}
		sum, err := hashFile(r.folder(), name)
		if err != nil {
			return err
		}
		s.Files[name] = sum
	}
	s.Sum = s.sum()
	for _, f := range []struct {
		name string
		b    []byte
	}{{ResultsFile, results}, {SealFile, s.bytes()}, {VerdictFile, verdict}} {
		if err := WriteFile(filepath.Join(r.Dir, f.name), f.b); err != nil {
			return err
		}
	}
	r.Sealed = true
	return nil
}

func (v *verifier) seal() {
	switch {
	case !has(v.files, SealFile):
		if has(v.files, VerdictFile) {
			v.problem(SealFile, 0, "is missing, and the run has a verdict")
		}
		return
	case !has(v.files, VerdictFile) && has(v.files, ReportFile):
		// Finish cannot have been cut off before the verdict: the page is
		// made after it.
		v.problem(VerdictFile, 0, "is missing, and the run has a page")
	}
	b, err := fs.ReadFile(v.files, SealFile)
	if err != nil {
		v.problem(SealFile, 0, "%v", why(err))
		return
	}
	s := &Seal{}
	if err := json.Unmarshal(b, s); err != nil || !bytes.Equal(b, s.bytes()) || s.Sum != s.sum() || len(s.Files) != len(sealed) {
		v.problem(SealFile, 0, "was changed: not what assay wrote")
		return
	}
	if !v.run.Ended() && !v.reported(ObservationsFile) {
		v.problem(ObservationsFile, len(v.run.Records)+1, "the end of the run is missing, and it was sealed with %d lines", s.Records)
	}
	for _, name := range sealed {
		sum, err := v.sums[name], error(nil)
		if sum == "" {
			sum, err = hashFile(v.files, name)
		}
		switch {
		case name == VerdictFile && !v.run.Sealed:
			// Finish was cut off before its last step.
		case v.reported(name):
		case err != nil:
			v.problem(name, 0, "%v", why(err))
		case s.Files[name] != sum:
			v.problem(name, 0, "was changed after the run was sealed")
		}
	}
	if v.reported(ObservationsFile) {
		return
	}
	if s.Records != len(v.run.Records) {
		v.problem(ObservationsFile, len(v.run.Records), "is the last line; the run was sealed with %d", s.Records)
	} else if s.Head != v.run.head {
		v.problem(ObservationsFile, len(v.run.Records), "is not the line the run was sealed with")
	}
}

// reported says whether a problem of the file is known, with a line perhaps.
func (v *verifier) reported(file string) bool {
	return slices.ContainsFunc(v.problems, func(p Problem) bool { return p.File == file })
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func hashFile(files fs.FS, name string) (string, error) {
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
