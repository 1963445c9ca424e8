// Package yielding is a file system on which who writes a table of pebble's gives way to
// everybody else. It must never know what a table holds, or why it is written.
package yielding

import (
	"path/filepath"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS lets a goroutine that writes a table pause for whoever else can run, every
// yieldAfter.
//
// A table that is moved from memory to disk, or merged with others, is tens of
// milliseconds of processor without a pause, and a set in one process does that for three members
// at about the same time. The runtime takes a processor from a goroutine after 10 ms; a write
// goes through ten goroutines, and waits for some of them to get one.
// A pause costs the writer of the table what the others do meanwhile, and hardly
// anything where nobody waits.
type FS struct{ vfs.FS }

// yieldAfter is longer than a pause takes by far, and shorter than what else a write waits for.
const yieldAfter = 100 * time.Microsecond

// Create makes a file as vfs.FS does.
func (f FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	if err != nil || filepath.Ext(name) != ".sst" {
		return file, err
	}
	return &table{File: file, since: time.Now()}, nil
}

// Unwrap returns the file system below.
func (f FS) Unwrap() vfs.FS { return f.FS }

// table is written by one goroutine.
type table struct {
	vfs.File
	since time.Time
}

// Write is called for every block.
func (t *table) Write(p []byte) (int, error) {
	if time.Since(t.since) >= yieldAfter {
		runtime.Gosched()
		t.since = time.Now()
	}
	return t.File.Write(p)
}
