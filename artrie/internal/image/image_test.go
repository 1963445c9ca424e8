package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/artrie/internal/radix"
)

func TestBlocksComeBackOrSayWhy(t *testing.T) {
	fs := crashfs.New()
	n, err := CreateNodes(fs, "d", 3)
	if err != nil {
		t.Fatal(err)
	}
	var words []uint64
	var payloads [][]byte
	for _, size := range []int{0, 1, 8, 400, 70_000, 300_000} {
		p := bytes.Repeat([]byte{byte(size)}, size)
		w, err := n.Write(p)
		if err != nil {
			t.Fatal(err)
		}
		words, payloads = append(words, w), append(payloads, p)
	}
	if err := errors.Join(n.Flush(), n.Sync()); err != nil {
		t.Fatal(err)
	}
	if n, err = OpenNodes(fs, "d", 3, n.Size()); err != nil {
		t.Fatal(err)
	}
	for i, w := range words {
		if got, err := n.Payload(w); err != nil || !bytes.Equal(got, payloads[i]) {
			t.Fatalf("block %d: %d bytes, %v", i, len(got), err)
		}
	}
	b := fs.Contents("d/" + NodesName(3))
	for _, off := range []int64{0, 4, 8, 100} {
		b[radix.Offset(words[3])+off] ^= 1
		fs.Replace("d/"+NodesName(3), b)
		n, err := OpenNodes(fs, "d", 3, n.Size())
		if err != nil {
			t.Fatal(err)
		}
		damage := (*DamageError)(nil)
		if _, err := n.Payload(words[3]); !errors.As(err, &damage) || damage.Offset != radix.Offset(words[3]) {
			t.Errorf("damage at byte %d of a block: %v", off, err)
		}
		b[radix.Offset(words[3])+off] ^= 1
	}
}

// TestAWriteInTheWrongPlaceIsNoticed: a block is valid only where it belongs.
func TestAWriteInTheWrongPlaceIsNoticed(t *testing.T) {
	fs := crashfs.New()
	n, err := CreateNodes(fs, "d", 1)
	if err != nil {
		t.Fatal(err)
	}
	w1, _ := n.Write(bytes.Repeat([]byte("a"), 40))
	w2, _ := n.Write(bytes.Repeat([]byte("b"), 40))
	if err := n.Flush(); err != nil {
		t.Fatal(err)
	}
	b := fs.Contents("d/" + NodesName(1))
	copy(b[radix.Offset(w2):], b[radix.Offset(w1):radix.Offset(w2)])
	fs.Replace("d/"+NodesName(1), b)
	if n, err = OpenNodes(fs, "d", 1, n.Size()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Payload(w2); err == nil {
		t.Error("a block that belongs elsewhere was accepted")
	}
}

// TestTwoCheckpointsAlwaysStay: whatever happens to the slot that is being written, the
// manifests of the two kept checkpoints are found.
func TestTwoCheckpointsAlwaysStay(t *testing.T) {
	fs := crashfs.New()
	read := func(fs *crashfs.FS) (s *Slots, numbers []uint64, damage error) {
		t.Helper()
		s, found, damage, err := Manifests(fs, "d")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			numbers = append(numbers, m.Number)
		}
		return s, numbers, damage
	}
	var last, prev *Manifest
	for n := uint64(1); n < 9; n++ {
		m := &Manifest{Number: n, Gen: 1 + n/4, Covered: 10 * n}
		if n > 2 {
			cut := fs.Image(crashfs.LoseNone, nil)
			s, _, _ := read(cut)
			s.fs = &crashfs.Faulty{FS: cut, Before: func(op crashfs.Op) error {
				if op.Kind == "sync" {
					cut.Crash()
				}
				return nil
			}}
			if err := s.Publish(m, last, prev); !errors.Is(err, crashfs.ErrCrashed) {
				t.Fatalf("the power was not cut: %v", err)
			}
			written := slices.Index(s.holds[:], 0)
			for seed := range uint64(20) {
				im := cut.Image(crashfs.LoseSome, rand.New(rand.NewPCG(n, seed)))
				b := im.Contents("d/" + SlotsName)
				b[written*slotSize+int(seed*6)] ^= 1 // not even its sector is whole
				im.Replace("d/"+SlotsName, b)
				if _, got, _ := read(im); !slices.Contains(got, n-1) || !slices.Contains(got, n-2) {
					t.Fatalf("while %d is written, only %v are there", n, got)
				}
			}
		}
		s, _, _ := read(fs)
		if err := s.Publish(m, last, prev); err != nil {
			t.Fatal(err)
		}
		last, prev = m, last
		if _, got, damage := read(fs.Image(crashfs.LoseAll, nil)); len(got) != int(min(n, slots)) || got[0] != n || damage != nil {
			t.Fatalf("after %d: %v, %v", n, got, damage)
		}
	}
}

// TestALaterFormatIsRefused: a manifest of a version to come is no damage.
func TestALaterFormatIsRefused(t *testing.T) {
	b := (&Manifest{1, 2, 3, 4, 5, 6, 7}).encode()
	b[8]++
	binary.LittleEndian.PutUint32(b[124:], crc32.Checksum(b[:124], crcTable()))
	version := (*VersionError)(nil)
	if _, err := decodeManifest(b, manifestVersion, "m", 0); !errors.As(err, &version) || version.Version != manifestVersion+1 {
		t.Errorf("%v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add((&Manifest{1, 2, 3, 4, 5, 6, 7}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == manifestSize {
			// Behind the checksum too.
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b[124:], crc32.Checksum(b[:124], crcTable()))
		}
		if m, err := decodeManifest(b, manifestVersion, "m", 0); err == nil {
			if again, err := decodeManifest(m.encode(), manifestVersion, "m", 0); err != nil || *again != *m {
				t.Fatalf("%+v comes back as %+v, %v", m, again, err)
			}
		}
	})
}
