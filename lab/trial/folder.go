package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// emptyDir makes a folder empty. An arm may have removed it, or put a link to
// somebody's folder in its place: only the link goes then.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if info, lerr := os.Lstat(dir); lerr == nil && !info.IsDir() {
		entries, err = nil, os.Remove(dir)
		if err == nil {
			err = fs.ErrNotExist
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		// Not MkdirAll: where all of the scratch folder is gone, a new one
		// might be on another disk.
		entries, err = nil, os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	for _, e := range entries {
		if err := RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("scratch folder: %w", err)
		}
	}
	return nil
}

// RemoveAll is os.RemoveAll for what trials leave, which may contain folders without
// the right to write, such as a module cache.
func RemoveAll(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// ScratchBytes is the size of everything in the scratch folder.
func (e *Executor) ScratchBytes() (int64, error) {
	var n int64
	err := filepath.WalkDir(e.scratch, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n, err
}
