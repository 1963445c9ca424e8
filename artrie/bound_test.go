package artrie

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/internal/wal"
)

// roomy is a store with a budget whose log never needs a second segment: a file operation can
// then stop for writes that are done meanwhile.
func roomy(t *testing.T, fs fsys.FS, a arrangement) *Trie {
	t.Helper()
	opt := a.options(fs)
	opt.SegmentBytes = 8 << 20
	s, err := Open("db", opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bounded is an error when more is in memory than a budget allows (B2): an eighth over it, and
// the path of the one write that was on its way.
func bounded(s *Trie) error {
	b := s.opt.MemoryBudget
	if r, most := s.resident.Load(), b+b/8+4<<10; r > most {
		return fmt.Errorf("%d bytes in memory, the budget is %d, and at most %d may be", r, b, most)
	}
	return nil
}

// TestWritesWhileACheckpointSyncs has every sync of every checkpoint last until no write passes
// any more: what the checkpoint has not and what it has and cannot yet go are within the bound.
func TestWritesWhileACheckpointSyncs(t *testing.T) {
	for _, a := range []arrangement{{durability: None}, {committer: CAS, durability: None}, {}} {
		a.budget = 128 << 10
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			var s *Trie
			var armed atomic.Bool
			var keys, held atomic.Int64
			insert := func() error {
				_, err := s.Insert(ngram(int(keys.Add(1))))
				return err
			}
			hook := &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
				if op.Kind != "sync" || !armed.Load() || strings.HasSuffix(site(op.Kind), ".record") {
					return nil
				}
				held.Add(1)
				for {
					s.relieve()
					if s.resident.Load() > a.budget && s.dirty.Load() >= a.budget/8 {
						return nil // a write would wait for the next checkpoint
					}
					if err := insert(); errors.Is(err, ErrClosed) {
						return nil // the test is over, and the store makes a last one
					} else if err != nil {
						return err
					}
					if err := bounded(s); err != nil {
						return err
					}
				}
			}}
			s = roomy(t, hook, a)
			if err := insert(); err != nil {
				t.Fatal(err)
			}
			// The first one is full, and no eviction can run beside it.
			if c, err := s.Checkpoint(); err != nil || !c.Full {
				t.Fatalf("%+v, %v", c, err)
			}
			armed.Store(true)
			for range 4 {
				if err := insert(); err != nil {
					t.Fatal(err)
				}
				if c, err := s.Checkpoint(); err != nil || c.Full {
					t.Fatalf("write %d: %+v, %v", keys.Load(), c, err)
				}
			}
			armed.Store(false)
			if held.Load() < 8 || keys.Load() < 1500 {
				t.Errorf("%d syncs were held and %d keys written: nothing was put to the test", held.Load(), keys.Load())
			}
			closed(t, s, fs)
		})
	}
}

// TestAWriterThatStopsHoldsNoMemory: under the CAS committer one writer has its number and not yet
// its swap, so that the watermark stands still. Checkpoints for the sake of memory must
// have what others swapped in meanwhile.
func TestAWriterThatStopsHoldsNoMemory(t *testing.T) {
	fs := crashfs.New()
	const keys, late = 4000, "late"
	s := roomy(t, fs, arrangement{committer: CAS, durability: None, budget: 28 << 10})
	op := &operation{Op: wal.Op{Type: opPut, Key: late, Val: []byte("v")}}
	for i := range keys {
		if i == keys/8 {
			if err := s.record([]*operation{op}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Insert(ngram(i)); err != nil {
			t.Fatal(err)
		}
		if err := bounded(s); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	s.swap(op)
	if v, ok, err := s.Get(late); !ok || err != nil || string(v) != "v" {
		t.Errorf("the late write: %q %v %v", v, ok, err)
	}
	if s.Len() != keys+1 {
		t.Errorf("%d keys", s.Len())
	}
	closed(t, s, fs)
}

// TestACheckpointMakesDurableWhatItFinds: the same under a policy that syncs nothing else. What
// was acknowledged before a checkpoint is there after a power cut, whatever an earlier
// writer waits for.
func TestACheckpointMakesDurableWhatItFinds(t *testing.T) {
	fs := crashfs.New()
	s := roomy(t, fs, arrangement{committer: CAS, durability: None})
	put := func(i int) {
		t.Helper()
		if err := s.Put(ngram(i), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	put(0)
	op := &operation{Op: wal.Op{Type: opPut, Key: ngram(0), Val: []byte("late")}}
	if err := s.record([]*operation{op}); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 4; i++ {
		put(i)
		again := open(t, fs.Image(crashfs.LoseAll, nil), arrangement{})
		for j := range i {
			if v, ok, err := again.Get(ngram(j + 1)); !ok || err != nil || string(v) != fmt.Sprint(j+1) {
				t.Errorf("after checkpoint %d and a power cut key %d is %q, %v, %v", i, j+1, v, ok, err)
			}
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	if c, err := s.Checkpoint(); err != nil || !c.Skipped {
		t.Errorf("nothing was written, and a checkpoint did %+v, %v", c, err)
	}
	s.swap(op)
	closed(t, s, fs)
}
