package artrie

import (
	"errors"
	"fmt"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/internal/radix"
	"github.com/assaylab/assay/internal/wal"
)

// CheckReport says what Check verified.
type CheckReport struct {
	Keys       int64
	Checkpoint uint64 // its number; 0: there is none
	Covered    uint64 // operations in the checkpoint
	LastLSN    uint64 // operations in all
	// PassedOver says what is wrong with manifests and node files beside those of the
	// checkpoint that was read; nil for nothing. The log has what they had.
	PassedOver error
}

// Check verifies a folder that is not open: every checksum of the newest
// checkpoint's blocks and of the log, the structure of the tree, the counts. It
// changes nothing. fs nil: the machine's file system. It fails with ErrLocked, ErrVersion and ErrDamaged.
func Check(dir string, fs fsys.FS) (rep CheckReport, err error) {
	f, err := readFolder(dir, fs)
	if err == nil {
		defer f.lock.Close()
		err = f.check(dir, &rep)
	}
	if err != nil {
		return rep, fmt.Errorf("check %s: %w", dir, damaged(err))
	}
	return rep, nil
}

func (f folder) check(dir string, rep *CheckReport) (err error) {
	rep.PassedOver = f.why
	src := coldSource()
	root, covered := f.root()
	if m := f.manifest; m != nil {
		rep.Checkpoint, rep.Covered = m.Number, covered
		keys, err := radix.Check(&root, src)
		if err != nil {
			return err
		}
		if keys != m.Keys {
			return fmt.Errorf("%w: the checkpoint has %d keys and says %d", ErrDamaged, keys, m.Keys)
		}
	}
	e := radix.Edit{ID: 1, Src: src}
	rep.LastLSN, err = wal.Read(logOf(f.fs, dir, 0), covered, func(op *wal.Op) error {
		_, err := perform(&e, &root, op)
		return err
	})
	if err != nil {
		return errors.Join(err, f.why)
	}
	rep.Keys, err = radix.Check(&root, src)
	return err
}

// Check verifies the structure of the tree as it is now and the checksum of every
// block that is not in memory.
func (t *Trie) Check() error {
	s := t.Snapshot()
	defer s.Close()
	v := s.v.Load()
	keys, err := radix.Check(&v.root, &t.src)
	if err != nil {
		return damaged(err)
	}
	if keys != v.keys {
		return fmt.Errorf("%w: the tree has %d keys and counts %d", ErrDamaged, keys, v.keys)
	}
	return nil
}
