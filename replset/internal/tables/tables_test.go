package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func open(t *testing.T, fs vfs.FS) *pebble.DB {
	t.Helper()
	db, err := pebble.Open("db", &pebble.Options{FS: fs, Logger: quiet{}, DisableWAL: true})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }

func contents(t *testing.T, r pebble.Reader) map[string]int {
	t.Helper()
	it, err := r.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	out := map[string]int{}
	for it.First(); it.Valid(); it.Next() {
		out[string(it.Key())] = len(it.Value())
	}
	return out
}

func key(kind byte, i int) string { return fmt.Sprintf("%c%05d", kind, i) }

// TestARangeIsReplaced compares with a model, over many tables: what was in the range is gone,
// also between the keys that come, and what was not is there; who reads from before sees what was before.
func TestARangeIsReplaced(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewMem()
	db := open(t, fs)
	defer db.Close()
	want := map[string]int{}
	for round := range 4 {
		for i := range 300 {
			k, n := key("abcd"[r.IntN(4)], r.IntN(1000)), 1+r.IntN(2000)
			if err := db.Set([]byte(k), make([]byte, n), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			want[k] = n
			if i == 150 && round%2 == 0 {
				if err := db.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := db.NewSnapshot()
		had := maps.Clone(want)
		maps.DeleteFunc(want, func(k string, _ int) bool { return k[0] == 'b' || k[0] == 'd' })
		var paths []string
		for _, kind := range []byte{'d', 'b'} { // in any order
			w := New(db, fs, fmt.Sprintf("in-%c", kind), []byte{kind}, []byte{kind + 1})
			for i := range 1000 {
				if r.IntN(8) > 0 || round == 3 { // nothing at all comes in the last round
					continue
				}
				n := r.IntN(400 << 10)
				if err := w.Set([]byte(key(kind, i)), make([]byte, n)); err != nil {
					t.Fatal(err)
				}
				want[key(kind, i)] = n
			}
			mine, err := w.Close()
			if err != nil {
				t.Fatal(err)
			}
			if round < 3 && len(mine) < 2 {
				t.Fatalf("one table shows nothing")
			}
			paths = append(paths, mine...)
		}
		if err := db.Ingest(context.Background(), paths); err != nil {
			t.Fatal(err)
		}
		if got := contents(t, db); !maps.Equal(got, want) {
			t.Fatalf("round %d: %d keys, want %d", round, len(got), len(want))
		}
		if got := contents(t, before); !maps.Equal(got, had) {
			t.Fatalf("round %d: from before there are %d keys, want %d", round, len(got), len(had))
		}
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Compact(t.Context(), []byte("a"), []byte("e"), false); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, db); !maps.Equal(got, want) {
		t.Fatalf("merged: %d keys, want %d", len(got), len(want))
	}
}

func TestWhatIsNotInOrderOrRangeIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs)
	defer db.Close()
	w := New(db, fs, "in", []byte("b"), []byte("d"))
	for _, k := range []string{"a", "d", "dx", ""} {
		if w.Set([]byte(k), nil) == nil {
			t.Errorf("%q was taken", k)
		}
	}
	if err := w.Set([]byte("c"), nil); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"c", "b"} {
		if w.Set([]byte(k), nil) == nil {
			t.Errorf("%q after c was taken", k)
		}
	}
	w.Abandon()
	w.Abandon()
}

// TestNothingIsReplacedWithoutRoom fails each write in turn; what Close and Ingest say is true (T2, T3).
func TestNothingIsReplacedWithoutRoom(t *testing.T) {
	full := errors.New("no space left on device")
	for fail := 0; ; fail++ {
		fs := vfs.NewCrashableMem()
		db := open(t, fs)
		if err := errors.Join(db.Set([]byte("b1"), []byte("old"), pebble.NoSync), db.Flush()); err != nil {
			t.Fatal(err)
		}
		n := 0
		w := New(db, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			if n++; n == fail+1 {
				return full
			}
			return nil
		})), "in", []byte("b"), []byte("c"))
		err := w.Set([]byte("b2"), bytes.Repeat([]byte("new"), 10))
		var paths []string
		if err == nil {
			paths, err = w.Close()
		} else {
			w.Abandon()
		}
		if (err != nil) != (n > fail) {
			t.Fatalf("operation %d of %d failed, and it ended with %v", fail, n, err)
		}
		if err == nil {
			if err := db.Ingest(context.Background(), paths); err != nil {
				t.Fatal(err)
			}
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
			left := open(t, fs.CrashClone(vfs.CrashCloneCfg{}))
			if got := contents(t, left); len(got) != 1 || got["b2"] != 30 {
				t.Errorf("after a crash there is %v", got)
			}
			left.Close()
			db.Close()
			if fail < 3 {
				t.Errorf("only %d operations", fail)
			}
			return
		}
		db.Close()
	}
}
