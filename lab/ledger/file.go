package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// file is one that can be read at any place, as those of a disk can.
type file interface {
	fs.File
	io.ReaderAt
}

func openAt(files fs.FS, name string) (file, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	at, ok := f.(file)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s: cannot be read at any place: %w", name, errors.ErrUnsupported), f.Close())
	}
	return at, nil
}

func has(files fs.FS, name string) bool {
	_, err := fs.Lstat(files, name)
	return err == nil
}

// WriteFile replaces a file so that a crash leaves the old or the new one:
// write beside it, sync, rename, sync the folder.
func WriteFile(path string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err = tmp.Write(b); err == nil {
		if err = tmp.Chmod(0o644); err == nil {
			err = tmp.Sync()
		}
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func hashFile(files fs.FS, name string) (string, error) {
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
