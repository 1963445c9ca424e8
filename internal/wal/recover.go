package wal

import (
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/assaylab/assay/internal/fsys"
)

// Recovered says what Open found.
type Recovered struct {
	None     bool   // there was no log, and one was begun
	Replayed int    // operations handed to apply
	Cut      bool   // a torn tail was cut
	CutFile  string // where, and at which offset
	CutAt    int64
}

// Open reads the log in dir and gives the operations after covered to apply, in order, then
// makes everything durable that it has read and is ready to append. Damage to
// what was acknowledged is a *DamageError.
func Open(c Config, covered uint64, apply func(*Op) error) (*Log, Recovered, error) {
	l := &Log{c: c}
	var rec Recovered
	if len(c.Magic) != magicSize {
		return nil, rec, fmt.Errorf("the magic %q has %d bytes, not %d", c.Magic, len(c.Magic), magicSize)
	}
	if err := clean(c.FS, c.Dir); err != nil {
		return nil, rec, err
	}
	segs, err := list(c.FS, c.Dir)
	if err != nil {
		return nil, rec, err
	}
	fail := func(err error) (*Log, Recovered, error) {
		closeAll(segs)
		return nil, rec, err
	}
	r := reader{c: &c, covered: covered, apply: apply}
	if err := r.read(segs); err != nil {
		return fail(err)
	}
	rec = r.rec
	rec.None = r.started == 0
	l.last = r.last
	for _, s := range segs[:r.first] {
		s.last = covered
		if err := s.file.Close(); err != nil {
			return fail(err)
		}
	}
	l.closed, segs = segs[:r.first:r.first], segs[r.first:]
	l.durable = l.last
	// What a killed process had only written must not be shown and then lost.
	for _, s := range segs[:r.started] {
		if err := s.file.Sync(); err != nil {
			return fail(fmt.Errorf("sync %s: %w", segmentName(s.id), err))
		}
	}
	return l, rec, l.resume(segs, &r)
}

// resume makes a segment current: the last one if it ended clean, the empty
// one after it, or a new one (L4).
func (l *Log) resume(segs []*segment, r *reader) error {
	for i, s := range segs[:r.started] {
		s.last = r.ends[i]
	}
	done := segs[:r.started]
	if n := r.started - 1; n >= 0 && r.clean {
		l.cur, l.off, l.ended = segs[n], r.off, true
		done = segs[:n]
	}
	l.closed = append(l.closed, done...)
	for _, s := range done {
		if err := s.file.Close(); err != nil {
			return err
		}
	}
	id := uint32(1)
	if r.started > 0 {
		id = segs[r.started-1].id + 1
	}
	if r.started < len(segs) {
		empty := segs[r.started]
		for _, s := range segs[r.started+1:] {
			if err := s.file.Close(); err != nil {
				return err
			}
		}
		if l.cur == nil {
			return l.begin(empty)
		}
		l.next = make(chan prepared, 1)
		l.next <- prepared{seg: empty}
		return nil
	}
	if l.cur != nil {
		return nil
	}
	l.prepareNext(id, l.c.firstBytes())
	p := <-l.next
	l.next = nil
	if p.err != nil {
		return p.err
	}
	return l.begin(p.seg)
}

// clean removes what a crash left of the preparation of segments.
func clean(fs fsys.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, ok := segmentID(name, "spare-"); ok || name == "segment.tmp" {
			if err := fs.Remove(path.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// list opens the segments in order of id.
func list(fs fsys.FS, dir string) (segs []*segment, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		id, ok := segmentID(name, "log-")
		if !ok {
			if strings.HasPrefix(name, "log-") {
				return nil, fmt.Errorf("%s: not a segment name", name)
			}
			continue
		}
		f, err := fs.Open(path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		segs = append(segs, &segment{file: f, id: id})
	}
	return segs, nil
}

// Read is Open for a reader: it changes nothing.
func Read(c Config, covered uint64, apply func(*Op) error) (last uint64, err error) {
	segs, err := list(c.FS, c.Dir)
	if err != nil {
		return 0, err
	}
	defer closeAll(segs)
	r := reader{c: &c, covered: covered, apply: apply}
	err = r.read(segs)
	return r.last, err
}

func closeAll(segs []*segment) {
	for _, s := range segs {
		// They were only read.
		_ = s.file.Close()
	}
}

// Salvage gives every valid operation after covered to apply, in order of
// number, and what it had to skip to lost. It changes nothing.
func Salvage(c Config, covered uint64, apply func(*Op) error, lost func(error)) error {
	segs, err := list(c.FS, c.Dir)
	if err != nil {
		return err
	}
	defer closeAll(segs)
	last := covered
	for _, s := range segs {
		b, err := readAll(s.file)
		if err != nil {
			lost(fmt.Errorf("read %s: %w", segmentName(s.id), err))
			continue
		}
		// Damage of the header does not make the records unreadable.
		if err := (&reader{c: &c}).head(s, b); err != nil {
			lost(err)
		}
		for off := int64(segmentHead); off < int64(len(b)); {
			p, ok := parse(b[off:], s.id)
			if !ok {
				off += align
				continue
			}
			// Start and end repeat the number of the last operation before them.
			mark := p.op.Type == typeStart || p.op.Type == typeEnd
			before := p.op.LSN
			if !mark {
				before--
			}
			if before > last {
				lost(&DamageError{File: path.Join(c.Dir, segmentName(s.id)), Offset: off, First: last + 1, Last: before, Reason: "records before this one are missing"})
				last = before
			}
			if off += p.size; mark || p.op.LSN <= last {
				continue
			}
			last = p.op.LSN
			if err := apply(&p.op); err != nil {
				return err
			}
		}
	}
	return nil
}

// reader goes through the segments once.
type reader struct {
	c       *Config
	covered uint64
	apply   func(*Op) error

	rec     Recovered
	first   int      // segments before this one are covered and were not read
	last    uint64   // the last number read
	started int      // segments that have a start record
	ends    []uint64 // the last number of each of those
	clean   bool     // the last record is an end
	off     int64    // where the last segment ends
}

func (r *reader) damage(s *segment, off int64, first, last uint64, reason string) error {
	if last < first {
		first, last = 0, 0
	}
	return &DamageError{File: path.Join(r.c.Dir, segmentName(s.id)), Offset: off, First: first, Last: last, Reason: reason}
}

// skip finds the first segment that is needed: the last one that starts at or
// below covered. Those before it may be incomplete in any way: they are being reclaimed, and
// a crash keeps any subset of removals.
func (r *reader) skip(segs []*segment) error {
	for i, s := range segs {
		b := make([]byte, segmentHead+endSize)
		if _, err := s.file.ReadAt(b, 0); err == io.EOF {
			continue
		} else if err != nil {
			return fmt.Errorf("read %s: %w", segmentName(s.id), err)
		}
		if id, size, err := parseHeader(r.c.Magic, b); err != nil || id != s.id {
			continue
		} else if p, ok := parse(b[segmentHead:], s.id); ok && p.op.Type == typeStart && p.op.LSN <= r.covered {
			r.first, s.size = i, size
		}
	}
	return nil
}

func (r *reader) read(all []*segment) error {
	if err := r.skip(all); err != nil {
		return err
	}
	segs := all[r.first:]
	var cur []byte
	var curStart uint64
	var prev *segment
	next := readAhead(segs)
	defer func() {
		if next != nil {
			<-next // the file must not be closed under it
		}
	}()
	for i, s := range segs {
		got := <-next
		if next = readAhead(segs[i+1:]); got.err != nil {
			return fmt.Errorf("read %s: %w", segmentName(s.id), got.err)
		}
		b := got.b
		if prev != nil && s.id != prev.id+1 {
			return r.damage(prev, 0, 0, 0, fmt.Sprintf("the segment after it is missing; the next is %s", segmentName(s.id)))
		}
		if err := r.head(s, b); err != nil {
			return err
		}
		start, ok, err := r.start(s, b)
		if err != nil {
			return err
		}
		if !ok {
			prev = s
			continue
		}
		if r.started < i {
			return r.damage(segs[r.started], segmentHead, 0, 0, "no start record, though a later segment has one")
		}
		if r.started > 0 {
			if err := r.segment(segs[i-1], cur, curStart, &start); err != nil {
				return err
			}
		} else if start > r.covered {
			return r.damage(s, segmentHead, r.covered+1, start, "the log begins too late")
		}
		cur, curStart, prev = b, start, s
		r.started++
	}
	if r.started == 0 {
		if r.last = r.covered; r.covered > 0 {
			return &DamageError{File: r.c.Dir, Reason: fmt.Sprintf("there is a checkpoint up to operation %d and no log; what was written after it", r.covered)}
		}
		return nil
	}
	last := segs[r.started-1]
	if err := r.segment(last, cur, curStart, nil); err != nil {
		return err
	}
	if r.last < r.covered {
		return r.damage(last, r.off, r.last+1, r.covered, "the log ends before the checkpoint that was made from it")
	}
	return nil
}

// contents is a segment that was read whole.
type contents struct {
	b   []byte
	err error
}

// readAhead reads the first of the segments while the caller works on the one before.
// It returns nil if there is none.
func readAhead(segs []*segment) chan contents {
	if len(segs) == 0 {
		return nil
	}
	ch := make(chan contents, 1)
	go func() {
		b, err := readAll(segs[0].file)
		ch <- contents{b, err}
	}()
	return ch
}

func (r *reader) head(s *segment, b []byte) error {
	id, size, err := parseHeader(r.c.Magic, b)
	switch {
	case err != nil:
		return r.damage(s, 0, 0, 0, err.Error())
	case id != s.id:
		return r.damage(s, 0, 0, 0, fmt.Sprintf("the header is that of %s", segmentName(id)))
	case size != int64(len(b)):
		return r.damage(s, int64(len(b)), 0, 0, fmt.Sprintf("the file has %d bytes and should have %d", len(b), size))
	}
	s.size = size
	return nil
}

// start reads the start record. ok is false for a segment that was prepared and
// never used.
func (r *reader) start(s *segment, b []byte) (last uint64, ok bool, err error) {
	if p, ok := parse(b[segmentHead:], s.id); ok && p.op.Type == typeStart {
		return p.op.LSN, true, nil
	}
	if p, off, ok := later(b, segmentHead+align, s.id, 0); ok {
		return 0, false, r.damage(s, segmentHead, 0, 0, fmt.Sprintf("start record damaged; operation %d follows at offset %d", p.op.LSN, off))
	}
	return 0, false, nil
}

// later finds the first valid record of the segment from off on that proves
// something durable at or beyond the given number.
func later(b []byte, off int64, id uint32, durable uint64) (p parsed, at int64, ok bool) {
	for off = (off + align - 1) / align * align; off+recordHead < int64(len(b)); off += align {
		if binary.LittleEndian.Uint32(b[off+16:]) != id {
			continue // as parse would say, and most of a segment may be zeros
		}
		if p, ok := parse(b[off:], id); ok && p.durable >= durable {
			return p, off, true
		}
	}
	return p, 0, false
}

// segment reads the records of s. next is the last number before the segment after it, nil
// if s is the last.
func (r *reader) segment(s *segment, b []byte, start uint64, next *uint64) error {
	if r.started > 1 && next == nil || len(r.ends) > 0 {
		if start != r.last {
			return r.damage(s, segmentHead, r.last+1, start, "the segment does not continue the one before")
		}
	}
	r.last, r.clean = start, false
	first, _ := parse(b[segmentHead:], s.id)
	off := segmentHead + first.size
	for next == nil || r.last < *next {
		p, ok := parse(b[min(off, int64(len(b))):], s.id)
		if ok && p.op.Type == typeEnd && p.op.LSN == r.last {
			r.clean = true
			off += p.size
			continue
		}
		if !ok || p.op.LSN != r.last+1 || p.op.Type == typeStart || p.op.Type == typeEnd {
			break
		}
		r.clean = false
		r.last++
		off += p.size
		if r.last > r.covered {
			r.rec.Replayed++
			if err := r.apply(&p.op); err != nil {
				return err
			}
		}
	}
	r.off = off
	r.ends = append(r.ends, r.last)
	if next != nil {
		if r.last < *next {
			return r.damage(s, off, r.last+1, *next, "record damaged")
		}
		return nil
	}
	return r.tail(s, b, off)
}

// tail decides what the first invalid record is (L3).
func (r *reader) tail(s *segment, b []byte, off int64) error {
	if p, at, ok := later(b, off, s.id, r.last+1); ok {
		return r.damage(s, off, r.last+1, p.durable, fmt.Sprintf("record damaged; operation %d at offset %d proves that it was synced", p.op.LSN, at))
	}
	for _, c := range b[min(off, int64(len(b))):] {
		if c != 0 {
			// Also the remains of an earlier life of the file, where nothing was torn.
			if !r.clean {
				r.rec.Cut, r.rec.CutFile, r.rec.CutAt = true, segmentName(s.id), off
			}
			break
		}
	}
	return nil
}
