package artrie

import "github.com/assaylab/assay/artrie/internal/radix"

// EvictPrefix drops from memory what is under prefix and on disk, touched or
// not, and leaves the rest where it is: a caller that knows what has gone cold
// need not wait for the memory budget to find out. It returns the number of
// subtrees dropped. Commits wait for it.
func (t *Trie) EvictPrefix(prefix string) (n int, err error) {
	t.life.RLock()
	defer t.life.RUnlock()
	if t.closed.Load() {
		return 0, ErrClosed
	}
	t.evict.Lock()
	defer t.evict.Unlock()
	nodes := t.nodes.Load()
	if nodes == nil {
		return 0, nil
	}
	t.cold.Store(true)
	// For the same reasons as in sweep.
	if t.opt.Mode == Owned {
		t.tree.RLock()
		defer t.tree.RUnlock()
	} else {
		t.apply.Lock()
		defer t.apply.Unlock()
	}
	freed, n := radix.SweepBelow(&t.version.Load().root, prefix, nodes.Gen, nodes.Owner())
	t.resident.Add(-freed)
	t.count.evicted.Add(int64(n))
	return n, nil
}
