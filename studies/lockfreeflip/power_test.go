package lockfreeflip

import (
	"bytes"
	"errors"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/artrie"
	"github.com/assaylab/assay/artrie/fsys"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, p *power, name string) fsys.File {
	t.Helper()
	f, err := p.Create(name)
	must(t, err)
	return f
}

func put(t *testing.T, f fsys.File, off int64, s string) {
	t.Helper()
	_, err := f.WriteAt([]byte(s), off)
	must(t, err)
}

// TestPowerTakesBytes is P1: what no sync covers is gone, what it overwrote is back.
func TestPowerTakesBytes(t *testing.T) {
	dir := t.TempDir()
	p := newPower()
	path := filepath.Join(dir, "a")
	f := create(t, p, path)
	put(t, f, 0, "0123456789")
	must(t, f.Sync(), p.SyncDir(dir))
	put(t, f, 2, "xx")
	put(t, f, 3, "yy")        // over what is not durable
	put(t, f, 8, "zzzz")      // over the end
	must(t, f.Truncate(5))    // durable bytes go
	put(t, f, 4, "longer...") // and others come
	p.fail()
	if _, err := f.WriteAt([]byte("late"), 0); !errors.Is(err, errPower) {
		t.Errorf("a write after the failure: %v", err)
	}
	if err := f.Sync(); !errors.Is(err, errPower) {
		t.Errorf("a sync after the failure: %v", err)
	}
	must(t, f.Close(), p.settle())
	if b, err := os.ReadFile(path); string(b) != "0123456789" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// TestPowerTakesNames is P2: a name without a sync of its folder is gone, a
// removal is kept.
func TestPowerTakesNames(t *testing.T) {
	dir := t.TempDir()
	p := newPower()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"kept", "gone", "moved"} {
		f := create(t, p, in(name))
		put(t, f, 0, name)
		must(t, f.Sync(), f.Close())
	}
	must(t, p.SyncDir(dir))
	f := create(t, p, in("new"))
	put(t, f, 0, "durable bytes")
	must(t, f.Sync(), f.Close())
	must(t, p.Rename(in("moved"), in("elsewhere")), p.Rename(in("elsewhere"), in("far")), p.Remove(in("gone")))
	p.fail()
	must(t, p.settle())
	names, err := fsys.OS().List(dir)
	if !slices.Equal(names, []string{"kept", "moved"}) || err != nil {
		t.Errorf("%v, %v", names, err)
	}
	if b, _ := os.ReadFile(in("moved")); string(b) != "moved" {
		t.Errorf("%q", b)
	}
}

// TestPowerAgainstAModel writes, syncs and truncates at random and compares what
// settles with the contents at the last sync.
func TestPowerAgainstAModel(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 1))
		path := filepath.Join(t.TempDir(), "f")
		p := newPower()
		f := create(t, p, path)
		must(t, p.SyncDir(filepath.Dir(path)))
		var durable []byte
		for range rng.IntN(30) {
			switch rng.IntN(5) {
			case 0:
				must(t, f.Sync())
				b, err := os.ReadFile(path)
				must(t, err)
				durable = b
			case 1:
				must(t, f.Truncate(rng.Int64N(64)))
			default:
				put(t, f, rng.Int64N(48), string(bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, 1+rng.IntN(20))))
			}
		}
		p.fail()
		must(t, f.Close(), p.settle())
		if b, err := os.ReadFile(path); !bytes.Equal(b, durable) || err != nil {
			t.Fatalf("seed %d: %q, %v; the last sync covered %q", seed, b, err, durable)
		}
	}
}

// TestWatermark: it follows the syncs, not the writes, and the first sync of a
// segment is no commit's.
func TestWatermark(t *testing.T) {
	dir := t.TempDir()
	p := newPower()
	in := func(name string) string { return filepath.Join(dir, name) }
	f := create(t, p, in("segment.tmp"))
	put(t, f, 0, "zeros")
	must(t, f.Sync(), p.Rename(in("segment.tmp"), in("log-00000001")))
	p.log.begin()
	put(t, f, 0, "start")
	must(t, f.Sync())
	if m := p.log.mark.Load(); m != 1 {
		t.Errorf("after the first record's sync the watermark is %d", m)
	}
	put(t, f, 5, "one")
	put(t, f, 8, "two")
	if m := p.log.mark.Load(); m != 1 {
		t.Errorf("without a sync the watermark is %d", m)
	}
	g := create(t, p, in("nodes-1"))
	put(t, g, 0, "not the log")
	must(t, g.Sync())
	if m := p.log.mark.Load(); m != 1 {
		t.Errorf("after another file's sync the watermark is %d", m)
	}
	must(t, f.Sync())
	if m := p.log.mark.Load(); m != 3 {
		t.Errorf("after the sync the watermark is %d", m)
	}
	if syncs, turns := p.log.seen(); len(syncs) != 1 || turns != 1 {
		t.Errorf("%d syncs and %d of new segments", len(syncs), turns)
	}
	must(t, f.Close(), g.Close())
}

// TestTheStartIsTheSameBytes: two arms make the same files, a copy has their
// digest, and a change of the original is noticed.
func TestTheStartIsTheSameBytes(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	first, err := layDown(a, filepath.Join(a, "trial"), 3000, 200)
	must(t, err)
	second, err := layDown(b, filepath.Join(b, "trial"), 3000, 200)
	must(t, err)
	if first.number() != second.number() || first.number() == 0 || first.Set != second.Set {
		t.Errorf("two arms begin with %+v and %+v", first, second)
	}
	again, err := layDown(a, filepath.Join(a, "again"), 3000, 200)
	must(t, err)
	if *again != *first {
		t.Errorf("the second trial begins with %+v, the first with %+v", again, first)
	}
	s, err := artrie.Open(filepath.Join(a, "again"), nil)
	must(t, err)
	want := map[string]string{}
	first.each(func(key string, cold int) {
		want[key] = ""
		if cold >= 0 {
			want[key] = string(coldValue(cold))
		}
	})
	n := 0
	for k, v := range s.All() {
		if w, ok := want[k]; !ok || w != string(v) {
			t.Fatalf("%q holds %x, %v", k, v, ok)
		}
		n++
	}
	if n != len(want) || n != first.Set.Entries || s.Err() != nil {
		t.Errorf("%d keys of %d, %v", n, len(want), s.Err())
	}
	must(t, s.Close())

	image := filepath.Join(a, "start-3000-200", "store")
	names, err := fsys.OS().List(image)
	must(t, err)
	at := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "nodes-") })
	f, err := os.OpenFile(filepath.Join(image, names[at]), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{1, 2, 3}, 500)
	must(t, err, f.Close())
	if _, err := layDown(a, filepath.Join(a, "third"), 3000, 200); err == nil {
		t.Error("a changed original was copied")
	}
	if _, err := os.Stat(filepath.Join(a, "start-3000-200.tmp")); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}

func TestFingerprint(t *testing.T) {
	make := func(entries ...[2]string) (f fingerprint) {
		for _, e := range entries {
			f.add(e[0], []byte(e[1]))
		}
		return f
	}
	a, b, c := [2]string{"a", "1"}, [2]string{"b", "2"}, [2]string{"a1", ""}
	if make(a, b) != make(b, a) {
		t.Error("it depends on the order")
	}
	seen := map[fingerprint]string{}
	for _, set := range [][][2]string{{}, {a}, {b}, {c}, {a, b}, {a, c}, {a, a}, {b, b}, {{"a", "2"}}, {{"a", "2"}, {"b", "1"}}} {
		f := make(set...)
		if old, ok := seen[f]; ok {
			t.Errorf("%v has the fingerprint of %s", set, old)
		}
		seen[f] = fmt.Sprint(set)
	}
}

// TestReferenceKeys pins the two formats.
func TestReferenceKeys(t *testing.T) {
	if k := disjointKey(0); k != fmt.Sprintf("ngram-%016x-語0", splitMix64(0x9E3779B97F4A7C15)) {
		t.Error(k)
	}
	if k := hotKey(7); k != fmt.Sprintf("hot-prefix-fixed/%08x", splitMix64(7^0x9E3779B97F4A7C15)) {
		t.Error(k)
	}
	// The first numbers of SplitMix64 from seed 0, as published with it.
	x := uint64(0)
	for _, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := splitMix64(x); got != want {
			t.Errorf("%016x, want %016x", got, want)
		}
		x += 0x9E3779B97F4A7C15
	}
	seen := map[string]bool{}
	for _, pattern := range []string{patternDisjoint, patternHot} {
		for _, keys := range roundKeys(pattern, writers, 500) {
			for _, k := range keys {
				if seen[k] {
					t.Fatalf("%q twice", k)
				}
				seen[k] = true
			}
		}
	}
}
