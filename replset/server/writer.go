package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/assaylab/assay/replset/internal/defect"
	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

// errBusy is returned in the middle of a batch, mostly because a latch is held by
// somebody else: propose what was gathered first, then try again.
var errBusy = errors.New("the batch must be proposed first")

// writer gathers the writes of one entry and holds their latches: of one
// command's batch, or of a whole transaction.
type writer struct {
	s    *Server
	hold *holder
	term uint64
	at   uint64 // the transaction's snapshot; 0 outside one

	bypass bool // of the collections' validators

	docs    map[docID]*pendingDoc
	order   []*pendingDoc  // as they were first written
	counts  map[uint32]int // documents by collection
	unique  map[string][]byte
	created map[string]*collection // by a transaction
	effects store.Effects          // what is not a document
	bytes   int
}

type docID struct {
	col uint32
	key string
}

// pendingDoc is a document that the entry will change.
type pendingDoc struct {
	col *collection
	key []byte
	was document // committed; nil is none
	now document

	replaced bool // as a whole, which change streams tell from an update
}

func (s *Server) writer(term uint64) *writer {
	// Most have one document or none; maps are made when something comes into them.
	return &writer{s: s, hold: s.latches.holder(), term: term}
}

// find returns a collection as the writer sees it.
func (w *writer) find(ns string) (*collection, error) {
	if c := w.created[ns]; c != nil {
		return c, nil
	}
	return w.s.find(ns)
}

func (w *writer) touches(col uint32) bool { return w.counts[col] > 0 }

func (w *writer) pending(col uint32, key []byte) *pendingDoc { return w.docs[docID{col, string(key)}] }

// sorted are the writer's documents of a collection in the order of their keys.
func (w *writer) sorted(col uint32) []pendingDoc {
	var out []pendingDoc
	for id, p := range w.docs {
		if id.col == col {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b pendingDoc) int { return bytes.Compare(a.key, b.key) })
	return out
}

func (w *writer) empty() bool {
	return len(w.docs) == 0 && len(w.created) == 0 && len(w.effects.Put)+len(w.effects.Drop)+len(w.effects.DropIndexes)+len(w.effects.Entries)+len(w.effects.Notices) == 0
}

func docLatch(col uint32, key []byte) string {
	return string(append([]byte{docKind, byte(col >> 24), byte(col >> 16), byte(col >> 8), byte(col)}, key...))
}

func keyLatch(index uint32, key []byte) string {
	return string(append([]byte{keyKind, byte(index >> 24), byte(index >> 16), byte(index >> 8), byte(index)}, key...))
}

func conflict() error {
	return errorf(codeWriteConflict, "Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your operation or multi-document transaction.")
}

// latch takes a latch by the rules of the package comment.
func (w *writer) latch(ctx context.Context, key string) error {
	switch {
	case w.hold.try(key, false):
		return nil
	case w.at != 0:
		return conflict()
	case len(w.docs) > 0:
		return errBusy
	}
	return w.hold.acquire(ctx, key, false)
}

// load takes the document's latch and reads its newest version.
func (w *writer) load(ctx context.Context, col *collection, key []byte) (document, error) {
	if p := w.pending(col.ID, key); p != nil {
		return p.now, nil
	}
	if err := w.latch(ctx, docLatch(col.ID, key)); err != nil {
		return nil, err
	}
	doc, written, err := w.s.m.Store.Get(col.ID, key, store.Latest)
	if err != nil {
		return nil, err
	}
	if w.at != 0 && written > w.at && w.s.o.Defect != defect.SecondUpdaterWins {
		return nil, conflict()
	}
	return doc, nil
}

// leave gives back the latch of a document that was loaded and stays as it is.
// A transaction keeps it.
func (w *writer) leave(col *collection, key []byte) {
	if w.at == 0 && w.pending(col.ID, key) == nil {
		w.hold.releaseOne(docLatch(col.ID, key))
	}
}

// set gives a document, which was loaded before, its new version; nil removes it.
// Error: 11000, and errBusy.
func (w *writer) set(ctx context.Context, col *collection, key []byte, was, now document) error {
	if now != nil && len(now) > value.MaxDocumentSize {
		return errorf(10334, "BSONObj size: %d is invalid. Size must be between 0 and %d(16MB)", len(now), value.MaxDocumentSize)
	}
	if now != nil && !w.bypass {
		if err := col.validate(was, now); err != nil {
			return err
		}
	}
	if err := w.checkUnique(ctx, col, key, was, now); err != nil {
		return err
	}
	id := docID{col.ID, string(key)}
	if p := w.docs[id]; p != nil {
		p.replaced = p.replaced || p.now == nil
		p.now = now
	} else {
		p = &pendingDoc{col: col, key: key, was: was, now: now}
		if w.docs == nil {
			w.docs, w.counts = map[docID]*pendingDoc{}, map[uint32]int{}
		}
		w.docs[id] = p
		w.order = append(w.order, p)
		w.counts[col.ID]++
	}
	w.bytes += len(key) + len(now)
	return nil
}

// claim is a unique key that a document gains or gives up.
type claim struct {
	index *index
	key   []byte
	gains bool
	latch string
}

func (w *writer) checkUnique(ctx context.Context, col *collection, key []byte, was, now document) error {
	var claims []claim
	for _, x := range col.indexes {
		had, _, err := x.keys(was)
		if err != nil {
			return err
		}
		has, _, err := x.keys(now)
		if err != nil {
			return err
		}
		if !x.unique {
			continue
		}
		for _, k := range lacking(has, had) {
			claims = append(claims, claim{x, k, true, keyLatch(x.ID, k)})
		}
		for _, k := range lacking(had, has) {
			claims = append(claims, claim{x, k, false, keyLatch(x.ID, k)})
		}
	}
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.latch, b.latch) })
	for _, c := range claims {
		if err := w.latch(ctx, c.latch); err != nil {
			return err
		}
		if c.gains {
			if err := w.checkFree(col, c, key, now); err != nil {
				return err
			}
		}
	}
	for _, c := range claims {
		if c.gains {
			if w.unique == nil {
				w.unique = map[string][]byte{}
			}
			w.unique[c.latch] = key
		} else if bytes.Equal(w.unique[c.latch], key) {
			delete(w.unique, c.latch)
		}
	}
	return nil
}

// checkFree refuses a key that another document has, committed or in this entry.
func (w *writer) checkFree(col *collection, c claim, key []byte, now document) error {
	if other := w.unique[c.latch]; other != nil && !bytes.Equal(other, key) {
		return duplicate(col, c.index.Name, c.index.key, now)
	}
	sc, err := w.s.m.Store.Entries(c.index.ID, store.Range{Low: c.key, High: c.key}, store.Latest, false)
	if err != nil {
		return err
	}
	defer sc.Close()
	for {
		f, ok, err := sc.Next()
		if err != nil || !ok {
			return err
		}
		if bytes.Equal(f.Key, key) {
			continue
		}
		if p := w.pending(col.ID, f.Key); p != nil {
			keys, _, err := c.index.keys(p.now)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, c.key) }) {
				continue
			}
		}
		if w.at != 0 && f.Written > w.at {
			return conflict()
		}
		return duplicate(col, c.index.Name, c.index.key, now)
	}
}

// duplicate is error 11000 with the fields of the key.
func duplicate(col *collection, name string, pattern, doc document) error {
	values := newDoc()
	for path := range value.Fields(pattern) {
		v := lookup(doc, path)
		if value.IsMissing(v) {
			v = value.Null
		}
		values.AppendValue(path, v)
	}
	kv := values.Build()
	return &Error{
		Code:    codeDuplicateKey,
		Message: "E11000 duplicate key error collection: " + col.Name + " index: " + name + " dup key: " + value.Show(value.Doc(kv)),
		Extra:   newDoc().AppendDocument("keyPattern", pattern).AppendDocument("keyValue", kv).Build(),
	}
}

func lookup(doc document, path string) query.Value {
	d := query.NewDistinct(path, nil)
	d.Add(doc)
	for v := range value.Elements(d.Values().Data) {
		return v
	}
	return value.Missing
}

// build makes the effects of what was gathered.
func (w *writer) build() (*store.Effects, error) {
	e := w.effects
	multikey := map[uint32]*store.Collection{}
	for _, p := range w.order {
		if p.was == nil && p.now == nil || p.was != nil && bytes.Equal(p.was, p.now) {
			continue
		}
		ch := p.change()
		for i, x := range p.col.indexes {
			had, _, err := x.keys(p.was)
			if err != nil {
				return nil, err
			}
			has, many, err := x.keys(p.now)
			if err != nil {
				return nil, err
			}
			for _, k := range lacking(has, had) {
				ch.Add = append(ch.Add, store.IndexKey{Index: x.ID, Key: k})
			}
			for _, k := range lacking(had, has) {
				ch.Remove = append(ch.Remove, store.IndexKey{Index: x.ID, Key: k})
			}
			if many && !x.Multikey {
				markMultikey(multikey, p.col, p.col.indexes[i].ID)
			}
		}
		e.Changes = append(e.Changes, ch)
	}
	for _, c := range w.created {
		if multikey[c.ID] == nil {
			multikey[c.ID] = c.Collection
		}
	}
	for _, c := range multikey {
		e.Put = append(e.Put, c)
	}
	return &e, nil
}

// change is the document's new version, with what change streams tell of it.
func (p *pendingDoc) change() store.Change {
	ch := store.Change{Collection: p.col.ID, Key: p.key, Document: p.now}
	switch {
	case p.now == nil:
		ch.Kind, ch.Note = store.Removed, newDoc().AppendValue("_id", idOf(p.was)).Build()
	case p.was == nil:
		ch.Kind = store.Inserted
	case p.replaced:
		ch.Kind = store.Replaced
	default:
		ch.Kind, ch.Note = store.Updated, query.Diff(p.was, p.now)
	}
	if p.col.images {
		ch.Images, ch.Before = true, p.was
	}
	return ch
}

// replace marks a document that was set as replaced.
func (w *writer) replace(col *collection, key []byte) { w.pending(col.ID, key).replaced = true }

func markMultikey(changed map[uint32]*store.Collection, col *collection, id uint32) {
	c := changed[col.ID]
	if c == nil {
		clone := *col.Collection
		clone.Indexes = slices.Clone(clone.Indexes)
		c = &clone
		changed[col.ID] = c
	}
	for i := range c.Indexes {
		if c.Indexes[i].ID == id {
			c.Indexes[i].Multikey = true
		}
	}
}
