package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/assaylab/assay/internal/fsys"
)

const (
	segmentHead = 64
	magicSize   = 8
	version     = 1
	fillChunk   = 256 << 10
	// fillSync bounds how much zero-filling a commit's sync may have to wait for, in bytes.
	fillSync = 1 << 20
)

// segment is a log file.
type segment struct {
	file fsys.File
	id   uint32
	size int64
	last uint64 // the last number in it, once it is closed
}

func segmentName(id uint32) string { return fmt.Sprintf("log-%08x", id) }

func spareName(id uint32) string { return fmt.Sprintf("spare-%08x", id) }

// segmentID parses a name made with the given prefix.
func segmentID(name, prefix string) (id uint32, ok bool) {
	hex, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.ParseUint(hex, 16, 32)
	return uint32(n), ok && err == nil && len(hex) == 8
}

func header(magic string, id uint32, size int64) []byte {
	b := make([]byte, segmentHead)
	copy(b[:magicSize], magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], id)
	binary.LittleEndian.PutUint64(b[16:], uint64(size))
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], crcTable()))
	return b
}

func parseHeader(magic string, b []byte) (id uint32, size int64, err error) {
	if len(b) < segmentHead || string(b[:magicSize]) != magic {
		return 0, 0, fmt.Errorf("not a segment of a log %q", magic)
	}
	if crc32.Checksum(b[:60], crcTable()) != binary.LittleEndian.Uint32(b[60:]) {
		return 0, 0, errors.New("segment header damaged")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return 0, 0, fmt.Errorf("log version %d, this program reads %d", v, version)
	}
	return binary.LittleEndian.Uint32(b[12:]), int64(binary.LittleEndian.Uint64(b[16:])), nil
}

// prepare makes the segment with the given id: zero-filled or recycled, its
// header synced, then named, then its name synced.
func prepare(c *Config, id uint32, size int64, spare string) (*segment, error) {
	fs, dir := c.FS, c.Dir
	tmp := path.Join(dir, "segment.tmp")
	var f fsys.File
	var err error
	if spare != "" {
		tmp = path.Join(dir, spare)
		f, err = fs.Open(tmp)
	} else if f, err = fs.Create(tmp); err == nil {
		err = fill(f, size)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare a log segment: %w", err)
	}
	name := path.Join(dir, segmentName(id))
	fail := func(what string, err error, fatal bool) (*segment, error) {
		err = fmt.Errorf("%s %s: %w", what, name, err)
		if fatal {
			err = &FatalError{err}
		}
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteAt(header(c.Magic, id, size), 0); err != nil {
		return fail("write the header of", err, false)
	}
	if err := f.Sync(); err != nil {
		return fail("sync", err, true)
	}
	if err := fs.Rename(tmp, name); err != nil {
		return fail("rename to", err, false)
	}
	if err := fs.SyncDir(dir); err != nil {
		return fail("sync the folder of", err, true)
	}
	return &segment{file: f, id: id, size: size}, nil
}

// fill writes zeros. The syncs in between only spread the work.
func fill(f fsys.File, size int64) error {
	zero := make([]byte, min(size, fillChunk))
	for off := int64(0); off < size; off += int64(len(zero)) {
		if _, err := f.WriteAt(zero[:min(int64(len(zero)), size-off)], off); err != nil {
			return errors.Join(err, f.Close())
		}
		if (off+int64(len(zero)))%fillSync == 0 && off+int64(len(zero)) < size {
			if err := f.Sync(); err != nil {
				return errors.Join(&FatalError{err}, f.Close())
			}
		}
	}
	return nil
}

// readAll reads a segment whole.
func readAll(f fsys.File) ([]byte, error) {
	n, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, 0); err != nil && !(err == io.EOF && n == 0) {
		return nil, err
	}
	return b, nil
}

// FatalError is a failure after which nothing may be acknowledged again: a sync,
// or a write that may have left part of a record.
type FatalError struct{ Err error }

func (e *FatalError) Error() string { return e.Err.Error() }
func (e *FatalError) Unwrap() error { return e.Err }

// DamageError says that bytes are damaged which had been acknowledged.
type DamageError struct {
	File   string
	Offset int64
	// Lost is the range of numbers that cannot be read, both ends included; zero when
	// it is not known.
	First, Last uint64
	Reason      string
}

func (e *DamageError) Error() string {
	lost := "the operations in it are lost"
	if e.Last != 0 {
		lost = fmt.Sprintf("operations %d to %d are lost", e.First, e.Last)
	}
	return fmt.Sprintf("%s at offset %d: %s; %s", e.File, e.Offset, e.Reason, lost)
}
