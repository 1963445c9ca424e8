package artrie

import (
	"bytes"
	"iter"
	"sync/atomic"

	"github.com/assaylab/assay/artrie/internal/radix"
)

// Snapshot is a frozen view of the tree. It keeps the nodes alive that only it
// can reach, until Close.
type Snapshot struct {
	t *Trie
	v atomic.Pointer[version]
}

// Snapshot freezes the tree as it is now, in constant time. In an overlay it
// blocks nobody. In an owned store it waits for the write lock once, and later
// edits copy what the snapshot can see.
func (t *Trie) Snapshot() *Snapshot {
	s := &Snapshot{t: t}
	if t.opt.Mode == Owned {
		t.tree.Lock()
		t.ownedEdit = t.edits.Add(1)
		s.v.Store(t.version.Load())
		t.tree.Unlock()
		return s
	}
	s.v.Store(t.version.Load())
	return s
}

// Close lets go of the view. Reads of it then fail with ErrClosed, iterations are empty.
func (s *Snapshot) Close() { s.v.Store(nil) }

// Get returns a copy of the value that key had.
func (s *Snapshot) Get(key string) (val []byte, found bool, err error) {
	v := s.v.Load()
	if v == nil {
		return nil, false, ErrClosed
	}
	val, found, err = radix.Get(&v.root, key, &s.t.frozen)
	if err != nil {
		return nil, false, s.t.failed(err)
	}
	return bytes.Clone(val), found, nil
}

// All iterates over all keys in order.
func (s *Snapshot) All() iter.Seq2[string, []byte] { return s.Prefix("") }

// Prefix iterates over the keys that begin with prefix, in order. See Trie.Prefix.
func (s *Snapshot) Prefix(prefix string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) { s.scan(prefix, yield) }
}

// Len is the number of keys; 0 after Close.
func (s *Snapshot) Len() int64 {
	if v := s.v.Load(); v != nil {
		return v.keys
	}
	return 0
}

// Fuzzy finds keys within an edit distance of pattern. See Trie.Fuzzy.
func (s *Snapshot) Fuzzy(pattern string, distance int) ([]Match, error) {
	v := s.v.Load()
	if v == nil {
		return nil, ErrClosed
	}
	m, err := radix.Fuzzy(&v.root, pattern, distance, &s.t.src)
	if err != nil {
		return nil, s.t.failed(err)
	}
	return m, nil
}

func (s *Snapshot) scan(prefix string, yield func(string, []byte) bool) {
	v := s.v.Load()
	if v == nil {
		return
	}
	var arena radix.Arena
	each := func(k, val []byte) bool {
		if s.t.waiting.Load() != 0 {
			s.t.courtesy.giveWay()
		}
		return yield(arena.String(k), arena.Bytes(val))
	}
	walk := radix.Walk
	if s.t.opt.MemoryBudget > 0 {
		// A scan of cold data must not push the warm out.
		walk = radix.Scan
	}
	if err := walk(&v.root, prefix, &s.t.src, each); err != nil {
		_ = s.t.failed(err)
	}
}
