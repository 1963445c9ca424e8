package wal

import (
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/assaylab/assay/internal/fsys"
)

// Config says where a log is and whose it is.
type Config struct {
	FS  fsys.FS
	Dir string // must be there
	// Magic is 8 bytes at the start of each segment; a log with another one is
	// refused.
	Magic string
	// SegmentBytes is the size of a segment, a multiple of 8. A reader does not need it.
	SegmentBytes int64
	// FirstBytes is the size of a segment that opening makes, if it needs one; 0 is
	// SegmentBytes. To fill a small one takes less time, and a log that stays small
	// never needs another.
	FirstBytes int64
	// Spares is how many recycled files wait beside the prepared segment; 0 is 1.
	Spares int
}

func (c *Config) spares() int { return max(c.Spares, 1) }

func (c *Config) firstBytes() int64 {
	if c.FirstBytes > 0 {
		return c.FirstBytes
	}
	return c.SegmentBytes
}

// Log appends. Append and Close are called by one goroutine at a time, the
// others by any.
type Log struct {
	c Config

	mu      sync.Mutex
	last    uint64 // written
	durable uint64 // synced
	off     int64  // where the next record goes
	ended   bool   // an end record is the last one
	closed  []*segment
	spares  []string
	next    chan prepared // holds the result of the preparation in progress; nil if none
	busy    sync.WaitGroup

	// syncMu is held round each sync of cur, and to replace it.
	syncMu sync.Mutex
	cur    *segment
	buf    []byte
}

type prepared struct {
	seg *segment
	err error
}

// Append numbers the operations and writes them, in order. It does not sync, but
// for what moving to the next segment needs. An error that is not a *FatalError
// has written nothing and used no number.
func (l *Log) Append(ops []*Op) error {
	for start := 0; start < len(ops); {
		n, size := l.fits(ops[start:])
		if n == 0 {
			if err := l.rotate(recordSize(ops[start])); err != nil {
				if fatal := (*FatalError)(nil); start > 0 && !errors.As(err, &fatal) {
					err = &FatalError{err}
				}
				return err
			}
			continue
		}
		if err := l.write(ops[start:start+n], size); err != nil {
			return err
		}
		start += n
	}
	return nil
}

// fits says how many operations the current segment has room for.
func (l *Log) fits(ops []*Op) (n int, size int64) {
	room := l.cur.size - l.off - endSize
	for _, op := range ops {
		s := recordSize(op)
		if size+s > room {
			break
		}
		size += s
		n++
	}
	return n, size
}

// endSize is kept free in each segment, for the record of a clean close.
const endSize = (recordHead + 1 + align - 1) / align * align

func (l *Log) write(ops []*Op, size int64) error {
	l.mu.Lock()
	lsn, durable, off := l.last, l.durable, l.off
	l.mu.Unlock()
	b := l.buf[:0]
	for _, op := range ops {
		lsn++
		op.LSN = lsn
		b = appendRecord(b, op, l.cur.id, durable)
	}
	if cap(b) <= 1<<20 {
		l.buf = b
	}
	if _, err := l.cur.file.WriteAt(b, off); err != nil {
		return &FatalError{fmt.Errorf("write %s: %w", segmentName(l.cur.id), err)}
	}
	l.mu.Lock()
	l.last, l.off, l.ended = lsn, off+size, false
	start := l.next == nil && l.off > l.cur.size/2
	l.mu.Unlock()
	if start {
		l.prepareNext(l.cur.id+1, l.c.SegmentBytes)
	}
	return nil
}

// Sync makes everything durable that was appended before the call.
func (l *Log) Sync() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.mu.Lock()
	last := l.last
	done := l.durable >= last
	l.mu.Unlock()
	if done {
		return nil
	}
	if err := l.cur.file.Sync(); err != nil {
		return &FatalError{fmt.Errorf("sync %s: %w", segmentName(l.cur.id), err)}
	}
	l.mu.Lock()
	l.durable = max(l.durable, last)
	l.mu.Unlock()
	return nil
}

// Last is the last number written.
func (l *Log) Last() uint64 { l.mu.Lock(); defer l.mu.Unlock(); return l.last }

// Durable is the last number that is synced.
func (l *Log) Durable() uint64 { l.mu.Lock(); defer l.mu.Unlock(); return l.durable }

// Bytes is the size of the segments that hold records, the current one up to
// where it is written.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.off
	for _, s := range l.closed {
		n += s.size
	}
	return n
}

// prepareNext starts making the next segment in the background.
func (l *Log) prepareNext(id uint32, size int64) {
	l.mu.Lock()
	spare := ""
	if size == l.c.SegmentBytes && len(l.spares) > 0 {
		spare, l.spares = l.spares[0], l.spares[1:]
	}
	ch := make(chan prepared, 1)
	l.next = ch
	l.mu.Unlock()
	l.busy.Go(func() {
		s, err := prepare(&l.c, id, size, spare)
		ch <- prepared{s, err}
	})
}

// rotate moves to the next segment, which has room for a record of need bytes.
func (l *Log) rotate(need int64) error {
	if err := l.Sync(); err != nil {
		return err
	}
	size := l.c.SegmentBytes
	if least := need + segmentHead + 2*endSize; least > size {
		size = least
	}
	if l.next == nil {
		l.prepareNext(l.cur.id+1, size)
	}
	p := <-l.next
	if p.err == nil && p.seg.size < size {
		// The one that waits is too small: make it again under the same name.
		if err := p.seg.file.Close(); err != nil {
			return err
		}
		l.prepareNext(l.cur.id+1, size)
		p = <-l.next
	}
	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	return l.begin(p.seg)
}

// begin writes and syncs the start record of s (L2) and makes it current.
func (l *Log) begin(s *segment) error {
	last := l.Last()
	b := appendRecord(nil, &Op{Type: typeStart, LSN: last}, s.id, last)
	if _, err := s.file.WriteAt(b, segmentHead); err != nil {
		return &FatalError{fmt.Errorf("write %s: %w", segmentName(s.id), err)}
	}
	if err := s.file.Sync(); err != nil {
		return &FatalError{fmt.Errorf("sync %s: %w", segmentName(s.id), err)}
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != nil {
		l.cur.last = last
		l.closed = append(l.closed, l.cur)
		if err := l.cur.file.Close(); err != nil {
			return &FatalError{err}
		}
	}
	l.cur, l.off, l.ended = s, segmentHead+int64(len(b)), false
	return nil
}

// Reclaim gives up the segments whose numbers are all at or below upTo. A few
// are kept as spares for later segments.
func (l *Log) Reclaim(upTo uint64) error {
	l.mu.Lock()
	var gone []*segment
	for len(l.closed) > 0 && l.closed[0].last <= upTo {
		gone, l.closed = append(gone, l.closed[0]), l.closed[1:]
	}
	spares := len(l.spares)
	l.mu.Unlock()
	var made []string
	for _, s := range gone {
		name := path.Join(l.c.Dir, segmentName(s.id))
		if s.size != l.c.SegmentBytes || spares+len(made) >= l.c.spares() {
			if err := l.c.FS.Remove(name); err != nil {
				return fmt.Errorf("reclaim the log: %w", err)
			}
			continue
		}
		if err := l.c.FS.Rename(name, path.Join(l.c.Dir, spareName(s.id))); err != nil {
			return fmt.Errorf("reclaim the log: %w", err)
		}
		made = append(made, spareName(s.id))
	}
	l.mu.Lock()
	l.spares = append(l.spares, made...)
	l.mu.Unlock()
	return nil
}

// Close writes the end record, syncs and closes. With broken it only closes.
func (l *Log) Close(broken bool) error {
	l.busy.Wait()
	if l.next != nil {
		if p := <-l.next; p.seg != nil {
			// Nothing was written through it; the segment waits for the next opener.
			_ = p.seg.file.Close()
		}
	}
	if broken {
		return l.cur.file.Close()
	}
	err := l.Sync()
	if err == nil && !l.ended {
		b := appendRecord(nil, &Op{Type: typeEnd, LSN: l.last}, l.cur.id, l.last)
		if _, err = l.cur.file.WriteAt(b, l.off); err == nil {
			l.off += int64(len(b))
			err = l.cur.file.Sync()
		}
	}
	return errors.Join(err, l.cur.file.Close())
}
