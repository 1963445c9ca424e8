package server

import (
	"context"
	"errors"
	"io"

	"github.com/assaylab/assay/replset/internal/defect"
	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// What an entry of a batch holds at most; a single statement may exceed it.
const (
	maxEntryBytes = 8 << 20
	maxEntryDocs  = 5000
)

// batch runs the statements of a write command, several to an entry. In a
// transaction it only gathers.
type batch struct {
	k    *call
	w    *writer
	done int // statements remembered when the entry began
}

func (k *call) newBatch() *batch {
	b := &batch{k: k}
	b.renew()
	return b
}

func (b *batch) renew() {
	bypass := b.k.boolean("bypassDocumentValidation", false)
	if b.k.txn != nil {
		b.w = b.k.txn.writer
		b.w.bypass = bypass
		return
	}
	b.w = b.k.s.writer(b.k.role.Term)
	b.w.bypass = bypass
	if b.k.record != nil {
		b.done = len(b.k.record.Done)
	}
}

// close gives back what a batch that failed still holds.
func (b *batch) close() {
	if b.k.txn == nil {
		b.w.hold.release()
	}
}

// forget gives back the latches of a statement that failed, if the batch goes on with
// nothing gathered: the next one may wait for a document only if it holds none, see the
// package comment. With something gathered it does not wait.
func (b *batch) forget() {
	if b.k.txn == nil && len(b.w.docs) == 0 {
		b.w.hold.releaseKinds(docKind, keyKind)
	}
}

// flush proposes what was gathered.
func (b *batch) flush() error {
	if b.k.txn != nil {
		return nil
	}
	if r := b.k.record; r != nil && len(r.Done) > b.done && b.k.s.o.Defect != defect.LostRetryRecord {
		b.w.effects.Sessions = append(b.w.effects.Sessions, r.encode(b.k.lsid))
	}
	err := b.k.propose(b.w)
	b.renew()
	return err
}

// stopped says that no further statement may run.
func (b *batch) stopped() bool { return b.k.wcError != nil }

// errRace: a document that an upsert did not find was there when it came to
// insert it.
var errRace = errors.New("another write was faster")

const maxRaces = 20

// run runs one statement, again if it met others.
func (b *batch) run(f func() error) error {
	for races := 0; ; {
		err := f()
		switch {
		case errors.Is(err, errBusy):
		case errors.Is(err, errRace) && b.k.txn == nil && races < maxRaces:
			races++
		case errors.Is(err, errRace):
			return conflict()
		case err != nil:
			return err
		default:
			if b.k.txn == nil && (b.w.bytes > maxEntryBytes || len(b.w.docs) > maxEntryDocs) {
				return b.flush()
			}
			return nil
		}
		if err := b.flush(); err != nil || b.stopped() {
			return err
		}
	}
}

// statement runs one statement of a command that may be retried, and remembers its
// reply in the entry that holds its effects. The reply is nil if the statement was
// not executed, because an earlier one's entry did not meet its write concern.
func (b *batch) statement(id int32, f func() (reply document, err error)) (reply document, err error) {
	hangUp := false
	if b.k.record != nil && b.k.txn == nil {
		var before error
		if before, hangUp = b.k.s.points.checkWrite(); before != nil {
			if err := b.flush(); err != nil {
				return nil, err
			}
			return nil, before
		}
	}
	err = b.run(func() error {
		var err error
		if reply, err = f(); err == nil {
			b.k.remember(id, reply)
		}
		return err
	})
	if err == nil && hangUp {
		if err = b.flush(); err == nil {
			err = errHangUp
		}
	}
	return reply, err
}

// open takes the shared latch of a collection, so that it stays what it is
// until the entry is through. It is nil if there is none and create is false.
func (b *batch) open(ns string, create bool) (*collection, error) {
	ctx, cancel := b.k.lockContext()
	defer cancel()
	for {
		key := collectionLatch(ns)
		if err := b.w.hold.acquire(ctx, key, true); err != nil {
			return nil, err
		}
		col, err := b.w.find(ns)
		if err == nil {
			err = col.notAView()
		}
		if col != nil || err != nil || !create {
			return col, err
		}
		if b.k.txn != nil {
			return b.k.createInTransaction(ctx, ns, nil)
		}
		b.w.hold.releaseOne(key)
		if err := b.k.createImplicitly(ctx, ns); err != nil {
			return nil, err
		}
	}
}

// view is what a statement looks for its documents in: now, and what the batch
// has gathered.
func (b *batch) view() (*view, func()) {
	if b.k.txn != nil {
		b.k.txn.view.ctx = b.k.ctx
		return b.k.txn.view, func() {}
	}
	v := b.k.s.now(b.k.ctx)
	v.own = b.w
	return v, v.release
}

// each finds documents and calls do under the latch of each, with the document as
// it is then and the array position that matched. do returns whether to go on.
func (b *batch) each(col *collection, sel selection, do func(key []byte, doc document, index query.Position) (more bool, err error)) error {
	if col == nil {
		return nil
	}
	v, done := b.view()
	defer done()
	next, close, _, err := v.selectItems(col, sel)
	if err != nil {
		return err
	}
	defer close()
	for {
		it, err := next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		more, err := b.one(b.k.ctx, col, it, sel.filter, do)
		if err != nil || !more {
			return err
		}
	}
}

// one reads a document again under its latch.
func (b *batch) one(ctx context.Context, col *collection, it item, f *query.Filter, do func([]byte, document, query.Position) (bool, error)) (more bool, err error) {
	doc, err := b.w.load(ctx, col, it.key)
	if err != nil {
		return false, err
	}
	if doc != nil {
		ok, index, err := f.MatchPosition(doc)
		if err != nil {
			return false, err
		}
		if ok {
			return do(it.key, doc, index)
		}
	}
	b.w.leave(col, it.key)
	return true, nil
}

// all is each for a statement on many documents. The entries of one that is
// large, or meets other writes, are several.
func (b *batch) all(ns string, sel selection, do func(col *collection, key []byte, doc document, index query.Position) error) error {
	col, err := b.open(ns, false)
	if err != nil || col == nil {
		return err
	}
	keys, err := b.keys(col, sel)
	if err != nil {
		return err
	}
	for i := 0; i < len(keys); i++ {
		_, err := b.one(b.k.ctx, col, item{key: keys[i]}, sel.filter, func(key []byte, doc document, index query.Position) (bool, error) {
			return true, do(col, key, doc, index)
		})
		busy := errors.Is(err, errBusy)
		if err != nil && !busy {
			return err
		}
		if !busy && (b.k.txn != nil || b.w.bytes <= maxEntryBytes && len(b.w.docs) <= maxEntryDocs) {
			continue
		}
		if err := b.flush(); err != nil || b.stopped() {
			return err
		}
		was := col
		if col, err = b.open(ns, false); err != nil || col == nil || col.ID != was.ID {
			return err
		}
		if busy {
			i--
		}
	}
	return nil
}

func (b *batch) keys(col *collection, sel selection) ([][]byte, error) {
	v, done := b.view()
	defer done()
	next, close, _, err := v.selectItems(col, sel)
	if err != nil {
		return nil, err
	}
	defer close()
	var keys [][]byte
	for {
		it, err := next()
		if err == io.EOF {
			return keys, nil
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, it.key)
	}
}

// upsert inserts the document that an update makes out of its filter.
func (b *batch) upsert(col *collection, u *query.Update, f *query.Filter) (document, error) {
	base, err := u.UpsertBase(f)
	if err != nil {
		return nil, err
	}
	in := b.k.applyInput(0)
	in.Upserting = true
	doc, _, err := u.Apply(base, in)
	if err != nil {
		return nil, err
	}
	key := documentKey(doc)
	was, err := b.w.load(b.k.ctx, col, key)
	if err != nil {
		return nil, err
	}
	if was != nil {
		if ok, err := f.Match(was); err != nil || ok {
			return nil, errors.Join(err, errRace)
		}
		return nil, duplicate(col, "_id_", idIndexKey, doc)
	}
	err = b.w.set(b.k.ctx, col, key, nil, doc)
	if hasCode(err, codeDuplicateKey) && b.k.txn == nil {
		// Whoever inserted the key may have made a document that the filter finds.
		if found, ferr := b.finds(col, f); ferr != nil || found {
			return nil, errors.Join(ferr, errRace)
		}
	}
	return doc, err
}

func (b *batch) finds(col *collection, f *query.Filter) (bool, error) {
	v, done := b.view()
	defer done()
	next, close, _, err := v.selectItems(col, selection{filter: f, hint: value.Missing})
	if err != nil {
		return false, err
	}
	defer close()
	if _, err = next(); err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

// insert puts a new document.
func (b *batch) insert(ns string, doc document, vars *query.Vars) (document, error) {
	doc, err := query.PrepareInsert(doc, b.k.applyInput(0), vars)
	if err != nil {
		return nil, err
	}
	col, err := b.open(ns, true)
	if err != nil {
		return nil, err
	}
	key := documentKey(doc)
	was, err := b.w.load(b.k.ctx, col, key)
	if err != nil {
		return nil, err
	}
	if was != nil {
		return nil, duplicate(col, "_id_", idIndexKey, doc)
	}
	return doc, b.w.set(b.k.ctx, col, key, nil, doc)
}
