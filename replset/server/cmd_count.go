package server

import (
	"io"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// selectFor parses the query of a count or a distinct and begins to read.
func (k *call) selectFor(ns string) (items, func(), error) {
	raw := orEmpty(k.document("query"))
	by := k.collation()
	if k.err != nil {
		return nil, nil, k.err
	}
	vars, err := k.vars(nil, by)
	if err != nil {
		return nil, nil, err
	}
	f, err := query.ParseFilter(raw, vars)
	if err != nil {
		return nil, nil, err
	}
	v, done, err := k.view()
	if err != nil {
		return nil, nil, err
	}
	col, err := v.collection(ns)
	if err != nil {
		done()
		return nil, nil, err
	}
	if k.rc.level == "snapshot" && !k.inTxn {
		t := timestamp(v.at)
		defer k.out.AppendTimestamp("atClusterTime", t.T, t.I)
	}
	next, close, _, err := v.selectItems(col, selection{filter: f, raw: raw, hint: k.get("hint"), collated: by != nil})
	if err != nil {
		done()
		return nil, nil, err
	}
	return next, func() { close(); done() }, nil
}

func cmdCount(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	limit, skip := k.integer("limit", 0), k.count("skip", 0)
	k.document("fields")
	if limit < 0 {
		limit = -limit
	}
	next, close, err := k.selectFor(ns)
	if err != nil {
		return err
	}
	defer close()
	n := int64(0)
	for limit == 0 || n < limit {
		_, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if skip > 0 {
			skip--
			continue
		}
		n++
	}
	k.out.AppendInt32("n", int32(n))
	return nil
}

func cmdDistinct(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	k.must("key")
	key := k.text("key")
	if k.err != nil {
		return k.err
	}
	next, close, err := k.selectFor(ns)
	if err != nil {
		return err
	}
	defer close()
	d := query.NewDistinct(key, k.collation())
	for {
		it, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		d.Add(it.doc)
	}
	values := d.Values()
	if len(values.Data) > value.MaxDocumentSize {
		return errorf(17217, "distinct too big, 16mb cap")
	}
	k.out.AppendValue("values", values)
	return nil
}
