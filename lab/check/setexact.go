package check

import "cmp"

// SetOp is one operation on a set. Its changes belong together: a store that
// crashes must keep all of them or none.
type SetOp[T cmp.Ordered] struct {
	Insert []T `json:"insert,omitempty"`
	Delete []T `json:"delete,omitempty"`

	// After, of an operation in flight, is how many of the acknowledged ones
	// had been acknowledged before it was called. Zero claims nothing, and is
	// always safe; a true number lets more torn operations be seen.
	After int `json:"after,omitempty"`
}

// SetHistory is what was done to a set up to a crash, and what a full scan found
// after it was opened again.
type SetHistory[T cmp.Ordered] struct {
	Acked []SetOp[T] `json:"acked"`           // in the order in which they took effect on each item
	Maybe []SetOp[T] `json:"maybe,omitempty"` // in flight or timed out: may have taken effect, or not
	Found []T        `json:"found"`           // in any order
}

// SetExact checks that a set survived a crash exactly: what was found is the
// acknowledged inserts without the acknowledged deletes, but for operations in
// flight, each of which took effect as a whole or not at all.
//
// It reports apart from each other what was lost, resurrected (deleted, and
// back), unexpected (never inserted), found twice, and torn (an operation in
// flight that took effect in part).
//
// Assumed: Acked lists operations on the same item in the order in which they
// took effect, which holds when every item has one writer, and Found is one
// complete scan. An operation in flight may take effect late, also after
// acknowledged operations that were called after it.
//
// A pass needs at least one acknowledged insert. Kinds counts acknowledged
// operations as insert and delete, and those in flight as maybe.
//
// Not for: two writers of one item whose order is not known; and an operation
// in flight is seen as torn only where no other operation explains the part
// that is there or the part that is not.
func SetExact[T cmp.Ordered](name string, h SetHistory[T]) Result {
	return judgeExact(name, "insert", exactHistory[T, struct{}]{
		acked: setOps(h.Acked),
		maybe: setOps(h.Maybe),
		found: entriesOf(h.Found),
	})
}

func setOps[T cmp.Ordered](ops []SetOp[T]) []MapOp[T, struct{}] {
	out := make([]MapOp[T, struct{}], len(ops))
	for i, op := range ops {
		out[i] = MapOp[T, struct{}]{Put: entriesOf(op.Insert), Delete: op.Delete, After: op.After}
	}
	return out
}

func entriesOf[T cmp.Ordered](items []T) []Entry[T, struct{}] {
	out := make([]Entry[T, struct{}], len(items))
	for i, item := range items {
		out[i].Key = item
	}
	return out
}
