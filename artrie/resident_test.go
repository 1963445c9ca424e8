package artrie

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/artrie/internal/radix"
)

// exact fails unless the count that the budget is held by is the weight of the tree (B1).
func exact(t *testing.T, s *Trie, when string) {
	t.Helper()
	if weight := radix.Weigh(loadRef(&s.version.Load().root)); s.resident.Load() != weight {
		t.Errorf("%s: counts %d bytes, the tree weighs %d", when, s.resident.Load(), weight)
	}
}

// budgeted is a store of some keys, all of them on disk only.
func budgeted(t *testing.T, fs *crashfs.Faulty, a arrangement) *Trie {
	t.Helper()
	a.budget = 1 << 20
	s := open(t, fs, a)
	for i := range 400 {
		if err := s.Put(ngram(i), []byte("old")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := s.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Evict(0); err != nil {
		t.Fatal(err)
	}
	exact(t, s, "after the eviction")
	return s
}

// TestResidentIsExact reads through snapshots whose nodes the current version no
// longer reaches: what they fetch is not counted as its memory.
func TestResidentIsExact(t *testing.T) {
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned}} {
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			s := budgeted(t, &crashfs.Faulty{FS: fs, Before: func(crashfs.Op) error { return nil }}, a)
			for round := range 5 {
				old := s.Snapshot()
				if err := s.Put(ngram(round), []byte("new")); err != nil {
					t.Fatal(err)
				}
				for i := range 400 {
					if _, ok, err := old.Get(ngram(i)); !ok || err != nil {
						t.Fatalf("key %d: %v %v", i, ok, err)
					}
				}
				old.Close()
				exact(t, s, "after a snapshot was read")
				if _, err := s.Evict(0); err != nil {
					t.Fatal(err)
				}
			}
			closed(t, s, fs)
		})
	}
}

// TestALostSwapIsNotCounted has one write read the disk while another swaps the
// root, under the CAS committer: the first write's fetch is in a version that has passed.
func TestALostSwapIsNotCounted(t *testing.T) {
	fs := crashfs.New()
	var armed atomic.Bool
	var other sync.WaitGroup
	var s *Trie
	swapped := make(chan struct{})
	s = budgeted(t, &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
		if op.Kind != "read" || !armed.CompareAndSwap(true, false) {
			return nil
		}
		// If the two may run at once the other one swaps now. If they take turns it waits for this read.
		select {
		case <-swapped:
		case <-time.After(300 * time.Millisecond):
		}
		return nil
	}}, arrangement{committer: CAS})
	// The other write needs nothing from the disk and copies the node below which the first one reads.
	const beside = "ngram-!"
	if err := s.Put(beside, []byte("1")); err != nil {
		t.Fatal(err)
	}
	// The path is not warmed first: the evictor may have come by in between.
	s.cold.Store(false)
	armed.Store(true)
	other.Go(func() {
		for armed.Load() {
			// until the first one reads
		}
		if err := s.Put(beside, []byte("2")); err != nil {
			t.Errorf("put: %v", err)
		}
		close(swapped)
	})
	if err := s.Put(ngram(7), []byte("new")); err != nil {
		t.Fatal(err)
	}
	other.Wait()
	exact(t, s, "after both writes")
	closed(t, s, fs)
}
