package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// TestRecentVersionsAreTheNewest compares what is read by way of memory with what is in
// the database, at every timestamp and at every moment of applying an entry.
func TestRecentVersionsAreTheNewest(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s, other := open(t), open(t)
	key := func(i int) []byte { return fmt.Appendf(nil, "k%d", i) }
	hits := 0
	compare := func(when string, visible uint64) {
		t.Helper()
		for i := range 8 {
			for _, at := range []uint64{visible, visible - min(visible, r.Uint64N(6)), Latest} {
				if at == Latest && when != "visible" {
					continue // who reads the latest has waited for that
				}
				prefix := documentPrefix(1, key(i))
				want, stamp, err := s.read(bytes.Clone(prefix), at)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, ok := s.recent.get(prefix, at); ok {
					hits++
				}
				got, written, err := s.Get(1, key(i), at)
				if err != nil || !bytes.Equal(got, want) || want != nil && written != stamp {
					t.Fatalf("%s, at %d of %d: %v of %d, %v, want %v of %d (seed %d)", when, at, visible, got, written, err, want, stamp, seed)
				}
			}
			want, _, _ := s.db.Get(append([]byte{sessions}, key(i)...))
			if got, _, err := s.Session(key(i)); when == "visible" && (err != nil || len(want) > 0 && !bytes.Equal(got, want[stampSize:]) || len(want) == 0 && got != nil) {
				t.Fatalf("session %d is %x, %v, want %x (seed %d)", i, got, err, want, seed)
			}
		}
	}
	for stamp := uint64(1); stamp < 600; stamp++ {
		e := &Effects{}
		for range 1 + r.IntN(3) {
			c := Change{Collection: 1, Key: key(r.IntN(8)), Kind: Updated}
			if r.IntN(4) > 0 {
				c.Document = doc(r.Int())
			}
			e.Changes = append(e.Changes, c)
		}
		switch r.IntN(40) {
		case 0:
			e = &Effects{Drop: []uint32{1}}
		case 1:
			apply(t, other, stamp, e)
			move(t, other, s, stamp)
			compare("visible", stamp)
			continue
		case 2, 3, 4, 5:
			if _, err := s.Sweep(stamp - min(stamp, 6)); err != nil {
				t.Fatal(err)
			}
		default:
			rec := SessionRecord{ID: key(r.IntN(8))}
			if r.IntN(4) > 0 {
				rec.Record = fmt.Appendf(nil, "record %d", stamp)
			}
			e.Sessions = append(e.Sessions, rec)
		}
		b := s.db.NewBatch()
		if err := s.Apply(b, stamp, e); err != nil {
			t.Fatal(err)
		}
		compare("applied", stamp-1)
		if err := b.Commit(pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if len(e.Drop) == 0 { // which takes the versions at once; Dropped says so
			compare("committed", stamp-1)
		}
		s.Visible(stamp)
		compare("visible", stamp)
	}
	if hits < 1000 {
		t.Errorf("only %d versions were in memory", hits)
	}
}

// TestRecentVersionsAreBounded whatever is written.
func TestRecentVersionsAreBounded(t *testing.T) {
	s := open(t)
	for i := range uint64(200) {
		e := &Effects{Changes: []Change{{Collection: 1, Key: fmt.Append(nil, i), Document: make([]byte, 100_000)}}}
		e.Changes[0].Document[0] = 1
		b := s.db.NewBatch()
		if err := s.Apply(b, i+1, e); err != nil {
			t.Fatal(err)
		}
		_ = b.Close()
		s.Visible(i + 1)
		sum := 0
		for prefix, n := range s.recent.docs {
			sum += n.weight(len(prefix))
		}
		if sum != s.recent.bytes || sum > recentBytes {
			t.Fatalf("%d bytes are kept and %d counted, of at most %d", sum, s.recent.bytes, recentBytes)
		}
	}
	if len(s.recent.docs) == 0 {
		t.Error("nothing is kept")
	}
}
