package server

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/assaylab/assay/replset/store"
)

// Check compares all indexes with their documents, as of now, and returns what does
// not agree.
//
// Documents and index keys have versions, the catalogue has none: an index that
// is being dropped while it is looked at loses its keys at every timestamp. What
// does not agree is therefore looked at again until it does, or until it has
// stood for a second.
func (s *Server) Check(ctx context.Context) (faults []string, err error) {
	for _, c := range s.m.Store.Catalogue().All() {
		more, err := s.checkByName(ctx, c.Name)
		for try := 0; err == nil && len(more) > 0 && try < 100; try++ {
			select {
			case <-ctx.Done():
				return append(faults, more...), ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
			more, err = s.checkByName(ctx, c.Name)
		}
		faults = append(faults, more...)
		if err != nil {
			return faults, err
		}
	}
	return faults, nil
}

// checkByName checks the collection that has the name now; none has no faults.
func (s *Server) checkByName(ctx context.Context, name string) ([]string, error) {
	c := s.m.Store.Catalogue().Collection(name)
	if c == nil {
		return nil, nil
	}
	col, err := s.collection(c)
	if err != nil {
		return nil, err
	}
	faults, _, err := s.check(ctx, col)
	if hasCode(err, codeQueryPlanKilled) {
		return nil, nil // dropped while it was looked at
	}
	return faults, err
}

func (s *Server) check(ctx context.Context, col *collection) (faults []string, n int64, err error) {
	v := s.now(ctx)
	defer v.release()
	want := map[string]bool{}
	next, close := v.scan(col, &plan{spans: []store.Range{{}}})
	defer close()
	for {
		it, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, n, err
		}
		n++
		for _, x := range col.indexes {
			keys, many, err := x.keys(it.doc)
			if err != nil {
				return nil, n, err
			}
			if many && !x.Multikey {
				faults = append(faults, fmt.Sprintf("%s: index %s is multikey and does not know it", col.Name, x.Name))
			}
			for _, key := range keys {
				want[fmt.Sprintf("%d/%x/%x", x.ID, key, it.key)] = true
			}
		}
	}
	for _, x := range col.indexes {
		sc, err := s.m.Store.Entries(x.ID, store.Range{}, v.at, false)
		if err != nil {
			return nil, n, err
		}
		for {
			f, ok, err := sc.Next()
			if err != nil {
				sc.Close()
				return nil, n, err
			}
			if !ok {
				break
			}
			place := fmt.Sprintf("%d/%x/%x", x.ID, f.Entry, f.Key)
			if !want[place] {
				faults = append(faults, fmt.Sprintf("%s: index %s has an entry too many: %s", col.Name, x.Name, place))
			}
			delete(want, place)
		}
		if err := sc.Close(); err != nil {
			return nil, n, err
		}
	}
	for place := range want {
		faults = append(faults, fmt.Sprintf("%s: an index lacks the entry %s", col.Name, place))
	}
	return faults, n, nil
}
