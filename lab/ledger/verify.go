package ledger

import (
	"bufio"
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

// maxLine bounds one record; an observation with 1,000 values and 20 notes is
// far below.
const maxLine = 4 << 20

// Verify checks every hash of the folder: lock, environment, chain, samples
// and, for a finished run, the seal over all files. It returns what it could
// read and every problem found, not the first only. The caller compares the
// analysis with one made again.
func Verify(dir string) (*Run, []Problem, error) { return read(dir) }

// read reads and checks a folder. An error means that there is nothing to
// check; problems mean that it was changed.
func read(dir string) (*Run, []Problem, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %w", dir, ErrNotRun, err)
	} else if !info.IsDir() {
		return nil, nil, fmt.Errorf("%s: %w; give the folder, not a file in it", dir, ErrNotRun)
	}
	if !Exists(dir) {
		return nil, nil, fmt.Errorf("%s: %w: it has no record in %s; start one with: assay run PROTOCOL", dir, ErrNotRun, ObservationsFile)
	}
	r := &Run{Dir: dir}
	v := &verifier{run: r}
	v.lock()
	if err := v.chain(); err != nil {
		return nil, nil, err
	}
	v.environment()
	v.seal()
	v.samples()
	return r, v.problems, nil
}

type verifier struct {
	run      *Run
	problems []Problem
}

func (v *verifier) problem(file string, line int, format string, args ...any) {
	v.problems = append(v.problems, Problem{file, line, fmt.Sprintf(format, args...)})
}

func (v *verifier) lock() {
	b, err := os.ReadFile(filepath.Join(v.run.Dir, LockFile))
	if err != nil {
		v.problem(LockFile, 0, "%v", err)
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
	f, err := os.Open(filepath.Join(v.run.Dir, ObservationsFile))
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	head := ""
	if v.run.Lock != nil {
		head = v.run.Lock.Digest
	}
	for n := 1; ; n++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			v.run.tornBytes = int64(len(line))
			break
		}
		if err != nil {
			v.problem(ObservationsFile, n, "%v", err)
			break
		}
		v.run.chainBytes += int64(len(line)) + 1
		l, err := readLink(line)
		if err != nil {
			v.problem(ObservationsFile, n, "%v", err)
			// Go on as if it were right, so that one flipped byte is one problem.
			head = l.sum
			v.run.Records = append(v.run.Records, Record{})
			continue
		}
		switch {
		case l.seq > n-1:
			v.problem(ObservationsFile, n, "%d line(s) before it were removed: it is number %d and stands at %d", l.seq-(n-1), l.seq, n-1)
			return nil
		case l.seq < n-1:
			v.problem(ObservationsFile, n, "stands out of order or is repeated: it is number %d and stands at %d", l.seq, n-1)
			return nil
		case head != "" && l.prev != head:
			if n == 1 {
				v.problem(ObservationsFile, n, "begins from another lock than %s", LockFile)
			} else {
				v.problem(ObservationsFile, n, "does not follow the line before it: one of the two was replaced")
			}
		}
		head = l.sum
		var rec Record
		if err := json.Unmarshal(line, &rec); err != nil {
			v.problem(ObservationsFile, n, "cannot be read: %v", err)
		} else if n == 1 {
			switch {
			case rec.Begin == nil:
				v.problem(ObservationsFile, n, "the first record is %q, not %q", rec.Kind, KindBegin)
			case rec.Begin.Schema > SchemaVersion:
				return fmt.Errorf("%s: %w: run folder format %d, this one reads up to %d", v.run.Dir, ErrNewer, rec.Begin.Schema, SchemaVersion)
			}
		}
		v.run.Records = append(v.run.Records, rec)
	}
	v.run.head = head
	return nil
}

// readLine returns a line without its newline; with io.EOF, what stands after
// the last newline.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], nil
	}
	whole := append([]byte(nil), line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(whole) > maxLine {
			return nil, fmt.Errorf("longer than %d bytes", maxLine)
		}
		line, err = in.ReadSlice('\n')
		whole = append(whole, line...)
	}
	if err != nil {
		return whole, err
	}
	return whole[:len(whole)-1], nil
}

func (v *verifier) environment() {
	if len(v.run.Records) == 0 || v.run.Records[0].Begin == nil {
		return
	}
	sum, err := hashFile(filepath.Join(v.run.Dir, EnvironmentFile))
	if err != nil {
		v.problem(EnvironmentFile, 0, "%v", err)
	} else if sum != v.run.Records[0].Begin.Environment {
		v.problem(EnvironmentFile, 0, "was changed")
	}
}

// samples checks that every reference follows the one before it without a gap
// and that its bytes are right.
func (v *verifier) samples() {
	f, err := os.Open(filepath.Join(v.run.Dir, SamplesFile))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && v.wantsNoSamples() {
			return
		}
		v.problem(SamplesFile, 0, "%v", err)
		return
	}
	defer f.Close()
	lastMark := 0
	for i, rec := range v.run.Records {
		if rec.Kind == KindRound {
			lastMark = i
		}
	}
	end := int64(0)
	h := sha256.New()
	for i, rec := range v.run.Records {
		if rec.Trial == nil {
			continue
		}
		for _, ref := range rec.Trial.Samples {
			what := ""
			if ref.Offset != end || ref.Count < 0 {
				what = fmt.Sprintf("samples %q are said to be at byte %d; the ones before end at %d", ref.Name, ref.Offset, end)
			} else {
				h.Reset()
				n, err := io.Copy(h, io.NewSectionReader(f, ref.Offset, int64(ref.Count)*8))
				if err != nil || n != int64(ref.Count)*8 || hex.EncodeToString(h.Sum(nil)) != ref.SHA256 {
					what = fmt.Sprintf("samples %q of line %d, bytes %d to %d, were changed or cut", ref.Name, i+1, ref.Offset, ref.Offset+int64(ref.Count)*8)
				}
			}
			if what != "" {
				// A power failure may keep a record and lose its samples, but
				// only after the last mark (see the package's third rule).
				if i > lastMark && !v.run.Sealed && !v.run.Ended() {
					v.dropFrom(i)
					v.run.sampleBytes = end
					return
				}
				v.problem(SamplesFile, 0, "%s", what)
			}
			end = ref.Offset + int64(ref.Count)*8
		}
	}
	v.run.sampleBytes = end
	if info, err := f.Stat(); err == nil && v.run.Sealed && info.Size() != end {
		v.problem(SamplesFile, 0, "has %d bytes; the records refer to %d", info.Size(), end)
	}
}

func (v *verifier) wantsNoSamples() bool {
	return !slices.ContainsFunc(v.run.Records, func(r Record) bool { return r.Trial != nil && len(r.Trial.Samples) > 0 })
}

// dropFrom takes record i and what follows out of the run, as bytes that a
// resume will cut.
func (v *verifier) dropFrom(i int) {
	b, err := os.ReadFile(filepath.Join(v.run.Dir, ObservationsFile))
	if err != nil {
		v.problem(ObservationsFile, 0, "%v", err)
		return
	}
	keep := 0
	for range i {
		keep += bytes.IndexByte(b[keep:], '\n') + 1
	}
	v.run.Records = v.run.Records[:i]
	v.run.chainBytes, v.run.tornBytes = int64(keep), int64(len(b)-keep)
	lines := bytes.Split(bytes.TrimSuffix(b[:keep], []byte("\n")), []byte("\n"))
	if l, err := readLink(lines[len(lines)-1]); err == nil {
		v.run.head = l.sum
	}
}

// Seal is what closes a run: nothing of it changes any more.
type Seal struct {
	Schema  int               `json:"schema"`
	Records int               `json:"records"`
	Head    string            `json:"head"`  // sum of the last record
	Files   map[string]string `json:"files"` // name to SHA-256
}

func (s *Seal) bytes() []byte {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("ledger: " + err.Error())
	}
	return append(b, '\n')
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
			old, err := os.ReadFile(filepath.Join(r.Dir, name))
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
		sum, err := hashFile(filepath.Join(r.Dir, name))
		if err != nil {
			return err
		}
		s.Files[name] = sum
	}
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
	b, err := os.ReadFile(filepath.Join(v.run.Dir, SealFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(v.run.Dir, VerdictFile)); err == nil {
			v.problem(SealFile, 0, "is missing, and the run has a verdict")
		}
		return
	}
	_, missing := os.Stat(filepath.Join(v.run.Dir, VerdictFile))
	v.run.Sealed = missing == nil
	if err != nil {
		v.problem(SealFile, 0, "%v", err)
		return
	}
	s := &Seal{}
	if err := json.Unmarshal(b, s); err != nil || !bytes.Equal(b, s.bytes()) {
		v.problem(SealFile, 0, "was changed: not what assay wrote")
		return
	}
	for _, name := range sealed {
		sum, err := hashFile(filepath.Join(v.run.Dir, name))
		switch {
		case name == VerdictFile && !v.run.Sealed:
			// Finish was cut off before its last step.
		case err != nil:
			v.problem(name, 0, "%v", err)
		case s.Files[name] != sum:
			v.problem(name, 0, "was changed after the run was sealed, or %s was", SealFile)
		}
	}
	if len(s.Files) != len(sealed) {
		v.problem(SealFile, 0, "names %d files; a run has %d", len(s.Files), len(sealed))
	}
	if s.Records != len(v.run.Records) {
		v.problem(ObservationsFile, len(v.run.Records), "is the last line; the run was sealed with %d", s.Records)
	} else if s.Head != v.run.head {
		v.problem(ObservationsFile, len(v.run.Records), "is not the line the run was sealed with")
	}
	if v.run.tornBytes > 0 {
		v.problem(ObservationsFile, len(v.run.Records)+1, "%d bytes stand after the last line", v.run.tornBytes)
	}
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
