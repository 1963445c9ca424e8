package server

import (
	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

func cmdFindAndModify(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	remove, wantNew := k.boolean("remove", false), k.boolean("new", false)
	upsert := k.boolean("upsert", false)
	k.boolean("bypassDocumentValidation", false)
	ids, err := k.stmtIDs()
	if err != nil {
		return err
	}
	switch has := k.has("update"); {
	case remove && has:
		return errorf(codeFailedToParse, "Cannot specify both an update and remove=true")
	case remove && upsert:
		return errorf(codeFailedToParse, "Cannot specify both upsert=true and remove=true")
	case remove && wantNew:
		return errorf(codeFailedToParse, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case !remove && !has:
		return errorf(codeFailedToParse, "Either an update or remove=true must be specified")
	}
	if was := k.record.done(ids(0)); was != nil {
		for key, v := range value.Fields(document(was.Reply)) {
			k.out.AppendValue(key, v)
		}
		appendRetried(k.out, []int32{ids(0)})
		return nil
	}
	vars, err := k.vars(k.document("let"), k.collation())
	if err != nil {
		return err
	}
	b := k.newBatch()
	defer b.close()
	var reply document
	if remove {
		reply, err = k.findAndRemove(b, ns, vars, ids(0))
	} else {
		reply, err = k.findAndUpdate(b, ns, vars, wantNew, ids(0))
	}
	if err != nil {
		return err
	}
	if !b.stopped() {
		if err := b.flush(); err != nil {
			return err
		}
	}
	for key, v := range value.Fields(reply) {
		k.out.AppendValue(key, v)
	}
	return nil
}

// selector reads query and sort, of which an absent query is all documents.
func (k *call) withQuery() *args {
	a := k.args
	if !a.has("query") || value.IsNullish(a.get("query")) {
		a.fields = nil
		a.doc = newDoc().AppendDocument("query", emptyDoc).Build()
		for key, v := range value.Fields(k.doc) {
			if key != "query" {
				a.doc = appendField(a.doc, key, v)
			}
		}
	}
	return &a
}

func appendField(d document, key string, v query.Value) document {
	b := newDoc()
	for k, x := range value.Fields(d) {
		b.AppendValue(k, x)
	}
	return b.AppendValue(key, v).Build()
}

func (k *call) findAndUpdate(b *batch, ns string, vars *query.Vars, wantNew bool, id int32) (document, error) {
	a := k.withQuery()
	st, err := k.parseUpdate(ns, a, "query", "update", vars)
	if err != nil {
		return nil, err
	}
	fields, err := query.ParseProjection(orEmpty(a.document("fields")), vars)
	if err != nil {
		return nil, err
	}
	if fields.NeedsPosition() && wantNew {
		return nil, errorf(codeBadValue, "Cannot use a positional projection and return the new document")
	}
	return st.do(b, id, func(res *updated) (document, error) {
		last := newDoc().AppendInt32("n", res.n).AppendBoolean("updatedExisting", res.n > 0 && res.upserted == nil)
		if res.upserted != nil {
			last.AppendValue("upserted", idOf(res.upserted))
		}
		show := res.before
		if wantNew {
			show = res.after
		}
		return famReply(last.Build(), show, fields, st.sel.filter)
	})
}

func (k *call) findAndRemove(b *batch, ns string, vars *query.Vars, id int32) (document, error) {
	a := k.withQuery()
	st, err := k.parseDelete(ns, a, "query", vars)
	if err != nil {
		return nil, err
	}
	if k.has("arrayFilters") {
		return nil, errorf(codeFailedToParse, "Cannot specify arrayFilters and remove=true")
	}
	if sort := a.document("sort"); sort != nil {
		if st.sel.sort, err = query.ParseSort(sort, a.collation()); err != nil {
			return nil, err
		}
	}
	fields, err := query.ParseProjection(orEmpty(a.document("fields")), vars)
	if err != nil {
		return nil, err
	}
	return st.do(b, id, func(n int32, removed document) (document, error) {
		return famReply(newDoc().AppendInt32("n", n).Build(), removed, fields, st.sel.filter)
	})
}

func famReply(last, show document, fields *query.Projection, f *query.Filter) (document, error) {
	out := newDoc().AppendDocument("lastErrorObject", last)
	if show == nil {
		return out.AppendNull("value").Build(), nil
	}
	var index query.Position
	if fields.NeedsPosition() {
		_, i, err := f.MatchPosition(show)
		if err != nil {
			return nil, err
		}
		index = i
	}
	show, err := fields.Apply(show, index)
	if err != nil {
		return nil, err
	}
	return out.AppendDocument("value", show).Build(), nil
}

func orEmpty(d document) document {
	if d == nil {
		return emptyDoc
	}
	return d
}
