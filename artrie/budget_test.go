package artrie

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/artrie/internal/radix"
)

// TestBudgetHolds works on ten times as many keys as fit, with writers and readers.
func TestBudgetHolds(t *testing.T) {
	keys, budget := 5_000, int64(28<<10)
	if long() {
		keys, budget = 100_000, 550<<10
	}
	for _, a := range []arrangement{{durability: None}, {committer: CAS, durability: None}, {mode: Owned, durability: None}} {
		a.budget = budget
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			opt := a.options(fs)
			opt.SegmentBytes = 1 << 20
			s, err := Open("db", opt)
			if err != nil {
				t.Fatal(err)
			}
			var peak, done atomic.Int64
			var busy sync.WaitGroup
			for w := range 4 {
				busy.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(w), 3))
					for i := w; i < keys; i += 4 {
						if _, err := s.Insert(ngram(i)); err != nil {
							t.Errorf("insert: %v", err)
							return
						}
						done.Add(1)
						j := rng.IntN(i + 1)
						if j = j - j%4 + w; j > i {
							continue
						}
						if _, ok, err := s.Get(ngram(j)); !ok || err != nil {
							t.Errorf("key %d: %v, %v", j, ok, err)
							return
						}
						for r, p := s.resident.Load(), peak.Load(); r > p && !peak.CompareAndSwap(p, r); p = peak.Load() {
						}
					}
				})
			}
			busy.Wait()
			st := s.Stats()
			t.Logf("peak %d bytes of %d, %d faults, %d evicted, %d checkpoints", peak.Load(), budget, st.Faults, st.Evicted, st.Checkpoints)
			// An eighth over, all wait for the evictor; each of four may then be on its way in
			// with a path of about a page.
			if most := budget + budget/8 + 4<<12; peak.Load() > most {
				t.Errorf("%d bytes in memory, the budget is %d, and at most %d may be", peak.Load(), budget, most)
			}
			if st.Faults < 1000 {
				t.Errorf("only %d faults: the budget was not felt", st.Faults)
			}
			weight := radix.Weigh(loadRef(&s.version.Load().root))
			if s.resident.Load() != weight {
				t.Errorf("counts %d bytes, the tree weighs %d", s.resident.Load(), weight)
			}
			n := 0
			for range s.All() {
				n++
			}
			if n != keys || s.Err() != nil {
				t.Errorf("%d keys, %v", n, s.Err())
			}
			closed(t, s, fs)
		})
	}
}

// TestNodeFileShrinks deletes most keys: the file is compacted by live ratio, old snapshots go on
// reading the old generation, and the live count is that of a full walk.
func TestNodeFileShrinks(t *testing.T) {
	fs := crashfs.New()
	opt := arrangement{durability: None}.options(fs)
	opt.SegmentBytes = 1 << 20
	s, err := Open("db", opt)
	if err != nil {
		t.Fatal(err)
	}
	const keys = 60_000
	for i := range keys {
		if _, err := s.Insert(ngram(i)); err != nil {
			t.Fatal(err)
		}
	}
	checkpoint := func() CheckpointStats {
		t.Helper()
		c, err := s.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if !checkpoint().Full {
		t.Error("the first checkpoint is not full")
	}
	big := s.Stats().NodeBytes
	if _, err := s.Evict(0); err != nil {
		t.Fatal(err)
	}
	old := s.Snapshot()
	defer old.Close()
	var last CheckpointStats
	for i := range keys {
		if i%20 == 0 {
			continue
		}
		if _, err := s.Delete(ngram(i)); err != nil {
			t.Fatal(err)
		}
		if i%3000 == 2999 {
			if last = checkpoint(); last.Full {
				if _, err := s.Evict(0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	checkpoint()
	checkpoint()
	st := s.Stats()
	if st.NodeBytes > big/2 {
		t.Errorf("the node file has %d bytes, it had %d with 20 times the keys", st.NodeBytes, big)
	}
	n := 0
	for k := range old.All() {
		if !strings.HasPrefix(k, "ngram-") {
			t.Fatalf("the snapshot shows %q", k)
		}
		n++
	}
	if n != keys || s.Err() != nil {
		t.Errorf("the snapshot has %d keys, had %d (%v)", n, keys, s.Err())
	}
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, name := range names {
		if strings.HasPrefix(name, "nodes-") {
			files++
		}
	}
	if files > 2 {
		t.Errorf("%d node files are left: %v", files, names)
	}
	closed(t, s, fs)
}

// TestCheckpointFollowsTheChange bounds what a checkpoint after few changes writes.
func TestCheckpointFollowsTheChange(t *testing.T) {
	fs := crashfs.New()
	opt := arrangement{durability: None}.options(fs)
	opt.SegmentBytes = 1 << 20
	s, err := Open("db", opt)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50_000 {
		if _, err := s.Insert(ngram(i)); err != nil {
			t.Fatal(err)
		}
	}
	full, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if err := s.Put(ngram(i*100), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	part, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if part.Full || part.Bytes*40 > full.Bytes {
		t.Errorf("50 changes wrote %d bytes, the tree %d", part.Bytes, full.Bytes)
	}
	if again, err := s.Checkpoint(); err != nil || !again.Skipped || again.Bytes != 0 {
		t.Errorf("nothing changed, and the checkpoint did %+v (%v)", again, err)
	}
	closed(t, s, fs)
}

func ExampleTrie_Prefix() {
	s, err := Open("db", &Options{FS: crashfs.New()})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, k := range []string{"ngram-語", "ngram-b", "other", "ngram-é"} {
		if _, err := s.Insert(k); err != nil {
			fmt.Println(err)
		}
	}
	for k := range s.Prefix("ngram-") {
		fmt.Println(k)
	}
	fmt.Println(s.Close())
	// Output:
	// ngram-b
	// ngram-é
	// ngram-語
	// <nil>
}
