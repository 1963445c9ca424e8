package query

import (
	"bytes"
	"math"
	"slices"

	"github.com/assaylab/assay/replset/query/value"
)

// Bound is what a filter implies for one path: every document that matches has, in
// an index on Path, a key in one of Ranges. It is necessary, not sufficient: the
// filter must still be applied.
type Bound struct {
	Path string
	// Ranges are in order and do not overlap. None means that nothing matches.
	Ranges []Range
	// Missing says that documents without the path may match, so that a sparse index
	// must not be used.
	Missing bool
}

// Points says whether all ranges are single keys, as for equality and $in.
func (b Bound) Points() bool {
	return !slices.ContainsFunc(b.Ranges, func(r Range) bool { return !r.Point() })
}

// Range is an interval of keys as KeyOf makes them. A nil end is open.
type Range struct {
	Lo, Hi         []byte
	LoOpen, HiOpen bool // the end itself is not in it
}

// Point says whether the range is a single key.
func (r Range) Point() bool { return r.Lo != nil && bytes.Equal(r.Lo, r.Hi) && !r.LoOpen && !r.HiOpen }

// keyEnd is above every byte that a key may begin with: a key followed by it is
// above all that continues that key.
const keyEnd = 0xff

// Span is the range as a half-open interval [from, to) of the entries of an index,
// in which prefix, the keys of the fields before, is followed by the field's key,
// turned round if the field is descending, and by anything.
func (r Range) Span(prefix []byte, descending bool) (from, to []byte) {
	lo, hi, loOpen, hiOpen := r.Lo, r.Hi, r.LoOpen, r.HiOpen
	if descending {
		lo, hi, loOpen, hiOpen = inverted(r.Hi), inverted(r.Lo), r.HiOpen, r.LoOpen
	}
	from = append(slices.Clone(prefix), lo...)
	if lo != nil && loOpen {
		from = append(from, keyEnd)
	}
	to = append(slices.Clone(prefix), hi...)
	if hi == nil || !hiOpen {
		to = append(to, keyEnd)
	}
	return from, to
}

func inverted(key []byte) []byte {
	if key == nil {
		return nil
	}
	out := slices.Clone(key)
	value.Invert(out)
	return out
}

// Bounds are what the filter implies for paths, in the order in which the filter
// has them. A path can be there more than once. In an index that is not multikey all
// bounds hold for the one key of the document. In a multikey index each holds for
// some key, but not all for the same: {a: {$gt: 1, $lt: 5}} matches [0, 9]. There
// only one bound may be used.
func (f *Filter) Bounds() []Bound {
	var out []Bound
	collectBounds(f.root, "", &out)
	return out
}

func collectBounds(n node, prefix string, out *[]Bound) {
	switch n := n.(type) {
	case and:
		for _, k := range n {
			collectBounds(k, prefix, out)
		}
	case or:
		if len(n) == 1 {
			collectBounds(n[0], prefix, out)
		}
	case *leaf:
		if b, ok := n.bound(); ok && (prefix == "" || !b.Missing) {
			b.Path = prefix + b.Path
			*out = append(*out, b)
		}
	case *elemMatch:
		if n.kid != nil && !hasPosition(n.path) {
			collectBounds(n.kid, prefix+n.name+".", out)
		}
	}
}

func hasPosition(path []string) bool {
	return slices.ContainsFunc(path, func(p string) bool { _, ok := position(p); return ok })
}

func (n *leaf) bound() (Bound, bool) {
	b := Bound{Path: n.name}
	if hasPosition(n.path) {
		return b, false // an index takes a number for a name where a filter may not
	}
	switch p := n.pred.(type) {
	case comparison:
		b.Missing = p.acrossClasses(value.ClassMissing)
		return p.bound(b)
	case *oneOf:
		if len(p.regexes) > 0 || p.by != nil {
			return b, false
		}
		for _, v := range p.values {
			b.addPoints(v)
		}
		b.sort()
		return b, true
	}
	return b, false
}

func (c comparison) bound(b Bound) (Bound, bool) {
	if c.op == opEq {
		b.addPoints(c.rhs)
		b.sort()
		return b, true
	}
	class := value.ClassOf(c.rhs)
	switch class {
	case value.ClassMinKey, value.ClassMaxKey, value.ClassArray:
		return b, false // other classes match too, or whole arrays, which no index holds
	case value.ClassNull:
		if c.op == opGte || c.op == opLte {
			b.addPoints(c.rhs)
		}
		return b, true
	}
	if value.NumberOf(c.rhs).IsNaN() { // equals itself and is neither less nor greater
		if c.op == opGte || c.op == opLte {
			b.addPoint(c.rhs)
		}
		return b, true
	}
	key := value.KeyOf(c.rhs)
	// No key begins with the bytes beside a class's, so both ends can be open; a part
	// of a key must not be an end that is included, for Span needs whole ones.
	r := Range{Lo: []byte{byte(class) - 1}, Hi: []byte{byte(class) + 1}, LoOpen: true, HiOpen: true}
	if class == value.ClassNumber {
		r.Lo = value.KeyOf(value.Double(math.NaN()))
	}
	switch c.op {
	case opGt, opGte:
		r.Lo, r.LoOpen = key, c.op == opGt
	default:
		r.Hi, r.HiOpen = key, c.op == opLt
	}
	b.Ranges = []Range{r}
	return b, true
}

// addPoints adds the keys that a document equal to v may have. An array is indexed
// by its elements, so one that equals v has v's first element as a key.
func (b *Bound) addPoints(v Value) {
	b.addPoint(v)
	if value.ClassOf(v) == value.ClassNull {
		b.Missing = true
	}
	if !value.IsArray(v) {
		return
	}
	if first := value.At(v.Data, 0); !value.IsMissing(first) {
		b.addPoint(first)
	} else {
		b.addPoint(value.Undefined)
	}
}

func (b *Bound) addPoint(v Value) {
	key := value.KeyOf(v)
	b.Ranges = append(b.Ranges, Range{Lo: key, Hi: key})
}

func (b *Bound) sort() {
	slices.SortFunc(b.Ranges, func(x, y Range) int { return bytes.Compare(x.Lo, y.Lo) })
	b.Ranges = slices.CompactFunc(b.Ranges, func(x, y Range) bool { return bytes.Equal(x.Lo, y.Lo) })
}

// ID is the _id that every matching document has, if the filter pins one.
func (f *Filter) ID() (id Value, ok bool) {
	for _, e := range equalities(f.root) {
		if e.path == "_id" && !value.IsArray(e.v) {
			return e.v, true
		}
	}
	return value.Missing, false
}

// pinned is a path that must equal a value.
type pinned struct {
	path string
	v    Value
}

// equalities are the equalities that a filter demands of every document.
func equalities(n node) []pinned {
	switch n := n.(type) {
	case and:
		var out []pinned
		for _, k := range n {
			out = append(out, equalities(k)...)
		}
		return out
	case or:
		if len(n) == 1 {
			return equalities(n[0])
		}
	case *leaf:
		pred := n.pred
		if c, ok := pred.(collated); ok {
			pred = c.plain
		}
		if c, ok := pred.(comparison); ok && c.op == opEq {
			return []pinned{{n.name, c.rhs}}
		}
	}
	return nil
}
