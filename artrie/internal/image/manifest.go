package image

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"path"

	"github.com/assaylab/assay/artrie/fsys"
)

// Manifest is a published checkpoint.
type Manifest struct {
	Number  uint64 // of the checkpoint, rising
	Gen     uint64 // of the node file
	Root    uint64 // address of the root block
	End     int64  // published length of the node file, in bytes
	Live    int64  // bytes of it that the root reaches
	Keys    int64
	Covered uint64 // the operations up to this number are in the tree
}

const (
	manifestSize    = 128
	manifestMagic   = "artriecp"
	manifestVersion = 2
	// fileVersion is that of manifests which are files of their own, as they were
	// before there were slots. They are read and no longer written.
	fileVersion = 1
)

func manifestName(n uint64) string { return fmt.Sprintf("checkpoint-%016x", n) }

// ManifestFile parses the name of a manifest that is a file of its own.
func ManifestFile(name string) (n uint64, ok bool) {
	n, ok = number(name, "checkpoint-")
	return n, ok && name != SlotsName
}

// VersionError says that a folder was written in a format that this program does
// not know.
type VersionError struct {
	File    string
	Offset  int64
	Version uint32
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s at offset %d: the format is version %d, this program reads %d and %d; open the folder with the program that wrote it",
		e.File, e.Offset, e.Version, fileVersion, manifestVersion)
}

func (m *Manifest) encode() []byte {
	b := make([]byte, manifestSize)
	copy(b, manifestMagic)
	binary.LittleEndian.PutUint32(b[8:], manifestVersion)
	for i, v := range []uint64{m.Number, m.Gen, m.Root, uint64(m.End), uint64(m.Live), uint64(m.Keys), m.Covered} {
		binary.LittleEndian.PutUint64(b[16+8*i:], v)
	}
	binary.LittleEndian.PutUint32(b[124:], crc32.Checksum(b[:124], crcTable()))
	return b
}

// decodeManifest reads a manifest of the given version, which lies at an offset of a file.
func decodeManifest(b []byte, want uint32, file string, off int64) (*Manifest, error) {
	damage := func(reason string) (*Manifest, error) { return nil, &DamageError{file, off, reason} }
	if len(b) != manifestSize || string(b[:8]) != manifestMagic {
		return damage("not a manifest")
	}
	if crc32.Checksum(b[:124], crcTable()) != binary.LittleEndian.Uint32(b[124:]) {
		return damage("checksum does not match")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != want {
		return nil, &VersionError{file, off, v}
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[16+8*i:]) }
	return &Manifest{u(0), u(1), u(2), int64(u(3)), int64(u(4)), int64(u(5)), u(6)}, nil
}

// SyncError is a failure to make something durable: nothing may be acknowledged
// after it.
type SyncError struct{ Err error }

func (e *SyncError) Error() string { return e.Err.Error() }
func (e *SyncError) Unwrap() error { return e.Err }

// readFile reads checkpoint n from a file of its own; a damaged one is a *DamageError.
func readFile(fs fsys.FS, dir string, n uint64) (*Manifest, error) {
	name := path.Join(dir, manifestName(n))
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := readAt(f, 0, manifestSize+1)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	m, err := decodeManifest(b, fileVersion, name, 0)
	if err == nil && m.Number != n {
		return nil, &DamageError{name, 0, fmt.Sprintf("it is that of checkpoint %d", m.Number)}
	}
	return m, err
}

// readAt reads up to n bytes, fewer at the end of the file.
func readAt(f fsys.File, off int64, n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := f.ReadAt(b, off)
	if err == io.EOF {
		err = nil
	}
	return b[:got], err
}
