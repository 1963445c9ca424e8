package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// # History
//
//	'e' timestamp(8)  →  names, changes and notices of the entry
//	'e' zero(8)       →  timestamp up to which the history was given up
//
// The history is what a change stream reads: the documents' part of each entry, in
// the order of the log, written in the batch that applies the entry. It is a
// copy. The log itself cannot be read instead, because it is cut off when a
// snapshot is taken and a member that was sent a snapshot never had it; nor
// can the versions, because they go when a collection is dropped and when
// nobody can ask for them any more, and say nothing about the order of keys.
//
// Being a function of the log it is the same on every member, and it is in the
// snapshot that a member catches up with, so that a stream goes on anywhere. What is
// kept is bounded in bytes, by each member for itself; the mark of what is gone
// is in the same database, so that a reader knows whether anything is missing.

// history is the key prefix of the history.
const history = 'e'

// DefaultHistory is how many bytes of history are kept unless told otherwise.
const DefaultHistory = 16 << 20

// ErrHistoryLost says that entries which were asked for are no longer there.
var ErrHistoryLost = errors.New("the history does not reach back that far")

// Event is what happened to one document, or a notice.
type Event struct {
	Namespace string // when it happened
	UUID      bson.Binary
	Change                      // its keys left out
	Notice    bsoncore.Document // alone, if it is no change of a document
}

// Record is the events of one entry.
type Record struct {
	Stamp  uint64
	Events []Event
}

// past is the extent of the history.
type past struct {
	limit  int64
	total  int64
	sizes  []extent // oldest first
	gone   uint64   // all at and below it has been given up
	marked uint64   // the mark in the database
}

type extent struct {
	stamp uint64
	size  int64
}

func historyKey(stamp uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{history}, stamp)
}

func (p *past) note(key, v []byte) {
	if len(key) != 1+stampSize {
		return
	}
	stamp := binary.BigEndian.Uint64(key[1:])
	if stamp == 0 && len(v) == stampSize {
		p.gone = binary.BigEndian.Uint64(v)
		p.marked = p.gone
		return
	}
	p.sizes = append(p.sizes, extent{stamp, int64(len(key) + len(v))})
	p.total += int64(len(key) + len(v))
}

func (s *Store) readHistory() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{history}, UpperBound: []byte{history + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		s.past.note(it.Key(), v)
	}
	return it.Error()
}

// SetHistory says how many bytes of history to keep.
func (s *Store) SetHistory(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.limit = bytes
}

// record adds an entry's events to the batch. Names are those that the collections
// have when the entry is applied.
func (s *Store) record(b *pebble.Batch, stamp uint64, e *Effects) error {
	if len(e.Changes) == 0 && len(e.Notices) == 0 {
		return nil
	}
	key, v := historyKey(stamp), s.encodeHistory(e)
	s.mu.Lock()
	s.past.note(key, v)
	s.mu.Unlock()
	return b.Set(key, v, nil)
}

func (s *Store) encodeHistory(e *Effects) []byte {
	var ids []uint32 // few
	var names []*Collection
	size := 16
	for i := range e.Changes {
		c := &e.Changes[i]
		size += len(c.Document) + len(c.Note) + len(c.Before) + 16
		if slices.Contains(ids, c.Collection) {
			continue
		}
		ids = append(ids, c.Collection)
		names = append(names, s.named(c.Collection, e))
	}
	b := make([]byte, 0, size+64*len(names))
	text := func(p []byte) {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, c := range names {
		b = binary.AppendUvarint(b, uint64(len(c.Name)))
		b = append(b, c.Name...)
		text(c.UUID.Data)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Changes)))
	for i := range e.Changes {
		c := &e.Changes[i]
		b = binary.AppendUvarint(b, uint64(slices.Index(ids, c.Collection)))
		b = append(b, c.kindByte())
		text(c.Document)
		text(c.Note)
		text(c.Before)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Notices)))
	for _, n := range e.Notices {
		text(n)
	}
	return b
}

// named is a collection as an entry finds it, which may be the one that makes it.
func (s *Store) named(id uint32, e *Effects) *Collection {
	if c := s.next.byID[id]; c != nil {
		return c
	}
	for _, c := range e.Put {
		if c.ID == id {
			return c
		}
	}
	return &Collection{}
}

func decodeHistory(v []byte) ([]Event, error) {
	d := &decoder{b: v}
	type name struct {
		ns   string
		uuid bson.Binary
	}
	var names []name
	for range d.many() {
		names = append(names, name{string(d.text()), bson.Binary{Subtype: 4, Data: d.text()}})
	}
	var changes, out []Event
	for range d.many() {
		n := d.count()
		var ev Event
		ev.setKind(d.count())
		ev.Document, ev.Note, ev.Before = d.text(), d.text(), d.text()
		if n >= len(names) {
			return nil, errShort
		}
		ev.Namespace, ev.UUID = names[n].ns, names[n].uuid
		changes = append(changes, ev)
	}
	for range d.many() {
		out = append(out, Event{Notice: d.text()})
	}
	// What an entry makes it makes before it puts documents there.
	return append(out, changes...), d.err
}

// readBytes is about how much of the history one call of History reads.
const readBytes = 1 << 20

// History returns entries with events, in order, that were made at the timestamps
// from to to, both included: the first of them, at least one if there is any. What is
// not visible yet must not be asked for. Error: ErrHistoryLost.
func (s *Store) History(from, to uint64) ([]Record, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{history}, UpperBound: historyKey(to + 1)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	// The mark comes first and from the same state, so that nothing can be given up
	// between the two.
	if it.First() && bytes.Equal(it.Key(), historyKey(0)) {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		if len(v) == stampSize && from <= binary.BigEndian.Uint64(v) {
			return nil, ErrHistoryLost
		}
	}
	var out []Record
	size := 0
	for it.SeekGE(historyKey(max(from, 1))); it.Valid() && size < readBytes; it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		size += len(v)
		events, err := decodeHistory(bytes.Clone(v))
		if err != nil {
			return nil, err
		}
		out = append(out, Record{binary.BigEndian.Uint64(it.Key()[1:]), events})
	}
	return out, it.Error()
}

// trimHistory gives up what is over the limit, the oldest first.
func (s *Store) trimHistory(b *pebble.Batch) error {
	s.mu.Lock()
	p := &s.past
	for p.total > p.limit && len(p.sizes) > 0 && p.sizes[0].stamp <= s.visible.Load() {
		p.gone = p.sizes[0].stamp
		p.total -= p.sizes[0].size
		p.sizes = p.sizes[1:]
	}
	gone, marked := p.gone, p.marked
	p.marked = gone
	s.mu.Unlock()
	if gone == marked {
		return nil
	}
	if err := b.DeleteRange(historyKey(1), historyKey(gone+1), nil); err != nil {
		return err
	}
	return b.Set(historyKey(0), binary.BigEndian.AppendUint64(nil, gone), nil)
}
