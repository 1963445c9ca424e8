package artrie

import (
	"errors"
	"fmt"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/internal/image"
	"github.com/assaylab/assay/artrie/internal/radix"
	"github.com/assaylab/assay/internal/wal"
)

// SalvageReport says what Salvage saved and what it had to leave.
type SalvageReport struct {
	Keys int64
	Lost []error // each names file and offset
}

// Salvage writes what can be read of the store in dir to a new store in newDir,
// and leaves dir as it is. fs nil: the machine's file system. An error means that
// the new store is not complete; damage in the old one is in the report.
//
// After a hole in the log the operations behind it are still applied: each key then has
// the last value that can be read, which may be older than the last one acknowledged.
func Salvage(dir, newDir string, fs fsys.FS) (rep SalvageReport, err error) {
	f, err := readFolder(dir, fs)
	if err != nil {
		return rep, fmt.Errorf("salvage %s: %w", dir, damaged(err))
	}
	defer f.lock.Close()
	if names, err := f.fs.List(newDir); err == nil && len(names) > 0 {
		return rep, fmt.Errorf("salvage: %s is not empty", newDir)
	}
	to, err := Open(newDir, &Options{Durability: None, SegmentBytes: 1 << 20, FS: f.fs})
	if err != nil {
		return rep, err
	}
	err = f.salvage(dir, to, &rep)
	rep.Keys = to.Len()
	if err == nil {
		_, err = to.Checkpoint()
	}
	return rep, errors.Join(err, to.Close())
}

func (f folder) salvage(dir string, to *Trie, rep *SalvageReport) error {
	lost := func(err error) { rep.Lost = append(rep.Lost, err) }
	if f.why != nil {
		lost(f.why)
	}
	root, covered := f.root()
	if root != nil {
		src := &radix.Source{Read: func(stub radix.Ref) (radix.Ref, error) {
			p, err := readStub(stub)
			if damage := (*image.DamageError)(nil); errors.As(err, &damage) {
				lost(err)
				return nil, nil
			}
			return p, err
		}}
		var failed error
		err := radix.Scan(&root, "", src, func(k, v []byte) bool {
			failed = to.Put(string(k), v)
			return failed == nil
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	return wal.Salvage(logOf(f.fs, dir, 0), covered, func(op *wal.Op) error {
		_, err := to.write(&operation{Op: wal.Op{Type: op.Type, Key: op.Key, Val: op.Val}})
		return err
	}, lost)
}
