package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/assaylab/assay/lab/ledger"
)

// bound is how much of a file is taken in. parts are commas, opening brackets and
// the ends of lines, which count for lineParts: a few bytes of JSON can ask for a
// hundred in memory, and every value and record needs one of them. 0 parts are
// any number, for a file that is not decoded.
type bound struct{ bytes, parts int64 }

// lineParts is what a record takes beside its values.
const lineParts = 10

// bounds are the files of a run folder that are read at all. They let through
// five times the largest run that was ever made with assay, and what needs about
// a gigabyte at the very worst.
var bounds = map[string]bound{
	ledger.LockFile:         {4 << 20, 200_000},
	ledger.EnvironmentFile:  {1 << 20, 20_000},
	ledger.ObservationsFile: {64 << 20, 3_500_000},
	ledger.SamplesFile:      {128 << 20, 0},
	ledger.ResultsFile:      {64 << 20, 0},
	ledger.VerdictFile:      {16 << 20, 0},
	ledger.SealFile:         {64 << 10, 1000},
	ledger.ReportFile:       {16 << 20, 0},
}

// folder is a run folder that may hold anything. It opens the files of bounds,
// as plain files of bounded size, and nothing else.
type folder struct {
	root *os.Root
	over *string // what was found to be too much for its bound; nil keeps nothing
}

// Open implements fs.FS.
func (f folder) Open(name string) (fs.File, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return file, nil
}

func (f folder) open(name string) (*boundedFile, error) {
	b, ok := bounds[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	was, err := f.root.Lstat(name)
	if err != nil {
		return nil, cause(err)
	}
	if err := plain(name, was); err != nil {
		return nil, err
	}
	// Should it become a pipe meanwhile, opening must not wait for a writer.
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	is, err := file.Stat()
	if err == nil && !os.SameFile(was, is) {
		err = errors.New("was exchanged while it was opened")
	}
	if err == nil {
		err = plain(name, is)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &boundedFile{file: file, bound: b, name: name, over: f.over}, nil
}

// Lstat and ReadLink implement fs.ReadLinkFS.
func (f folder) Lstat(name string) (fs.FileInfo, error) { return f.root.Lstat(name) }

// ReadLink refuses: no link is followed.
func (f folder) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: errors.ErrUnsupported}
}

// plain says what is wrong with a file that a run folder cannot have.
func plain(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("is %s, and a run folder has plain files", kindOf(info.Mode()))
	}
	if most := bounds[name].bytes; info.Size() > most {
		return fmt.Errorf("has %d bytes, and this server reads up to %d", info.Size(), most)
	}
	return nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "no plain file"
}

// cause is an error of the file system without the path.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

var errTooMuch = errors.New("holds more than this server reads")

// boundedFile is a file that ends in an error where its bound does, whatever is
// written to it meanwhile. It hides the other methods of os.File, which read
// past it.
type boundedFile struct {
	file *os.File
	bound
	name       string
	over       *string
	read, seen int64 // bytes and parts so far
}

func (f *boundedFile) Stat() (fs.FileInfo, error) { return f.file.Stat() }
func (f *boundedFile) Close() error               { return f.file.Close() }

func (f *boundedFile) Read(p []byte) (int, error) {
	n, err := f.file.Read(p)
	f.read += int64(n)
	return f.count(p[:n], f.read, err)
}

// ReadAt implements io.ReaderAt.
func (f *boundedFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.file.ReadAt(p, at)
	return f.count(p[:n], at+int64(n), err)
}

func (f *boundedFile) count(b []byte, end int64, err error) (int, error) {
	if f.parts > 0 {
		for _, sep := range []string{",", "{", "["} {
			f.seen += int64(bytes.Count(b, []byte(sep)))
		}
		f.seen += lineParts * int64(bytes.Count(b, []byte("\n")))
	}
	if end > f.bytes || f.parts > 0 && f.seen > f.parts {
		if f.over != nil {
			*f.over = f.name + " " + errTooMuch.Error()
		}
		return 0, errTooMuch
	}
	return len(b), err
}

// descend opens a folder below root. Unlike root itself it follows no link at
// all, not even one that stays inside.
func descend(root *os.Root, path string) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	for _, name := range strings.Split(path, "/") {
		if err != nil || path == "." {
			break
		}
		var next *os.Root
		next, err = step(at, name)
		err = errors.Join(err, at.Close())
		at = next
	}
	if err != nil {
		return nil, err
	}
	return at, nil
}

func step(dir *os.Root, name string) (*os.Root, error) {
	was, err := dir.Lstat(name)
	if err != nil {
		return nil, cause(err)
	}
	if !was.IsDir() {
		return nil, fmt.Errorf("is %s, and no folder", kindOf(was.Mode()))
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, cause(err)
	}
	is, err := next.Stat(".")
	if err == nil && !os.SameFile(was, is) {
		err = errors.New("was exchanged while it was opened")
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}
