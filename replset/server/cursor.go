package server

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

const (
	cursorTimeout = 10 * time.Minute
	firstBatch    = 101
)

// cursor is a result that is handed out in batches. It reads its own view, so
// that a step-down does not end it.
type cursor struct {
	id    int64
	ns    string
	lsid  string
	txn   int64 // -1 outside a transaction
	v     *view
	next  query.Source
	close func()

	stream *changeStream // in place of next
	ctx    context.Context
	cancel context.CancelFunc // of a stream's: wakes who waits for events

	mu     sync.Mutex // of whoever reads a batch
	held   document   // read, and did not fit the last batch
	closed bool

	used time.Time // of the table
}

type cursors struct {
	mu   sync.Mutex
	byID map[int64]*cursor
}

func newCursors() *cursors { return &cursors{byID: map[int64]*cursor{}} }

func (cs *cursors) add(c *cursor) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c.id == 0 || cs.byID[c.id] != nil {
		c.id = rand.Int64()
	}
	c.used = time.Now()
	cs.byID[c.id] = c
}

func (cs *cursors) get(id int64) *cursor {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byID[id]
	if c != nil {
		c.used = time.Now()
	}
	return c
}

func (cs *cursors) take(id int64) *cursor {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byID[id]
	delete(cs.byID, id)
	return c
}

// kill ends cursors and returns those that were there.
func (cs *cursors) kill(ids []int64) (found []int64) {
	for _, id := range ids {
		if c := cs.take(id); c != nil {
			c.end()
			found = append(found, id)
		}
	}
	return found
}

func (cs *cursors) matching(f func(*cursor) bool) (ids []int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for id, c := range cs.byID {
		if f(c) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (cs *cursors) expire(now time.Time) {
	cs.kill(cs.matching(func(c *cursor) bool { return now.Sub(c.used) > cursorTimeout }))
}

func (cs *cursors) closeAll() { cs.kill(cs.matching(func(*cursor) bool { return true })) }

func (c *cursor) end() {
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.close()
	}
}

// maxBatchBytes leaves room for the rest of the answer.
const maxBatchBytes = 16 << 20

// batch reads up to n documents, and says whether there may be more.
func (c *cursor) batch(n int64) (docs []document, more bool, err error) {
	size := 0
	for int64(len(docs)) < n {
		doc := c.held
		c.held = nil
		if doc == nil {
			if doc, err = c.next(); err == io.EOF {
				return docs, false, nil
			}
			if err != nil {
				return nil, false, err
			}
		}
		if size += len(doc) + 16; size > maxBatchBytes && len(docs) > 0 {
			c.held = doc
			return docs, true, nil
		}
		docs = append(docs, doc)
	}
	return docs, true, nil
}

// answer opens a cursor over next and writes its first batch. It owns close.
func (k *call) answer(ns string, v *view, next query.Source, close func(), batchSize int64, single bool) error {
	c := &cursor{ns: ns, lsid: string(k.lsid), txn: -1, v: v, next: next, close: close}
	docs, more, err := c.batch(batchSize)
	if err == nil && more && batchSize > 0 && !single {
		// One more tells whether the client must come back at all.
		if c.held == nil {
			if c.held, err = next(); err == io.EOF {
				more, err = false, nil
			}
		}
	}
	if err != nil {
		close()
		return err
	}
	if !more || single {
		close()
	} else {
		k.s.cursors.add(c)
		if k.inTxn {
			c.txn = k.number
			k.txn.cursors = append(k.txn.cursors, c.id)
		}
	}
	k.appendCursor("firstBatch", c.id, ns, docs, v)
	return nil
}

func (k *call) appendCursor(batch string, id int64, ns string, docs []document, v *view) {
	b := newDoc()
	b.AppendArray(batch, docArray(docs))
	b.AppendInt64("id", id).AppendString("ns", ns)
	if k.rc.level == "snapshot" && !k.inTxn && v != nil {
		t := timestamp(v.at)
		b.AppendTimestamp("atClusterTime", t.T, t.I)
	}
	k.out.AppendDocument("cursor", b.Build())
}

// batchSizes reads batchSize; a single batch may be told by a negative one no more.
func (a *args) batchSize(otherwise int64) int64 { return a.count("batchSize", otherwise) }

// answerList writes documents that are all there as a cursor.
func (k *call) answerList(ns string, docs []document) error {
	n := int64(firstBatch)
	if d := k.document("cursor"); d != nil {
		a := &args{what: "cursor", doc: d}
		if err := a.only([]string{"batchSize"}); err != nil {
			return err
		}
		if n = a.batchSize(firstBatch); a.err != nil {
			return a.err
		}
	}
	if k.err != nil {
		return k.err
	}
	return k.answer(ns, nil, query.FromSlice(docs), func() {}, n, false)
}

func cmdGetMore(k *call) error {
	id := k.integer(k.name, 0)
	coll := k.text("collection")
	n := k.batchSize(0)
	if n == 0 {
		n = 1 << 40 // as much as fits
	}
	if k.err != nil {
		return k.err
	}
	c := k.s.cursors.get(id)
	if c == nil {
		return errorf(codeCursorNotFound, "cursor id %d not found", id)
	}
	switch {
	case c.ns != k.db+"."+coll:
		return errorf(codeUnauthorized, "Requested getMore on namespace '%s.%s', but cursor belongs to a different namespace %s", k.db, coll, c.ns)
	case c.lsid != "" && c.lsid != string(k.lsid):
		return errorf(50738, "Cannot run getMore on cursor %d, which was created in another session", id)
	case c.txn >= 0 && (!k.inTxn || c.txn != k.number):
		return errorf(50740, "Cannot run getMore on cursor %d, which was created in a transaction, outside of it", id)
	case c.txn < 0 && k.inTxn:
		return errorf(50740, "Cannot run getMore on cursor %d, which was not created in this transaction", id)
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errorf(codeCursorNotFound, "cursor id %d not found", id)
	}
	if err := k.s.points.checkGetMore(); err != nil {
		k.stream = c.stream != nil
		c.mu.Unlock()
		return err
	}
	if c.stream != nil {
		defer c.mu.Unlock()
		return k.getMoreStream(c, n)
	}
	k.ctx, k.cancel = deadline(k.conn.ctx, k.maxMS)
	if c.v != nil {
		c.v.ctx = k.ctx
	}
	docs, more, err := c.batch(n)
	if err == nil && more && c.held == nil {
		if c.held, err = c.next(); err == io.EOF {
			more, err = false, nil
		}
	}
	c.mu.Unlock()
	if err != nil || !more {
		k.s.cursors.kill([]int64{id})
		id = 0
	}
	if err != nil {
		return err
	}
	k.appendCursor("nextBatch", id, c.ns, docs, nil)
	return nil
}

func cmdKillCursors(k *call) error {
	k.text(k.name)
	k.must("cursors")
	list := k.array("cursors")
	if k.err != nil {
		return k.err
	}
	killed, lost, none := bsoncore.NewArrayBuilder(), bsoncore.NewArrayBuilder(), bsoncore.NewArrayBuilder().Build()
	for v := range value.Elements(list.Data) {
		id, ok := value.Integer(v)
		if !ok {
			return errorf(codeTypeMismatch, "BSON field 'killCursors.cursors' is no array of longs")
		}
		if len(k.s.cursors.kill([]int64{id})) > 0 {
			killed.AppendInt64(id)
		} else {
			lost.AppendInt64(id)
		}
	}
	k.out.AppendArray("cursorsKilled", killed.Build()).AppendArray("cursorsNotFound", lost.Build())
	k.out.AppendArray("cursorsAlive", none).AppendArray("cursorsUnknown", none)
	return nil
}
