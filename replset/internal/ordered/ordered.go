// Package ordered is a file system on which no marker of pebble outlives the file that it
// names. It must never know who opens a store on it, or what is in one.
package ordered

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS syncs a folder's names before a marker is created in it.
//
// Pebble writes a new manifest, syncs that file, creates a marker whose name says which
// manifest counts, and only then syncs the folder. Where a sync of a file does not make its
// name durable too, as POSIX allows, a power failure may keep the marker and lose
// the manifest's name, and the store does not open. File systems with a journal write
// both names in order; this holds on the others as well, for one sync of the folder per
// manifest.
type FS struct{ vfs.FS }

// Create makes a file as vfs.FS does.
func (f FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(f.PathBase(name), "marker.") {
		dir, err := f.OpenDir(f.PathDir(name))
		if err != nil {
			return nil, err
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return nil, err
		}
	}
	return f.FS.Create(name, category)
}

// Unwrap returns the file system below.
func (f FS) Unwrap() vfs.FS { return f.FS }
