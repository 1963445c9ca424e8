package artrie

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/artrie/internal/image"
	"github.com/assaylab/assay/artrie/internal/radix"
)

// TestAFolderOfTheFirstFormatOpens: its manifests are files of their own. They are
// read, and give way to the slots.
func TestAFolderOfTheFirstFormatOpens(t *testing.T) {
	dir := t.TempDir()
	z, err := zip.OpenReader("testdata/format1.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	// Two checkpoints, of 60 and of 90 keys, and ten keys more in the log.
	check := func(keys int, checkpoint uint64) {
		t.Helper()
		rep, err := Check(dir, nil)
		if err != nil || rep.PassedOver != nil || rep.Keys != int64(keys) || rep.Checkpoint != checkpoint {
			t.Fatalf("%+v, %v; want %d keys and checkpoint %d", rep, err, keys, checkpoint)
		}
	}
	check(100, 2)
	s, err := Open(dir, &Options{SegmentBytes: minSegment})
	if err != nil {
		t.Fatal(err)
	}
	files := func() (n int) {
		t.Helper()
		names, err := fsys.OS().List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if _, ok := image.ManifestFile(name); ok {
				n++
			}
		}
		return n
	}
	for i, left := range []int{1, 0, 0} {
		if err := s.Put(ngram(100+i), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		if n := files(); n != left {
			t.Errorf("after %d checkpoints %d manifests are files of their own, want %d", i+1, n, left)
		}
	}
	for i := range 103 {
		if _, ok, err := s.Get(ngram(i)); !ok || err != nil {
			t.Fatalf("key %d: %v, %v", i, ok, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check(103, 5)
}

// TestALaterFormatIsLeftAlone: a program that does not know the format says so, and
// changes nothing.
func TestALaterFormatIsLeftAlone(t *testing.T) {
	fs := fuzzFolder(t)
	name := "db/" + image.SlotsName
	b := fs.Contents(name)
	const size, sum = 128, 124
	b[8]++
	binary.LittleEndian.PutUint32(b[sum:], crc32.Checksum(b[:sum], crc32.MakeTable(crc32.Castagnoli)))
	fs.Replace(name, b)
	before, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open("db", arrangement{}.options(fs)); !errors.Is(err, ErrVersion) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("open: %v", err)
	}
	if _, err := Check("db", fs); !errors.Is(err, ErrVersion) {
		t.Errorf("check: %v", err)
	}
	if _, err := Salvage("db", "new", fs); !errors.Is(err, ErrVersion) {
		t.Errorf("salvage: %v", err)
	}
	after, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, after) {
		t.Errorf("the folder had %v and has %v", before, after)
	}
}

// reached is how many bytes the blocks of the newest checkpoint have.
func reached(t *testing.T, s *Trie) int64 {
	t.Helper()
	n := int64(0)
	src := &radix.Source{Read: func(stub radix.Ref) (radix.Ref, error) {
		w, _, _ := radix.Stub(stub)
		length, _ := radix.Length(w)
		n += int64(length)
		return readStub(stub)
	}}
	root := radix.NewStub(s.last.Root, s.nodes.Load().Owner())
	if err := radix.Scan(&root, "", src, func(_, _ []byte) bool { return true }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestARefusedCheckpointLeavesTheCounts: what a checkpoint wrote that did not come about
// is not live, in this process and in the manifest of the next one.
func TestARefusedCheckpointLeavesTheCounts(t *testing.T) {
	for _, a := range []arrangement{{}, {mode: Owned}} {
		for _, at := range []string{"write nodes-", "open " + image.SlotsName} {
			t.Run(fmt.Sprint(a, " ", filepath.Base(at)), func(t *testing.T) {
				fs := crashfs.New()
				var full atomic.Bool // the log prepares segments beside the test
				kind, file, _ := strings.Cut(at, " ")
				s := open(t, &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
					if full.Load() && op.Kind == kind && strings.Contains(op.Name, file) {
						return syscall.ENOSPC
					}
					return nil
				}}, a)
				change := func(round int) {
					t.Helper()
					for i := range 200 {
						if err := s.Put(ngram(i*(round+1)), fmt.Append(nil, round)); err != nil {
							t.Fatal(err)
						}
					}
				}
				for round := range 6 {
					change(round)
					refuse := round%2 == 1
					full.Store(refuse)
					if _, err := s.Checkpoint(); (err != nil) != refuse || refuse && !errors.Is(err, syscall.ENOSPC) {
						t.Fatalf("round %d: %v", round, err)
					}
					if !refuse {
						want := reached(t, s)
						if got := s.Stats().LiveBytes; got != want || s.last.Live != want {
							t.Fatalf("round %d: counts %d live bytes, the manifest %d, the tree reaches %d", round, got, s.last.Live, want)
						}
					}
				}
				full.Store(false)
				closed(t, s, fs)
			})
		}
	}
}
