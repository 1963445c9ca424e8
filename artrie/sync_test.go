package artrie

import (
	"os"
	"testing"
	"time"

	"github.com/assaylab/assay/artrie/fsys"
	"golang.org/x/sys/unix"
)

// evenDisk has the machine's files and syncs that take the same time each, spent
// in a system call as those of a disk are. What is measured on it is the program and
// the scheduler, whoever else uses the disk.
type evenDisk struct {
	fsys.FS
	sync time.Duration
}

func (d evenDisk) Create(name string) (fsys.File, error) { return d.file(d.FS.Create(name)) }
func (d evenDisk) Open(name string) (fsys.File, error)   { return d.file(d.FS.Open(name)) }
func (d evenDisk) SyncDir(string) error                  { return d.wait() }

func (d evenDisk) file(f fsys.File, err error) (fsys.File, error) {
	if err != nil {
		return nil, err
	}
	return evenFile{f, d}, nil
}

func (d evenDisk) wait() error {
	for t := unix.NsecToTimespec(d.sync.Nanoseconds()); ; {
		if err := unix.Nanosleep(&t, &t); err != unix.EINTR {
			return err
		}
	}
}

type evenFile struct {
	fsys.File
	d evenDisk
}

func (f evenFile) Sync() error { return f.d.wait() }

// benchFS is the file system of the benchmarks: the machine's, or with ASSAY_SYNC, a
// duration, one whose syncs take so long.
func benchFS(b testing.TB) fsys.FS {
	s := os.Getenv("ASSAY_SYNC")
	if s == "" {
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		b.Fatal(err)
	}
	return evenDisk{fsys.OS(), d}
}
