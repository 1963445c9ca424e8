package lockfreeflip

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assaylab/assay/artrie"
	"github.com/assaylab/assay/artrie/fsys"
)

// planted are defects that the study must find, by the arm function's name; the last is
// none.
var planted = map[string]defect{
	"acknowledges-before-sync": {fs: func(f fsys.FS) fsys.FS { return &hooked{FS: f, sync: pretendsToSync} }},
	"loses-the-newest-key":     {fs: func(f fsys.FS) fsys.FS { return &hooked{FS: f, write: coversOneMore} }},
	"evicts-the-unsaved":       {wrap: func(s store) store { return &forgetful{store: s} }},
	"shows-before-sync":        {wrap: func(s store) store { return &hasty{store: s} }},
	"syncs-twice":              {fs: func(f fsys.FS) fsys.FS { return &hooked{FS: f, sync: syncsTwice} }},
	"slow":                     {wrap: func(s store) store { return &slow{store: s} }},
	"leaks":                    {wrap: func(s store) store { return &leaky{store: s} }},
	"readers-come-late":        {wrap: func(s store) store { return &late{store: s, come: make(chan struct{})} }},
}

// hooked is a file system whose files are written and synced another way.
type hooked struct {
	fsys.FS
	write func(f fsys.File, name string, b []byte, off int64) (int, error)
	sync  func(f fsys.File, name string) error
}

func (h *hooked) Create(name string) (fsys.File, error) { return h.file(name)(h.FS.Create(name)) }
func (h *hooked) Open(name string) (fsys.File, error)   { return h.file(name)(h.FS.Open(name)) }

func (h *hooked) file(name string) func(fsys.File, error) (fsys.File, error) {
	return func(f fsys.File, err error) (fsys.File, error) {
		if err != nil {
			return nil, err
		}
		return &hookedFile{f, h, path.Base(name)}, nil
	}
}

type hookedFile struct {
	fsys.File
	h    *hooked
	name string // under which it was made or opened
}

func (f *hookedFile) WriteAt(b []byte, off int64) (int, error) {
	if f.h.write != nil {
		return f.h.write(f.File, f.name, b, off)
	}
	return f.File.WriteAt(b, off)
}

func (f *hookedFile) Sync() error {
	if f.h.sync != nil {
		return f.h.sync(f.File, f.name)
	}
	return f.File.Sync()
}

func logFile(name string) bool { return name == "segment.tmp" || strings.HasPrefix(name, "log-") }

func pretendsToSync(f fsys.File, name string) error {
	if logFile(name) {
		return nil
	}
	return f.Sync()
}

func syncsTwice(f fsys.File, name string) error {
	if logFile(name) {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Sync()
}

// coversOneMore lets each checkpoint say that it has one operation more than it
// has, so that recovery passes over the first one after it.
func coversOneMore(f fsys.File, _ string, b []byte, off int64) (int, error) {
	if bytes.HasPrefix(b, []byte("artriecp")) && len(b) == 128 {
		b = bytes.Clone(b)
		const covered = 64
		binary.LittleEndian.PutUint64(b[covered:], binary.LittleEndian.Uint64(b[covered:])+1)
		binary.LittleEndian.PutUint32(b[124:], crc32.Checksum(b[:124], crc32.MakeTable(crc32.Castagnoli)))
	}
	return f.WriteAt(b, off)
}

// forgetful is what an evictor that drops a node which is not on disk makes of
// a store: the newest keys are gone from memory, and from every later
// checkpoint with the log before it. The deletion stands for both.
type forgetful struct {
	store
	mu     sync.Mutex
	newest string
}

func (f *forgetful) Insert(key string) (bool, error) {
	added, err := f.store.Insert(key)
	f.mu.Lock()
	f.newest = key
	f.mu.Unlock()
	return added, err
}

func (f *forgetful) EvictPrefix(prefix string) (int, error) {
	n, err := f.store.EvictPrefix(prefix)
	if err != nil {
		return n, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.store.(*artrie.Trie).Delete(f.newest) // the power may be off
	return n, nil
}

// hasty answers for keys whose insert has only begun.
type hasty struct {
	store
	begun sync.Map
}

func (h *hasty) Insert(key string) (bool, error) {
	h.begun.Store(key, true)
	return h.store.Insert(key)
}

func (h *hasty) Get(key string) ([]byte, bool, error) {
	val, found, err := h.store.Get(key)
	if _, begun := h.begun.Load(key); begun && !found && err == nil {
		return nil, true, nil
	}
	return val, found, err
}

// slow takes three milliseconds more for each write, one after the other.
type slow struct {
	store
	mu sync.Mutex
}

func (s *slow) Insert(key string) (bool, error) {
	s.mu.Lock()
	<-time.After(3 * time.Millisecond)
	s.mu.Unlock()
	return s.store.Insert(key)
}

// leaky keeps 128 KiB for each write.
type leaky struct {
	store
	mu   sync.Mutex
	kept [][]byte
}

func (l *leaky) Insert(key string) (bool, error) {
	l.mu.Lock()
	l.kept = append(l.kept, bytes.Repeat([]byte{1}, 128<<10))
	l.mu.Unlock()
	return l.store.Insert(key)
}

// smallKeys is what a writer of the protocol small inserts.
const smallKeys = 50

// late keeps readers out until a while after all writes but the last are done, as a
// starved machine does.
type late struct {
	store
	done atomic.Int64
	come chan struct{}
}

func (l *late) Insert(key string) (bool, error) {
	added, err := l.store.Insert(key)
	if l.done.Add(1) == writers*smallKeys-1 {
		time.AfterFunc(50*time.Millisecond, func() { close(l.come) })
	}
	return added, err
}

func (l *late) Get(key string) ([]byte, bool, error) {
	<-l.come
	return l.store.Get(key)
}
