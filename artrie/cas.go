package artrie

import (
	"sync"

	"github.com/assaylab/assay/artrie/internal/radix"
)

// commitCAS is the way of a write under the CAS committer: an own record, an own
// swap of the root. The stripe keeps the order per key the same in both (C4). Between the two a
// writer may stop for any time, and the watermark with it (C5), while others go on.
func (t *Trie) commitCAS(op *operation) {
	stripe := &t.stripes[fnv(op.Key)%uint32(len(t.stripes))]
	stripe.Lock()
	defer stripe.Unlock()
	if t.opt.Durability == Group {
		t.group.commit(op, func(ops []*operation) {
			if err := t.record(ops); err != nil {
				for _, op := range ops {
					op.err = err
				}
			}
		})
	} else {
		t.serial.Lock()
		op.err = t.record([]*operation{op})
		t.serial.Unlock()
	}
	if op.err == nil {
		t.swap(op)
	}
}

// swap makes an operation that is in the log visible.
func (t *Trie) swap(op *operation) {
	if t.opt.MemoryBudget > 0 {
		// What a lost swap has fetched would be counted and not reachable (B1).
		t.apply.Lock()
		defer t.apply.Unlock()
	}
	for {
		old := t.version.Load()
		e := radix.Edit{ID: t.edits.Add(1), Src: &t.edit}
		v := &version{root: loadRef(&old.root), edit: e.ID}
		before := v.root
		if op.done, op.err = perform(&e, &v.root, &op.Op); op.err != nil {
			op.err = t.poison(damaged(op.err))
			return
		}
		if v.root == before {
			break
		}
		v.keys = old.keys + e.Keys
		if t.version.CompareAndSwap(old, v) {
			t.account(&e)
			break
		}
		t.count.casRetries.Add(1)
	}
	t.mark.done(op.LSN)
}

// fnv spreads keys over stripes; the same key always gets the same.
func fnv(key string) uint32 {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return h
}

// watermark is the highest number below which everything is done (C5).
type watermark struct {
	mu    sync.Mutex
	low   uint64
	above map[uint64]struct{}
}

func (w *watermark) done(lsn uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.above == nil {
		w.above = map[uint64]struct{}{}
	}
	w.above[lsn] = struct{}{}
	for {
		if _, ok := w.above[w.low+1]; !ok {
			return
		}
		w.low++
		delete(w.above, w.low)
	}
}

func (w *watermark) get() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.low
}
