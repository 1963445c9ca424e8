package query

import (
	"bytes"
	"errors"
	"slices"

	"github.com/assaylab/assay/replset/query/value"
)

// Sort is an order of documents.
type Sort struct {
	pattern *KeyPattern
	natural int
}

// ParseSort parses a sort document, with strings in the order by. One that is empty gives nil: no order. Errors:
// 15974 and 15975 for a malformed one, 238 for $meta.
func ParseSort(doc Document, by *value.Collation) (*Sort, error) {
	s := &Sort{pattern: &KeyPattern{by: by}}
	for k, v := range value.Fields(doc) {
		if k == "$natural" && value.Len(doc) == 1 {
			return parseNatural(v)
		}
		f, err := parseSortField(k, v)
		if err != nil {
			return nil, err
		}
		s.pattern.fields = append(s.pattern.fields, f)
	}
	if len(s.pattern.fields) == 0 {
		return nil, nil
	}
	return s, nil
}

func parseNatural(v Value) (*Sort, error) {
	n, ok := value.Integer(v)
	if !ok || n != 1 && n != -1 {
		return nil, badValue("$natural sort must be 1 or -1, found %s", value.Show(v))
	}
	return &Sort{natural: int(n)}, nil
}

func parseSortField(name string, v Value) (keyField, error) {
	f := keyField{name: name, path: splitPath(name)}
	if value.IsDocument(v) {
		if k, _, _ := value.First(v.Data); k == "$meta" {
			return f, value.Errorf(value.NotImplemented, "sorting by $meta is not supported")
		}
		return f, value.Errorf(15974, "Illegal key in $sort specification: %s: %s", name, value.Show(v))
	}
	n, ok := value.Integer(v)
	switch {
	case !value.IsNumber(v):
		return f, value.Errorf(15974, "Illegal key in $sort specification: %s: %s", name, value.Show(v))
	case !ok || n != 1 && n != -1:
		return f, value.Errorf(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
	case slices.Contains(f.path, ""):
		return f, value.Errorf(15998, "FieldPath field names may not be empty strings.")
	case name[0] == '$':
		return f, value.Errorf(16410, "FieldPath field names may not start with '$'.")
	}
	f.desc = n < 0
	return f, nil
}

// Natural is 1 or -1 for {$natural: ±1}, the order in which documents are stored,
// and else 0.
func (s *Sort) Natural() int { return s.natural }

// Pattern is the sort as the key pattern of an index that would give its order; nil
// for a natural sort and for one under a collation, which no index has.
func (s *Sort) Pattern() *KeyPattern {
	if s.pattern == nil || s.pattern.by != nil {
		return nil
	}
	return s.pattern
}

// Key is a document's place: documents sort as their keys compare. Of an array the
// least element counts, or the greatest if descending; an empty array is before
// null. Error: 2 if two fields of the sort go through different arrays.
func (s *Sort) Key(doc Document) ([]byte, error) {
	if s.pattern == nil {
		return nil, nil
	}
	keys, _, err := s.pattern.Keys(doc)
	if err != nil {
		var e *Error
		if errors.As(err, &e) && e.Code == value.ParallelArrays {
			return nil, badValue("cannot sort with keys that are parallel arrays")
		}
		return nil, err
	}
	return keys[0], nil
}

// Compare compares two documents.
func (s *Sort) Compare(a, b Document) (int, error) {
	ka, err := s.Key(a)
	if err != nil {
		return 0, err
	}
	kb, err := s.Key(b)
	return bytes.Compare(ka, kb), err
}

// keyed is a document with its sort key.
type keyed struct {
	key []byte
	doc Document
}

// Documents sorts in place. Documents that are equal keep their order.
func (s *Sort) Documents(docs []Document) error {
	list := make([]keyed, len(docs))
	for i, d := range docs {
		key, err := s.Key(d)
		if err != nil {
			return err
		}
		list[i] = keyed{key, d}
	}
	slices.SortStableFunc(list, func(a, b keyed) int { return bytes.Compare(a.key, b.key) })
	for i, k := range list {
		docs[i] = k.doc
	}
	return nil
}
