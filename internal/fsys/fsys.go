// Package fsys is what the stores of this module ask of a file system: ten
// operations, an implementation on the real one, and counters. A test or a study passes
// another implementation to lose power, to fail an operation, or to count. It must never
// know what a store keeps in its files. Package artrie/fsys shows it to others.
package fsys

import (
	"errors"
	"io"
)

// ErrLocked is returned by FS.Lock when another holder has the lock.
var ErrLocked = errors.New("locked by another holder")

// FS is a file system. Names are slash paths as the caller made them. Errors
// for a missing file match io/fs.ErrNotExist.
type FS interface {
	MkdirAll(dir string) error
	// Create makes an empty file, in place of an old one, for reading and writing.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	Rename(old, new string) error
	Remove(name string) error
	// List returns the base names in dir, sorted.
	List(dir string) ([]string, error)
	// SyncDir makes the names in dir durable: after it no creation, renaming or
	// removal that came before is lost.
	SyncDir(dir string) error
	// Lock takes an exclusive lock that ends with Close or with the process. It
	// fails at once with ErrLocked when it is held.
	Lock(name string) (io.Closer, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	// Sync makes the contents and the length durable, not the name.
	Sync() error
}
