// Package tables writes sorted tables that replace a range of keys of a pebble database when they
// are ingested. It must never know what the keys mean, or who needs them replaced.
package tables

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/internal/yielding"
)

// size is after how many bytes of keys and values the next table begins.
const size = 8 << 20

// Writer writes the tables of one range, in the order of their keys.
//
//   - T1 The tables meet without a gap, and each removes whatever the database has between its
//     own first key and the next table's. A table's removal is as old as its keys and
//     takes only what is older.
//   - T2 One call of pebble's Ingest takes all its tables in, or none.
//   - T3 A table is synced before it has a name in Close's answer. Its name in the folder is
//     not: Ingest gives it another one, durably.
//
// So who ingests the tables of several ranges at once has replaced these ranges at once, and
// what it costs then does not grow with what is in them. Rejected: one batch of as many keys, which has to
// be in memory, sorted and written while the database waits for it; and to excise the range, which takes it away from
// snapshots too.
type Writer struct {
	fs     vfs.FS
	format sstable.TableFormat
	name   string // of the tables, before their number

	low, high []byte // of the range
	from      []byte // where the table under way begins
	last      []byte
	table     *sstable.Writer
	bytes     int
	paths     []string
}

// New begins the tables of the keys from low on and below high, for a database. name is what their
// paths begin with.
func New(db *pebble.DB, fs vfs.FS, name string, low, high []byte) *Writer {
	return &Writer{
		fs: yielding.FS{FS: fs}, format: db.FormatMajorVersion().MaxTableFormat(), name: name,
		low: bytes.Clone(low), high: bytes.Clone(high), from: bytes.Clone(low),
	}
}

// Set adds a key, which must be above the last one and in the range.
func (w *Writer) Set(key, value []byte) error {
	switch {
	case bytes.Compare(key, w.low) < 0 || bytes.Compare(key, w.high) >= 0:
		return fmt.Errorf("the key %x is not between %x and %x", key, w.low, w.high)
	case w.last != nil && bytes.Compare(key, w.last) <= 0:
		return fmt.Errorf("the key %x comes after %x", key, w.last)
	}
	if w.bytes >= size {
		if err := w.finish(key); err != nil {
			return err
		}
	}
	if err := w.begin(); err != nil {
		return err
	}
	w.last = append(w.last[:0], key...)
	w.bytes += len(key) + len(value)
	return w.table.Set(key, value)
}

func (w *Writer) begin() error {
	if w.table != nil {
		return nil
	}
	path := fmt.Sprintf("%s-%06d.sst", w.name, len(w.paths))
	file, err := w.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w.paths = append(w.paths, path)
	w.table = sstable.NewWriter(objstorageprovider.NewFileWritable(file), sstable.WriterOptions{TableFormat: w.format})
	return nil
}

// finish ends the table under way, which is responsible for what is below next.
func (w *Writer) finish(next []byte) error {
	table := w.table
	w.table, w.bytes = nil, 0
	from := w.from
	w.from = bytes.Clone(next)
	// Closing syncs the file.
	return errors.Join(table.DeleteRange(from, next), table.Close())
}

// Close ends the range and returns the paths of its tables.
func (w *Writer) Close() ([]string, error) {
	if err := w.begin(); err != nil { // a range without keys is to be empty
		return nil, err
	}
	return w.paths, w.finish(w.high)
}

// Abandon closes what is open. What was written is in the way of nobody but the folder.
func (w *Writer) Abandon() {
	if w.table != nil {
		_ = w.table.Close()
		w.table = nil
	}
}
