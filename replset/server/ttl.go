package server

import (
	"context"
	"time"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// ttlEvery is how often documents are looked at; MongoDB does so once a minute.
const ttlEvery = time.Second

// expireDocuments removes what TTL indexes have outlived. What fails is tried
// again the next time.
func (s *Server) expireDocuments(ctx context.Context) {
	role := s.topology.role()
	if !role.Writable {
		return
	}
	for _, c := range s.m.Store.Catalogue().All() {
		col, err := s.collection(c)
		if err != nil {
			continue
		}
		for _, x := range col.indexes {
			if x.expires {
				_ = s.expireIndex(ctx, role, col, x)
			}
		}
	}
}

func (s *Server) expireIndex(ctx context.Context, role Role, col *collection, x *index) error {
	ctx, cancel := context.WithTimeout(ctx, ttlEvery)
	defer cancel()
	path := x.pattern.Paths()[0]
	limit := value.DateOf(time.Now().Add(-x.expire))
	// $lt compares only dates with a date.
	raw := newDoc().AppendDocument(path, newDoc().AppendValue("$lt", limit).Build()).Build()
	if x.filter != nil {
		raw = newDoc().AppendArray("$and", docArray([]document{raw, x.filter})).Build()
	}
	f, err := query.ParseFilter(raw, nil)
	if err != nil {
		return err
	}
	k := s.ownCall(ctx, role)
	st := &deleteStatement{ns: col.Name, sel: selection{filter: f, raw: raw, hint: value.Missing}, multi: true}
	b := k.newBatch()
	defer b.close()
	if _, err := st.do(b, 0, func(int32, document) (document, error) { return nil, nil }); err != nil || b.stopped() {
		return err
	}
	return b.flush()
}
