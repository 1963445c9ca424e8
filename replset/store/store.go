// Package store keeps versions of documents, their index keys, the catalogue of
// collections and the sessions' records in one pebble database. It knows keys,
// versions and bytes; it must never know who decided a write, or what a filter
// is.
//
// # Writes are blind
//
// Effects say exactly which versions and index keys appear and disappear;
// applying them reads nothing. Whoever made them, under the latches of the
// documents, knew the old versions and computed the keys. Every member therefore
// applies the same bytes at the same cost, several entries can share a batch,
// and an entry applied twice gives the same state.
//
// # Keys
//
//	'd' collection(4) document-key ^timestamp(8)  →  kind(1) document
//	'i' index(4) index-key document-key ^timestamp(8)  →  kind(1) document-key
//	'c' collection(4)  →  the collection, BSON
//	'e' timestamp(8)  →  the entry's events, see History
//	'h'                  →  the horizon up to which versions may be gone
//	's' session id  →  timestamp(8) the session's record
//
// Numbers are big-endian and timestamps inverted, so that a scan meets a
// document's versions together and the newest first. Document and index keys are
// prefix-free, so that no key's versions can be mistaken for another's. 'l' and
// 'm' belong to the log, see package consensus.
//
// # Invariants
//
//  1. A document's version and the index keys that go with it are in one batch.
//  2. An index key is live at a timestamp exactly if the document's version at
//     that timestamp has the key. (Check verifies this for the newest versions.)
//  3. A version is removed only when a newer one is at or below the horizon: no
//     reader at or above the horizon can miss it.
package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

const (
	documents  = 'd'
	indexes    = 'i'
	catalogues = 'c'
	sessions   = 's'
	horizons   = 'h'

	live = 1
	gone = 0

	stampSize = 8
)

// Latest reads the newest version.
const Latest = ^uint64(0)

// Store is a member's state. Its methods may be used concurrently; Apply is
// called by one goroutine at a time.
type Store struct {
	db        *pebble.DB
	catalogue atomic.Pointer[Catalogue]
	next      *Catalogue // built by Apply, shown by Visible
	doomed    sync.Map   // when the collection of a number was dropped last, or is about to be
	visible   atomic.Uint64
	recent    recent

	sweeping sync.Mutex // while a sweep commits; before mu

	mu      sync.Mutex
	pins    map[*Pin]uint64
	trash   []old
	horizon uint64 // what Sweep has been through
	began   uint64 // up to where nobody noted here what was replaced
	epoch   int    // states adopted
	past    past
}

// New reads the catalogue of the database, which may be empty. Nothing is visible before the
// first call of Visible.
func New(db *pebble.DB) (*Store, error) {
	s := &Store{db: db, pins: map[*Pin]uint64{}, past: past{limit: DefaultHistory}}
	c, err := readCatalogue(db)
	if err != nil {
		return nil, err
	}
	s.catalogue.Store(c)
	s.next = c
	if s.horizon, err = readHorizon(db); err != nil {
		return nil, err
	}
	return s, s.readHistory()
}

// Catalogue is the collections that are visible now. It must not be changed.
func (s *Store) Catalogue() *Catalogue { return s.catalogue.Load() }

// Stamp is the timestamp of the newest entry that is visible.
func (s *Store) Stamp() uint64 { return s.visible.Load() }

// Apply adds the effects at a timestamp to the batch. They are visible after
// the batch was committed and Visible was called.
func (s *Store) Apply(b *pebble.Batch, stamp uint64, e *Effects) error {
	for _, c := range e.Changes {
		prefix := documentPrefix(c.Collection, c.Key)
		s.recent.stage(prefix, c.Document, stamp)
		key := versionKey(prefix, stamp)
		if c.Document == nil {
			if err := b.Set(key, []byte{gone}, nil); err != nil {
				return err
			}
		} else if err := setLive(b, key, c.Document); err != nil {
			return err
		}
		s.replaced(stamp, key)
		for _, k := range c.Remove {
			key := versionKey(entryPrefix(k.Index, k.Key, c.Key), stamp)
			if err := b.Set(key, []byte{gone}, nil); err != nil {
				return err
			}
			s.replaced(stamp, key)
		}
		for _, k := range c.Add {
			if err := setLive(b, versionKey(entryPrefix(k.Index, k.Key, c.Key), stamp), c.Key); err != nil {
				return err
			}
		}
	}
	for _, x := range e.Entries {
		if err := setLive(b, versionKey(entryPrefix(x.Index, x.Key, x.Document), stamp), x.Document); err != nil {
			return err
		}
	}
	for _, r := range e.Sessions {
		key := append([]byte{sessions}, r.ID...)
		s.recent.stage(key, r.Record, stamp)
		if len(r.Record) == 0 {
			if err := b.Delete(key, nil); err != nil {
				return err
			}
			continue
		}
		if err := b.Set(key, append(binary.BigEndian.AppendUint64(nil, stamp), r.Record...), nil); err != nil {
			return err
		}
	}
	if err := s.record(b, stamp, e); err != nil {
		return err
	}
	return s.applyCatalogue(b, stamp, e)
}

func setLive(b *pebble.Batch, key, doc []byte) error {
	op := b.SetDeferred(len(key), 1+len(doc))
	copy(op.Key, key)
	op.Value[0] = live
	copy(op.Value[1:], doc)
	return op.Finish()
}

func (s *Store) applyCatalogue(b *pebble.Batch, stamp uint64, e *Effects) error {
	if len(e.Put) == 0 && len(e.Drop) == 0 && len(e.DropIndexes) == 0 {
		return nil
	}
	next := s.next.clone()
	for _, c := range e.Put {
		c = next.settle(c, stamp)
		doc, err := c.encode()
		if err != nil {
			return err
		}
		if err := b.Set(number(catalogues, c.ID), doc, nil); err != nil {
			return err
		}
		next.put(c, stamp)
	}
	for _, id := range e.DropIndexes {
		if err := b.DeleteRange(number(indexes, id), number(indexes, id+1), nil); err != nil {
			return err
		}
	}
	for _, id := range e.Drop {
		// Before the batch is committed, so that no reader can find the documents gone
		// and not know why.
		s.doomed.Store(id, stamp)
		if err := b.Delete(number(catalogues, id), nil); err != nil {
			return err
		}
		if err := b.DeleteRange(number(documents, id), number(documents, id+1), nil); err != nil {
			return err
		}
		next.drop(id, stamp)
		s.recent.stageAll()
	}
	if next.used != s.next.used {
		// A collection that is dropped leaves no other trace, and its number must not
		// come again: latches, cursors and whatever else goes by numbers may outlive it.
		if err := b.Set(usedKey, binary.BigEndian.AppendUint32(nil, next.used), nil); err != nil {
			return err
		}
	}
	s.next = next
	return nil
}

// Visible says that everything up to the timestamp has been committed.
func (s *Store) Visible(stamp uint64) {
	s.recent.publish()
	if s.visible.Load() == 0 {
		// What had which name before this process began is not known, nor what was replaced.
		s.next = s.next.clone()
		s.next.floor = stamp
		s.mu.Lock()
		s.began = stamp
		s.mu.Unlock()
	}
	s.catalogue.Store(s.next)
	if stamp > s.visible.Load() {
		s.visible.Store(stamp)
	}
}

// Dropped says whether the collection that had a number at a timestamp has been
// dropped since, or is just being. Another one may have the number by now.
func (s *Store) Dropped(id uint32, at uint64) bool {
	stamp, dropped := s.doomed.Load(id)
	return dropped && stamp.(uint64) > at
}

func number(kind byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, id)
}

func documentPrefix(collection uint32, key []byte) []byte {
	b := make([]byte, 0, 5+len(key)+stampSize)
	return append(binary.BigEndian.AppendUint32(append(b, documents), collection), key...)
}

func entryPrefix(index uint32, key, document []byte) []byte {
	b := make([]byte, 0, 5+len(key)+len(document)+stampSize)
	return append(append(binary.BigEndian.AppendUint32(append(b, indexes), index), key...), document...)
}

func versionKey(prefix []byte, stamp uint64) []byte {
	return binary.BigEndian.AppendUint64(prefix, ^stamp)
}

// splitVersion takes a key apart.
func splitVersion(key []byte) (prefix []byte, stamp uint64) {
	n := len(key) - stampSize
	return key[:n], ^binary.BigEndian.Uint64(key[n:])
}

// Get returns the version of a document at a timestamp, and the timestamp at
// which that version was written. The document is nil where there is none then;
// written tells when it was removed, 0 if never there.
func (s *Store) Get(collection uint32, key []byte, at uint64) (doc bsoncore.Document, written uint64, err error) {
	prefix := documentPrefix(collection, key)
	if doc, written, ok := s.recent.get(prefix, at); ok {
		return doc, written, nil
	}
	return s.read(prefix, at)
}

// read is Get from the database.
func (s *Store) read(prefix []byte, at uint64) (doc bsoncore.Document, written uint64, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: versionKey(bytes.Clone(prefix), at), UpperBound: versionKey(bytes.Clone(prefix), 0)})
	if err != nil {
		return nil, 0, err
	}
	defer it.Close()
	if !it.First() {
		return nil, 0, it.Error()
	}
	_, written = splitVersion(it.Key())
	v, err := it.ValueAndErr()
	if err != nil {
		return nil, 0, err
	}
	if v[0] == gone {
		return nil, written, nil
	}
	return bytes.Clone(v[1:]), written, nil
}

// Session returns a session's record and when it was written; nil if there is none.
func (s *Store) Session(id []byte) (record []byte, written uint64, err error) {
	key := append([]byte{sessions}, id...)
	if record, written, ok := s.recent.get(key, Latest); ok {
		return record, written, nil
	}
	v, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer closer.Close()
	if len(v) < stampSize {
		return nil, 0, fmt.Errorf("session %x has a record of %d bytes", id, len(v))
	}
	return bytes.Clone(v[stampSize:]), binary.BigEndian.Uint64(v), nil
}

// StaleSessions are the ids of sessions whose record was written before a
// timestamp, at most so many.
func (s *Store) StaleSessions(before uint64, most int) ([][]byte, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{sessions}, UpperBound: []byte{sessions + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var out [][]byte
	for it.First(); it.Valid() && len(out) < most; it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		if len(v) >= stampSize && binary.BigEndian.Uint64(v) < before {
			out = append(out, bytes.Clone(it.Key()[1:]))
		}
	}
	return out, it.Error()
}

// Catalogue is the collections by name and number.
type Catalogue struct {
	byName map[string]*Collection
	byID   map[uint32]*Collection
	used   uint32 // the highest number that a collection or an index has ever had

	past  map[string]uint64 // names that were given up, and when last
	floor uint64            // before it nothing is known of names that were given up
}

func newCatalogue() *Catalogue {
	return &Catalogue{byName: map[string]*Collection{}, byID: map[uint32]*Collection{}, past: map[string]uint64{}}
}

func (c *Catalogue) clone() *Catalogue {
	return &Catalogue{byName: maps.Clone(c.byName), byID: maps.Clone(c.byID), past: maps.Clone(c.past), floor: c.floor, used: c.used}
}

func (c *Catalogue) put(col *Collection, stamp uint64) {
	if was := c.byID[col.ID]; was != nil && was.Name != col.Name {
		c.unname(col.ID, stamp)
	}
	c.byID[col.ID], c.byName[col.Name] = col, col
	c.used = max(c.used, col.ID)
	for _, x := range col.Indexes {
		c.used = max(c.used, x.ID)
	}
}

// usedKey is where used is kept: that of the collection that there never is.
var usedKey = number(catalogues, 0)

// load takes in what is stored under a key of the catalogue.
func (c *Catalogue) load(key, value []byte) error {
	if bytes.Equal(key, usedKey) {
		if len(value) != 4 {
			return fmt.Errorf("catalogue: the highest number has %d bytes", len(value))
		}
		c.used = max(c.used, binary.BigEndian.Uint32(value))
		return nil
	}
	col, err := decodeCollection(value)
	if err != nil {
		return err
	}
	c.put(col, 0)
	return nil
}

// settle completes an entry by what only the order of entries decides: since
// when an index has been there, and that an index which became multikey by one
// entry stays so through the next.
func (c *Catalogue) settle(col *Collection, stamp uint64) *Collection {
	out := *col
	out.Indexes = slices.Clone(col.Indexes)
	out.Named = stamp
	if was := c.byID[col.ID]; was != nil && was.Name == col.Name {
		out.Named = was.Named
	}
	for i := range out.Indexes {
		x := &out.Indexes[i]
		if x.Since == 0 {
			x.Since = stamp
		}
		if was := c.byID[col.ID]; was != nil {
			for _, y := range was.Indexes {
				if y.ID == x.ID {
					x.Multikey, x.Since = x.Multikey || y.Multikey, y.Since
				}
			}
		}
	}
	return &out
}

func (c *Catalogue) drop(id uint32, stamp uint64) {
	c.unname(id, stamp)
	delete(c.byID, id)
}

// unname gives up a collection's name, unless another one has it by now.
func (c *Catalogue) unname(id uint32, stamp uint64) {
	was := c.byID[id]
	if was == nil || c.byName[was.Name] != was {
		return
	}
	delete(c.byName, was.Name)
	if len(c.past) >= maxPastNames {
		clear(c.past)
		c.floor = stamp
	}
	c.past[was.Name] = stamp
}

// maxPastNames bounds what is remembered of names that were given up.
const maxPastNames = 4096

// At returns the collection that had a name at a timestamp, nil if none had. known is
// false if one had it that is gone, or may have: its documents cannot be read any more.
func (c *Catalogue) At(name string, at uint64) (col *Collection, known bool) {
	if col = c.byName[name]; col != nil && col.Named <= at {
		return col, true
	}
	return nil, at >= c.floor && c.past[name] <= at
}

// Collection returns the collection of that namespace, nil if there is none.
func (c *Catalogue) Collection(name string) *Collection { return c.byName[name] }

// All returns the collections in no particular order.
func (c *Catalogue) All() []*Collection {
	out := make([]*Collection, 0, len(c.byName))
	for _, col := range c.byName {
		out = append(out, col)
	}
	return out
}

// NextID is a number that no collection or index has had.
func (c *Catalogue) NextID() uint32 {
	return c.used + 1
}

func readCatalogue(db *pebble.DB) (*Catalogue, error) {
	c := newCatalogue()
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{catalogues}, UpperBound: []byte{catalogues + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		if err := c.load(it.Key(), v); err != nil {
			return nil, err
		}
	}
	return c, it.Error()
}
