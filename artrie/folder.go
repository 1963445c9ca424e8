package artrie

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/internal/image"
	"github.com/assaylab/assay/artrie/internal/radix"
)

// hold takes the lock of a folder.
func hold(fs fsys.FS, dir string) (io.Closer, error) {
	lock, err := fs.Lock(path.Join(dir, "LOCK"))
	if errors.Is(err, fsys.ErrLocked) {
		err = fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return lock, err
}

// folder is a store that nobody has open, for reading.
type folder struct {
	candidate
	fs   fsys.FS // the machine's if none was given
	why  error   // what is wrong with other checkpoints than the candidate
	lock io.Closer
}

// readFolder locks a folder and finds its newest checkpoint. It changes nothing.
func readFolder(dir string, fs fsys.FS) (f folder, err error) {
	if f.fs = fs; fs == nil {
		f.fs = fsys.OS()
	}
	if f.lock, err = hold(f.fs, dir); err != nil {
		return f, err
	}
	if f.candidate, f.why, err = newest(f.fs, dir); err != nil {
		return f, errors.Join(err, f.lock.Close())
	}
	return f, nil
}

// root is the tree of the checkpoint, which covers so many operations.
func (f folder) root() (root radix.Ref, covered uint64) {
	if f.manifest == nil {
		return nil, 0
	}
	return radix.NewStub(f.manifest.Root, f.nodes.Owner()), f.manifest.Covered
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
