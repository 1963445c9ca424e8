package query

import (
	"bytes"
	"slices"

	"github.com/assaylab/assay/replset/query/value"
)

// Implies says whether every document that matches f surely matches other too: a
// partial index whose filter is implied holds all that f can find. It understands
// conjunctions of $exists: true and of comparisons; of anything else it says no.
func (f *Filter) Implies(other *Filter) bool {
	return impliesNode(f.Bounds(), other.root)
}

func impliesNode(known []Bound, n node) bool {
	switch n := n.(type) {
	case and:
		for _, k := range n {
			if !impliesNode(known, k) {
				return false
			}
		}
		return true
	case or:
		return len(n) == 1 && impliesNode(known, n[0])
	case constant:
		return bool(n)
	case *leaf:
		for _, b := range known {
			if b.Path == n.name && b.implies(n) {
				return true
			}
		}
	}
	return false
}

// implies: a bound that leaves out missing fields is about values that are there.
func (b Bound) implies(n *leaf) bool {
	if b.Missing || hasPosition(n.path) {
		return false
	}
	if _, ok := n.pred.(exists); ok {
		return true
	}
	want, ok := n.bound()
	if !ok || want.Missing || comparesArrays(n.pred) {
		return false
	}
	for _, r := range b.Ranges {
		if !r.withinAny(want.Ranges) || r.hasUndefined() {
			return false
		}
	}
	return true
}

// comparesArrays: the bound of such a predicate has first elements in it, which do
// not satisfy it by themselves. All other bounds are exact.
func comparesArrays(p predicate) bool {
	switch p := p.(type) {
	case comparison:
		return value.IsArray(p.rhs)
	case *oneOf:
		return slices.ContainsFunc(p.values, value.IsArray)
	}
	return false
}

func (r Range) withinAny(list []Range) bool {
	for _, outer := range list {
		if outer.contains(r) {
			return true
		}
	}
	return false
}

func (r Range) contains(inner Range) bool {
	lo, hi := bytes.Compare(inner.Lo, r.Lo), bytes.Compare(inner.Hi, r.Hi)
	return (lo > 0 || lo == 0 && (!r.LoOpen || inner.LoOpen)) && (hi < 0 || hi == 0 && (!r.HiOpen || inner.HiOpen))
}

// hasUndefined: the key undefined stands for an empty array, which holds no value
// that a comparison could see.
func (r Range) hasUndefined() bool {
	return r.Point() && bytes.Equal(r.Lo, value.KeyOf(value.Undefined))
}
