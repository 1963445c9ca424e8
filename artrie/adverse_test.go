package artrie

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/artrie/internal/radix"
)

// TestSnapshotReadsAreNotCounted reads an old snapshot whose nodes have left memory, after
// everything was written anew. What such reads fetch is not in the tree: if it counted, the
// budget would shrink until nothing fits any more.
func TestSnapshotReadsAreNotCounted(t *testing.T) {
	const keys = 1500
	for _, a := range []arrangement{{durability: None}, {committer: CAS, durability: None}, {mode: Owned, durability: None}} {
		a.budget = 24 << 10
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			opt := a.options(fs)
			opt.SegmentBytes = 1 << 20
			s, err := Open("db", opt)
			if err != nil {
				t.Fatal(err)
			}
			write := func(val string) {
				for i := range keys {
					if err := s.Put(ngram(i), []byte(val)); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := s.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
			write("old")
			if _, err := s.Evict(0); err != nil {
				t.Fatal(err)
			}
			old := s.Snapshot()
			defer old.Close()
			write("new")
			for i := range keys {
				if v, ok, err := old.Get(ngram(i)); !ok || err != nil || string(v) != "old" {
					t.Fatalf("key %d of the snapshot: %q, %v, %v", i, v, ok, err)
				}
			}
			weight := radix.Weigh(loadRef(&s.version.Load().root))
			if counted := s.resident.Load(); counted != weight {
				t.Errorf("counts %d bytes, the tree weighs %d", counted, weight)
			}
			closed(t, s, fs)
		})
	}
}

// TestDamageBesideADelete deletes a key whose node merges with a neighbour that cannot be
// read. That is an error of this delete, before it is logged: logged, it would poison the
// store, and stop every later opening at its record.
func TestDamageBesideADelete(t *testing.T) {
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned}, {budget: 8 << 10}} {
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			s := open(t, fs, a)
			put := func(k string) error { return s.Put(k, []byte(strings.Repeat("v", 60))) }
			for i := range 20 {
				if err := put("a/y" + string(rune('A'+i))); err != nil {
					t.Fatal(err)
				}
			}
			for _, k := range []string{"a/x", "b"} {
				if err := put(k); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			damageBlocksBut(t, fs, "a/x", "b")
			s = open(t, fs, a)
			if _, err := s.Delete("a/x"); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrPoisoned) {
				t.Fatalf("delete beside damage: %v, want ErrDamaged and no poison", err)
			}
			if err := put("b"); err != nil {
				t.Fatalf("write elsewhere: %v", err)
			}
			if _, ok, err := s.Get("a/x"); !ok || err != nil {
				t.Fatalf("the key that could not be deleted: %v, %v", ok, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, fs, a)
			if _, ok, err := s.Get("b"); !ok || err != nil {
				t.Fatalf("after reopening: %v, %v", ok, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// damageBlocksBut flips a bit in every block of the node file that is not on the way to
// one of the keys.
func damageBlocksBut(t *testing.T, fs *crashfs.FS, keys ...string) {
	t.Helper()
	f, err := readFolder("db", fs)
	if err != nil {
		t.Fatal(err)
	}
	defer f.lock.Close()
	kept := map[int64]bool{}
	src := &radix.Source{}
	src.Fault = func(slot *radix.Ref, stub radix.Ref, _ string) (radix.Ref, error) {
		w, _, _ := radix.Stub(stub)
		kept[radix.Offset(w)] = true
		return readStub(stub)
	}
	root, _ := f.root()
	for _, k := range keys {
		if _, ok, err := radix.Get(&root, k, src); !ok || err != nil {
			t.Fatalf("%q: %v, %v", k, ok, err)
		}
	}
	damaged := 0
	name := fmt.Sprintf("db/nodes-%016x", f.nodes.Gen)
	b := fs.Contents(name)
	src.Read = func(stub radix.Ref) (radix.Ref, error) {
		w, _, _ := radix.Stub(stub)
		if off := radix.Offset(w); !kept[off] {
			b[off] ^= 1
			damaged++
		}
		return readStub(stub)
	}
	if err := radix.Scan(&root, "", src, func(_, _ []byte) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if damaged == 0 {
		t.Fatal("there is no block beside the path")
	}
	fs.Replace(name, b)
}
