package store

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Found is one place of a scan: a document, or an index entry.
type Found struct {
	Key      []byte            // of the document
	Entry    []byte            // index key; nil in a scan of documents
	Document bsoncore.Document // nil in a scan of an index
	Written  uint64            // timestamp of this version
}

// Range are bounds on document or index keys; nil is unbounded.
type Range struct {
	Low, High []byte // both inclusive, as prefixes
	Below     []byte // exclusive, in place of High
}

// Scan walks documents, or an index, as of one timestamp. It must be closed.
type Scan struct {
	it      *pebble.Iterator
	at      uint64
	reverse bool
	index   bool
	skip    int // bytes in front of the document or index key
	last    []byte
	started bool
}

// Documents scans a collection in the order of document keys.
func (s *Store) Documents(collection uint32, r Range, at uint64, reverse bool) (*Scan, error) {
	return s.scan(number(documents, collection), r, at, reverse, false)
}

// Entries scans an index in the order of its keys. The documents are the
// caller's to get, at the same timestamp.
func (s *Store) Entries(index uint32, r Range, at uint64, reverse bool) (*Scan, error) {
	return s.scan(number(indexes, index), r, at, reverse, true)
}

func (s *Store) scan(prefix []byte, r Range, at uint64, reverse, index bool) (*Scan, error) {
	low := append(bytes.Clone(prefix), r.Low...)
	high := after(append(bytes.Clone(prefix), r.High...))
	if r.Below != nil {
		high = append(bytes.Clone(prefix), r.Below...)
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: high})
	if err != nil {
		return nil, err
	}
	return &Scan{it: it, at: at, reverse: reverse, index: index, skip: len(prefix)}, nil
}

// after is the first key that does not start with prefix.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			p := bytes.Clone(prefix[:i+1])
			p[i]++
			return p
		}
	}
	return nil
}

// Next returns the next live place as of the scan's timestamp; ok is false at
// the end.
func (sc *Scan) Next() (f Found, ok bool, err error) {
	for sc.advance() {
		prefix, _ := splitVersion(sc.it.Key())
		sc.last = append(sc.last[:0], prefix...)
		// From here the newest version at or below the timestamp, whichever
		// way the scan goes.
		if !sc.it.SeekGE(versionKey(bytes.Clone(prefix), sc.at)) {
			if err := sc.it.Error(); err != nil {
				return f, false, err
			}
			continue
		}
		found, written := splitVersion(sc.it.Key())
		if !bytes.Equal(found, sc.last) {
			continue
		}
		v, err := sc.it.ValueAndErr()
		if err != nil {
			return f, false, err
		}
		if v[0] == gone {
			continue
		}
		f = Found{Key: bytes.Clone(sc.last[sc.skip:]), Written: written}
		if sc.index {
			f.Entry, f.Key = f.Key[:len(f.Key)-len(v)+1], bytes.Clone(v[1:])
		} else {
			f.Document = bytes.Clone(v[1:])
		}
		return f, true, nil
	}
	return f, false, sc.it.Error()
}

// advance moves to some version of the next place.
func (sc *Scan) advance() bool {
	switch {
	case !sc.started && sc.reverse:
		sc.started = true
		return sc.it.Last()
	case !sc.started:
		sc.started = true
		return sc.it.First()
	case sc.reverse:
		return sc.it.SeekLT(versionKey(bytes.Clone(sc.last), Latest))
	}
	return sc.it.SeekGE(append(versionKey(bytes.Clone(sc.last), 0), 0))
}

// Close ends the scan.
func (sc *Scan) Close() error { return sc.it.Close() }
