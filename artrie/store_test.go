package artrie

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"pgregory.net/rapid"
)

// arrangement is a way to open a store; the format on disk does not depend on it.
type arrangement struct {
	mode       Mode
	committer  Committer
	durability Durability
	budget     int64
}

func (a arrangement) String() string {
	return fmt.Sprintf("%v/%v/%v/%d", a.mode, a.committer, a.durability, a.budget)
}

func (a arrangement) options(fs fsys.FS) *Options {
	return &Options{
		Mode: a.mode, Committer: a.committer, Durability: a.durability, MemoryBudget: a.budget,
		SegmentBytes: minSegment, CheckpointBytes: -1, FS: fs,
	}
}

func arrangements() (out []arrangement) {
	for _, d := range []Durability{Group, Immediate, Periodic, None} {
		for _, b := range []int64{0, 4 << 10} {
			out = append(out, arrangement{Overlay, Batch, d, b}, arrangement{Overlay, CAS, d, b}, arrangement{Owned, Batch, d, b})
		}
	}
	return out
}

// open fails the test instead of returning an error.
func open(t testing.TB, fs fsys.FS, a arrangement) *Trie {
	t.Helper()
	s, err := Open("db", a.options(fs))
	if err != nil {
		t.Fatalf("open as %v: %v", a, err)
	}
	return s
}

// closed closes the store and checks the folder, as every test ends.
func closed(t testing.TB, s *Trie, fs fsys.FS) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Errorf("check before close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := Check("db", fs); err != nil {
		t.Errorf("check of the folder: %v", err)
	}
}

func contents(t interface{ Fatalf(string, ...any) }, s *Trie, prefix string) map[string][]byte {
	m, last, first := map[string][]byte{}, "", true
	for k, v := range s.Prefix(prefix) {
		if !first && k <= last {
			t.Fatalf("%q after %q", k, last)
		}
		first, last = false, k
		m[k] = v
	}
	if err := s.Err(); err != nil {
		t.Fatalf("iteration: %v", err)
	}
	return m
}

func equal(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

func keyGen() *rapid.Generator[string] {
	letter := rapid.SampledFrom([]string{"a", "b", "\x00", "\xff", "語"})
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(letter, 0, 5), func(s []string) string { return strings.Join(s, "") }),
		rapid.Map(rapid.IntRange(0, 300), func(i int) string { return fmt.Sprintf("ngram-%04x-語", i*7919%4096) }),
	)
}

func valueGen() *rapid.Generator[[]byte] {
	return rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 1, 12), rapid.SliceOfN(rapid.Byte(), 190, 500))
}

// TestModel compares a store with a map through random operations, checkpoints,
// evictions, snapshots and reopenings in other arrangements.
func TestModel(t *testing.T) {
	all := arrangements()
	rapid.Check(t, func(t *rapid.T) {
		fs := crashfs.New()
		arr := rapid.SampledFrom(all).Draw(t, "arrangement")
		s, err := Open("db", arr.options(fs))
		if err != nil {
			t.Fatal(err)
		}
		model := map[string][]byte{}
		type snap struct {
			s    *Snapshot
			want map[string][]byte
		}
		var snaps []snap
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := keyGen().Draw(t, "k"), valueGen().Draw(t, "v")
				if err := s.Put(k, v); err != nil {
					t.Fatal(err)
				}
				model[k] = v
			},
			"insert many": func(t *rapid.T) {
				for _, k := range rapid.SliceOfN(keyGen(), 1, 30).Draw(t, "keys") {
					_, had := model[k]
					added, err := s.Insert(k)
					if err != nil || added == had {
						t.Fatalf("insert %q: %v, had %v, %v", k, added, had, err)
					}
					if !had {
						model[k] = nil
					}
				}
			},
			"delete": func(t *rapid.T) {
				k := keyGen().Draw(t, "k")
				if len(model) > 0 && rapid.Bool().Draw(t, "known") {
					k = rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "of")
				}
				_, had := model[k]
				if removed, err := s.Delete(k); err != nil || removed != had {
					t.Fatalf("delete %q: %v, had %v, %v", k, removed, had, err)
				}
				delete(model, k)
			},
			"get": func(t *rapid.T) {
				k := keyGen().Draw(t, "k")
				want, had := model[k]
				if v, ok, err := s.Get(k); err != nil || ok != had || !bytes.Equal(v, want) {
					t.Fatalf("get %q: %q %v %v, want %q %v", k, v, ok, err, want, had)
				}
			},
			"prefix": func(t *rapid.T) {
				p, want := keyGen().Draw(t, "p"), map[string][]byte{}
				for k, v := range model {
					if strings.HasPrefix(k, p) {
						want[k] = v
					}
				}
				if got := contents(t, s, p); !equal(got, want) {
					t.Fatalf("prefix %q: %v, want %v", p, got, want)
				}
			},
			"checkpoint": func(t *rapid.T) {
				if _, err := s.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			},
			"evict": func(t *rapid.T) {
				if _, err := s.Evict(rapid.Int64Range(0, 4000).Draw(t, "budget")); err != nil {
					t.Fatal(err)
				}
			},
			"snapshot": func(t *rapid.T) {
				if len(snaps) < 3 {
					snaps = append(snaps, snap{s.Snapshot(), maps.Clone(model)})
				}
			},
			"reopen": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if rep, err := Check("db", fs); err != nil || rep.Keys != int64(len(model)) {
					t.Fatalf("check: %+v, want %d keys, %v", rep, len(model), err)
				}
				arr = rapid.SampledFrom(all).Draw(t, "arrangement")
				if s, err = Open("db", arr.options(fs)); err != nil {
					t.Fatal(err)
				}
				snaps = nil
			},
			"": func(t *rapid.T) {
				if err := s.Check(); err != nil || s.Len() != int64(len(model)) {
					t.Fatalf("check: %d keys, want %d, %v", s.Len(), len(model), err)
				}
				for _, p := range snaps {
					got := map[string][]byte{}
					for k, v := range p.s.All() {
						got[k] = v
					}
					if !equal(got, p.want) || p.s.Len() != int64(len(p.want)) {
						t.Fatal("a snapshot changed")
					}
					for k := range model {
						want, had := p.want[k]
						if v, ok, err := p.s.Get(k); err != nil || ok != had || !bytes.Equal(v, want) {
							t.Fatalf("a snapshot gives %q for %q: %v %v, want %q %v", v, k, ok, err, want, had)
						}
					}
				}
			},
		})
		if got := contents(t, s, ""); !equal(got, model) {
			t.Fatalf("store and model differ: %v, want %v", got, model)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSecondOpenerIsToldSo(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v, want ErrLocked", err)
	}
	if _, err := Check(dir, nil); !errors.Is(err, ErrLocked) {
		t.Fatalf("check of an open folder: %v, want ErrLocked", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Fatalf("second close: %v, want ErrClosed", err)
	}
	if err := s.Put("k", nil); !errors.Is(err, ErrClosed) {
		t.Fatalf("put after close: %v, want ErrClosed", err)
	}
	if _, _, err := s.Get("k"); !errors.Is(err, ErrClosed) {
		t.Fatalf("get after close: %v, want ErrClosed", err)
	}
}

func TestOptionsAreRefused(t *testing.T) {
	for _, o := range []Options{
		{Mode: 7}, {Durability: -1}, {Mode: Owned, Committer: CAS}, {MemoryBudget: -1}, {SegmentBytes: 100}, {SegmentBytes: 5001},
		{ImageInMemory: true},
	} {
		if _, err := Open(t.TempDir(), &o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestTooLarge(t *testing.T) {
	fs := crashfs.New()
	s := open(t, fs, arrangement{})
	if err := s.Put("k", make([]byte, MaxRecord)); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("put: %v, want ErrTooLarge", err)
	}
	// A record longer than a segment gets a segment of its own.
	big := bytes.Repeat([]byte("x"), 5*minSegment)
	for _, k := range []string{"a", "b"} {
		if err := s.Put(k, big); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Evict(0); err != nil {
		t.Fatal(err)
	}
	closed(t, s, fs)
	s = open(t, fs, arrangement{})
	if v, ok, err := s.Get("b"); !ok || err != nil || !bytes.Equal(v, big) {
		t.Fatalf("read %d bytes, %v, %v", len(v), ok, err)
	}
	closed(t, s, fs)
}
