// Package crashfs is a file system in memory that loses power. It keeps, for
// each 512-byte sector and for each name, what was synced and what came later;
// a crash keeps the synced and any subset of the later. It is stricter than any
// real file system: syncing a file does not make its name durable. It must never know
// which bytes and names matter to the store.
package crashfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"sync"

	"github.com/assaylab/assay/artrie/fsys"
)

// Sector is the unit that a crash keeps or loses whole, in bytes.
const Sector = 512

// ErrCrashed is returned by every operation after Crash.
var ErrCrashed = errors.New("the file system has crashed")

// FS is the file system. Make one with New.
type FS struct {
	mu      sync.Mutex
	names   map[string]*inode
	durable map[string]*inode // as of the last SyncDir
	later   []nameOp          // since then, in order
	dirs    map[string]bool   // folders: is their own name durable
	locks   map[string]bool
	crashed bool
}

// nameOp is one atomic change of the folder: new names an inode, old goes.
type nameOp struct {
	old, new string
	node     *inode
}

// inode is a file: what a reader sees, what is durable, and every content that
// a sector had since the last sync.
type inode struct {
	data, synced []byte
	dirty        map[int64][][]byte
}

// New makes an empty file system.
func New() *FS {
	return &FS{names: map[string]*inode{}, durable: map[string]*inode{}, dirs: map[string]bool{}, locks: map[string]bool{}}
}

// Crash makes every later operation fail, so that what still runs on top of the
// file system cannot change what Image returns.
func (f *FS) Crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashed = true
}

// Loss says what a crash does with what was not synced.
type Loss int

const (
	LoseAll  Loss = iota // only the synced survives
	LoseNone             // the process died, the machine did not
	LoseSome             // each sector and each change of a name is drawn
)

// Image is the file system after a crash now. rng is used for LoseSome only. What was lost
// is decided and cannot be lost again; with LoseNone what was not synced still can.
func (f *FS) Image(loss Loss, rng *rand.Rand) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := New()
	copies := map[*inode]*inode{}
	copyOf := func(i *inode) *inode {
		if copies[i] == nil {
			copies[i] = i.after(loss, rng)
		}
		return copies[i]
	}
	names := maps.Clone(f.durable)
	for _, op := range f.later {
		if loss == LoseNone {
			n.later = append(n.later, nameOp{op.old, op.new, nil})
			if op.node != nil {
				n.later[len(n.later)-1].node = copyOf(op.node)
			}
		}
		if loss == LoseAll || loss == LoseSome && rng.IntN(2) == 0 {
			continue
		}
		if op.old != "" {
			delete(names, op.old)
		}
		if op.new != "" {
			names[op.new] = op.node
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(f.dirs)) {
		if loss == LoseNone || f.dirs[dir] || loss == LoseSome && rng.IntN(2) == 0 {
			n.dirs[dir] = f.dirs[dir] || loss == LoseSome
			continue
		}
		maps.DeleteFunc(names, func(name string, _ *inode) bool { return path.Dir(name) == dir })
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n.names[name] = copyOf(names[name])
	}
	n.durable = maps.Clone(n.names)
	if loss == LoseNone {
		n.durable = map[string]*inode{}
		for _, name := range slices.Sorted(maps.Keys(f.durable)) {
			n.durable[name] = copyOf(f.durable[name])
		}
	}
	return n
}

func (i *inode) after(loss Loss, rng *rand.Rand) *inode {
	if loss == LoseNone {
		n := &inode{data: slices.Clone(i.data), synced: slices.Clone(i.synced), dirty: map[int64][][]byte{}}
		for s, v := range i.dirty {
			n.dirty[s] = slices.Clone(v)
		}
		return n
	}
	b := slices.Clone(i.synced)
	if loss == LoseSome {
		if len(i.data) != len(b) && rng.IntN(2) == 0 {
			b = resize(b, int64(len(i.data)))
		}
		for _, s := range slices.Sorted(maps.Keys(i.dirty)) {
			versions := i.dirty[s]
			if v := rng.IntN(len(versions) + 1); v > 0 && s*Sector < int64(len(b)) {
				copy(b[s*Sector:], versions[v-1])
			}
		}
	}
	return &inode{data: b, synced: slices.Clone(b), dirty: map[int64][][]byte{}}
}

func resize(b []byte, n int64) []byte {
	if n <= int64(len(b)) {
		return b[:n]
	}
	return append(b, make([]byte, n-int64(len(b)))...)
}

func (f *FS) begin() error {
	f.mu.Lock()
	if f.crashed {
		f.mu.Unlock()
		return ErrCrashed
	}
	return nil
}

func (f *FS) MkdirAll(dir string) error {
	if err := f.begin(); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if _, ok := f.dirs[path.Clean(dir)]; !ok {
		f.dirs[path.Clean(dir)] = false
	}
	return nil
}

func (f *FS) Create(name string) (fsys.File, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	n := &inode{dirty: map[int64][][]byte{}}
	f.names[name] = n
	f.later = append(f.later, nameOp{"", name, n})
	return &file{fs: f, node: n, name: name}, nil
}

func (f *FS) Open(name string) (fsys.File, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	n := f.names[name]
	if n == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{fs: f, node: n, name: name}, nil
}

func (f *FS) Rename(old, new string) error {
	if err := f.begin(); err != nil {
		return err
	}
	defer f.mu.Unlock()
	n := f.names[old]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: old, Err: fs.ErrNotExist}
	}
	delete(f.names, old)
	f.names[new] = n
	f.later = append(f.later, nameOp{old, new, n})
	return nil
}

func (f *FS) Remove(name string) error {
	if err := f.begin(); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if f.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(f.names, name)
	f.later = append(f.later, nameOp{old: name})
	return nil
}

func (f *FS) List(dir string) ([]string, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	var out []string
	for name := range f.names {
		if path.Dir(name) == path.Clean(dir) {
			out = append(out, path.Base(name))
		}
	}
	slices.Sort(out)
	return out, nil
}

func (f *FS) SyncDir(dir string) error {
	if err := f.begin(); err != nil {
		return err
	}
	defer f.mu.Unlock()
	dir = path.Clean(dir)
	in := func(name string, _ *inode) bool { return path.Dir(name) == dir }
	maps.DeleteFunc(f.durable, in)
	for name, n := range f.names {
		if in(name, n) {
			f.durable[name] = n
		}
	}
	f.later = slices.DeleteFunc(f.later, func(op nameOp) bool { return path.Dir(op.old) == dir || path.Dir(op.new) == dir })
	for d := range f.dirs {
		if path.Dir(d) == dir {
			f.dirs[d] = true
		}
	}
	return nil
}

func (f *FS) Lock(name string) (io.Closer, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	if f.locks[name] {
		return nil, fmt.Errorf("%s: %w", name, fsys.ErrLocked)
	}
	f.locks[name] = true
	return &lock{f, name}, nil
}

type lock struct {
	fs   *FS
	name string
}

func (l *lock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	delete(l.fs.locks, l.name)
	return nil
}

// Contents returns a copy of the file as a reader sees it; nil if there is none.
func (f *FS) Contents(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.names[name]; n != nil {
		return append([]byte{}, n.data...)
	}
	return nil
}

// Replace sets a file's contents, durably: a test damages a file with it.
func (f *FS) Replace(name string, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &inode{data: slices.Clone(b), synced: slices.Clone(b), dirty: map[int64][][]byte{}}
	f.names[name], f.durable[name] = n, n
}

type file struct {
	fs   *FS
	node *inode
	name string
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	if err := f.fs.begin(); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	if err := f.fs.begin(); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	n := f.node
	if end := off + int64(len(b)); end > int64(len(n.data)) {
		n.data = resize(n.data, end)
	}
	copy(n.data[off:], b)
	for s := off / Sector; s*Sector < off+int64(len(b)); s++ {
		end := min((s+1)*Sector, int64(len(n.data)))
		n.dirty[s] = append(n.dirty[s], slices.Clone(n.data[s*Sector:end]))
	}
	return len(b), nil
}

func (f *file) Truncate(size int64) error {
	if err := f.fs.begin(); err != nil {
		return err
	}
	defer f.fs.mu.Unlock()
	f.node.data = slices.Clone(resize(f.node.data, size))
	return nil
}

func (f *file) Size() (int64, error) {
	if err := f.fs.begin(); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	return int64(len(f.node.data)), nil
}

func (f *file) Sync() error {
	if err := f.fs.begin(); err != nil {
		return err
	}
	defer f.fs.mu.Unlock()
	n := f.node
	n.synced = resize(n.synced, int64(len(n.data)))
	for s := range n.dirty {
		if from := s * Sector; from < int64(len(n.data)) {
			copy(n.synced[from:], n.data[from:min(from+Sector, int64(len(n.data)))])
		}
	}
	clear(n.dirty)
	return nil
}

func (f *file) Close() error { return nil }
