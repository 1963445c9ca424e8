package image

import (
	"encoding/binary"
	"errors"
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
	manifestSize  = 128
	manifestMagic = "artriecp"
	manifestTmp   = "checkpoint.tmp"
)

// ManifestName is the base name of the manifest of checkpoint n.
func ManifestName(n uint64) string { return fmt.Sprintf("checkpoint-%016x", n) }

// ManifestNumber parses such a name.
func ManifestNumber(name string) (n uint64, ok bool) { return number(name, "checkpoint-") }

func (m *Manifest) encode() []byte {
	b := make([]byte, manifestSize)
	copy(b, manifestMagic)
	binary.LittleEndian.PutUint32(b[8:], version)
	for i, v := range []uint64{m.Number, m.Gen, m.Root, uint64(m.End), uint64(m.Live), uint64(m.Keys), m.Covered} {
		binary.LittleEndian.PutUint64(b[16+8*i:], v)
	}
	binary.LittleEndian.PutUint32(b[124:], crc32.Checksum(b[:124], crcTable()))
	return b
}

func decodeManifest(b []byte) (*Manifest, error) {
	if len(b) != manifestSize || string(b[:8]) != manifestMagic {
		return nil, errors.New("not a manifest")
	}
	if crc32.Checksum(b[:124], crcTable()) != binary.LittleEndian.Uint32(b[124:]) {
		return nil, errors.New("checksum does not match")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return nil, fmt.Errorf("format version %d, this program reads %d", v, version)
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[16+8*i:]) }
	return &Manifest{u(0), u(1), u(2), int64(u(3)), int64(u(4)), int64(u(5)), u(6)}, nil
}

// SyncError is a failure to make something durable: nothing may be acknowledged
// after it.
type SyncError struct{ Err error }

func (e *SyncError) Error() string { return e.Err.Error() }
func (e *SyncError) Unwrap() error { return e.Err }

// Publish makes m the newest checkpoint: write, sync, rename, sync of the folder (K2).
func Publish(fs fsys.FS, dir string, m *Manifest) error {
	tmp, name := path.Join(dir, manifestTmp), path.Join(dir, ManifestName(m.Number))
	f, err := fs.Create(tmp)
	if err != nil {
		return fmt.Errorf("create %s: %w", tmp, err)
	}
	if _, err = f.WriteAt(m.encode(), 0); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", tmp, err), f.Close())
	}
	if err = f.Sync(); err != nil {
		return errors.Join(&SyncError{fmt.Errorf("sync %s: %w", tmp, err)}, f.Close())
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = fs.Rename(tmp, name); err != nil {
		// It may have happened: then the published bytes must not be overwritten.
		return &SyncError{fmt.Errorf("rename to %s: %w", name, err)}
	}
	if err = fs.SyncDir(dir); err != nil {
		return &SyncError{fmt.Errorf("sync %s: %w", dir, err)}
	}
	return nil
}

// ReadManifest reads the manifest of checkpoint n; a damaged one is a *DamageError.
func ReadManifest(fs fsys.FS, dir string, n uint64) (*Manifest, error) {
	name := path.Join(dir, ManifestName(n))
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, manifestSize+1)
	got, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	m, err := decodeManifest(b[:got])
	if err == nil && m.Number != n {
		err = fmt.Errorf("it is that of checkpoint %d", m.Number)
	}
	if err != nil {
		return nil, &DamageError{name, 0, err.Error()}
	}
	return m, nil
}
