package store

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// versions are the keys of documents and of indexes that are in the database.
func versions(t *testing.T, s *Store) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, kind := range []byte{documents, indexes} {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
		if err != nil {
			t.Fatal(err)
		}
		for it.First(); it.Valid(); it.Next() {
			found[string(it.Key())] = it.Value()[0] == live
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestNothingIsLeftThatNobodyReads writes and removes at random, sweeps in between, and begins again
// now and then. A last sweep leaves one version of each document that is there, and of its key, and
// none of others, but for those of keys that a restart has forgotten.
func TestNothingIsLeftThatNobodyReads(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	s := open(t)
	is := map[int]int{}
	stamp, began := uint64(0), uint64(0)
	for range 2000 {
		stamp++
		k := r.IntN(8)
		was, ok := is[k]
		if !ok {
			was = -1
		}
		now := r.IntN(20) - 5
		if now < 0 {
			now = -1
			delete(is, k)
		} else {
			is[k] = now
		}
		apply(t, s, stamp, &Effects{Changes: []Change{change(k, was, now)}})
		switch r.IntN(60) {
		case 0:
			s, began = reopen(t, s, stamp), stamp
		case 1, 2, 3, 4, 5:
			if _, err := s.Sweep(stamp - min(stamp, uint64(r.IntN(30)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What was noted before a restart goes when the document is written again.
	for k := range 8 {
		was, ok := is[k]
		if !ok {
			was = -1
		}
		for _, now := range []int{99, 98} {
			stamp++
			apply(t, s, stamp, &Effects{Changes: []Change{change(k, was, now)}})
			was = now
		}
		if is[k] = 98; k%2 == 0 {
			stamp++
			apply(t, s, stamp, &Effects{Changes: []Change{change(k, 98, -1)}})
			delete(is, k)
		}
	}
	if _, err := s.Sweep(stamp); err != nil {
		t.Fatal(err)
	}
	docs, keys := 0, 0
	newest := map[string]uint64{}
	found := versions(t, s)
	for key := range found {
		prefix, written := splitVersion([]byte(key))
		newest[string(prefix)] = max(newest[string(prefix)], written)
	}
	for key, alive := range found {
		prefix, written := splitVersion([]byte(key))
		last := written == newest[string(prefix)]
		switch {
		case key[0] == documents:
			docs++
		case alive && last:
			keys++
		case written > began:
			t.Errorf("a version of a key of an index is left that nobody can read: %x", key)
		}
	}
	if docs != len(is) {
		t.Errorf("%d versions of %d documents", docs, len(is))
	}
	if keys != len(is) {
		t.Errorf("%d keys of indexes, want %d", keys, len(is))
	}
}

// TestASweepCostsWhatItRemoves writes few documents many times and keeps many versions of each, as a
// busy set does. A pass that looked at the versions that stay, or again at those that it has
// removed, would take a hundred times as many steps.
func TestASweepCostsWhatItRemoves(t *testing.T) {
	const docs, kept, every = 4, 4000, 100
	s := open(t)
	removed, steps := 0, 0
	for stamp := uint64(1); stamp <= 12_000; stamp++ {
		apply(t, s, stamp, &Effects{Changes: []Change{{Collection: 1, Key: key(int(stamp % docs)), Document: doc(int(stamp))}}})
		if stamp%every != 0 || stamp <= kept {
			continue
		}
		todo := s.sweepable(stamp - kept)
		stats, err := s.sweep(&todo)
		if err != nil {
			t.Fatal(err)
		}
		removed += len(todo.noted)
		steps += stats.ForwardStepCount[pebble.InternalIterCall] + stats.ForwardSeekCount[pebble.InternalIterCall]
	}
	if removed < 7_000 {
		t.Fatalf("only %d versions removed", removed)
	}
	if steps > 3*removed {
		t.Errorf("%d steps to remove %d versions", steps, removed)
	}
	if left := len(versions(t, s)); left > kept+docs {
		t.Errorf("%d versions are left, %d may be read", left, kept)
	}
}

// TestASweepThatFailsIsMadeAgain lets the disk fail once: nothing of what was noted is lost.
func TestASweepThatFailsIsMadeAgain(t *testing.T) {
	broken := false
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken && op.Kind == errorfs.OpFileReadAt {
			return errorfs.ErrInjected
		}
		return nil
	}))
	s := openIn(t, fs)
	for stamp := uint64(1); stamp <= 3; stamp++ {
		apply(t, s, stamp, &Effects{Changes: []Change{{Collection: 1, Key: key(0), Document: doc(int(stamp))}}})
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	broken = true
	if n, err := s.Sweep(3); n != 0 || !errors.Is(err, errorfs.ErrInjected) {
		t.Fatalf("on a disk that cannot be read: %d, %v", n, err)
	}
	broken = false
	if left := len(versions(t, s)); left != 3 {
		t.Errorf("%d versions are left", left)
	}
	if n, err := s.Sweep(3); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if left := len(versions(t, s)); left != 1 {
		t.Errorf("%d versions are left", left)
	}
}
