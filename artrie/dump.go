package artrie

import (
	"errors"
	"fmt"
	"path"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/internal/radix"
	"github.com/assaylab/assay/artrie/internal/wal"
)

// Dump gives f every key that begins with prefix, in order of bytes, of a folder
// that is not open, until f returns false. It changes nothing and keeps in memory only
// what the log has since the checkpoint. Key and value are good until f returns. fs nil: the
// machine's file system. It fails with ErrLocked and, at the first node or record that cannot
// be read, with ErrDamaged.
func Dump(dir, prefix string, fs fsys.FS, f func(key, val []byte) bool) error {
	if fs == nil {
		fs = fsys.OS()
	}
	lock, err := fs.Lock(path.Join(dir, "LOCK"))
	if err != nil {
		if errors.Is(err, fsys.ErrLocked) {
			err = fmt.Errorf("%w: %w", ErrLocked, err)
		}
		return fmt.Errorf("dump %s: %w", dir, err)
	}
	defer lock.Close()
	if err := dump(dir, prefix, fs, f); err != nil {
		return fmt.Errorf("dump %s: %w", dir, damaged(err))
	}
	return nil
}

func dump(dir, prefix string, fs fsys.FS, f func(key, val []byte) bool) error {
	found, why, err := newest(fs, dir)
	if err != nil {
		return err
	}
	var root radix.Ref
	covered := uint64(0)
	if m := found.manifest; m != nil {
		root, covered = radix.NewStub(m.Root, found.nodes.Owner()), m.Covered
	}
	src := coldSource()
	e := radix.Edit{ID: 1, Src: src}
	if _, err := wal.Read(fs, dir, covered, func(op *wal.Op) error {
		_, err := perform(&e, &root, op)
		return err
	}); err != nil {
		return errors.Join(err, why)
	}
	return radix.Scan(&root, prefix, src, f)
}
