package consensus

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/internal/fsys"
)

// files is the file system of the member's state, as its log asks for one: both are in
// the same, so that a test which loses power takes both at one moment.
type files struct{ fs vfs.FS }

const category vfs.DiskWriteCategory = "raft-log"

func (f files) MkdirAll(dir string) error    { return f.fs.MkdirAll(dir, 0o755) }
func (f files) Rename(old, new string) error { return f.fs.Rename(old, new) }
func (f files) Remove(name string) error     { return f.fs.Remove(name) }

func (f files) Create(name string) (fsys.File, error) {
	file, err := f.fs.Create(name, category)
	if err != nil {
		return nil, err
	}
	return logFile{file}, nil
}

func (f files) Open(name string) (fsys.File, error) {
	if _, err := f.fs.Stat(name); err != nil {
		return nil, err // OpenReadWrite would make it
	}
	file, err := f.fs.OpenReadWrite(name, category)
	if err != nil {
		return nil, err
	}
	return logFile{file}, nil
}

func (f files) List(dir string) ([]string, error) {
	names, err := f.fs.List(dir)
	slices.Sort(names)
	return names, err
}

func (f files) SyncDir(dir string) error {
	d, err := f.fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (f files) Lock(name string) (io.Closer, error) { return f.fs.Lock(name) }

type logFile struct{ vfs.File }

func (f logFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f logFile) Truncate(int64) error {
	return fmt.Errorf("truncate: %w", errors.ErrUnsupported) // the log never does
}

// Sync leaves out what reading back does not need: in a segment that was filled before,
// everything but the data.
func (f logFile) Sync() error {
	for {
		if err := f.SyncData(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
