package artrie

import (
	"errors"
	"fmt"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/internal/radix"
	"github.com/assaylab/assay/internal/wal"
)

// Dump gives f every key that begins with prefix, in order of bytes, of a folder
// that is not open, until f returns false. It changes nothing and keeps in memory only
// what the log has since the checkpoint. Key and value are good until f returns. fs nil: the
// machine's file system. It fails with ErrLocked and, at the first node or record that cannot
// be read, with ErrDamaged.
func Dump(dir, prefix string, fs fsys.FS, f func(key, val []byte) bool) error {
	d, err := readFolder(dir, fs)
	if err == nil {
		defer d.lock.Close()
		err = d.dump(dir, prefix, f)
	}
	if err != nil {
		return fmt.Errorf("dump %s: %w", dir, damaged(err))
	}
	return nil
}

func (d folder) dump(dir, prefix string, f func(key, val []byte) bool) error {
	root, covered := d.root()
	src := coldSource()
	e := radix.Edit{ID: 1, Src: src}
	if _, err := wal.Read(logOf(d.fs, dir, 0), covered, func(op *wal.Op) error {
		_, err := perform(&e, &root, op)
		return err
	}); err != nil {
		return errors.Join(err, d.why)
	}
	return radix.Scan(&root, prefix, src, f)
}
