package lockfreeflip

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assaylab/assay/artrie/fsys"
)

// errPower is what a change gets after the power has failed.
var errPower = errors.New("the power has failed")

// power is the machine's file system under one store, which can lose its power:
// rules P1 and P2 of the package comment. It also counts the syncs of the log
// and keeps the watermark of P4 and P5.
//
// It costs each write a copy of what is overwritten and each write to the log
// a copy of the bytes, which is the same for every arm.
type power struct {
	fsys.FS

	// life is held for reading through every change, for writing to end them.
	life sync.RWMutex
	off  bool

	mu      sync.Mutex
	files   map[string]*content
	pending []change // of names, not covered by a sync of the folder

	log logWatch
}

// content is a file and what of it is durable.
type content struct {
	mu     sync.Mutex
	name   string
	size   int64
	synced int64   // length that the last sync covered
	undo   []patch // what was overwritten since, oldest first
	fresh  bool    // it became a log segment by its name and was not synced since
}

// patch is a part of a file as it was.
type patch struct {
	off int64
	b   []byte
}

// change is a creation (old is empty) or a renaming.
type change struct{ old, new string }

func newPower() *power {
	return &power{FS: fsys.OS(), files: map[string]*content{}}
}

// isLog says whether a file's name is that of a log segment in use.
func isLog(name string) bool { return strings.HasPrefix(path.Base(name), "log-") }

func (p *power) change(do func() error) error {
	p.life.RLock()
	defer p.life.RUnlock()
	if p.off {
		return errPower
	}
	return do()
}

func (p *power) Create(name string) (f fsys.File, err error) {
	err = p.change(func() error {
		inner, err := p.FS.Create(name)
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		c := &content{name: name}
		p.files[name] = c
		p.pending = append(p.pending, change{new: name})
		f = &powered{File: inner, p: p, c: c}
		return nil
	})
	return f, err
}

func (p *power) Open(name string) (fsys.File, error) {
	inner, err := p.FS.Open(name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.files[name]
	if c == nil {
		// It was there before the store, and the trial has synced it.
		size, err := inner.Size()
		if err != nil {
			return nil, errors.Join(err, inner.Close())
		}
		c = &content{name: name, size: size, synced: size}
		p.files[name] = c
	}
	return &powered{File: inner, p: p, c: c}, nil
}

func (p *power) Rename(old, new string) error {
	return p.change(func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := p.FS.Rename(old, new); err != nil {
			return err
		}
		if c := p.files[old]; c != nil {
			delete(p.files, old)
			p.files[new] = c
			c.mu.Lock()
			c.name, c.fresh = new, isLog(new)
			c.mu.Unlock()
		}
		p.pending = append(p.pending, change{old: old, new: new})
		return nil
	})
}

func (p *power) Remove(name string) error {
	return p.change(func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.files, name)
		return p.FS.Remove(name)
	})
}

func (p *power) SyncDir(dir string) error {
	return p.change(func() error {
		p.mu.Lock()
		n := len(p.pending)
		p.mu.Unlock()
		if err := p.FS.SyncDir(dir); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pending = slices.Delete(p.pending, 0, n)
		return nil
	})
}

// powered is an open file.
type powered struct {
	fsys.File
	p *power
	c *content
}

func (f *powered) WriteAt(b []byte, off int64) (n int, err error) {
	err = f.p.change(func() error {
		c := f.c
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := f.save(off, off+int64(len(b))); err != nil {
			return err
		}
		if isLog(c.name) {
			f.p.log.wrote(b, c)
		}
		n, err = f.File.WriteAt(b, off)
		c.size = max(c.size, off+int64(n))
		return err
	})
	return n, err
}

// save keeps what a sync has covered between from and to. What lies behind the
// end was kept when the file was cut.
func (f *powered) save(from, to int64) error {
	if to = min(to, f.c.synced, f.c.size); from >= to {
		return nil
	}
	old := make([]byte, to-from)
	if _, err := f.File.ReadAt(old, from); err != nil {
		return fmt.Errorf("keep what is overwritten: %w", err)
	}
	f.c.undo = append(f.c.undo, patch{from, old})
	return nil
}

func (f *powered) Truncate(size int64) error {
	return f.p.change(func() error {
		c := f.c
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := f.save(size, c.size); err != nil {
			return err
		}
		c.size = size
		return f.File.Truncate(size)
	})
}

func (f *powered) Sync() error {
	return f.p.change(func() error {
		c := f.c
		c.mu.Lock()
		undo, size, log, turn := len(c.undo), c.size, isLog(c.name), c.fresh
		covers := f.p.log.last(c)
		c.mu.Unlock()
		start := time.Now()
		if err := f.File.Sync(); err != nil {
			return err
		}
		took := time.Since(start)
		c.mu.Lock()
		c.undo = slices.Delete(c.undo, 0, undo)
		c.synced, c.fresh = size, false
		c.mu.Unlock()
		if log {
			f.p.log.synced(c, covers, took, turn)
		}
		return nil
	})
}

// fail cuts the power: no later change happens, and those under way end first.
// What is lost is taken away by settle.
func (p *power) fail() {
	p.life.Lock()
	p.off = true
	p.life.Unlock()
}

// settle leaves the folder as the failure left it. The store must be closed.
func (p *power) settle() error {
	for name, c := range p.files {
		if err := c.settle(name); err != nil {
			return fmt.Errorf("what the power failure leaves of %s: %w", name, err)
		}
	}
	for _, ch := range slices.Backward(p.pending) {
		var err error
		if ch.old == "" {
			err = os.Remove(ch.new)
		} else {
			err = os.Rename(ch.new, ch.old)
		}
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (c *content) settle(name string) error {
	if len(c.undo) == 0 && c.size == c.synced {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, u := range slices.Backward(c.undo) {
		if _, err := f.WriteAt(u.b, u.off); err != nil {
			return err
		}
	}
	return errors.Join(f.Truncate(c.synced), f.Close())
}

// logWatch follows the log: which writes are covered by a sync, and how long
// the syncs take.
type logWatch struct {
	// mark is the watermark: every write with this number or a lower one is
	// covered by a sync that has returned.
	mark atomic.Int64

	mu     sync.Mutex
	writes [][]byte // copies; number n is at n-1
	open   map[*content]span
	syncs  []int64 // nanoseconds of each but the first of a segment
	turns  int     // first syncs of a segment
}

// span is the first and the last write to a segment that no sync covers.
type span struct{ first, last int64 }

// begin forgets the syncs so far: what follows is the round.
func (l *logWatch) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncs, l.turns = make([]int64, 0, 1<<14), 0
}

// wrote numbers a write to the log.
func (l *logWatch) wrote(b []byte, c *content) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, slices.Clone(b))
	if l.open == nil {
		l.open = map[*content]span{}
	}
	s := l.open[c]
	s.last = int64(len(l.writes))
	if s.first == 0 {
		s.first = s.last
	}
	l.open[c] = s
}

// last is the number of the last write to c that is not covered; 0: there is none.
func (l *logWatch) last(c *content) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[c].last
}

// synced takes in that c is durable up to the write covers.
func (l *logWatch) synced(c *content, covers int64, took time.Duration, turn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn {
		l.turns++
	} else {
		l.syncs = append(l.syncs, int64(took))
	}
	s := l.open[c]
	if s.last <= covers {
		delete(l.open, c)
	} else {
		// The next number may be another segment's: then the watermark is too
		// low for a moment, which can only accuse, never excuse.
		s.first = covers + 1
		l.open[c] = s
	}
	mark := int64(len(l.writes))
	for _, o := range l.open {
		mark = min(mark, o.first-1)
	}
	l.mark.Store(mark)
}

// seen are the syncs since begin: how long each took, and the first ones of
// segments, which belong to no write.
func (l *logWatch) seen() (syncs []int64, turns int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.syncs), l.turns
}
