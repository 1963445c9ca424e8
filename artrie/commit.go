package artrie

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/assaylab/assay/artrie/internal/radix"
	"github.com/assaylab/assay/internal/wal"
)

// The way of a write; steps and invariants C1 to C6 are in docs/artrie.md,
// section 4.

// operation is a write on its way.
type operation struct {
	wal.Op
	done bool // it changed the key set: added or removed
	err  error
}

// Insert adds key with an empty value. A key that is there keeps its value;
// added is false then.
func (t *Trie) Insert(key string) (added bool, err error) {
	return t.write(&operation{Op: wal.Op{Type: opInsert, Key: key}})
}

// Put sets key to val. An empty and a nil value are the same.
func (t *Trie) Put(key string, val []byte) error {
	_, err := t.write(&operation{Op: wal.Op{Type: opPut, Key: key, Val: val}})
	return err
}

// Delete removes key and says whether it was there.
func (t *Trie) Delete(key string) (removed bool, err error) {
	return t.write(&operation{Op: wal.Op{Type: opDelete, Key: key}})
}

func (t *Trie) write(op *operation) (bool, error) {
	if len(op.Key)+len(op.Val) > MaxRecord {
		return false, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(op.Key)+len(op.Val))
	}
	if err := t.makeRoom(); err != nil {
		return false, err
	}
	t.life.RLock()
	defer t.life.RUnlock()
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	if err := t.writable(); err != nil {
		return false, err
	}
	if err := t.warm(op); err != nil {
		return false, err
	}
	switch {
	case t.opt.Mode == Overlay && t.opt.Committer == CAS:
		t.commitCAS(op)
	case t.opt.Durability != Immediate:
		t.group.commit(op, t.commitBatch)
	case t.opt.Mode == Owned:
		// The lock is held round the sync, as in the control of the reference.
		t.tree.Lock()
		if op.err = t.record([]*operation{op}); op.err == nil {
			t.applyOwned([]*operation{op})
		}
		t.tree.Unlock()
	default:
		t.serial.Lock()
		t.commitBatch([]*operation{op})
		t.serial.Unlock()
	}
	if op.err == nil {
		t.count.writes.Add(1)
		if t.wantsCheckpoint() {
			t.wake()
		}
	}
	return op.done, op.err
}

// warm fetches what the edit will need, so that the leader finds it in memory and what
// cannot be read is an error of this write alone (E5).
func (t *Trie) warm(op *operation) error {
	if !t.cold.Load() {
		return nil
	}
	if t.opt.Mode == Owned {
		t.tree.RLock()
		defer t.tree.RUnlock()
	}
	return damaged(radix.Warm(&t.version.Load().root, op.Key, op.Type == opDelete, &t.src))
}

// commitBatch logs, syncs and applies operations, in order, in the caller's turn.
func (t *Trie) commitBatch(ops []*operation) {
	err := t.record(ops)
	if err != nil {
		for _, op := range ops {
			op.err = err
		}
		return
	}
	if t.opt.Mode == Owned {
		t.tree.Lock()
		t.applyOwned(ops)
		t.tree.Unlock()
		return
	}
	t.apply.Lock()
	defer t.apply.Unlock()
	t.applyEdit(ops, t.edits.Add(1))
}

func (t *Trie) applyOwned(ops []*operation) { t.applyEdit(ops, t.ownedEdit) }

// record writes operations to the log and makes them as durable as the policy
// says. What was not is not visible either.
func (t *Trie) record(ops []*operation) error {
	if err := t.writable(); err != nil {
		return err
	}
	records := make([]*wal.Op, len(ops))
	for i, op := range ops {
		records[i] = &op.Op
	}
	err := t.log.Append(records)
	if err == nil && t.opt.Durability <= Immediate {
		start := time.Now()
		err = t.log.Sync()
		t.group.observe(time.Since(start))
		t.count.commitSyncs.Add(1)
		t.courtesy.look()
	}
	t.count.batches.Add(1)
	if err != nil && fatal(err) {
		return t.poison(err)
	}
	return err
}

// applyEdit makes operations visible, in order, with one store of the root.
func (t *Trie) applyEdit(ops []*operation, id uint64) {
	old := t.version.Load()
	v := &version{root: loadRef(&old.root), lsn: old.lsn, keys: old.keys, edit: id}
	e := radix.Edit{ID: id, Src: &t.edit}
	for i, op := range ops {
		if op.done, op.err = perform(&e, &v.root, &op.Op); op.err != nil {
			// The log has what the tree cannot take in: stop before they part.
			err := t.poison(damaged(op.err))
			for _, op := range ops[i:] {
				op.err = err
			}
			break
		}
		v.lsn = op.LSN
	}
	v.keys += e.Keys
	t.version.Store(v)
	t.account(&e)
}

// group gathers concurrent writes into batches: the first to come leads.
type group struct {
	mu       sync.Mutex
	turn     sync.Cond // busy has become false
	busy     bool      // a leader is at work
	open     *batch
	expect   int           // how many the next batch should wait for
	skip     int           // batches to lead without waiting
	misses   int           // waits in a row that brought nobody
	lastSync time.Duration // smoothed
}

type batch struct {
	ops  []*operation
	done chan struct{}
}

// maxWait bounds the wait for followers; so does a quarter of the recent sync.
const maxWait = 50 * time.Microsecond

func (g *group) init() {
	g.turn.L = &g.mu
	g.open = &batch{done: make(chan struct{})}
}

func (g *group) observe(sync time.Duration) {
	g.mu.Lock()
	g.lastSync += (sync - g.lastSync) / 8
	g.mu.Unlock()
}

func (g *group) commit(op *operation, do func([]*operation)) {
	g.mu.Lock()
	b := g.open
	b.ops = append(b.ops, op)
	if len(b.ops) > 1 {
		g.mu.Unlock()
		<-b.done
		return
	}
	for g.busy {
		g.turn.Wait()
	}
	g.busy = true
	g.await(b)
	n := len(b.ops)
	g.open = &batch{done: make(chan struct{}), ops: make([]*operation, 0, n)}
	g.mu.Unlock()

	do(b.ops)

	g.mu.Lock()
	g.busy = false
	g.expect = n + len(g.open.ops)
	g.turn.Signal()
	g.mu.Unlock()
	close(b.done)
}

// await gives those who came last time a moment to come again. Without it the first
// one back leads alone and batches alternate between one and all the others.
func (g *group) await(b *batch) {
	before := len(b.ops)
	if before >= g.expect {
		return
	}
	if g.skip > 0 {
		g.skip--
		return
	}
	limit := min(maxWait, g.lastSync/4)
	for start := time.Now(); len(b.ops) < g.expect && time.Since(start) < limit; {
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
	}
	if len(b.ops) > before {
		g.misses = 0
		return
	}
	g.misses = min(g.misses+1, 6)
	g.skip = 1<<g.misses - 1
}
