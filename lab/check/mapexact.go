package check

import "cmp"

// Entry is a key with its value.
type Entry[K cmp.Ordered, V comparable] struct {
	Key   K `json:"key"`
	Value V `json:"value"`
}

// MapOp is one operation on a map. Its changes belong together: a store that
// crashes must keep all of them or none.
type MapOp[K cmp.Ordered, V comparable] struct {
	Put    []Entry[K, V] `json:"put,omitempty"`
	Delete []K           `json:"delete,omitempty"`

	// After, of an operation in flight, is how many of the acknowledged ones
	// had been acknowledged before it was called. Zero claims nothing, and is
	// always safe; a true number lets more torn operations be seen.
	After int `json:"after,omitempty"`
}

// MapHistory is what was done to a map up to a crash, and what a full scan
// found after it was opened again.
type MapHistory[K cmp.Ordered, V comparable] struct {
	Acked []MapOp[K, V] `json:"acked"`           // in the order in which they took effect on each key
	Maybe []MapOp[K, V] `json:"maybe,omitempty"` // in flight or timed out: may have taken effect, or not
	Found []Entry[K, V] `json:"found"`           // in any order
}

// MapExact is [SetExact] for keys with values: the value found must be the
// last one acknowledged, or that of an operation in flight. Besides what
// SetExact reports, a value is outdated when it was acknowledged and
// overwritten since, and wrong when nobody wrote it to that key.
//
// What SetExact assumes, needs and is not for holds here too. Kinds counts put
// where SetExact counts insert. Values are compared with ==, so a value that
// is not equal to itself, such as NaN, is always wrong.
func MapExact[K cmp.Ordered, V comparable](name string, h MapHistory[K, V]) Result {
	return judgeExact(name, "put", exactHistory[K, V]{acked: h.Acked, maybe: h.Maybe, found: h.Found})
}
