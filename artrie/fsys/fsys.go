// Package fsys is what artrie asks of a file system: ten operations, an
// implementation on the real one, and counters. A test or a study passes another
// implementation to lose power, to fail an operation, or to count. It must never know
// what the store keeps in its files.
//
// The types are those of the module's own fsys, which the log that artrie shares with
// others is written against.
package fsys

import "github.com/assaylab/assay/internal/fsys"

// ErrLocked is returned by FS.Lock when another holder has the lock.
var ErrLocked = fsys.ErrLocked

// FS is a file system. Names are slash paths as the caller made them. Errors
// for a missing file match io/fs.ErrNotExist.
type FS = fsys.FS

// File is an open file.
type File = fsys.File

// Counts are operations since the file system was wrapped. Failed ones count.
type Counts = fsys.Counts

// Counted is a file system that counts.
type Counted = fsys.Counted

// OS is the file system of the machine.
func OS() FS { return fsys.OS() }

// Count wraps a file system.
func Count(fs FS) *Counted { return fsys.Count(fs) }
