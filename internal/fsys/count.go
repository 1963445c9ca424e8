package fsys

import "sync/atomic"

// Counts are operations since the file system was wrapped. Failed ones count.
type Counts struct {
	Syncs    int64 // of files
	DirSyncs int64
	Writes   int64
	Bytes    int64 // written
	Reads    int64
	Renames  int64
}

// Counted is a file system that counts.
type Counted struct {
	FS
	syncs, dirSyncs, writes, bytes, reads, renames atomic.Int64
}

// Count wraps a file system.
func Count(fs FS) *Counted { return &Counted{FS: fs} }

// Counts returns the counters now. Each is exact; together they are not one moment.
func (c *Counted) Counts() Counts {
	return Counts{
		Syncs: c.syncs.Load(), DirSyncs: c.dirSyncs.Load(), Writes: c.writes.Load(),
		Bytes: c.bytes.Load(), Reads: c.reads.Load(), Renames: c.renames.Load(),
	}
}

func (c *Counted) Create(name string) (File, error) { return c.file(c.FS.Create(name)) }

func (c *Counted) Open(name string) (File, error) { return c.file(c.FS.Open(name)) }

func (c *Counted) file(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &countedFile{f, c}, nil
}

func (c *Counted) Rename(old, new string) error {
	c.renames.Add(1)
	return c.FS.Rename(old, new)
}

func (c *Counted) SyncDir(dir string) error {
	c.dirSyncs.Add(1)
	return c.FS.SyncDir(dir)
}

type countedFile struct {
	File
	c *Counted
}

func (f *countedFile) ReadAt(b []byte, off int64) (int, error) {
	f.c.reads.Add(1)
	return f.File.ReadAt(b, off)
}

func (f *countedFile) WriteAt(b []byte, off int64) (int, error) {
	f.c.writes.Add(1)
	f.c.bytes.Add(int64(len(b)))
	return f.File.WriteAt(b, off)
}

func (f *countedFile) Sync() error {
	f.c.syncs.Add(1)
	return f.File.Sync()
}
