package server

import (
	"bytes"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// updateStatement is one update, parsed.
type updateStatement struct {
	ns     string
	sel    selection
	update *query.Update
	upsert bool
	multi  bool
}

// updated is what came of a statement.
type updated struct {
	n, modified int32
	upserted    document // the new document
	before      document // of a statement on one document
	after       document
}

func (k *call) parseUpdate(ns string, a *args, filter, update string, vars *query.Vars) (*updateStatement, error) {
	st := &updateStatement{ns: ns, upsert: a.boolean("upsert", false), multi: a.boolean("multi", false)}
	by := a.collation()
	a.must(filter, update)
	raw, hint := a.document(filter), a.get("hint")
	filters := a.array("arrayFilters")
	if a.has("c") {
		var err error
		if vars, err = k.vars(a.document("c"), by); err != nil {
			return nil, err
		}
	}
	sort := a.document("sort")
	if a.err != nil {
		return nil, a.err
	}
	vars = vars.Collated(by)
	f, err := query.ParseFilter(raw, vars)
	if err != nil {
		return nil, err
	}
	st.sel = selection{filter: f, raw: raw, hint: hint, collated: by != nil}
	if sort != nil {
		if st.sel.sort, err = query.ParseSort(sort, by); err != nil {
			return nil, err
		}
	}
	if st.update, err = query.ParseUpdate(a.get(update), query.UpdateOptions{ArrayFilters: filters, Vars: vars}); err != nil {
		return nil, err
	}
	if st.multi && st.update.IsReplacement() {
		return nil, errorf(codeFailedToParse, "multi update is not supported for replacement-style update")
	}
	if st.multi && sort != nil {
		return nil, errorf(codeFailedToParse, "Cannot specify sort with multi=true")
	}
	return st, nil
}

// do runs the statement within a batch. reply is called when it is known what came
// of it, as often as it is tried.
func (st *updateStatement) do(b *batch, id int32, reply func(*updated) (document, error)) (document, error) {
	if st.multi {
		var res updated
		err := b.all(st.ns, st.sel, func(col *collection, key []byte, doc document, index query.Position) error {
			return st.change(b, col, key, doc, index, &res)
		})
		if err != nil {
			return nil, err
		}
		if res.n > 0 || !st.upsert || b.stopped() {
			return reply(&res)
		}
	}
	return b.statement(id, func() (document, error) {
		var res updated
		col, err := b.open(st.ns, st.upsert)
		if err != nil {
			return nil, err
		}
		err = b.each(col, st.sel, func(key []byte, doc document, index query.Position) (bool, error) {
			return false, st.change(b, col, key, doc, index, &res)
		})
		if err == nil && res.n == 0 && st.upsert {
			if res.upserted, err = b.upsert(col, st.update, st.sel.filter); err == nil {
				res.n, res.after = 1, res.upserted
			}
		}
		if err != nil {
			return nil, err
		}
		return reply(&res)
	})
}

func (st *updateStatement) change(b *batch, col *collection, key []byte, doc document, index query.Position, res *updated) error {
	now, modified, err := st.update.Apply(doc, b.k.applyInput(index))
	if err != nil {
		return err
	}
	if modified && !bytes.Equal(doc, now) {
		if err := b.w.set(b.k.ctx, col, key, doc, now); err != nil {
			return err
		}
		if st.update.IsReplacement() {
			b.w.replace(col, key)
		}
		res.modified++
	} else {
		b.w.leave(col, key)
	}
	res.n++
	res.before, res.after = doc, now
	return nil
}

var updateShape = &shape{
	known:    []string{"q", "u", "c", "upsert", "multi", "collation", "arrayFilters", "hint"},
	required: []string{"q", "u"},
}

func cmdUpdate(k *call) error {
	var total updated
	var upserted []document
	out, err := k.statements("updates", updateShape, func(b *batch, st *statement) (document, error) {
		u, err := k.parseUpdate(st.ns, &args{what: k.statementName("updates"), doc: st.doc}, "q", "u", st.vars)
		if err != nil {
			return nil, err
		}
		if u.multi && k.record != nil && !k.inTxn {
			return nil, errorf(codeInvalidOptions, "Cannot use (or request) retryable writes with multi=true")
		}
		return u.do(b, st.id, (*updated).encode)
	}, func(i int, reply document) {
		a := &args{doc: reply}
		total.n += int32(a.integer("n", 0))
		total.modified += int32(a.integer("nModified", 0))
		if id := a.get("_id"); !value.IsMissing(id) {
			upserted = append(upserted, newDoc().AppendInt32("index", int32(i)).AppendValue("_id", id).Build())
		}
	})
	if err != nil {
		return err
	}
	k.out.AppendInt32("n", total.n).AppendInt32("nModified", total.modified)
	if len(upserted) > 0 {
		appendArray(k.out, "upserted", upserted)
	}
	out.append(k.out)
	return nil
}

func (r *updated) encode() (document, error) {
	out := newDoc().AppendInt32("n", r.n).AppendInt32("nModified", r.modified)
	if r.upserted != nil {
		out.AppendValue("_id", idOf(r.upserted))
	}
	return out.Build(), nil
}

func idOf(doc document) query.Value { return (&args{doc: doc}).get("_id") }
