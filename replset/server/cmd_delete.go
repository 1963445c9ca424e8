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
	a.collation()
	a.must(filter)
	raw, hint := a.document(filter), a.get("hint")
	if a.err != nil {
		return nil, a.err
	}
	f, err := query.ParseFilter(raw, vars)
	return &deleteStatement{ns: ns, sel: selection{filter: f, raw: raw, hint: hint}}, err
}

// do runs the statement within a batch; removed is the document of a statement
// on one.
func (st *deleteStatement) do(b *batch) (n int32, removed document, err error) {
	if st.multi {
		err = b.all(st.ns, st.sel, func(col *collection, key []byte, doc document, _ query.Position) error {
			n++
			err := b.w.set(b.k.ctx, col, key, doc, nil)
			if err != nil {
				n--
			}
			return err
		})
		return n, nil, err
	}
	err = b.run(func() error {
		n, removed = 0, nil
		col, err := b.open(st.ns, false)
		if err != nil {
			return err
		}
		return b.each(col, st.sel, func(key []byte, doc document, _ query.Position) (bool, error) {
			n, removed = 1, doc
			return false, b.w.set(b.k.ctx, col, key, doc, nil)
		})
	})
	return n, removed, err
}

func cmdDelete(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	ordered := k.boolean("ordered", true)
	ids, err := k.stmtIDs()
	if err != nil {
		return err
	}
	docs, err := k.documents("deletes")
	if err != nil {
		return err
	}
	if err := shapes("delete.deletes", docs, []string{"q", "limit", "collation", "hint"}, "q", "limit"); err != nil {
		return err
	}
	vars, err := k.vars(k.document("let"))
	if err != nil {
		return err
	}
	total, again, failed := int32(0), retried{}, &writeErrors{k: k}
	b := k.newBatch()
	defer b.close()
	for i, d := range docs {
		if was := k.record.done(ids(i)); was != nil {
			again = append(again, ids(i))
			total += int32((&args{doc: document(was.Reply)}).integer("n", 0))
			continue
		}
		n, err := k.deleteOne(b, ns, d, vars, ids(i))
		if err != nil {
			if k.fatal(err) {
				return err
			}
			failed.add(i, err)
			if ordered || k.inTxn {
				break
			}
			continue
		}
		total += n
		if b.stopped() {
			break
		}
	}
	if !b.stopped() {
		if err := b.flush(); err != nil {
			return err
		}
	}
	k.out.AppendInt32("n", total)
	failed.append(k.out)
	again.append(k.out)
	return nil
}

func (k *call) deleteOne(b *batch, ns string, d document, vars *query.Vars, id int32) (int32, error) {
	a := &args{what: "delete.deletes", doc: d}
	limit := a.integer("limit", 0)
	if limit != 0 && limit != 1 {
		return 0, errorf(codeFailedToParse, "The limit field in delete objects must be 0 or 1. Got %d", limit)
	}
	st, err := k.parseDelete(ns, a, "q", vars)
	if err != nil {
		return 0, err
	}
	if st.multi = limit == 0; st.multi && k.record != nil && !k.inTxn {
		return 0, errorf(codeInvalidOptions, "Cannot use (or request) retryable writes with limit=0")
	}
	n, _, err := st.do(b)
	if err == nil {
		k.remember(id, newDoc().AppendInt32("n", n).Build())
	}
	return n, err
}
