package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Effects are what one entry changes: everything, and nothing that would have
// to be looked up.
type Effects struct {
	Changes  []Change
	Sessions []SessionRecord

	Entries []Entry // of documents that stay as they are: a new index

	Put         []*Collection // new or changed
	Drop        []uint32      // collections, with their documents
	DropIndexes []uint32

	Notices []bsoncore.Document // of changes that are not of documents, for change streams
}

// Change is a document's new version.
type Change struct {
	Collection uint32
	Key        []byte
	Document   bsoncore.Document // nil removes
	Add        []IndexKey        // keys that the new version has and the old had not
	Remove     []IndexKey        // the other way round

	// What change streams tell beside the document.
	Kind ChangeKind
	Note bsoncore.Document // of a removal the _id, of an update what it did

	Images bool              // the collection keeps images of its documents
	Before bsoncore.Document // the image before the change
}

// hasImages is the bit beside the kind.
const hasImages = 1 << 6

func (c *Change) kindByte() byte {
	if c.Images {
		return byte(c.Kind) | hasImages
	}
	return byte(c.Kind)
}

func (c *Change) setKind(b int) {
	c.Kind, c.Images = ChangeKind(b&^hasImages), b&hasImages != 0
}

// ChangeKind is what happened to a document.
type ChangeKind byte

// The kinds of changes. A document that an entry makes and removes again is in no
// change.
const (
	Inserted ChangeKind = iota
	Updated
	Replaced
	Removed
)

// IndexKey is one key of a document in one index.
type IndexKey struct {
	Index uint32
	Key   []byte
}

// Entry is an index key of a document.
type Entry struct {
	Index    uint32
	Key      []byte
	Document []byte // its key
}

// SessionRecord is what a session must remember of its last write.
type SessionRecord struct {
	ID     []byte
	Record []byte // empty removes
}

// Collection is an entry of the catalogue. It must not be changed once it is in
// one.
type Collection struct {
	ID      uint32        `bson:"id"`
	Name    string        `bson:"ns"` // database.collection
	UUID    bson.Binary   `bson:"uuid"`
	Options bson.Raw      `bson:"options,omitempty"`
	Indexes []IndexRecord `bson:"indexes,omitempty"`
	// Named is the entry by which it got its name, set when that is applied.
	Named uint64 `bson:"named,omitempty"`
}

// IndexRecord is an index as it was asked for.
type IndexRecord struct {
	ID   uint32   `bson:"id"`
	Name string   `bson:"name"`
	Spec bson.Raw `bson:"spec"` // key, unique, partialFilterExpression, …
	// Since is the entry that made the index, set when that is applied: who
	// reads at an earlier timestamp cannot use it.
	Since uint64 `bson:"since"`
	// Multikey: a document has had several keys in it.
	Multikey bool `bson:"multikey,omitempty"`
}

func (c *Collection) encode() ([]byte, error) { return bson.Marshal(c) }

func decodeCollection(b []byte) (*Collection, error) {
	c := &Collection{}
	if err := bson.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	return c, nil
}

// effectsVersion is the first byte of encoded effects.
const effectsVersion = 2

// Encode writes the effects as an entry's data.
func (e *Effects) Encode() ([]byte, error) {
	size := 64
	for i := range e.Changes {
		c := &e.Changes[i]
		size += len(c.Key) + len(c.Document) + len(c.Note) + len(c.Before) + 32
	}
	for _, s := range e.Sessions {
		size += len(s.ID) + len(s.Record) + 16
	}
	b := append(make([]byte, 0, size), effectsVersion)
	text := func(p []byte) {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	keys := func(list []IndexKey) {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, k := range list {
			b = binary.AppendUvarint(b, uint64(k.Index))
			text(k.Key)
		}
	}
	ids := func(list []uint32) {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, id := range list {
			b = binary.AppendUvarint(b, uint64(id))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(e.Changes)))
	for _, c := range e.Changes {
		b = binary.AppendUvarint(b, uint64(c.Collection))
		text(c.Key)
		// An empty document has five bytes, so that no length means removal.
		text(c.Document)
		keys(c.Add)
		keys(c.Remove)
		b = append(b, c.kindByte())
		text(c.Note)
		text(c.Before)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Sessions)))
	for _, s := range e.Sessions {
		text(s.ID)
		text(s.Record)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Put)))
	for _, c := range e.Put {
		doc, err := c.encode()
		if err != nil {
			return nil, err
		}
		text(doc)
	}
	ids(e.Drop)
	ids(e.DropIndexes)
	b = binary.AppendUvarint(b, uint64(len(e.Entries)))
	for _, x := range e.Entries {
		b = binary.AppendUvarint(b, uint64(x.Index))
		text(x.Key)
		text(x.Document)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Notices)))
	for _, n := range e.Notices {
		text(n)
	}
	return b, nil
}

var errShort = errors.New("effects that end in the middle")

// decoder takes encoded effects apart; after an error everything is empty.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) count() int {
	if d.err != nil {
		return 0
	}
	n, w := binary.Uvarint(d.b)
	if w <= 0 {
		d.err = errShort
		return 0
	}
	d.b = d.b[w:]
	return int(min(n, 1<<31))
}

// many is a number of things of at least one byte each, so that a damaged count
// cannot ask for more memory than there is data.
func (d *decoder) many() int {
	n := d.count()
	if n > len(d.b) {
		d.err = errShort
		return 0
	}
	return n
}

func (d *decoder) text() []byte {
	n := d.many()
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) keys() []IndexKey {
	var out []IndexKey
	for range d.many() {
		out = append(out, IndexKey{uint32(d.count()), d.text()})
	}
	return out
}

func (d *decoder) ids() []uint32 {
	var out []uint32
	for range d.many() {
		out = append(out, uint32(d.count()))
	}
	return out
}

// DecodeEffects reads what Encode wrote. The result aliases b.
func DecodeEffects(b []byte) (*Effects, error) {
	if len(b) == 0 || b[0] != effectsVersion {
		return nil, fmt.Errorf("effects of an unknown version: %x", b[:min(len(b), 1)])
	}
	d := &decoder{b: b[1:]}
	e := &Effects{}
	for range d.many() {
		c := Change{Collection: uint32(d.count()), Key: d.text()}
		if doc := d.text(); len(doc) > 0 {
			c.Document = doc
		}
		c.Add, c.Remove = d.keys(), d.keys()
		c.setKind(d.count())
		if note := d.text(); len(note) > 0 {
			c.Note = note
		}
		if before := d.text(); len(before) > 0 {
			c.Before = before
		}
		e.Changes = append(e.Changes, c)
	}
	for range d.many() {
		e.Sessions = append(e.Sessions, SessionRecord{d.text(), d.text()})
	}
	for range d.many() {
		doc := d.text()
		if d.err != nil {
			break
		}
		c, err := decodeCollection(bytes.Clone(doc))
		if err != nil {
			return nil, err
		}
		e.Put = append(e.Put, c)
	}
	e.Drop, e.DropIndexes = d.ids(), d.ids()
	for range d.many() {
		e.Entries = append(e.Entries, Entry{uint32(d.count()), d.text(), d.text()})
	}
	for range d.many() {
		e.Notices = append(e.Notices, d.text())
	}
	if d.err != nil {
		return nil, d.err
	}
	if len(d.b) > 0 {
		return nil, fmt.Errorf("effects with %d bytes too many", len(d.b))
	}
	return e, nil
}
