package radix

import (
	"sync/atomic"
	"unsafe"
)

// State words: an edit id below pendingBit, or the address of a block. The
// layout is drawn in docs/artrie.md, section 2.
const (
	diskBit    = 1 << 63
	touchBit   = 1 << 62
	pendingBit = 1 << 61

	genShift, genMask = 48, 1<<13 - 1
	offShift, offMask = 12, 1<<36 - 1
	lenMask           = 1<<12 - 1
	addrMask          = 1<<48 - 1

	// Align is the unit of block offsets and lengths, in bytes.
	Align = 16
	// MaxOffset is the first offset that an address cannot hold, in bytes.
	MaxOffset = Align << 36
)

// Word is the address of a block: the generation of its file (kept modulo
// 8192), its offset and its length in bytes, both multiples of Align. A length
// that does not fit is kept as the largest one; Length then says so.
func Word(gen uint64, off int64, length int) uint64 {
	l := min(uint64(length)/Align, lenMask)
	return diskBit | gen&genMask<<genShift | uint64(off)/Align<<offShift | l
}

// Offset is the offset in bytes of the block at address w.
func Offset(w uint64) int64 { return int64(w>>offShift&offMask) * Align }

// Length is the length in bytes of the block at address w; exact is false when
// only the block's own header knows it, and the length is a lower bound.
func Length(w uint64) (n int, exact bool) {
	l := w & lenMask
	return int(l) * Align, l != lenMask
}

func genOf(w uint64) uint64 { return w >> genShift & genMask }

// SameGeneration says whether w points into the file of generation gen.
func SameGeneration(w, gen uint64) bool { return genOf(w) == gen&genMask }

// Address strips the marks from a state word.
func Address(w uint64) uint64 { return w &^ (touchBit | pendingBit) }

// stateOf is the state word of an inner node, a big leaf, a block or a stub; small
// leaves have none.
func stateOf(p Ref) *uint64 {
	switch k := kindOf(p); {
	case k >= kind4:
		return &(*head)(p).state
	case k == kindStub:
		return &(*stub)(p).state
	case k == kindBig, k == kindBlock:
		return (*uint64)(unsafe.Add(p, 8))
	}
	return nil
}

func load(p *uint64) uint64 { return atomic.LoadUint64(p) }

func onDisk(w uint64) bool { return w&(diskBit|pendingBit) == diskBit }

// touch marks a node as used since the evictor last came by. It writes only
// once per round, so that readers do not fight over the line.
func touch(s *uint64) {
	if load(s)&(diskBit|touchBit) == diskBit {
		atomic.OrUint64(s, touchBit)
	}
}

// NewStub makes a stub for the block at address w; owner is kept alive with it.
func NewStub(w uint64, owner Ref) Ref {
	return Ref(&stub{kind: kindStub, state: Address(w), owner: owner})
}

// Stub takes a stub apart; ok is false for anything else.
func Stub(p Ref) (w uint64, owner Ref, ok bool) {
	if p == nil || kindOf(p) != kindStub {
		return 0, nil, false
	}
	s := (*stub)(p)
	return s.state, s.owner, true
}

// Stamp gives a freshly decoded node the address that it was read from. Small
// leaves have no address and stay without.
func Stamp(p Ref, w uint64) {
	if p == nil {
		return
	}
	if s := stateOf(p); s != nil {
		*s = Address(w) | touchBit
	}
}
