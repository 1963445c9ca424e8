package server

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

// view is the state that a command, a cursor or a transaction reads: one
// timestamp, and the transaction's own writes.
type view struct {
	s   *Server
	at  uint64
	pin *store.Pin
	cat *store.Catalogue
	own *writer // of the transaction, nil outside one
	old bool    // at is not what was latest when the view was made

	ctx context.Context // of the command that reads right now
}

// now is a view of the latest applied state. It must be released.
func (s *Server) now(ctx context.Context) *view {
	pin, at := s.m.Store.Pin()
	return &view{s: s, at: at, pin: pin, cat: s.m.Store.Catalogue(), ctx: ctx}
}

// past is a view of an earlier state.
func (s *Server) past(ctx context.Context, at uint64) (*view, error) {
	pin, ok := s.m.Store.PinAt(at)
	if !ok {
		return nil, errorf(codeSnapshotTooOld, "Read timestamp is older than the oldest available timestamp")
	}
	return &view{s: s, at: at, pin: pin, cat: s.m.Store.Catalogue(), ctx: ctx, old: true}, nil
}

func (v *view) release() { v.pin.Release() }

func (v *view) collection(ns string) (*collection, error) {
	if !v.old {
		return v.s.collection(v.cat.Collection(ns))
	}
	c, known := v.cat.At(ns, v.at)
	if !known {
		return nil, errorf(codeSnapshotUnavailable, "Unable to read from a snapshot due to pending collection catalog changes; please retry the operation. Collection %s was dropped or renamed since", ns)
	}
	return v.s.collection(c)
}

// intact says whether a collection that the view has read is still there. Dropping
// removes all its versions, so that a view which is older finds nothing, and must not
// pass that on as a result.
func (v *view) intact(col *collection) error {
	switch {
	case !v.s.m.Store.Dropped(col.ID, v.at):
		return nil
	case v.old || v.own != nil:
		return errorf(codeSnapshotUnavailable, "Unable to read from a snapshot: collection %s was dropped since", col.Name)
	}
	return errorf(codeQueryPlanKilled, "collection dropped: %s", col.Name)
}

// item is a document that was found.
type item struct {
	key   []byte
	doc   document
	index query.Position // array position that the filter matched
}

// items gives what was found, and io.EOF.
type items func() (item, error)

func noItems() (item, error) { return item{}, io.EOF }

// checkEvery is how many places are looked at between two looks at the deadline.
const checkEvery = 128

// select finds documents. close must be called; it may be called twice.
func (v *view) selectItems(col *collection, sel selection) (next items, close func(), p *plan, err error) {
	return v.selectAt(col, sel, 0)
}

// fullSpan is the whole of a collection.
var fullSpan = []store.Range{{}}

// selectAt is selectItems, so many views deep.
func (v *view) selectAt(col *collection, sel selection, depth int) (next items, close func(), p *plan, err error) {
	switch {
	case col == nil:
		return noItems, func() {}, &plan{spans: fullSpan, sorted: true}, nil
	case col.viewOn != "":
		return v.selectView(col, sel, depth)
	}
	if p, err = v.plan(col, sel); err != nil {
		return nil, nil, nil, err
	}
	raw, close := v.scan(col, p)
	raw = v.overlay(col, p, raw)
	next = v.matching(raw, sel.filter)
	if sel.sort != nil && (!p.sorted || v.ownsAny(col)) && sel.sort.Natural() == 0 {
		next = sortItems(next, sel.sort)
	}
	return next, close, p, nil
}

func (v *view) matching(raw items, f *query.Filter) items {
	n := 0
	return func() (item, error) {
		for {
			if n++; n%checkEvery == 0 {
				if err := v.ctx.Err(); err != nil {
					return item{}, err
				}
			}
			it, err := raw()
			if err != nil {
				return it, err
			}
			ok, index, err := f.MatchPosition(it.doc)
			if err != nil {
				return it, err
			}
			if ok {
				it.index = index
				return it, nil
			}
		}
	}
}

// maxSortBytes is how much a sort may hold in memory.
const maxSortBytes = 100 << 20

func sortItems(in items, by *query.Sort) items {
	type keyed struct {
		item
		place []byte
	}
	var all []keyed
	done, at := false, 0
	fill := func() error {
		size := 0
		for {
			it, err := in()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			place, err := by.Key(it.doc)
			if err != nil {
				return err
			}
			if size += len(it.doc); size > maxSortBytes {
				return errorf(292, "Executor error during find command :: caused by :: Sort exceeded memory limit of %d bytes", maxSortBytes)
			}
			all = append(all, keyed{it, place})
		}
		slices.SortStableFunc(all, func(a, b keyed) int { return bytes.Compare(a.place, b.place) })
		return nil
	}
	return func() (item, error) {
		if !done {
			done = true
			if err := fill(); err != nil {
				return item{}, err
			}
		}
		if at == len(all) {
			return item{}, io.EOF
		}
		at++
		return all[at-1].item, nil
	}
}

// scan gives the committed documents of a plan.
func (v *view) scan(col *collection, p *plan) (items, func()) {
	if p.single() {
		return v.single(col, p.spans[0].Low), func() {}
	}
	spans := slices.Clone(p.spans)
	if p.reverse {
		slices.Reverse(spans)
	}
	var sc *store.Scan
	closeScan := func() {
		if sc != nil {
			sc.Close()
			sc = nil
		}
	}
	seen := map[string]bool(nil)
	if p.index != nil && p.index.Multikey {
		seen = map[string]bool{}
	}
	next := func() (item, error) {
		for {
			if sc == nil {
				if len(spans) == 0 {
					return item{}, orErr(v.intact(col), io.EOF)
				}
				var err error
				if sc, err = v.open(col, p, spans[0]); err != nil {
					return item{}, err
				}
				spans = spans[1:]
			}
			f, ok, err := sc.Next()
			if err != nil {
				return item{}, err
			}
			if !ok {
				closeScan()
				continue
			}
			if p.index == nil {
				return item{key: f.Key, doc: f.Document}, nil
			}
			if seen != nil {
				if seen[string(f.Key)] {
					continue
				}
				seen[string(f.Key)] = true
			}
			doc, _, err := v.s.m.Store.Get(col.ID, f.Key, v.at)
			if err != nil {
				return item{}, err
			}
			if doc != nil {
				return item{key: f.Key, doc: doc}, nil
			}
		}
	}
	return next, func() { closeScan(); spans = nil }
}

// single is a scan of one document, without an iterator that stays open.
func (v *view) single(col *collection, key []byte) items {
	done := false
	return func() (item, error) {
		if done {
			return item{}, io.EOF
		}
		done = true
		doc, _, err := v.s.m.Store.Get(col.ID, key, v.at)
		if err == nil && doc == nil {
			err = orErr(v.intact(col), io.EOF)
		}
		return item{key: key, doc: doc}, err
	}
}

func (v *view) open(col *collection, p *plan, r store.Range) (*store.Scan, error) {
	if p.index == nil {
		return v.s.m.Store.Documents(col.ID, r, v.at, p.reverse)
	}
	return v.s.m.Store.Entries(p.index.ID, r, v.at, p.reverse)
}

func (v *view) ownsAny(col *collection) bool { return v.own != nil && v.own.touches(col.ID) }

// overlay puts the transaction's own documents in place of the committed ones:
// those in the order of _id where the scan is, otherwise at the end.
func (v *view) overlay(col *collection, p *plan, raw items) items {
	if !v.ownsAny(col) {
		return raw
	}
	mine := v.mine(col, p)
	if p.index == nil && p.reverse {
		slices.Reverse(mine)
	}
	var held *item
	eof := false
	return func() (item, error) {
		for {
			for held == nil && !eof {
				it, err := raw()
				switch {
				case err == io.EOF:
					eof = true
				case err != nil:
					return it, err
				case v.own.pending(col.ID, it.key) == nil:
					held = &it
				}
			}
			first := len(mine) > 0 && (held == nil || p.index == nil && (bytes.Compare(mine[0].key, held.key) < 0) != p.reverse)
			if first {
				m := mine[0]
				mine = mine[1:]
				if m.now != nil {
					return item{key: m.key, doc: m.now}, nil
				}
				continue
			}
			if held == nil {
				return item{}, io.EOF
			}
			it := *held
			held = nil
			return it, nil
		}
	}
}

// mine are the transaction's own documents that the plan may find.
func (v *view) mine(col *collection, p *plan) []pendingDoc {
	if !p.single() {
		return v.own.sorted(col.ID)
	}
	if d := v.own.pending(col.ID, p.spans[0].Low); d != nil {
		return []pendingDoc{*d}
	}
	return nil
}

// source is items as the query package reads them, with skip and limit.
func source(next items, skip, limit int64) query.Source {
	return func() (query.Document, error) {
		for ; skip > 0; skip-- {
			if _, err := next(); err != nil {
				return nil, err
			}
		}
		if limit == 0 {
			return nil, io.EOF
		}
		it, err := next()
		if err == nil {
			limit--
		}
		return it.doc, err
	}
}

// unlimited as a limit of source.
const unlimited = int64(-1)

// openOther lets a pipeline read another collection of the same view.
func (v *view) openOther(db string, depth int) query.Open {
	return func(ns query.Namespace, hint *query.Filter) (query.Source, func(), error) {
		if ns.DB == "" {
			ns.DB = db
		}
		col, err := v.collection(ns.DB + "." + ns.Coll)
		if err != nil {
			return nil, nil, err
		}
		if hint == nil {
			if hint, err = query.ParseFilter(emptyDoc, nil); err != nil {
				return nil, nil, err
			}
		}
		next, close, _, err := v.selectAt(col, selection{filter: hint, hint: value.Missing}, depth)
		if err != nil {
			return nil, nil, err
		}
		return source(next, 0, unlimited), close, nil
	}
}

var emptyDoc = newDoc().Build()
