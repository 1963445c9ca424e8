package query

import (
	"bytes"
	"slices"
	"strings"

	"github.com/assaylab/assay/replset/query/value"
)

// KeyPattern is the fields of an index and their directions.
type KeyPattern struct {
	fields []keyField
	by     *value.Collation // of a sort
}

type keyField struct {
	name string
	path []string
	desc bool
}

// ParseKeyPattern parses an index's key document. Errors: 67 for a malformed one,
// 238 for text, hashed, geospatial and wildcard indexes.
func ParseKeyPattern(doc Document) (*KeyPattern, error) {
	p := &KeyPattern{}
	for k, v := range value.Fields(doc) {
		f, err := parseKeyField(k, v)
		if err != nil {
			return nil, err
		}
		p.fields = append(p.fields, f)
	}
	if len(p.fields) == 0 {
		return nil, value.Errorf(value.CannotCreateIndex, "Index keys cannot be empty.")
	}
	return p, nil
}

func parseKeyField(name string, v Value) (keyField, error) {
	f := keyField{name: name, path: splitPath(name)}
	switch {
	case name == "$**" || strings.HasSuffix(name, ".$**"):
		return f, value.Errorf(value.NotImplemented, "wildcard indexes are not supported")
	case value.IsString(v):
		return f, value.Errorf(value.NotImplemented, "indexes of type %q are not supported", value.Str(v))
	case !value.IsNumber(v) || value.NumberOf(v).IsZero() || value.NumberOf(v).IsNaN():
		return f, value.Errorf(value.CannotCreateIndex, "Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings are allowed.", value.TypeName(v))
	case slices.Contains(f.path, ""):
		return f, value.Errorf(value.CannotCreateIndex, "Index keys cannot contain an empty field.")
	case strings.HasPrefix(name, "$"):
		return f, value.Errorf(value.CannotCreateIndex, "Index key contains an illegal field name: field name starts with '$'.")
	}
	f.desc = value.NumberOf(v).Sign() < 0
	return f, nil
}

// Paths are the fields in order.
func (p *KeyPattern) Paths() []string {
	var out []string
	for _, f := range p.fields {
		out = append(out, f.name)
	}
	return out
}

// Descending says whether the i-th field is descending.
func (p *KeyPattern) Descending(i int) bool { return p.fields[i].desc }

// Present says whether a document has any of the fields: a sparse index holds only
// documents that do.
func (p *KeyPattern) Present(doc Document) bool {
	for _, f := range p.fields {
		if walk(doc, f.path, -1, false, func(v Value, _ int) bool { return !value.IsMissing(v) }) {
			return true
		}
	}
	return false
}

// Keys are a document's index keys, distinct and in order: one, or one for each
// element of the array that a field goes through, when multikey is true. A field
// that is not there counts as null, an empty array as undefined. Error: 171 if
// fields go through different arrays.
func (p *KeyPattern) Keys(doc Document) (keys [][]byte, multikey bool, err error) {
	g := keyGenerator{pattern: p}
	slots := make([]slot, len(p.fields))
	for i, f := range p.fields {
		slots[i] = slot{v: value.Doc(doc), rest: f.path}
	}
	if err := g.expand(slots); err != nil {
		return nil, false, err
	}
	slices.SortFunc(g.keys, bytes.Compare)
	return slices.CompactFunc(g.keys, bytes.Equal), g.multikey, nil
}

// Bound is the index key of a document that has just the pattern's fields, in the
// pattern's order, as min and max of a find do. ok is false if it has others.
func (p *KeyPattern) Bound(doc Document) (key []byte, ok bool) {
	i := 0
	for name, v := range value.Fields(doc) {
		if i == len(p.fields) || p.fields[i].name != name {
			return nil, false
		}
		at := len(key)
		key = value.AppendKey(key, v)
		if p.fields[i].desc {
			value.Invert(key[at:])
		}
		i++
	}
	return key, i == len(p.fields)
}

// slot is where one field of the pattern has got to: a value, and what of the path
// is left to follow.
type slot struct {
	v     Value
	rest  []string
	array string // the path of the array that v is, if it is one to be expanded
	done  bool
}

type keyGenerator struct {
	pattern  *KeyPattern
	keys     [][]byte
	multikey bool
}

// expand follows every field to its end or to an array. If all that meet an array
// meet the same, it goes on for each element.
func (g *keyGenerator) expand(slots []slot) error {
	array := ""
	var list Value
	for i := range slots {
		g.advance(&slots[i], g.pattern.fields[i].path)
		switch at := slots[i].array; {
		case at == "":
		case array == "":
			array, list = at, slots[i].v
		case array != at:
			return value.Errorf(value.ParallelArrays, "cannot index parallel arrays [%s] [%s]", lastPart(at), lastPart(array))
		}
	}
	if array == "" {
		g.emit(slots)
		return nil
	}
	g.multikey = true
	elems := value.List(list.Data)
	if len(elems) == 0 {
		elems = []Value{value.Undefined}
	}
	for _, e := range elems {
		next := slices.Clone(slots)
		for i := range next {
			if next[i].array == array {
				next[i].enter(e)
			}
		}
		if err := g.expand(next); err != nil {
			return err
		}
	}
	return nil
}

func lastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// advance follows a slot's path until its end, or an array.
func (g *keyGenerator) advance(s *slot, path []string) {
	for !s.done {
		switch {
		case value.IsArray(s.v):
			if n, ok := s.position(); ok {
				s.v, s.rest = value.At(s.v.Data, n), s.rest[1:]
				s.done = len(s.rest) == 0 && !value.IsArray(s.v)
				continue
			}
			s.array = strings.Join(path[:len(path)-len(s.rest)], ".")
			return
		case len(s.rest) == 0:
			s.done = true
		case value.IsDocument(s.v):
			s.v, s.rest = value.Lookup(s.v.Data, s.rest[0]), s.rest[1:]
		default:
			s.v, s.done = value.Missing, true
		}
	}
}

// position: a number is a position in an array that is so long.
func (s *slot) position() (int, bool) {
	if len(s.rest) == 0 {
		return 0, false
	}
	n, ok := position(s.rest[0])
	return n, ok && n < value.Len(s.v.Data)
}

// enter takes one element of the array that the slot stands before. An array in an
// array is a value if the path ends here, and has no fields if it does not.
func (s *slot) enter(e Value) {
	s.array = ""
	switch {
	case len(s.rest) == 0:
		s.v, s.done = e, true
	case value.IsDocument(e):
		s.v = e
	default:
		s.v, s.done = value.Missing, true
	}
}

func (g *keyGenerator) emit(slots []slot) {
	var key []byte
	for i, s := range slots {
		if value.IsMissing(s.v) {
			s.v = value.Null
		}
		at := len(key)
		key = value.AppendKey(key, g.pattern.by.Fold(s.v))
		if g.pattern.fields[i].desc {
			value.Invert(key[at:])
		}
	}
	g.keys = append(g.keys, key)
}
