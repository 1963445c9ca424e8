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

var indexFields = []string{"key", "name", "unique", "sparse", "partialFilterExpression", "expireAfterSeconds", "v", "background", "hidden", "collation", "ns", "dropDups"}

func cmdCreateIndexes(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	specs, ok := k.req.Documents("indexes")
	if !ok || len(specs) == 0 {
		return errorf(codeBadValue, "Must specify at least one index to create")
	}
	var asked []*index
	for _, d := range specs {
		x, err := parseIndexSpec(d)
		if err != nil {
			return err
		}
		asked = append(asked, x)
	}
	before, after, created := 1, 1, false
	ctx, cancel := k.lockContext()
	defer cancel()
	if k.inTxn {
		return k.createIndexesInTransaction(ctx, ns, asked)
	}
	err = k.ddlAll(ctx, []string{ns}, func(w *writer) error {
		old, err := k.s.find(ns)
		if err == nil {
			err = old.notAView()
		}
		if err != nil {
			return err
		}
		base := k.s.newCollection(ns)
		if created = old == nil; !created {
			clone := *old.Collection
			clone.Indexes = slices.Clone(clone.Indexes)
			base = &clone
			before = len(old.indexes) + 1
		}
		if created {
			if old, err = k.s.parseFresh(base); err != nil {
				return err
			}
		}
		next := k.s.allocate(len(asked))
		changed := created
		var specs []document
		for _, x := range asked {
			same, err := conflicting(old, base.Indexes, x)
			if err != nil {
				return err
			}
			if same {
				continue
			}
			x.ID = next
			next++
			if x.Multikey, err = k.buildIndex(w, old, x); err != nil {
				return err
			}
			r := indexRecord(x.ID, x.Name, document(x.Spec))
			r.Multikey = x.Multikey
			base.Indexes = append(base.Indexes, r)
			specs = append(specs, document(x.Spec))
			changed = true
		}
		after = len(base.Indexes) + 1
		if created {
			w.noticeCreate(base)
		}
		if len(specs) > 0 {
			w.noticeIndexes(noticeCreateIndexes, base, specs)
		}
		if changed {
			w.effects.Put = append(w.effects.Put, base)
		}
		return nil
	})
	if err != nil {
		return err
	}
	k.out.AppendInt32("numIndexesBefore", int32(before)).AppendInt32("numIndexesAfter", int32(after)).AppendBoolean("createdCollectionAutomatically", created)
	if before == after && !created {
		k.out.AppendString("note", "all indexes already exist")
	}
	return nil
}

// createIndexesInTransaction makes indexes of a collection that the transaction
// has made itself and that is still empty.
func (k *call) createIndexesInTransaction(ctx context.Context, ns string, asked []*index) error {
	w := k.txn.writer
	col, err := w.find(ns)
	if err != nil {
		return err
	}
	created := col == nil
	if created {
		if col, err = k.createInTransaction(ctx, ns, nil); err != nil {
			return err
		}
	}
	if w.created[ns] == nil || w.touches(col.ID) {
		return errorf(codeNotInTransaction, "Cannot create new indexes on existing collection %s in a multi-document transaction.", ns)
	}
	base := *col.Collection
	base.Indexes = slices.Clone(base.Indexes)
	before := len(base.Indexes) + 1
	next := k.s.allocate(len(asked))
	for i, x := range asked {
		same, err := conflicting(col, base.Indexes, x)
		if err != nil {
			return err
		}
		if !same {
			base.Indexes = append(base.Indexes, indexRecord(next+uint32(i), x.Name, document(x.Spec)))
		}
	}
	if _, err := w.create(&base); err != nil {
		return err
	}
	k.out.AppendInt32("numIndexesBefore", int32(before)).AppendInt32("numIndexesAfter", int32(len(base.Indexes)+1)).AppendBoolean("createdCollectionAutomatically", created)
	return nil
}

func parseIndexSpec(d document) (*index, error) {
	a := &args{what: "createIndexes.indexes", doc: d}
	for key := range value.Fields(d) {
		if !slices.Contains(indexFields, key) {
			return nil, errorf(197, "The field '%s' is not valid for an index specification. Specification: %s", key, value.Show(value.Doc(d)))
		}
	}
	key := a.document("key")
	name := a.text("name")
	a.bytesOnly()
	a.refuse("hidden")
	if a.err != nil {
		return nil, a.err
	}
	if key == nil || value.Len(key) == 0 {
		return nil, errorf(codeCannotCreateIndex, "Index keys cannot be an empty object")
	}
	if name == "" {
		return nil, errorf(codeMissingField, "The 'name' field is a required property of an index specification")
	}
	spec := newDoc().AppendInt32("v", 2).AppendDocument("key", key).AppendString("name", name)
	for _, option := range []string{"unique", "sparse"} {
		if a.boolean(option, false) {
			spec.AppendBoolean(option, true)
		}
	}
	for _, option := range []string{"partialFilterExpression", "expireAfterSeconds"} {
		if v := a.get(option); !value.IsMissing(v) {
			spec.AppendValue(option, v)
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	if a.has("expireAfterSeconds") {
		if n := a.integer("expireAfterSeconds", 0); n < 0 || n > 1<<31-1 {
			return nil, errorf(codeCannotCreateIndex, "TTL index 'expireAfterSeconds' option must be within an acceptable range, 0 to 2147483647")
		}
		if value.Len(key) != 1 || sameKey(key, idIndexKey) {
			return nil, errorf(codeCannotCreateIndex, "TTL indexes are single-field indexes, and not on _id")
		}
	}
	x, err := parseIndex(indexRecord(0, name, spec.Build()))
	if err != nil {
		return nil, err
	}
	if x.sparse && x.partial != nil {
		return nil, errorf(codeCannotCreateIndex, "cannot mix \"partialFilterExpression\" and \"sparse\" options")
	}
	return x, nil
}

// conflicting says whether the index is there already; one that is there
// otherwise is an error.
func conflicting(col *collection, fresh []store.IndexRecord, x *index) (same bool, err error) {
	if sameKey(x.key, idIndexKey) {
		if x.Name != "_id_" || x.sparse || x.partial != nil {
			return true, errorf(codeBadValue, "The _id index must have the name '_id_' and no options")
		}
		return true, nil
	}
	have := slices.Clone(col.indexes)
	for _, r := range fresh {
		if !slices.ContainsFunc(have, func(y *index) bool { return y.Name == r.Name }) {
			y, err := parseIndex(r)
			if err != nil {
				return false, err
			}
			have = append(have, y)
		}
	}
	for _, y := range have {
		key := sameKey(y.key, x.key) && bytes.Equal(y.filter, x.filter)
		options := y.unique == x.unique && y.sparse == x.sparse && y.expires == x.expires && y.expire == x.expire
		switch {
		case key && options && y.Name == x.Name:
			return true, nil
		case key && options:
			return false, errorf(codeIndexOptions, "Index already exists with a different name: %s", y.Name)
		case key && y.Name == x.Name:
			return false, errorf(codeIndexKeySpecs, "An existing index has the same name as the requested index. Requested index: %s", value.Show(value.Doc(document(x.Spec))))
		case key:
			return false, errorf(codeIndexOptions, "An equivalent index already exists with the same name but different options. Requested index: %s", value.Show(value.Doc(document(x.Spec))))
		case y.Name == x.Name:
			return false, errorf(codeIndexKeySpecs, "An existing index has the same name as the requested index. Requested index: %s", value.Show(value.Doc(document(x.Spec))))
		}
	}
	return false, nil
}

// buildIndex makes the entries of documents that are there already.
func (k *call) buildIndex(w *writer, col *collection, x *index) (multikey bool, err error) {
	sc, err := k.s.m.Store.Documents(col.ID, store.Range{}, store.Latest, false)
	if err != nil {
		return false, err
	}
	defer sc.Close()
	owners := map[string]bool{}
	for {
		f, ok, err := sc.Next()
		if err != nil || !ok {
			return multikey, err
		}
		if err := k.ctx.Err(); err != nil {
			return false, err
		}
		keys, many, err := x.keys(f.Document)
		if err != nil {
			return false, err
		}
		multikey = multikey || many
		for _, key := range keys {
			if x.unique {
				if owners[string(key)] {
					return false, duplicate(col, x.Name, x.key, f.Document)
				}
				owners[string(key)] = true
			}
			w.effects.Entries = append(w.effects.Entries, store.Entry{Index: x.ID, Key: key, Document: f.Key})
		}
	}
}

func cmdDropIndexes(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	what := k.get("index")
	was := 0
	err = k.ddl(ns, func(w *writer, old *collection) error {
		if old == nil {
			return errorf(codeNamespaceNotFound, "ns not found %s", ns)
		}
		if err := old.notAView(); err != nil {
			return err
		}
		was = len(old.indexes) + 1
		drop, err := chosenIndexes(old, what)
		if err != nil {
			return err
		}
		next := *old.Collection
		next.Indexes = slices.DeleteFunc(slices.Clone(next.Indexes), func(r store.IndexRecord) bool {
			return slices.ContainsFunc(drop, func(x *index) bool { return x.ID == r.ID })
		})
		var specs []document
		for _, x := range drop {
			w.effects.DropIndexes = append(w.effects.DropIndexes, x.ID)
			specs = append(specs, document(x.Spec))
		}
		if len(specs) > 0 {
			w.noticeIndexes(noticeDropIndexes, old.Collection, specs)
		}
		w.effects.Put = append(w.effects.Put, &next)
		return nil
	})
	if err == nil {
		k.out.AppendInt32("nIndexesWas", int32(was))
	}
	return err
}

func chosenIndexes(col *collection, what query.Value) ([]*index, error) {
	byName := func(name string) (*index, error) {
		if name == "_id_" {
			return nil, errorf(codeInvalidOptions, "cannot drop _id index")
		}
		for _, x := range col.indexes {
			if x.Name == name {
				return x, nil
			}
		}
		return nil, errorf(codeIndexNotFound, "index not found with name [%s]", name)
	}
	switch {
	case value.IsString(what) && value.Str(what) == "*":
		return col.indexes, nil
	case value.IsString(what):
		x, err := byName(value.Str(what))
		return []*index{x}, err
	case value.IsArray(what):
		var out []*index
		for v := range value.Elements(what.Data) {
			x, err := byName(value.Str(v))
			if err != nil {
				return nil, err
			}
			out = append(out, x)
		}
		return out, nil
	case value.IsDocument(what):
		if sameKey(what.Data, idIndexKey) {
			return nil, errorf(codeInvalidOptions, "cannot drop _id index")
		}
		for _, x := range col.indexes {
			if sameKey(what.Data, x.key) {
				return []*index{x}, nil
			}
		}
		return nil, errorf(codeIndexNotFound, "can't find index with key: %s", value.Show(what))
	}
	return nil, errorf(codeTypeMismatch, "BSON field 'dropIndexes.index' is missing or of the wrong type")
}

func cmdListIndexes(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	col, err := k.s.find(ns)
	if err != nil {
		return err
	}
	if col == nil {
		return errorf(codeNamespaceNotFound, "ns does not exist: %s", ns)
	}
	if err := col.notAView(); err != nil {
		return err
	}
	docs := []document{newDoc().AppendInt32("v", 2).AppendDocument("key", idIndexKey).AppendString("name", "_id_").Build()}
	for _, x := range col.indexes {
		docs = append(docs, document(x.Spec))
	}
	return k.answerList(ns, docs)
}

func cmdListCollections(k *call) error {
	if err := checkDatabase(k.db); err != nil {
		return err
	}
	nameOnly := k.boolean("nameOnly", false)
	k.boolean("authorizedCollections", false)
	raw := orEmpty(k.document("filter"))
	if k.err != nil {
		return k.err
	}
	f, err := query.ParseFilter(raw, nil)
	if err != nil {
		return err
	}
	var docs []document
	names := k.s.namespaces(k.db)
	slices.Sort(names)
	for _, ns := range names {
		c := k.s.m.Store.Catalogue().Collection(ns)
		if c == nil {
			continue
		}
		full := describe(c)
		if ok, err := f.Match(full); err != nil {
			return err
		} else if !ok {
			continue
		}
		if nameOnly {
			full = newDoc().AppendValue("name", value.Lookup(full, "name")).AppendValue("type", value.Lookup(full, "type")).Build()
		}
		docs = append(docs, full)
	}
	return k.answerList(k.db+".$cmd.listCollections", docs)
}

// describe is a collection as listCollections shows it.
func describe(c *store.Collection) document {
	_, name := splitNS(c.Name)
	options := orEmpty(document(c.Options))
	b := newDoc().AppendString("name", name)
	if !value.IsMissing(value.Lookup(options, "viewOn")) {
		return b.AppendString("type", "view").AppendDocument("options", options).
			AppendDocument("info", newDoc().AppendBoolean("readOnly", true).Build()).Build()
	}
	return b.AppendString("type", "collection").AppendDocument("options", options).
		AppendDocument("info", newDoc().AppendBoolean("readOnly", false).AppendBinary("uuid", 4, c.UUID.Data).Build()).
		AppendDocument("idIndex", newDoc().AppendInt32("v", 2).AppendDocument("key", idIndexKey).AppendString("name", "_id_").Build()).Build()
}

func cmdListDatabases(k *call) error {
	nameOnly := k.boolean("nameOnly", false)
	k.boolean("authorizedDatabases", false)
	raw := orEmpty(k.document("filter"))
	if k.err != nil {
		return k.err
	}
	f, err := query.ParseFilter(raw, nil)
	if err != nil {
		return err
	}
	names := []string{"admin", "config", "local"}
	for _, c := range k.s.m.Store.Catalogue().All() {
		if db, _ := splitNS(c.Name); !slices.Contains(names, db) {
			names = append(names, db)
		}
	}
	slices.Sort(names)
	var docs []document
	for _, name := range names {
		full := newDoc().AppendString("name", name).AppendInt64("sizeOnDisk", 8192).AppendBoolean("empty", len(k.s.namespaces(name)) == 0).Build()
		if ok, err := f.Match(full); err != nil {
			return err
		} else if !ok {
			continue
		}
		if nameOnly {
			full = newDoc().AppendString("name", name).Build()
		}
		docs = append(docs, full)
	}
	appendArray(k.out, "databases", docs)
	if !nameOnly {
		k.out.AppendInt64("totalSize", int64(8192*len(docs))).AppendInt64("totalSizeMb", 0)
	}
	return nil
}

// size counts the documents of a collection and their bytes.
func (k *call) size(col *collection) (n, total int64, err error) {
	v := k.s.now(k.ctx)
	defer v.release()
	next, close := v.scan(col, &plan{spans: []store.Range{{}}})
	defer close()
	for {
		it, err := next()
		if err == io.EOF {
			return n, total, nil
		}
		if err != nil {
			return n, total, err
		}
		n++
		total += int64(len(it.doc))
	}
}

func cmdCollStats(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	scale := max(1, k.integer("scale", 1))
	col, err := k.s.find(ns)
	if err != nil || k.err != nil {
		return orErr(err, k.err)
	}
	n, total, indexes := int64(0), int64(0), 0
	if col != nil {
		if n, total, err = k.size(col); err != nil {
			return err
		}
		indexes = len(col.indexes) + 1
	}
	k.out.AppendString("ns", ns).AppendInt64("count", n).AppendInt64("size", total/scale).AppendInt32("nindexes", int32(indexes)).AppendBoolean("capped", false)
	return nil
}

func orErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func cmdDBStats(k *call) error {
	scale := max(1, k.integer("scale", 1))
	if k.err != nil {
		return k.err
	}
	n, total, indexes := int64(0), int64(0), 0
	names := k.s.namespaces(k.db)
	for _, ns := range names {
		col, err := k.s.find(ns)
		if err != nil {
			return err
		}
		if col == nil {
			continue
		}
		count, size, err := k.size(col)
		if err != nil {
			return err
		}
		n, total, indexes = n+count, total+size, indexes+len(col.indexes)+1
	}
	k.out.AppendString("db", k.db).AppendInt32("collections", int32(len(names))).AppendInt64("objects", n).
		AppendInt64("dataSize", total/scale).AppendInt32("indexes", int32(indexes))
	return nil
}

// cmdValidate compares a collection's indexes with its documents.
func cmdValidate(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	k.boolean("full", false)
	col, err := k.s.find(ns)
	if err != nil || k.err != nil {
		return orErr(err, k.err)
	}
	if col == nil {
		return errorf(codeNamespaceNotFound, "Collection '%s' does not exist to validate.", ns)
	}
	faults, n, err := k.s.check(k.ctx, col)
	if err != nil {
		return err
	}
	k.out.AppendString("ns", ns).AppendBoolean("valid", len(faults) == 0).AppendInt64("nrecords", n).AppendInt32("nIndexes", int32(len(col.indexes)+1))
	k.out.AppendArray("errors", textArray(faults))
	return nil
}
