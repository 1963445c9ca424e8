package crashfs

import (
	"errors"
	"io"

	"github.com/assaylab/assay/artrie/fsys"
)

// Op is one operation of a file system, before it is done.
type Op struct {
	Kind string // create, open, read, write, truncate, sync, rename, remove, list, syncdir
	Name string // the file, or the new name of a rename
}

// Changes says whether the operation can change what a crash leaves.
func (o Op) Changes() bool {
	return o.Kind != "open" && o.Kind != "read" && o.Kind != "list"
}

// Skip, returned by Before, makes an operation report success and do nothing.
var Skip = errors.New("skip this operation")

// Short, returned by Before for a write, writes the first half and fails with
// io.ErrShortWrite.
var Short = errors.New("write half")

// Late, returned by Before, does the operation and reports that it failed.
var Late = errors.New("done and reported as failed")

// Faulty is any file system with a hook in front. Locks are not hooked.
type Faulty struct {
	fsys.FS
	// Before sees each operation. What it returns but nil is the operation's
	// result, except Skip, Short and Late. It may be called from many goroutines.
	Before func(Op) error
}

func (f *Faulty) do(kind, name string, act func() error) error {
	switch err := f.Before(Op{kind, name}); err {
	case nil:
		return act()
	case Skip:
		return nil
	case Late:
		return errors.Join(act(), Late)
	default:
		return err
	}
}

func (f *Faulty) Create(name string) (file fsys.File, err error) {
	err = f.do("create", name, func() (err error) { file, err = f.FS.Create(name); return err })
	return f.wrap(file, name, err)
}

func (f *Faulty) Open(name string) (file fsys.File, err error) {
	err = f.do("open", name, func() (err error) { file, err = f.FS.Open(name); return err })
	return f.wrap(file, name, err)
}

func (f *Faulty) wrap(file fsys.File, name string, err error) (fsys.File, error) {
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f, name}, nil
}

func (f *Faulty) Rename(old, new string) error {
	return f.do("rename", new, func() error { return f.FS.Rename(old, new) })
}

func (f *Faulty) Remove(name string) error {
	return f.do("remove", name, func() error { return f.FS.Remove(name) })
}

func (f *Faulty) SyncDir(dir string) error {
	return f.do("syncdir", dir, func() error { return f.FS.SyncDir(dir) })
}

func (f *Faulty) List(dir string) (names []string, err error) {
	err = f.do("list", dir, func() (err error) { names, err = f.FS.List(dir); return err })
	return names, err
}

type faultyFile struct {
	fsys.File
	f    *Faulty
	name string
}

func (f *faultyFile) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.f.do("read", f.name, func() (err error) { n, err = f.File.ReadAt(b, off); return err })
	return n, err
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	switch err := f.f.Before(Op{"write", f.name}); err {
	case nil:
		return f.File.WriteAt(b, off)
	case Skip:
		return len(b), nil
	case Short:
		n, err := f.File.WriteAt(b[:len(b)/2], off)
		if err == nil {
			err = io.ErrShortWrite
		}
		return n, err
	case Late:
		_, err := f.File.WriteAt(b, off)
		return 0, errors.Join(err, Late)
	default:
		return 0, err
	}
}

func (f *faultyFile) Truncate(size int64) error {
	return f.f.do("truncate", f.name, func() error { return f.File.Truncate(size) })
}

func (f *faultyFile) Sync() error {
	return f.f.do("sync", f.name, f.File.Sync)
}
