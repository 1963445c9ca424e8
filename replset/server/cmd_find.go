package server

import (
	"io"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

var findFields = []string{
	"filter", "sort", "projection", "hint", "skip", "limit", "batchSize", "singleBatch", "let", "collation", "allowDiskUse",
	"noCursorTimeout", "allowPartialResults", "oplogReplay", "min", "max", "returnKey", "showRecordId", "tailable", "awaitData",
}

// finding is a find, parsed.
type finding struct {
	ns          string
	sel         selection
	projection  *query.Projection
	skip, limit int64
	batch       int64
	single      bool
}

func (a *args) parseFind(k *call, ns string) (*finding, error) {
	f := &finding{ns: ns, skip: a.count("skip", 0), limit: a.count("limit", 0), batch: a.batchSize(firstBatch), single: a.boolean("singleBatch", false)}
	if f.limit == 0 {
		f.limit = unlimited
	}
	raw, sort := orEmpty(a.document("filter")), a.document("sort")
	projection, let := orEmpty(a.document("projection")), a.document("let")
	f.sel.raw, f.sel.hint = raw, a.get("hint")
	for _, harmless := range []string{"allowDiskUse", "noCursorTimeout", "allowPartialResults", "oplogReplay"} {
		a.boolean(harmless, false)
	}
	by := a.collation()
	f.sel.collated = by != nil
	f.sel.min, f.sel.max = a.document("min"), a.document("max")
	a.refuse("returnKey", "showRecordId", "tailable", "awaitData")
	if d := a.get("hint"); value.IsDocument(d) && value.Len(d.Data) == 0 {
		f.sel.hint = value.Missing
	}
	if a.err != nil {
		return nil, a.err
	}
	vars, err := k.vars(let, by)
	if err != nil {
		return nil, err
	}
	if f.sel.filter, err = query.ParseFilter(raw, vars); err != nil {
		return nil, err
	}
	if sort != nil {
		if f.sel.sort, err = query.ParseSort(sort, by); err != nil {
			return nil, err
		}
	}
	f.projection, err = query.ParseProjection(projection, vars)
	return f, err
}

// shaped is what a find gives: skipped, limited and projected.
func (f *finding) shaped(next items) query.Source {
	skip, left := f.skip, f.limit
	return func() (query.Document, error) {
		for ; skip > 0; skip-- {
			if _, err := next(); err != nil {
				return nil, err
			}
		}
		if left == 0 {
			return nil, io.EOF
		}
		it, err := next()
		if err != nil {
			return nil, err
		}
		left--
		return f.projection.Apply(it.doc, it.index)
	}
}

func cmdFind(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	f, err := k.parseFind(k, ns)
	if err != nil {
		return err
	}
	v, done, err := k.view()
	if err != nil {
		return err
	}
	col, err := v.collection(ns)
	if err != nil {
		done()
		return err
	}
	next, close, _, err := v.selectItems(col, f.sel)
	if err != nil {
		done()
		return err
	}
	return k.answer(ns, v, f.shaped(next), func() { close(); done() }, f.batch, f.single)
}
