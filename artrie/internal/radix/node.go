// Package radix is an adaptive radix tree over byte strings: layouts, edits,
// walks, an edit-distance search and the encoding of subtrees as blocks. It is
// pure: it must never know a file, clock, lock or random source. Whoever holds a tree
// whose cold parts are elsewhere passes a Source that fetches them.
//
// The invariants N1 to N3 that every function here keeps are argued in
// docs/artrie.md, section 2.
package radix

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Ref points to a leaf, an inner node, a block or a stub; nil is the empty tree. The
// first byte of what it points to is the kind. A tree is held by a slot, a
// *Ref, because fault-in and eviction swap what is in it.
type Ref = unsafe.Pointer

const (
	kindSet   = 1 + iota // leaf with an empty value
	kindLeaf             // leaf with a value
	kindBig              // leaf with a state word, over maxLeaf bytes
	kindStub             // a subtree that is on disk only
	kindBlock            // a subtree as it lies on disk
	kind4
	kind8
	kind12
	kind16
	kind48
	kind256
)

const (
	maxPrefix = 8
	maxLeaf   = 192
)

// A node for two children would take 48 bytes instead of 64; it would lie across
// two cache lines as often as not, and most inner nodes have two children.

// head is what all inner nodes begin with. Only state, val and the child slots
// may change after publication, and only as N2 says.
type head struct {
	kind, plen uint8
	n          uint16 // children
	keys       [4]byte
	state      uint64 // see State in state.go; atomic once published
	prefix     [maxPrefix]byte
	val        Ref // the key that ends here: nil, or a leaf with an empty rest
}

// The first n keys of an array node are sorted and belong to the first n children.
type (
	node4 struct {
		head
		ch [4]Ref
	}
	node8 struct {
		head
		more [8]byte
		ch   [8]Ref
	}
	node12 struct {
		head
		more [16]byte
		ch   [12]Ref
	}
	node16 struct {
		head
		more [16]byte
		ch   [16]Ref
	}
	node48 struct {
		head
		idx [256]byte // 0: none, else the child's index + 1
		ch  [48]Ref   // the first n are used
	}
	node256 struct {
		head
		ch [256]Ref
	}
)

// stub stands for a block on disk. It is immutable. The state word and the kind
// lie where an inner node and a big leaf have theirs.
type stub struct {
	kind  uint8
	_     [7]byte
	state uint64
	owner Ref // keeps the file open that state points into
}

func kindOf(p Ref) uint8 { return *(*uint8)(p) }

func isLeaf(p Ref) bool { return kindOf(p) <= kindBig }

func isInner(p Ref) bool { return kindOf(p) >= kind4 }

func capacity(kind uint8) int {
	switch kind {
	case kind4:
		return 4
	case kind8:
		return 8
	case kind12:
		return 12
	case kind16:
		return 16
	case kind48:
		return 48
	}
	return 256
}

// fit is the smallest kind that holds n children.
func fit(n int) uint8 {
	k := uint8(kind4)
	for capacity(k) < n {
		k++
	}
	return k
}

// innerSize is what the allocator hands out for a node, by kind.
func innerSize(kind uint8) int64 {
	switch kind {
	case kind4:
		return 64
	case kind8:
		return 112
	case kind12:
		return 144
	case kind16:
		return 176
	case kind48:
		return 704
	}
	return 2304
}

const stubSize = 24

func newInner(kind uint8, state uint64) *head {
	var h *head
	switch kind {
	case kind4:
		h = &new(node4).head
	case kind8:
		h = &new(node8).head
	case kind12:
		h = &new(node12).head
	case kind16:
		h = &new(node16).head
	case kind48:
		h = &new(node48).head
	default:
		h = &new(node256).head
	}
	h.kind, h.state = kind, state
	return h
}

func (h *head) pfx() string { return unsafe.String(&h.prefix[0], int(h.plen)) }

func (h *head) setPrefix(s string) { h.plen = uint8(copy(h.prefix[:], s)) }

// array gives keys and children of an array node at full capacity.
func (h *head) array() (keys []byte, ch []Ref) {
	p := Ref(h)
	switch h.kind {
	case kind4:
		n := (*node4)(p)
		return n.keys[:], n.ch[:]
	case kind8:
		n := (*node8)(p)
		return n.more[:], n.ch[:]
	case kind12:
		n := (*node12)(p)
		return n.more[:12], n.ch[:]
	}
	n := (*node16)(p)
	return n.more[:], n.ch[:]
}

// match8 is the index of the first byte of w that equals c, or 8 and more.
// Only the lowest hit of the trick is exact, and the lowest is what is asked for.
func match8(w uint64, c byte) int {
	const lo, hi = 0x0101010101010101, 0x8080808080808080
	x := w ^ lo*uint64(c)
	return bits.TrailingZeros64((x-lo)&^x&hi) >> 3
}

// find is the slot of the child under c, or nil.
func find(h *head, c byte) *Ref {
	p := Ref(h)
	switch h.kind {
	case kind4:
		n := (*node4)(p)
		for i := 0; i < int(n.n); i++ {
			if n.keys[i] == c {
				return &n.ch[i]
			}
		}
	case kind8:
		n := (*node8)(p)
		if i := match8(binary.LittleEndian.Uint64(n.more[:]), c); i < int(n.n) {
			return &n.ch[i]
		}
	case kind12, kind16:
		n := (*[16]byte)(unsafe.Add(p, unsafe.Offsetof(node16{}.more)))
		i := match8(binary.LittleEndian.Uint64(n[:8]), c)
		if i > 7 {
			i = 8 + match8(binary.LittleEndian.Uint64(n[8:]), c)
		}
		if i < int(h.n) {
			return (*Ref)(unsafe.Add(p, unsafe.Offsetof(node16{}.ch)+uintptr(i)*8))
		}
	case kind48:
		n := (*node48)(p)
		if i := n.idx[c]; i != 0 {
			return &n.ch[i-1]
		}
	case kind256:
		n := (*node256)(p)
		if atomic.LoadPointer(&n.ch[c]) != nil {
			return &n.ch[c]
		}
	}
	return nil
}

// each calls f for every child in order of its byte, until f returns false.
func (h *head) each(f func(c byte, slot *Ref) bool) bool {
	switch h.kind {
	case kind48:
		n := (*node48)(Ref(h))
		for c, i := range n.idx {
			if i != 0 && !f(byte(c), &n.ch[i-1]) {
				return false
			}
		}
	case kind256:
		n := (*node256)(Ref(h))
		for c := range n.ch {
			if atomic.LoadPointer(&n.ch[c]) != nil && !f(byte(c), &n.ch[c]) {
				return false
			}
		}
	default:
		keys, ch := h.array()
		for i := 0; i < int(h.n); i++ {
			if !f(keys[i], &ch[i]) {
				return false
			}
		}
	}
	return true
}
