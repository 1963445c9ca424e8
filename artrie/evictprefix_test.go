package artrie

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
)

// TestEvictPrefix evicts subtrees by name: what is under the prefix and on disk
// leaves, the rest stays, and everything is still found.
func TestEvictPrefix(t *testing.T) {
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned}, {budget: 1 << 40}, {mode: Owned, budget: 1 << 40}} {
		a.durability = None
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			opt := a.options(fs)
			opt.SegmentBytes = 1 << 20
			s, err := Open("db", opt)
			if err != nil {
				t.Fatal(err)
			}
			key := func(part string, i int) string { return fmt.Sprintf("%s/%05d", part, i) }
			parts := []string{"cold-00", "cold-01", "cold-1", "hot"}
			put := func(part string, from, to int) {
				for i := from; i < to; i++ {
					if err := s.Put(key(part, i), []byte(part)); err != nil {
						t.Fatal(err)
					}
				}
			}
			evict := func(prefix string) int {
				n, err := s.EvictPrefix(prefix)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			for _, p := range parts {
				put(p, 0, 300)
			}
			if n := evict("cold"); n != 0 {
				t.Errorf("%d subtrees were evicted, none is on disk", n)
			}
			if _, err := s.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			put("cold-01", 300, 310) // not on disk
			for _, none := range []string{"cold-2", "zoo", "cold-00/00299/x", "hots"} {
				if n := evict(none); n != 0 {
					t.Errorf("%d subtrees were evicted under %q, where nothing is", n, none)
				}
			}
			before := s.Stats()
			if n := evict("cold-0"); n == 0 {
				t.Error("nothing was evicted")
			}
			st := s.Stats()
			if st.Resident >= before.Resident-300*20 {
				t.Errorf("%d bytes are left of %d", st.Resident, before.Resident)
			}
			found := func(part string, n int) {
				t.Helper()
				for i := range n {
					if v, ok, err := s.Get(key(part, i)); string(v) != part || !ok || err != nil {
						t.Fatalf("%s: %q, %v, %v", key(part, i), v, ok, err)
					}
				}
			}
			found("hot", 300)
			found("cold-1", 300)
			if got := s.Stats().Faults; got != st.Faults {
				t.Errorf("%d subtrees outside of the prefix had left", got-st.Faults)
			}
			found("cold-00", 300)
			found("cold-01", 310)
			if got := s.Stats().Faults; got == st.Faults {
				t.Error("nothing came back")
			}
			if _, err := s.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			if n := evict(""); n == 0 {
				t.Error("with the empty prefix nothing was evicted")
			}
			n := 0
			for k, v := range s.All() {
				if !strings.HasPrefix(k, string(v)+"/") {
					t.Fatalf("%q holds %q", k, v)
				}
				n++
			}
			if n != 4*300+10 || s.Err() != nil {
				t.Errorf("%d keys, %v", n, s.Err())
			}
			closed(t, s, fs)
			if _, err := s.EvictPrefix(""); err != ErrClosed {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}
