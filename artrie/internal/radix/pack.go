package radix

import (
	"slices"
	"sync/atomic"
)

// blockTarget is the payload above which a subtree is cut, and down to which, in
// bytes. The choice is argued in docs/artrie.md, section 6.
const blockTarget = 224

// minBlock is the smallest subtree that is worth a block of its own, in bytes: a
// reference and a block's head cost half of that.
const minBlock = 48

// Packer encodes a tree as blocks. A node or stub that is on disk in the
// generation Gen is one reference, unless All is set. Write is called with the
// payload of each block, children before parents, and returns its address.
//
// While the packer runs the tree may be read, evicted from and edited by copying
// (N1). When the blocks are durable, Commit makes the addresses valid; Abort
// takes the marks back.
type Packer struct {
	Gen uint64
	All bool
	// Whole is the payload above which a subtree is cut, in bytes, if that is not
	// blockTarget: for a tree of which much will be on disk only.
	Whole int
	Owner Ref // for the stubs that All points at the new generation
	Src   *Source
	Write func(payload []byte) (w uint64, err error)

	Blocks int64 // written
	marks  []mark
	moved  []move
	pieces []piece // of the nodes on the way down, one after the other
	able   []*piece
	tmp    []byte
	sink   uint8 // of glances
}

// mark remembers a node whose state word becomes w, from was.
type mark struct {
	state  *uint64
	was, w uint64
}

// move remembers a slot whose stub has a new address.
type move struct {
	slot *Ref
	old  Ref
	w    uint64
}

// Pack encodes the tree in slot and returns the address of its root block.
func (p *Packer) Pack(slot *Ref) (root uint64, err error) {
	b, pc, err := p.node(nil, slot, true)
	if err != nil {
		return 0, err
	}
	if pc.ref {
		return pc.w, nil
	}
	return p.block(b, pc)
}

// piece is an encoded subtree at the end of a buffer.
type piece struct {
	start, end int
	ref        bool   // it is a reference already
	w          uint64 // its address then
	must       bool   // it needs a block of its own
	cut        bool   // it may have a block of its own
	node       Ref    // whose state word gets the address, if not nil
	slot       *Ref   // that holds a stub to point at the address, if not nil
	stub       Ref
}

func (p *Packer) settled(w uint64) bool {
	return !p.All && onDisk(w) && SameGeneration(w, p.Gen)
}

// node appends the encoding of what is in slot to b. keep is true while slot is
// part of the live tree, and false below a stub that was read for this only.
func (p *Packer) node(b []byte, slot *Ref, keep bool) ([]byte, piece, error) {
	n := atomic.LoadPointer(slot)
	pc := piece{start: len(b)}
	switch {
	case n == nil:
		pc.end = len(b)
		return b, pc, nil
	case kindOf(n) == kindStub:
		s := (*stub)(n)
		if p.settled(s.state) {
			b = appendRef(b, s.state)
			pc.ref, pc.w, pc.end = true, s.state, len(b)
			return b, pc, nil
		}
		if keep {
			// The stub in memory needs an address: what it stands for may not
			// disappear inside a larger block.
			pc.slot, pc.stub, pc.must = slot, n, true
		}
		var err error
		if n, err = p.Src.Read(n); err != nil || n == nil {
			pc.end = len(b)
			return b, pc, err // the empty tree, which only a root is
		}
		keep = false
	default:
		if s := stateOf(n); s != nil {
			if w := load(s); p.settled(w) {
				b = appendRef(b, w)
				pc.ref, pc.w, pc.end = true, Address(w), len(b)
				return b, pc, nil
			}
			if keep {
				pc.node = n
			}
		}
	}
	if isLeaf(n) {
		b = appendLeaf(b, n)
		pc.must = pc.must || kindOf(n) == kindBig
		pc.end = len(b)
		return b, pc, nil
	}
	if isBlock(n) {
		b = append(b, encoded(n)...)
		pc.end, pc.cut = len(b), true
		return b, pc, nil
	}
	b, err := p.inner(b, (*head)(n), keep)
	pc.end, pc.cut = len(b), true
	return b, pc, err
}

func (p *Packer) inner(b []byte, h *head, keep bool) ([]byte, error) {
	start := len(b)
	tag := byte(tagInner) | h.plen<<2
	if h.value() != nil {
		tag |= 16 << 2
	}
	b = append(append(b, tag), h.prefix[:h.plen]...)
	first := len(p.pieces)
	defer func() { p.pieces = p.pieces[:first] }()
	add := func(slot *Ref) (err error) {
		var pc piece
		if b, pc, err = p.node(b, slot, keep); err == nil {
			p.pieces = append(p.pieces, pc)
		}
		return err
	}
	if h.value() != nil {
		if err := add(&h.val); err != nil {
			return nil, err
		}
	}
	b = append(b, byte(h.n-1))
	p.look(h)
	var err error
	h.each(func(c byte, s *Ref) bool {
		b = append(b, c)
		err = add(s)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return p.cut(b, start, p.pieces[first:])
}

// look glances at the children of h, and at those of small nodes among them: most
// inner nodes are small, and have leaves below them.
func (p *Packer) look(h *head) {
	if h.kind > kind16 {
		return
	}
	_, ch := h.array()
	p.sink |= glance(ch[:h.n])
	for i := range ch[:h.n] {
		n := atomic.LoadPointer(&ch[i])
		if kindOf(n) != kind4 || p.settled(load(stateOf(n))) {
			continue
		}
		small := (*node4)(n)
		for j := range small.ch[:small.n] {
			p.sink |= kindOf(atomic.LoadPointer(&small.ch[j]))
		}
	}
}

// cut turns pieces of the node that begins at start into blocks: those that must
// be, and the largest ones until the rest is within the target.
func (p *Packer) cut(b []byte, start int, pieces []piece) ([]byte, error) {
	size := len(b) - start
	shrink := func(pc *piece) { pc.must = true; size -= pc.end - pc.start - 7 }
	able := p.able[:0]
	for i := range pieces {
		pc := &pieces[i]
		if pc.must {
			shrink(pc)
		} else if pc.cut && pc.end-pc.start >= minBlock {
			able = append(able, pc)
		}
	}
	if size > max(p.Whole, blockTarget) {
		slices.SortStableFunc(able, func(x, y *piece) int { return (y.end - y.start) - (x.end - x.start) })
		for _, pc := range able {
			if size <= blockTarget {
				break
			}
			shrink(pc)
		}
	}
	p.able = able
	p.tmp = p.tmp[:0]
	from := start
	for _, pc := range pieces {
		if !pc.must {
			if pc.node != nil && !pc.ref {
				p.inlined(pc.node)
			}
			continue
		}
		w, err := p.block(b, pc)
		if err != nil {
			return nil, err
		}
		p.tmp = appendRef(append(p.tmp, b[from:pc.start]...), w)
		from = pc.end
	}
	if from == start {
		return b, nil
	}
	p.tmp = append(p.tmp, b[from:]...)
	return append(b[:start], p.tmp...), nil
}

func (p *Packer) block(b []byte, pc piece) (uint64, error) {
	w, err := p.Write(b[pc.start:pc.end])
	if err != nil {
		return 0, err
	}
	p.Blocks++
	if pc.node != nil {
		if s := stateOf(pc.node); s != nil {
			p.mark(s, w)
		}
	}
	if pc.slot != nil {
		p.moved = append(p.moved, move{pc.slot, pc.stub, w})
	}
	return w, nil
}

// mark makes a state word pending at w, so that an edit which copies the node
// from now on counts the new block as dead.
func (p *Packer) mark(s *uint64, w uint64) {
	for {
		was := load(s)
		if atomic.CompareAndSwapUint64(s, was, w|pendingBit|was&touchBit) {
			p.marks = append(p.marks, mark{s, was, w})
			return
		}
	}
}

// inlined remembers that a node which had a block of its own in an earlier
// generation is now inside its parent's.
func (p *Packer) inlined(n Ref) {
	s := stateOf(n)
	if w := load(s); w&diskBit != 0 {
		p.marks = append(p.marks, mark{s, w, 0})
	}
}

// Commit makes the addresses of the written blocks valid.
func (p *Packer) Commit() {
	for _, m := range p.marks {
		if m.w == 0 {
			atomic.StoreUint64(m.state, 0)
			continue
		}
		atomic.AndUint64(m.state, ^uint64(pendingBit))
	}
	for _, m := range p.moved {
		atomic.CompareAndSwapPointer(m.slot, m.old, NewStub(m.w, p.Owner))
	}
}

// Abort puts the state words back.
func (p *Packer) Abort() {
	for _, m := range p.marks {
		if m.w != 0 {
			atomic.StoreUint64(m.state, m.was)
		}
	}
}
