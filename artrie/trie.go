package artrie

import (
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/internal/image"
	"github.com/assaylab/assay/artrie/internal/radix"
	"github.com/assaylab/assay/internal/wal"
)

// version is one state of the tree. Its meaning never changes; in the slot root, a
// node and its stub may take each other's place.
type version struct {
	root radix.Ref
	lsn  uint64 // the tree is the log up to this number; not kept by the CAS committer
	keys int64
	edit uint64 // that made it; 0: it is the checkpoint that was opened
}

// Trie is an open store. All methods may be called by many goroutines.
type Trie struct {
	dir  string
	opt  Options
	fs   *fsys.Counted
	lock io.Closer
	src  radix.Source // of readers

	frozen radix.Source // of snapshots
	edit   radix.Source // of edits, whose slots are those of the version to come

	version atomic.Pointer[version]
	closed  atomic.Bool
	cold    atomic.Bool // something may be on disk only
	_       [64]byte    // readers load what is above and should not see the traffic below

	waiting  atomic.Int32 // writers between call and return
	courtesy courtesy
	poisoned atomic.Pointer[error]
	readErr  atomic.Pointer[error]

	// life is held for reading by writes and checkpoints, for writing by Close.
	life sync.RWMutex

	log    *wal.Log
	group  group
	serial sync.Mutex // the turn of a write that shares no sync
	// tree guards the tree of an owned store: read lock to read, evict and
	// checkpoint, write lock to edit.
	tree sync.RWMutex
	// apply is held while an overlay's batch is applied, while a slice of it is
	// evicted, and to leave a node where the current version has its stub. CAS
	// committers hold it too when there is a budget.
	apply     sync.Mutex
	edits     atomic.Uint64 // ids handed out
	ownedEdit uint64        // the lasting edit of an owned store; guarded by tree
	stripes   [256]sync.Mutex
	mark      watermark

	// checkpoint guards the fields below it and is held through a checkpoint.
	checkpoint sync.Mutex
	nodes      atomic.Pointer[image.Nodes] // of the current generation; nil before the first checkpoint
	last, prev *image.Manifest
	imaged     uint64 // the edit of the version in last; in an owned store many versions have the same
	slots      *image.Slots
	used       used

	// evict is held by the evictor and through a compaction.
	evict     sync.Mutex
	clock     radix.Clock
	room      sync.Mutex // the turn of a writer that makes room
	allowance allowance
	faults    [64]sync.Mutex

	resident atomic.Int64 // bytes of nodes in memory
	// dirty is about how many of them are in the current version and in none of which a
	// checkpoint is made or was (B2).
	dirty   atomic.Int64
	live    atomic.Int64 // bytes of the node file that the tree reaches
	logMark atomic.Int64 // log bytes at the last checkpoint
	count   counters

	nodeBytes atomic.Int64 // published length of the node file

	kick chan struct{} // wakes the keeper
	stop chan struct{}
	busy sync.WaitGroup
	rec  wal.Recovered
}

// Open opens the store in dir and makes it if it is not there. opt nil: the
// defaults. It fails with ErrLocked when the folder is open elsewhere, with ErrVersion
// when a later program wrote it, and with ErrDamaged when something acknowledged
// cannot be read.
func Open(dir string, opt *Options) (*Trie, error) {
	o, err := opt.complete()
	if err != nil {
		return nil, err
	}
	t := &Trie{dir: dir, opt: o, fs: fsys.Count(o.FS), kick: make(chan struct{}, 1), stop: make(chan struct{})}
	t.edit = radix.Source{Fault: t.faultAlone, Read: t.read}
	t.src = radix.Source{Fault: t.fault, Read: t.read}
	if o.MemoryBudget > 0 {
		t.src.Touch = true
		if o.Mode == Overlay {
			t.src.Fault = t.faultCourteous
		}
	}
	t.allowance.init(o.MemoryBudget)
	t.frozen = t.src
	if o.MemoryBudget > 0 && o.Mode == Owned {
		// What a snapshot keeps may be in no other version, and would be counted (B1).
		t.frozen.Fault = func(_ *radix.Ref, stub radix.Ref, _ string) (radix.Ref, error) { return t.read(stub) }
	}
	if err := t.fs.MkdirAll(dir); err != nil {
		return nil, err
	}
	if t.lock, err = hold(t.fs, dir); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if err := t.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", dir, damaged(err)), t.lock.Close())
	}
	t.group.init()
	t.ownedEdit = t.edits.Add(1)
	t.mark.low = t.version.Load().lsn
	t.busy.Go(t.keep)
	if o.Durability == Periodic {
		t.busy.Go(t.syncPeriodically)
	}
	return t, nil
}

// load reads the newest checkpoint and the log after it.
func (t *Trie) load() error {
	if err := t.fs.SyncDir(path.Dir(path.Clean(t.dir))); err != nil {
		return fmt.Errorf("sync the parent folder: %w", err)
	}
	found, why, err := newest(t.fs, t.dir)
	if err != nil {
		return err
	}
	v := &version{}
	t.slots, t.used = found.slots, found.used
	if found.manifest != nil {
		m := found.manifest
		t.last, t.prev = m, found.prev
		t.nodes.Store(found.nodes)
		v.root, v.lsn, v.keys = radix.NewStub(m.Root, found.nodes.Owner()), m.Covered, m.Keys
		t.live.Store(m.Live)
		t.nodeBytes.Store(m.End)
		t.cold.Store(true)
	}
	e := radix.Edit{ID: t.edits.Add(1), Src: &t.edit}
	t.log, t.rec, err = wal.Open(logOf(t.fs, t.dir, t.opt.SegmentBytes), v.lsn, func(op *wal.Op) error {
		_, err := perform(&e, &v.root, op)
		return err
	})
	if err != nil {
		return errors.Join(err, why)
	}
	if t.log.Last() > v.lsn {
		v.edit = e.ID
	}
	v.lsn = t.log.Last()
	v.keys += e.Keys
	t.account(&e)
	t.version.Store(v)
	return t.tidy()
}

// perform does one logged operation in an edit.
func perform(e *radix.Edit, root *radix.Ref, op *wal.Op) (bool, error) {
	if op.Type == opDelete {
		return e.Delete(root, op.Key)
	}
	return e.Put(root, op.Key, op.Val, op.Type == opPut)
}

// account adds what an edit changed, after its version is published (B2).
func (t *Trie) account(e *radix.Edit) {
	t.resident.Add(e.Bytes)
	t.live.Add(-e.Dead)
	// A block is about half as large as its nodes; a copied node is dirty as new.
	t.dirty.Add(max(0, e.Bytes) + 2*e.Dead)
}

// Close ends the store. Under every policy what was acknowledged is durable
// when it returns nil; a poisoned store returns ErrPoisoned. Snapshots stay readable.
func (t *Trie) Close() error {
	if t.closed.Swap(true) {
		return ErrClosed
	}
	close(t.stop)
	t.busy.Wait()
	t.life.Lock()
	defer t.life.Unlock()
	poison := t.poisoned.Load()
	err := t.log.Close(poison != nil)
	if poison != nil {
		err = errors.Join(*poison, err)
	}
	return errors.Join(err, t.lock.Close())
}

// keep runs checkpoints that the log or the memory budget asks for.
func (t *Trie) keep() {
	for {
		select {
		case <-t.stop:
			return
		case <-t.kick:
		}
		if t.wantsCheckpoint() {
			// A failed checkpoint loses nothing; if it was a sync, the poison reports it.
			if _, err := t.Checkpoint(); err != nil {
				t.count.checkpointErrors.Add(1)
			}
		}
		t.relieve()
	}
}

func (t *Trie) wantsCheckpoint() bool {
	if b := t.opt.MemoryBudget; b > 0 && t.dirty.Load() > b/4 {
		return true
	}
	return t.opt.CheckpointBytes > 0 && t.log.Bytes()-t.logMark.Load() > t.opt.CheckpointBytes
}

func (t *Trie) wake() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

func (t *Trie) syncPeriodically() {
	tick := time.NewTicker(t.opt.SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-tick.C:
		}
		if t.poisoned.Load() != nil {
			return
		}
		if err := t.log.Sync(); err != nil {
			_ = t.poison(err)
		}
	}
}
