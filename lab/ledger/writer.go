package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// Writer appends to a run folder. It is not for concurrent use.
type Writer struct {
	run      *Run
	chain    *os.File
	samples  *os.File
	lastSync time.Time
	durable  int // records that the last sync put on disk
	broken   error
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

// resumable is an error after which the run in the folder may go on.
func resumable(dir, what string, err error) error {
	return &protocol.RemedyError{Err: err, What: what, Verb: "resume " + dir}
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

func sortedNames(m map[string][]int64) []string {
	return slices.Sorted(maps.Keys(m))
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
