package artrie

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
)

// fuzzFolder is a small store that has everything a folder can have: two
// checkpoints in one generation, a log with records behind them, a leaf with a block of its own.
func fuzzFolder(t testing.TB) *crashfs.FS {
	t.Helper()
	fs := crashfs.New()
	s := open(t, fs, arrangement{})
	for i := range 60 {
		if err := s.Put(ngram(i), []byte(strings.Repeat("v", i%7))); err != nil {
			t.Fatal(err)
		}
		if i == 30 || i == 45 {
			if _, err := s.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Put("big", make([]byte, 300)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// FuzzFolder replaces a stretch of one file of a sound folder by any bytes. Whatever it is,
// opening, checking and salvaging end, and what they find is damage or nothing.
func FuzzFolder(f *testing.F) {
	sound := fuzzFolder(f)
	names, err := sound.List("db")
	if err != nil {
		f.Fatal(err)
	}
	for i, name := range names {
		b := sound.Contents("db/" + name)
		f.Add(uint8(i), uint32(0), b[:min(len(b), 128)], uint32(len(b)))
		f.Add(uint8(i), uint32(len(b)/2), []byte{0xff, 0, 1}, uint32(len(b)-9))
	}
	f.Fuzz(func(t *testing.T, file uint8, at uint32, with []byte, length uint32) {
		if len(with) > 8<<10 {
			t.Skip("longer than any file of the folder")
		}
		fs := sound.Image(crashfs.LoseNone, nil)
		name := "db/" + names[int(file)%len(names)]
		b := fs.Contents(name)
		at = min(at, uint32(len(b)))
		b = append(b[:at:at], append(slices.Clone(with), b[min(len(b), int(at)+len(with)):]...)...)
		b = b[:min(len(b), int(length))]
		fs.Replace(name, b)
		if _, err := Check("db", fs); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatalf("check: %v is no damage", err)
		}
		if _, err := Salvage("db", "saved", fs); err != nil {
			t.Fatalf("salvage: %v", err)
		}
		if _, err := readAll(fs); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatalf("read: %v is no damage", err)
		}
	})
}

// FuzzOperations runs a program of operations against a map: two bytes each.
func FuzzOperations(f *testing.F) {
	f.Add(uint8(0), []byte("\x00a\x01b\x05.\x02a\x06.\x00b\x04."))
	f.Add(uint8(7), []byte("\x00a\x00b\x00c\x05.\x06.\x02b\x03c\x06.\x07.\x02a\x04."))
	f.Fuzz(func(t *testing.T, as uint8, program []byte) {
		if len(program) > 400 {
			t.Skip("long enough")
		}
		all := arrangements()
		fs := crashfs.New()
		s := open(t, fs, all[int(as)%len(all)])
		want := map[string][]byte{}
		for ; len(program) >= 2; program = program[2:] {
			// Keys that are prefixes of each other and share long paths.
			c := program[1]
			key := strings.Repeat("ab", int(c>>5)) + string([]byte{c & 3})[:c>>2&1] + strings.Repeat("x", int(c>>3&3)*5)
			var err error
			switch program[0] % 8 {
			case 0, 1:
				val := []byte(strings.Repeat("v", int(program[0])))
				err, want[key] = s.Put(key, val), val
			case 2, 3:
				var removed bool
				if removed, err = s.Delete(key); removed != holds(want, key) {
					t.Fatalf("delete %q: %v", key, removed)
				}
				delete(want, key)
			case 4:
				if err = s.Close(); err == nil {
					s = open(t, fs, all[int(c)%len(all)])
				}
			case 5:
				_, err = s.Checkpoint()
			case 6:
				_, err = s.Evict(0)
			case 7:
				var v []byte
				var ok bool
				if v, ok, err = s.Get(key); ok != holds(want, key) || string(v) != string(want[key]) {
					t.Fatalf("get %q: %q %v", key, v, ok)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := contents(t, s, ""); !equal(got, want) {
			t.Fatalf("%v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		closed(t, s, fs)
	})
}

func holds(m map[string][]byte, k string) bool { _, ok := m[k]; return ok }
