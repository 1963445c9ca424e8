package artrie

import (
	"errors"
	"fmt"
	"path"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/internal/image"
	"github.com/assaylab/assay/artrie/internal/radix"
	"github.com/assaylab/assay/artrie/internal/wal"
)

// CheckReport says what Check verified.
type CheckReport struct {
	Keys       int64
	Checkpoint uint64 // its number; 0: there is none
	Covered    uint64 // operations in the checkpoint
	LastLSN    uint64 // operations in all
	// PassedOver says what is wrong with newer checkpoints than the one that
	// was read; nil for none. The log has what they had.
	PassedOver error
}

// Check verifies a folder that is not open: every checksum of the newest
// checkpoint's blocks and of the log, the structure of the tree, the counts. It
// changes nothing. fs nil: the machine's file system. It fails with ErrLocked and ErrDamaged.
func Check(dir string, fs fsys.FS) (rep CheckReport, err error) {
	if fs == nil {
		fs = fsys.OS()
	}
	lock, err := fs.Lock(path.Join(dir, "LOCK"))
	if err != nil {
		if errors.Is(err, fsys.ErrLocked) {
			err = fmt.Errorf("%w: %w", ErrLocked, err)
		}
		return rep, fmt.Errorf("check %s: %w", dir, err)
	}
	defer lock.Close()
	if err := check(dir, fs, &rep); err != nil {
		return rep, fmt.Errorf("check %s: %w", dir, damaged(err))
	}
	return rep, nil
}

func check(dir string, fs fsys.FS, rep *CheckReport) error {
	found, why, err := newest(fs, dir)
	if err != nil {
		return err
	}
	rep.PassedOver = why
	src := coldSource()
	var root radix.Ref
	if m := found.manifest; m != nil {
		rep.Checkpoint, rep.Covered = m.Number, m.Covered
		root = radix.NewStub(m.Root, found.nodes.Owner())
		keys, err := radix.Check(&root, src)
		if err != nil {
			return err
		}
		if keys != m.Keys {
			return fmt.Errorf("%w: the checkpoint has %d keys and says %d", ErrDamaged, keys, m.Keys)
		}
	}
	e := radix.Edit{ID: 1, Src: src}
	rep.LastLSN, err = wal.Read(fs, dir, rep.Covered, func(op *wal.Op) error {
		_, err := perform(&e, &root, op)
		return err
	})
	if err != nil {
		return errors.Join(err, why)
	}
	rep.Keys, err = radix.Check(&root, src)
	return err
}

// coldSource is the source of a reader that is alone with the folder.
func coldSource() *radix.Source {
	return &radix.Source{Read: readStub, Fault: func(slot *radix.Ref, stub radix.Ref, _ string) (radix.Ref, error) {
		p, err := readStub(stub)
		if err == nil {
			*slot = p
		}
		return p, err
	}}
}

func readStub(stub radix.Ref) (radix.Ref, error) {
	w, owner, _ := radix.Stub(stub)
	return image.Owned(owner).Read(w)
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
