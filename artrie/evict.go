package artrie

import (
	"sync"
	"sync/atomic"

	"github.com/assaylab/assay/artrie/internal/image"
	"github.com/assaylab/assay/artrie/internal/radix"
)

// Eviction and fault-in; the invariants E1 to E5 are in docs/artrie.md, section 7.

// fault brings what the stub in slot stands for into the slot.
func (t *Trie) fault(slot *radix.Ref, stub radix.Ref, key string) (radix.Ref, error) {
	m := t.flight(stub)
	m.Lock()
	defer m.Unlock()
	return t.faultAlone(slot, stub, key)
}

// faultAlone is fault without waiting for others. Edits use it: they hold the lock
// that faultCounted takes while it holds the one of fault.
func (t *Trie) faultAlone(slot *radix.Ref, _ radix.Ref, _ string) (radix.Ref, error) {
	for {
		p := loadRef(slot)
		w, owner, cold := radix.Stub(p)
		if !cold {
			return p, nil
		}
		n, err := t.bring(w, owner)
		if err != nil {
			return nil, err
		}
		t.count.faults.Add(1)
		// It fails only when a compaction has just given the stub a new address.
		if atomic.CompareAndSwapPointer(slot, p, n) {
			t.resident.Add(radix.Weigh(n) - radix.Weigh(p))
			return n, nil
		}
	}
}

// faultCounted is fault for a reader of an overlay with a budget. The reader's slot may
// be in a version that has passed, and what is left there would be counted and not
// reachable. So the node goes where the current version has the same stub.
func (t *Trie) faultCounted(slot *radix.Ref, stub radix.Ref, key string) (radix.Ref, error) {
	m := t.flight(stub)
	m.Lock()
	defer m.Unlock()
	p := loadRef(slot)
	w, owner, cold := radix.Stub(p)
	if !cold {
		return p, nil
	}
	n, err := t.bring(w, owner)
	if err != nil {
		return nil, err
	}
	t.count.faults.Add(1)
	t.apply.Lock()
	defer t.apply.Unlock()
	if slot = radix.Locate(&t.version.Load().root, key, p); slot != nil && atomic.CompareAndSwapPointer(slot, p, n) {
		t.resident.Add(radix.Weigh(n) - radix.Weigh(p))
	}
	return n, nil
}

// faultCourteous is faultCounted, after which a write that is on its way may come first.
func (t *Trie) faultCourteous(slot *radix.Ref, stub radix.Ref, key string) (radix.Ref, error) {
	n, err := t.faultCounted(slot, stub, key)
	if t.waiting.Load() != 0 {
		t.courtesy.fetched()
	}
	return n, err
}

// flight is the lock under which a stub's block is read (E3).
func (t *Trie) flight(stub radix.Ref) *sync.Mutex {
	w, _, _ := radix.Stub(stub)
	return &t.faults[uint64(radix.Offset(w))/radix.Align%uint64(len(t.faults))]
}

// read fetches what a stub stands for and keeps nothing.
func (t *Trie) read(stub radix.Ref) (radix.Ref, error) {
	w, owner, _ := radix.Stub(stub)
	t.count.coldReads.Add(1)
	return t.bring(w, owner)
}

// bring reads what is at an address. With a budget it stays a block where it can: that is
// half as large as its nodes, and less work than to make them.
func (t *Trie) bring(w uint64, owner radix.Ref) (radix.Ref, error) {
	if t.opt.MemoryBudget > 0 {
		return image.Owned(owner).Fetch(w)
	}
	return image.Owned(owner).Read(w)
}

// slice bounds how long a commit may have to wait for the evictor, in bytes freed.
const slice = 64 << 10

// Evict drops cold subtrees from memory, touched or not, until the nodes in
// memory are within budget bytes or nothing is left that is on disk. It returns the number of
// subtrees dropped.
func (t *Trie) Evict(budget int64) (n int, err error) {
	t.life.RLock()
	defer t.life.RUnlock()
	if t.closed.Load() {
		return 0, ErrClosed
	}
	t.evict.Lock()
	defer t.evict.Unlock()
	// Two rounds: the first may begin in the middle of the tree.
	for ends := 0; ends < 2 && t.resident.Load() > budget; {
		_, k, end := t.sweep(t.resident.Load()-budget, true)
		n += k
		if end {
			ends++
		}
	}
	return n, nil
}

// relieve brings memory under 15/16 of the allowance. While another does so the caller
// goes on, unless memory is over the budget by an eighth: then all wait.
func (t *Trie) relieve() {
	b := t.opt.MemoryBudget
	if b == 0 || t.resident.Load() <= t.allowance.bytes.Load() {
		return
	}
	if !t.evict.TryLock() {
		if t.resident.Load() <= b+b/8 {
			return
		}
		t.evict.Lock()
	}
	defer t.evict.Unlock()
	t.allowance.adjust()
	b = t.allowance.bytes.Load()
	// The first round forgets touches, the second evicts what nobody touched since;
	// a third means that the rest is not on disk.
	for ends := 0; ends < 3; {
		want := t.resident.Load() - (b - b/16)
		if want <= 0 {
			return
		}
		if _, _, end := t.sweep(want, false); end {
			ends++
		}
	}
}

// sweep evicts a slice. The caller holds evict.
func (t *Trie) sweep(want int64, force bool) (freed int64, subtrees int, end bool) {
	n := t.nodes.Load()
	if n == nil {
		return 0, 0, true
	}
	t.cold.Store(true)
	// With the tree standing still, what leaves it is what leaves memory (B1); the
	// swaps themselves would be right without (E2).
	if t.opt.Mode == Owned {
		t.tree.Lock()
		defer t.tree.Unlock()
	} else {
		t.apply.Lock()
		defer t.apply.Unlock()
	}
	freed, subtrees, end = t.clock.Sweep(&t.version.Load().root, n.Gen, n.Owner(), min(want, slice), force)
	t.resident.Add(-freed)
	t.count.evicted.Add(int64(subtrees))
	return freed, subtrees, end
}

// makeRoom holds a writer back while memory is over the budget with nodes that
// are not on disk.
func (t *Trie) makeRoom() error {
	b := t.opt.MemoryBudget
	if b == 0 || t.resident.Load() <= t.allowance.bytes.Load() {
		return nil
	}
	t.relieve()
	if t.resident.Load() <= b || t.dirty.Load() < b/8 {
		return nil
	}
	// One of those who wait makes the checkpoint for all.
	t.room.Lock()
	defer t.room.Unlock()
	if t.resident.Load() <= b {
		return nil
	}
	if _, err := t.Checkpoint(); err != nil {
		return err
	}
	t.relieve()
	return nil
}
