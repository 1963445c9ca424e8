package fsys_test

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"testing"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/fsys/crashfs"
)

// TestBothFileSystemsAgree is what the store relies on, of the real file system and of
// the one that the crash tests use in its place.
func TestBothFileSystemsAgree(t *testing.T) {
	for name, f := range map[string]fsys.FS{"os": fsys.OS(), "crashfs": crashfs.New(), "counted": fsys.Count(crashfs.New())} {
		t.Run(name, func(t *testing.T) {
			dir := path.Join(t.TempDir(), "d")
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(f.MkdirAll(dir))
			a, b := path.Join(dir, "a"), path.Join(dir, "b")
			if _, err := f.Open(a); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("open of nothing: %v", err)
			}
			file, err := f.Create(a)
			check(err)
			_, err = file.WriteAt([]byte("hello"), 3)
			check(err)
			check(file.Sync())
			buf := make([]byte, 8)
			_, err = file.ReadAt(buf, 0)
			check(err)
			if string(buf) != "\x00\x00\x00hello" {
				t.Fatalf("read %q", buf)
			}
			if n, err := file.ReadAt(buf, 4); n != 4 || err == nil {
				t.Fatalf("read past the end: %d, %v", n, err)
			}
			check(file.Truncate(4))
			if n, err := file.Size(); n != 4 || err != nil {
				t.Fatalf("size %d, %v", n, err)
			}
			check(f.Rename(a, b))
			check(f.SyncDir(dir))
			if names, err := f.List(dir); err != nil || !slices.Equal(names, []string{"b"}) {
				t.Fatalf("list %v, %v", names, err)
			}
			lock, err := f.Lock(path.Join(dir, "LOCK"))
			check(err)
			if _, err := f.Lock(path.Join(dir, "LOCK")); !errors.Is(err, fsys.ErrLocked) {
				t.Fatalf("second lock: %v", err)
			}
			check(lock.Close())
			lock, err = f.Lock(path.Join(dir, "LOCK"))
			check(err)
			check(lock.Close())
			check(f.Remove(b))
			check(file.Close())
		})
	}
}

func TestCounts(t *testing.T) {
	c := fsys.Count(crashfs.New())
	file, err := c.Create("d/f")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := file.WriteAt(make([]byte, 10), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(file.Sync(), c.SyncDir("d"), c.Rename("d/f", "d/g")); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Counts(), (fsys.Counts{Syncs: 1, DirSyncs: 1, Writes: 3, Bytes: 30, Renames: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
