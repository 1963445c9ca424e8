package server

import (
	"github.com/assaylab/assay/replset/query"
)

type deleteStatement struct {
	ns    string
	sel   selection
	multi bool
}

func (k *call) parseDelete(ns string, a *args, filter string, vars *query.Vars) (*deleteStatement, error) {
	by := a.collation()
	a.must(filter)
	raw, hint := a.document(filter), a.get("hint")
	if a.err != nil {
		return nil, a.err
	}
	f, err := query.ParseFilter(raw, vars.Collated(by))
	return &deleteStatement{ns: ns, sel: selection{filter: f, raw: raw, hint: hint, collated: by != nil}}, err
}

// do runs the statement within a batch. reply is called with how many documents it
// removed, and the document if it is a statement on one.
func (st *deleteStatement) do(b *batch, id int32, reply func(n int32, removed document) (document, error)) (document, error) {
	n := int32(0)
	if st.multi {
		err := b.all(st.ns, st.sel, func(col *collection, key []byte, doc document, _ query.Position) error {
			err := b.w.set(b.k.ctx, col, key, doc, nil)
			if err == nil {
				n++
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return reply(n, nil)
	}
	return b.statement(id, func() (document, error) {
		var removed document
		n = 0
		col, err := b.open(st.ns, false)
		if err != nil {
			return nil, err
		}
		err = b.each(col, st.sel, func(key []byte, doc document, _ query.Position) (bool, error) {
			n, removed = 1, doc
			return false, b.w.set(b.k.ctx, col, key, doc, nil)
		})
		if err != nil {
			return nil, err
		}
		return reply(n, removed)
	})
}

var deleteShape = &shape{known: []string{"q", "limit", "collation", "hint"}, required: []string{"q", "limit"}}

func cmdDelete(k *call) error {
	total := int32(0)
	out, err := k.statements("deletes", deleteShape, func(b *batch, st *statement) (document, error) {
		a := &args{what: k.statementName("deletes"), doc: st.doc}
		limit := a.integer("limit", 0)
		if limit != 0 && limit != 1 {
			return nil, errorf(codeFailedToParse, "The limit field in delete objects must be 0 or 1. Got %d", limit)
		}
		d, err := k.parseDelete(st.ns, a, "q", st.vars)
		if err != nil {
			return nil, err
		}
		if d.multi = limit == 0; d.multi && k.record != nil && !k.inTxn {
			return nil, errorf(codeInvalidOptions, "Cannot use (or request) retryable writes with limit=0")
		}
		return d.do(b, st.id, func(n int32, _ document) (document, error) {
			return newDoc().AppendInt32("n", n).Build(), nil
		})
	}, func(_ int, reply document) {
		total += int32((&args{doc: reply}).integer("n", 0))
	})
	if err != nil {
		return err
	}
	k.out.AppendInt32("n", total)
	out.append(k.out)
	return nil
}
