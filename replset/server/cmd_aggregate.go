package server

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

// aggregation is an aggregate, parsed.
type aggregation struct {
	ns       string // db.$cmd.aggregate for a pipeline that reads no collection
	pipeline *query.Pipeline
	vars     *query.Vars
	sel      selection
	batch    int64
}

func (a *args) parseAggregate(k *call) (*aggregation, error) {
	agg := &aggregation{batch: firstBatch}
	target := a.get("aggregate")
	if n, ok := value.Integer(target); ok && n == 1 {
		agg.ns = k.db + ".$cmd.aggregate"
	} else if value.IsString(target) {
		if err := checkCollection(k.db, value.Str(target)); err != nil {
			return nil, err
		}
		agg.ns = k.db + "." + value.Str(target)
	} else {
		return nil, errorf(codeFailedToParse, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
	}
	a.must("pipeline")
	stages, let := a.array("pipeline"), a.document("let")
	a.boolean("allowDiskUse", false)
	a.boolean("bypassDocumentValidation", false)
	by := a.collation()
	cursor := a.document("cursor")
	if cursor == nil && !a.boolean("explain", false) && a.err == nil && a.what == "aggregate" {
		a.err = errorf(codeFailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	if cursor != nil {
		c := &args{what: "aggregate.cursor", doc: cursor}
		if err := c.only([]string{"batchSize"}); err != nil {
			return nil, err
		}
		if agg.batch = c.batchSize(firstBatch); c.err != nil {
			return nil, c.err
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	var err error
	if agg.vars, err = k.vars(let, by); err != nil {
		return nil, err
	}
	if agg.pipeline, err = query.ParsePipeline(stages, query.PipelineOptions{Vars: agg.vars, SourceStages: []string{listLocalSessions, changeStreamStage}}); err != nil {
		return nil, err
	}
	if agg.pipeline.ReadsCollection() && strings.HasSuffix(agg.ns, ".$cmd.aggregate") {
		return nil, errorf(codeInvalidNamespace, "{aggregate: 1} is not valid for a pipeline that reads a collection")
	}
	if w := agg.pipeline.Write(); by != nil && w != nil && !w.Replace {
		return nil, errorf(codeNotImplemented, "$merge is not supported with a collation")
	}
	agg.sel = selection{filter: agg.pipeline.Leading(), hint: a.get("hint"), collated: by != nil}
	if d := a.get("hint"); value.IsDocument(d) && value.Len(d.Data) == 0 {
		agg.sel.hint = value.Missing
	}
	if agg.sel.filter == nil {
		agg.sel.filter, err = query.ParseFilter(emptyDoc, nil)
	}
	// The first $match as it was asked for is what a partial index is compared with.
	if first := value.At(stages.Data, 0); value.IsDocument(first) {
		if m := value.Lookup(first.Data, "$match"); value.IsDocument(m) {
			agg.sel.raw = m.Data
		}
	}
	return agg, err
}

const listLocalSessions = "$listLocalSessions"

// localSessions are the sessions that this member knows: the command's own, and
// those that have had a transaction here.
func (k *call) localSessions() (docs []document) {
	list := func(id []byte) {
		lsid := newDoc().AppendBinary("id", 4, id).Build()
		docs = append(docs, newDoc().AppendDocument("_id", lsid).AppendDateTime("lastUse", time.Now().UnixMilli()).Build())
	}
	if k.lsid != nil {
		list(k.lsid)
	}
	for _, ss := range k.s.sessions.all() {
		if !bytes.Equal(ss.id, k.lsid) {
			list(ss.id)
		}
	}
	return docs
}

func cmdAggregate(k *call) error {
	if k.boolean("explain", false) {
		return explainCommand(k, &k.args)
	}
	agg, err := k.parseAggregate(k)
	if err != nil {
		return err
	}
	if agg.pipeline.SourceStage().Name == changeStreamStage {
		return k.openChangeStream(agg)
	}
	write := agg.pipeline.Write()
	if write != nil {
		switch {
		case k.inTxn:
			return errorf(codeNotInTransaction, "$out and $merge are not allowed in a transaction")
		case k.rc.level == "linearizable" || k.rc.level == "snapshot":
			return errorf(codeInvalidOptions, "read concern %s is not supported with a pipeline that writes", k.rc.level)
		}
	}
	v, done, err := k.view()
	if err != nil {
		return err
	}
	var col *collection
	if agg.pipeline.ReadsCollection() {
		if col, err = v.collection(agg.ns); err != nil {
			done()
			return err
		}
	}
	next, close, _, err := v.selectItems(col, agg.sel)
	if err != nil {
		done()
		return err
	}
	src := source(next, 0, unlimited)
	if agg.pipeline.SourceStage().Name == listLocalSessions {
		src = query.FromSlice(k.localSessions())
	}
	cur := agg.pipeline.Run(src, v.openOther(k.db, 0))
	end := func() { cur.Close(); close(); done() }
	if write != nil {
		defer end()
		if k.role.Writable {
			err = k.writeResults(cur.Next, write)
		} else {
			err = k.forward(cur.Next, agg)
		}
		if err != nil {
			return err
		}
		k.replicate()
		return k.answer(agg.ns, nil, query.FromSlice(nil), func() {}, agg.batch, false)
	}
	return k.answer(agg.ns, v, cur.Next, end, agg.batch, false)
}

// writeResults carries out $out or $merge.
func (k *call) writeResults(next query.Source, w *query.Write) error {
	if w.Target.DB == "" {
		w.Target.DB = k.db
	}
	ns := w.Target.DB + "." + w.Target.Coll
	if err := checkCollection(w.Target.DB, w.Target.Coll); err != nil {
		return err
	}
	if w.Replace {
		return k.writeOut(next, ns)
	}
	b := k.newBatch()
	defer b.close()
	for {
		doc, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := b.run(func() error { return k.merge(b, ns, w, doc) }); err != nil || b.stopped() {
			return err
		}
	}
	return b.flush()
}

func (k *call) merge(b *batch, ns string, w *query.Write, doc document) error {
	if slices.Contains(w.On, "_id") {
		var err error
		if doc, err = query.PrepareInsert(doc, k.applyInput(0), nil); err != nil {
			return err
		}
	}
	f, err := w.Filter(doc)
	if err != nil {
		return err
	}
	col, err := b.open(ns, true)
	if err != nil {
		return err
	}
	if !uniqueOn(col, w.On) {
		return errorf(51183, "Cannot find index to verify that join fields will be unique")
	}
	found := false
	err = b.each(col, selection{filter: f, hint: value.Missing}, func(key []byte, was document, _ query.Position) (bool, error) {
		found = true
		now, err := w.Merge(was, doc)
		if hasCode(err, codeDuplicateKey) {
			return false, mergeDuplicate(col, w.On, doc, err)
		}
		if err != nil {
			return false, err
		}
		return false, b.w.set(k.ctx, col, key, was, now)
	})
	if err != nil || found {
		return err
	}
	switch w.WhenNotMatched {
	case "discard":
		return nil
	case "fail":
		return errorf(13113, "$merge could not find a matching document in the target collection for at least one document in the source collection")
	}
	_, err = b.insert(ns, doc, nil)
	if hasCode(err, codeDuplicateKey) && b.k.txn == nil {
		if again, ferr := b.finds(col, f); ferr != nil || again {
			return errors.Join(ferr, errRace)
		}
	}
	return err
}

// mergeDuplicate completes the error of whenMatched: fail by its key.
func mergeDuplicate(col *collection, on []string, doc document, err error) error {
	pattern := newDoc()
	for _, path := range on {
		pattern.AppendInt32(path, 1)
	}
	e := asError(duplicate(col, "", pattern.Build(), doc))
	e.Message = asError(err).Message
	return e
}

func uniqueOn(col *collection, on []string) bool {
	if len(on) == 1 && on[0] == "_id" {
		return true
	}
	for _, x := range col.indexes {
		if x.unique && x.partial == nil && sameSet(x.pattern.Paths(), on) {
			return true
		}
	}
	return false
}

func sameSet(a, b []string) bool {
	in := map[string]bool{}
	for _, s := range a {
		in[s] = true
	}
	for _, s := range b {
		if !in[s] {
			return false
		}
	}
	return len(a) == len(b)
}

// writeOut replaces a collection by the results, in one entry.
func (k *call) writeOut(results query.Source, ns string) error {
	docs, err := query.ReadAll(results)
	if err != nil {
		return err
	}
	return k.ddl(ns, func(w *writer, old *collection) error {
		if err := old.notAView(); err != nil {
			return err
		}
		fresh := k.s.newCollection(ns)
		if old != nil {
			fresh.Options = old.Options
			next := k.s.allocate(len(old.indexes))
			for _, x := range old.indexes {
				fresh.Indexes = append(fresh.Indexes, store.IndexRecord{ID: next, Name: x.Name, Spec: x.Spec})
				next++
			}
			dropEffects(w, old)
		}
		w.noticeCreate(fresh)
		col, err := k.s.parseFresh(fresh)
		if err != nil {
			return err
		}
		for _, d := range docs {
			d, err := query.PrepareInsert(d, k.applyInput(0), nil)
			if err != nil {
				return err
			}
			key := documentKey(d)
			if was, err := w.load(k.ctx, col, key); err != nil || was != nil {
				return errors.Join(err, duplicate(col, "_id_", idIndexKey, d))
			}
			if err := w.set(k.ctx, col, key, nil, d); err != nil {
				return err
			}
		}
		w.effects.Put = append(w.effects.Put, fresh)
		return nil
	})
}
