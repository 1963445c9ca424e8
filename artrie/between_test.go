package artrie

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
)

// The tests here hold one operation at a file operation and have another one run
// meanwhile. Goroutines that are left to themselves hardly ever meet in such a place.

// between runs other when the first armed operation of the given kind, on a file
// of that name, is about to be done, and lets it wait for other: for ever if the two
// can run at once, else until it is clear that other waits for it.
type between struct {
	kind, file string
	other      func()
	armed      atomic.Bool
	busy       sync.WaitGroup
}

func (b *between) before(op crashfs.Op) error {
	if op.Kind != b.kind || !strings.Contains(op.Name, b.file) || !b.armed.CompareAndSwap(true, false) {
		return nil
	}
	done := make(chan struct{})
	b.busy.Go(func() { b.other(); close(done) })
	select {
	case <-done:
	case <-time.After(300 * time.Millisecond):
	}
	return nil
}

// cold is a CAS store whose keys are on disk only and whose writes do not warm their path,
// as when the evictor has just come by.
func cold(t *testing.T, b *between) (*Trie, *crashfs.FS) {
	t.Helper()
	fs := crashfs.New()
	s := open(t, &crashfs.Faulty{FS: fs, Before: b.before}, arrangement{committer: CAS})
	for i := range 400 {
		if err := s.Put(ngram(i), []byte("old")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Evict(0); err != nil {
		t.Fatal(err)
	}
	s.cold.Store(false)
	return s, fs
}

// same fails unless what the log gives back is what is visible.
func same(t *testing.T, s *Trie, fs *crashfs.FS) {
	t.Helper()
	want := contents(t, s, "")
	again := open(t, fs.Image(crashfs.LoseAll, nil), arrangement{})
	if got := contents(t, again, ""); !equal(got, want) {
		t.Errorf("after a crash there are %d keys, before there were %d, or other values", len(got), len(want))
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestOneKeyIsSwappedInLogOrder: the first write of a key reads the disk before
// its swap, and a second one of the same key comes by (C4).
func TestOneKeyIsSwappedInLogOrder(t *testing.T) {
	b := &between{kind: "read", file: "nodes-"}
	s, fs := cold(t, b)
	b.other = func() {
		if err := s.Put(ngram(7), []byte("second")); err != nil {
			t.Errorf("put: %v", err)
		}
	}
	b.armed.Store(true)
	if err := s.Put(ngram(7), []byte("first")); err != nil {
		t.Fatal(err)
	}
	b.busy.Wait()
	if v, _, err := s.Get(ngram(7)); string(v) != "second" || err != nil {
		t.Errorf("%q is visible last, %v", v, err)
	}
	same(t, s, fs)
	closed(t, s, fs)
}

// TestALostSwapIsTriedAgain: between a write's copy and its swap another key is written.
func TestALostSwapIsTriedAgain(t *testing.T) {
	b := &between{kind: "read", file: "nodes-"}
	s, fs := cold(t, b)
	b.other = func() {
		if err := s.Put("other", []byte("1")); err != nil {
			t.Errorf("put: %v", err)
		}
	}
	b.armed.Store(true)
	if err := s.Put(ngram(7), []byte("first")); err != nil {
		t.Fatal(err)
	}
	b.busy.Wait()
	if _, ok, err := s.Get("other"); !ok || err != nil {
		t.Errorf("an acknowledged write is gone (%v)", err)
	}
	if s.Stats().CASRetries == 0 {
		t.Error("no swap was lost: nothing was put to the test")
	}
	same(t, s, fs)
	closed(t, s, fs)
}

// TestACheckpointCoversWhatItHas: a checkpoint is made while a write is in its sync,
// so the write is in the log and not in the image (C5).
func TestACheckpointCoversWhatItHas(t *testing.T) {
	for _, a := range []arrangement{{}, {committer: CAS}, {durability: Immediate}, {committer: CAS, durability: Immediate}} {
		t.Run(a.String(), func(t *testing.T) {
			b := &between{kind: "sync"}
			fs := crashfs.New()
			s := open(t, &crashfs.Faulty{FS: fs, Before: b.before}, a)
			for i := range 20 {
				if err := s.Put(ngram(i), []byte("old")); err != nil {
					t.Fatal(err)
				}
			}
			b.other = func() {
				if c, err := s.Checkpoint(); err != nil || c.Covered != 20 {
					t.Errorf("the checkpoint covers %d operations, %v", c.Covered, err)
				}
			}
			b.armed.Store(true)
			if err := s.Put(ngram(7), []byte("new")); err != nil {
				t.Fatal(err)
			}
			b.busy.Wait()
			if s.Stats().Checkpoints != 1 {
				t.Error("no checkpoint was made meanwhile")
			}
			same(t, s, fs)
			closed(t, s, fs)
		})
	}
}
