// Package ledger keeps a run: an append-only folder in which nothing is ever
// edited, chained by hashes from the lock to the last observation.
//
// It knows how to store, resume and verify; it must never know what a value
// means or whether a result is good.
//
// # The folder
//
//	lock.json            the frozen protocol
//	environment.json     machine and build
//	observations.jsonl   the chain: one record per line
//	samples.bin          bulk samples, little-endian 64-bit, referred to by the chain
//	results.json         what analyze computed
//	verdict.json         what decide made of it
//	seal.json            hashes of all of the above, written once at the end
//	report.html          a page made from them; can be made again at any time
//	scratch/             the trials' working folder, and where the run was
//	                     started (origin.json); gone after the run
//
// # What holds
//
//  1. A record is appended by one write that ends in a newline. Bytes after
//     the last newline are therefore the remains of a write that a crash cut
//     off; they, and nothing else, may be dropped by a resume.
//  2. Samples are written before the record that refers to them, and synced
//     before it is synced.
//  3. A sync comes before a round mark: at the latest SyncEvery after the
//     previous one, always at the end of a cell and of the run. Each mark says
//     how many records that sync, or an earlier one, has put on disk. A power
//     failure can therefore cost the rounds of at most that stretch; a kill
//     costs at most the trial under way.
//  4. A run is sealed once. A sealed folder is never written again, but for
//     pages.
//  5. One process at a time writes: it holds a lock on the chain, which dies
//     with it.
//
// Records that no mark vouches for may survive a power failure while their
// samples do not; resume drops such records, counts the bytes and says so in
// the chain. A record that a mark vouches for and whose samples are wrong is
// damage.
//
// What a chain without a seal cannot show is that its last lines were taken
// away: that is what a crash leaves. Only the seal fixes the end.
//
// Rejected: a sync per trial (it would put disk traffic between the trials
// of a round, where they are compared), and one file per trial (a directory
// sync each, and no order of its own).
package ledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// SchemaVersion is the version of the run folder that this package writes and
// the newest that it reads.
const SchemaVersion = 1

// SyncEvery is the longest stretch of short rounds between two syncs.
const SyncEvery = 100 * time.Millisecond

// Names of the files in a run folder.
const (
	LockFile         = "lock.json"
	EnvironmentFile  = "environment.json"
	ObservationsFile = "observations.jsonl"
	SamplesFile      = "samples.bin"
	ResultsFile      = "results.json"
	VerdictFile      = "verdict.json"
	SealFile         = "seal.json"
	ReportFile       = "report.html"
	ProfilesDir      = "profiles" // where they were asked for; outside of the chain, which has their summaries
	ScratchDir       = "scratch"
	OriginFile       = "origin.json" // in ScratchDir
)

var (
	errMalformed = errors.New("not a line that assay wrote")
	errChanged   = errors.New("was changed: its bytes do not match its own hash")
)

// ErrNotRun is returned when a folder is not a run folder.
var ErrNotRun = errors.New("not a run folder")

// ErrSealed is returned when a finished run is asked to go on.
var ErrSealed = errors.New("the run is finished and sealed")

// ErrNewer is returned for a folder that a newer assay wrote.
var ErrNewer = errors.New("written by a newer assay")

// ErrBusy is returned when another process is writing to the run.
var ErrBusy = errors.New("another process is writing to this run")

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

// file is one that can be read at any place, as those of a disk can.
type file interface {
	fs.File
	io.ReaderAt
}

func openAt(files fs.FS, name string) (file, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	at, ok := f.(file)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s: cannot be read at any place: %w", name, errors.ErrUnsupported), f.Close())
	}
	return at, nil
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

// Writer appends to a run folder. It is not for concurrent use.
type Writer struct {
	run      *Run
	chain    *os.File
	samples  *os.File
	lastSync time.Time
	durable  int // records that the last sync put on disk
	broken   error
}

// Claim is a run folder that is ours to begin a run in. It is held against
// other processes until Release, or until the Writer it became is closed.
type Claim struct {
	dir   string
	chain *os.File
}

// NewClaim makes and claims a run folder. It must not hold anything but the
// remains of a run that was cut off before its first record.
func NewClaim(dir string) (*Claim, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	// Looked at before anything is put into a folder that may be somebody's
	// own, and again once nobody else can begin a run there.
	if err := vacant(dir); err != nil {
		return nil, err
	}
	chain, err := openLocked(dir, os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := vacant(dir); err != nil {
		return nil, errors.Join(err, chain.Close())
	}
	return &Claim{dir, chain}, nil
}

// Release gives up a claim, and removes the folder where it holds nothing. It
// does nothing once the claim has become a Writer.
func (c *Claim) Release() error {
	if c.chain == nil {
		return nil
	}
	if info, err := c.chain.Stat(); err == nil && info.Size() == 0 {
		_ = os.Remove(c.chain.Name())
		_ = os.Remove(c.dir)
	}
	return c.chain.Close()
}

// Create writes the first record.
func (c *Claim) Create(lock *protocol.Lock, p *protocol.Protocol, env *host.Provenance, now time.Time) (*Writer, error) {
	envBytes, err := json.MarshalIndent(env, "", "  ")
	if err != nil {
		return nil, err
	}
	envBytes = append(envBytes, '\n')
	if err := WriteFile(filepath.Join(c.dir, LockFile), lock.Bytes()); err != nil {
		return nil, err
	}
	if err := WriteFile(filepath.Join(c.dir, EnvironmentFile), envBytes); err != nil {
		return nil, err
	}
	// Half a first record may be left of a run that was cut off.
	if err := c.chain.Truncate(0); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	w := &Writer{run: &Run{Dir: c.dir, Lock: lock, Protocol: p, head: lock.Digest}, chain: c.chain}
	if err := w.openSamples(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(envBytes)
	err = w.Append(Record{Kind: KindBegin, Begin: &Begin{
		Schema: SchemaVersion, Lock: lock.Digest, Environment: hex.EncodeToString(sum[:]), Time: now.UTC(),
	}})
	if err == nil {
		err = errors.Join(w.Sync(), syncDir(c.dir), syncDir(filepath.Dir(c.dir)))
	}
	if err != nil {
		return nil, errors.Join(err, w.samples.Close())
	}
	c.chain = nil
	return w, nil
}

// Create claims a run folder and writes the first record. The writer must be
// closed.
func Create(dir string, lock *protocol.Lock, p *protocol.Protocol, env *host.Provenance, now time.Time) (*Writer, error) {
	c, err := NewClaim(dir)
	if err != nil {
		return nil, err
	}
	w, err := c.Create(lock, p, env, now)
	return w, errors.Join(err, c.Release())
}

// vacant returns an error where a folder holds anything but what a run leaves
// that never got as far as its first record.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	begun := Exists(dir)
	for _, e := range entries {
		if begun || !remains(dir, e) {
			return resumable(dir, "give another with -o, or go on with", fmt.Errorf("run folder %s is not empty", dir))
		}
	}
	return nil
}

// resumable is an error after which the run in the folder may go on.
func resumable(dir, what string, err error) error {
	return &protocol.RemedyError{Err: err, What: what, Verb: "resume " + dir}
}

func remains(dir string, e fs.DirEntry) bool {
	switch e.Name() {
	case SamplesFile:
		// Samples without a record are what is left of a run that was damaged.
		info, err := e.Info()
		return err == nil && info.Size() == 0
	case ScratchDir:
		// Of that name it may be anybody's, and it is going to be removed.
		entries, err := os.ReadDir(filepath.Join(dir, ScratchDir))
		ours := func(e fs.DirEntry) bool {
			return e.Name() == OriginFile || strings.HasPrefix(e.Name(), "."+OriginFile+"-")
		}
		return err == nil && (has(os.DirFS(filepath.Join(dir, ScratchDir)), OriginFile) || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !ours(e) }))
	case LockFile, EnvironmentFile, ObservationsFile:
		return true
	}
	return strings.HasPrefix(e.Name(), "."+LockFile+"-") || strings.HasPrefix(e.Name(), "."+EnvironmentFile+"-")
}

// Resume opens an unfinished run for appending, after dropping what a crash
// cut off, and says so in the chain. It returns ErrSealed for a finished run
// and ErrBusy for one that is under way.
func Resume(dir, tool string, now time.Time) (_ *Writer, err error) {
	if err := isRun(dir); err != nil {
		return nil, err
	}
	w := &Writer{}
	if w.chain, err = openLocked(dir, 0); err != nil {
		_, damage := Open(dir)
		return nil, cmp.Or(damage, err)
	}
	defer func() {
		if err != nil {
			w.chain.Close()
			if w.samples != nil {
				w.samples.Close()
			}
		}
	}()
	// Only now: before, the process that held it may have been appending.
	r, problems, err := read(dir)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, &IntegrityError{dir, problems}
	}
	if r.Sealed {
		return nil, fmt.Errorf("%s: %w; its verdict stands in %s", dir, ErrSealed, VerdictFile)
	}
	w.run = r
	if err := w.openSamples(); err != nil {
		return nil, err
	}
	if r.Ended() {
		return w, nil
	}
	dropped := r.tornBytes
	if err := w.chain.Truncate(r.chainBytes); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	if err := w.samples.Truncate(r.sampleBytes); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	if err := w.Sync(); err != nil {
		return nil, err
	}
	r.tornBytes = 0
	rec := Record{Kind: KindResume, Resume: &Resumption{Time: now.UTC(), Tool: tool, Dropped: dropped, Durable: w.durable}}
	if err := w.Append(rec); err != nil {
		return nil, err
	}
	return w, w.Sync()
}

const appending = os.O_WRONLY | os.O_APPEND

// openLocked opens the chain for appending and keeps other processes from it.
func openLocked(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, ObservationsFile), appending|flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	err = flock(f, func() { time.Sleep(5 * time.Millisecond) })
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, ErrBusy), f.Close())
	}
	// A file system without locks must not stop a run.
	return f, nil
}

func (w *Writer) openSamples() (err error) {
	w.samples, err = os.OpenFile(filepath.Join(w.run.Dir, SamplesFile), appending|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	return nil
}

// Run is what has been written so far. It grows with each Append.
func (w *Writer) Run() *Run { return w.run }

// Append writes a record. A trial's bulk samples are written first and
// replaced by references. After an error the writer refuses everything: what
// has been written is whole and can be resumed.
func (w *Writer) Append(rec Record) (err error) {
	if w.broken != nil {
		return w.broken
	}
	defer func() { w.broken = err }()
	if rec.Trial != nil {
		if err := w.storeSamples(rec.Trial); err != nil {
			return err
		}
	}
	line, sum, err := encodeLine(w.run.head, len(w.run.Records), &rec)
	if err != nil {
		return err
	}
	if err := w.write(w.chain, line, w.run.chainBytes); err != nil {
		return err
	}
	w.run.head = sum
	w.run.chainBytes += int64(len(line))
	w.run.Records = append(w.run.Records, rec)
	return nil
}

func (w *Writer) storeSamples(obs *trial.Observation) error {
	for _, name := range sortedNames(obs.Bulk) {
		b := trial.EncodeSamples(obs.Bulk[name])
		if err := w.write(w.samples, b, w.run.sampleBytes); err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		obs.Samples = append(obs.Samples, trial.SampleRef{
			Name: name, Offset: w.run.sampleBytes, Count: len(obs.Bulk[name]), SHA256: hex.EncodeToString(sum[:]),
		})
		w.run.sampleBytes += int64(len(b))
	}
	obs.Bulk = nil
	return nil
}

// write appends whole or not at all, as far as the file system allows.
func (w *Writer) write(f *os.File, b []byte, end int64) error {
	if _, err := f.Write(b); err != nil {
		_ = f.Truncate(end)
		return resumable(w.run.Dir, "go on with", fmt.Errorf("writing %s: %w; what was measured so far is safe", filepath.Base(f.Name()), err))
	}
	return nil
}

// EndRound syncs when the last sync is SyncEvery ago or force is set, and
// writes the mark of a finished round. The mark comes last so that it can
// vouch for what it follows; to lose it costs nothing.
func (w *Writer) EndRound(m RoundMark, force bool) error {
	if force || time.Since(w.lastSync) >= SyncEvery {
		if err := w.Sync(); err != nil {
			return err
		}
	}
	m.Durable = w.durable
	return w.Append(Record{Kind: KindRound, Round: &m})
}

// Sync puts everything written so far on disk, samples first.
func (w *Writer) Sync() error {
	if w.broken != nil {
		return w.broken
	}
	for _, f := range []*os.File{w.samples, w.chain} {
		if err := f.Sync(); err != nil {
			// After a failed sync the page cache no longer says what is on disk.
			w.broken = resumable(w.run.Dir, "go on with", fmt.Errorf("syncing %s: %w", filepath.Base(f.Name()), err))
			return w.broken
		}
	}
	w.lastSync, w.durable = time.Now(), len(w.run.Records)
	return nil
}

// Close syncs and closes.
func (w *Writer) Close() error {
	err := w.Sync()
	return errors.Join(err, w.chain.Close(), w.samples.Close())
}

// WriteFile replaces a file so that a crash leaves the old or the new one:
// write beside it, sync, rename, sync the folder.
func WriteFile(path string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err = tmp.Write(b); err == nil {
		if err = tmp.Chmod(0o644); err == nil {
			err = tmp.Sync()
		}
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func sortedNames(m map[string][]int64) []string {
	return slices.Sorted(maps.Keys(m))
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
