package server

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

// collection is an entry of the catalogue with its indexes parsed. It does not
// change.
type collection struct {
	*store.Collection
	collectionOptions
	indexes []*index // without that on _id, which is the documents themselves
}

type index struct {
	store.IndexRecord
	pattern *query.KeyPattern
	key     document
	unique  bool
	sparse  bool
	partial *query.Filter
	filter  document // of a partial index
	expire  time.Duration
	expires bool
}

// idIndex is how the index on _id is described; it has no entries of its own.
var idIndexKey = bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).Build()

func parseIndex(r store.IndexRecord) (*index, error) {
	x := &index{IndexRecord: r}
	a := &args{what: "index", doc: document(r.Spec)}
	x.key = a.document("key")
	x.unique, x.sparse = a.boolean("unique", false), a.boolean("sparse", false)
	x.filter = a.document("partialFilterExpression")
	if a.has("expireAfterSeconds") {
		x.expires, x.expire = true, time.Duration(a.integer("expireAfterSeconds", 0))*time.Second
	}
	if a.err != nil {
		return nil, a.err
	}
	var err error
	if x.pattern, err = query.ParseKeyPattern(x.key); err != nil {
		return nil, err
	}
	if x.filter != nil {
		x.partial, err = query.ParseFilter(x.filter, nil)
	}
	return x, err
}

// keys are the document's keys in the index; none for a nil document.
func (x *index) keys(doc document) (keys [][]byte, multikey bool, err error) {
	if doc == nil || x.sparse && !x.pattern.Present(doc) {
		return nil, false, nil
	}
	if x.partial != nil {
		if ok, err := x.partial.Match(doc); !ok || err != nil {
			return nil, false, err
		}
	}
	return x.pattern.Keys(doc)
}

// collection parses a catalogue entry, once for each of its versions.
func (s *Server) collection(c *store.Collection) (*collection, error) {
	if c == nil {
		return nil, nil
	}
	s.parsedMu.Lock()
	p := s.parsed[c.ID]
	s.parsedMu.Unlock()
	if p != nil && p.Collection == c {
		return p, nil
	}
	p = &collection{Collection: c}
	var err error
	if p.collectionOptions, err = parseCollectionOptions(document(c.Options)); err != nil {
		return nil, err
	}
	for _, r := range c.Indexes {
		x, err := parseIndex(r)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(x.key, idIndexKey) {
			p.indexes = append(p.indexes, x)
		}
	}
	s.parsedMu.Lock()
	s.parsed[c.ID] = p
	s.parsedMu.Unlock()
	return p, nil
}

// find returns the collection of a namespace as of now, nil if there is none.
func (s *Server) find(ns string) (*collection, error) {
	return s.collection(s.m.Store.Catalogue().Collection(ns))
}

func splitNS(ns string) (db, coll string) {
	db, coll, _ = strings.Cut(ns, ".")
	return db, coll
}

func checkDatabase(db string) error {
	if db == "" || len(db) > 63 || strings.ContainsAny(db, "/\\. \"$\x00") {
		return errorf(codeInvalidNamespace, "Invalid database name: '%s'", db)
	}
	return nil
}

func checkCollection(db, coll string) error {
	if err := checkDatabase(db); err != nil {
		return err
	}
	if coll == "" || strings.ContainsAny(coll, "$\x00") || strings.HasPrefix(coll, ".") || len(db)+1+len(coll) > 255 {
		return errorf(codeInvalidNamespace, "Invalid collection name: %s", coll)
	}
	return nil
}

// documentKey is where a document is kept.
func documentKey(doc document) []byte {
	for k, v := range value.Fields(doc) {
		if k == "_id" {
			return value.KeyOf(v)
		}
	}
	return nil
}

// lacking are the keys of a that b has not; both are sorted.
func lacking(a, b [][]byte) [][]byte {
	var out [][]byte
	for _, k := range a {
		if _, found := slices.BinarySearchFunc(b, k, bytes.Compare); !found {
			out = append(out, k)
		}
	}
	return out
}
