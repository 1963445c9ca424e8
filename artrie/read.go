package artrie

import (
	"bytes"
	"iter"
	"sync/atomic"

	"github.com/assaylab/assay/artrie/internal/radix"
)

func loadRef(slot *radix.Ref) radix.Ref { return atomic.LoadPointer(slot) }

// Get returns a copy of the value of key; nil for an empty one.
func (t *Trie) Get(key string) (val []byte, found bool, err error) {
	if t.waiting.Load() != 0 {
		t.courtesy.giveWay()
	}
	if t.closed.Load() {
		return nil, false, ErrClosed
	}
	val, found, err = t.lookup(key)
	if t.opt.MemoryBudget > 0 && t.resident.Load() > t.allowance.bytes.Load() {
		t.relieve()
	}
	return bytes.Clone(val), found, err
}

// lookup is Get without the courtesies. The value lies in the tree.
func (t *Trie) lookup(key string) (val []byte, found bool, err error) {
	if t.opt.Mode == Owned {
		t.tree.RLock()
		val, found, err = radix.Get(&t.version.Load().root, key, &t.src)
		t.tree.RUnlock()
	} else {
		val, found, err = radix.Get(&t.version.Load().root, key, &t.src)
	}
	if err != nil {
		err = damaged(err)
	}
	return val, found, err
}

// All iterates over all keys in order, as they were when the loop began.
func (t *Trie) All() iter.Seq2[string, []byte] { return t.Prefix("") }

// Prefix iterates over the keys that begin with prefix, in order, as they were
// when the loop began. Keys and values stay valid after it. The loop may write.
// If a node cannot be read the loop ends early and Err says why.
func (t *Trie) Prefix(prefix string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		s := t.Snapshot()
		defer s.Close()
		s.scan(prefix, yield)
	}
}

// Err is the first failure to read a node, of any iteration, search or snapshot
// of this store; nil if there was none.
func (t *Trie) Err() error {
	if p := t.readErr.Load(); p != nil {
		return *p
	}
	return nil
}

func (t *Trie) failed(err error) error {
	err = damaged(err)
	t.readErr.CompareAndSwap(nil, &err)
	return err
}

// Match is a key that Fuzzy found, with its value and its distance.
type Match = radix.Match

// Fuzzy finds the keys within an edit distance of pattern: insertions,
// deletions and substitutions of code points. They are ordered by distance, then
// key. A byte that is not UTF-8 counts as one code point.
func (t *Trie) Fuzzy(pattern string, distance int) ([]Match, error) {
	s := t.Snapshot()
	defer s.Close()
	return s.Fuzzy(pattern, distance)
}

// Len is the number of keys.
func (t *Trie) Len() int64 { return t.version.Load().keys }
