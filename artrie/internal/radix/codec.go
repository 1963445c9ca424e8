package radix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The payload of a block is drawn in docs/artrie.md, section 6. The two low bits
// of a node's first byte are its tag.
const (
	tagSet = iota
	tagLeaf
	tagInner
	tagRef
)

// BlockHead is the length of what precedes a payload in a block, in bytes.
const BlockHead = 8

// MaxRecord is the longest key and value together that the formats hold, in bytes.
const MaxRecord = 64 << 20

// ErrEncoding is returned when bytes are not the encoding of a subtree.
var ErrEncoding = errors.New("not an encoded subtree")

func appendLeaf(b []byte, p Ref) []byte { return appendRest(b, leafRest(p), leafVal(p)) }

func appendRest[S string | []byte](b []byte, rest S, val []byte) []byte {
	tag := byte(tagSet)
	if len(val) > 0 {
		tag = tagLeaf
	}
	if len(rest) < 63 {
		b = append(b, tag|byte(len(rest))<<2)
	} else {
		b = binary.AppendUvarint(append(b, tag|63<<2), uint64(len(rest)))
	}
	b = append(b, rest...)
	if tag == tagLeaf {
		b = binary.AppendUvarint(b, uint64(len(val)))
		b = append(b, val...)
	}
	return b
}

func appendRef(b []byte, w uint64) []byte {
	var t [8]byte
	binary.LittleEndian.PutUint64(t[:], w&addrMask)
	return append(append(b, tagRef), t[:6]...)
}

// blockLength is the length of the block that p has at address w, in bytes.
func blockLength(p Ref, w uint64) int64 {
	n, exact := Length(w)
	switch {
	case exact:
	case isLeaf(p):
		return BlockSize(len(appendLeaf(nil, p)))
	case isBlock(p):
		return BlockSize(len(encoded(p)))
	}
	return int64(n)
}

// BlockSize is the room that a payload of n bytes takes in a node file.
func BlockSize(n int) int64 { return (int64(n) + BlockHead + Align - 1) / Align * Align }

// Decode builds the tree that payload encodes. References become stubs with the
// generation gen and the given owner. The root has no address yet: see Stamp.
func Decode(payload []byte, gen uint64, owner Ref) (Ref, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	d := decoder{b: payload, gen: gen, owner: owner}
	p := d.node(0)
	if d.err == nil && len(d.b) != 0 {
		d.fail("%d bytes too many", len(d.b))
	}
	if d.err != nil {
		return nil, d.err
	}
	return p, nil
}

type decoder struct {
	b     []byte
	gen   uint64
	owner Ref
	state uint64 // of inner nodes
	err   error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrEncoding, fmt.Sprintf(format, args...))
	}
	d.b = nil
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail("cut short")
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("bad length")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// maxDepth bounds what a forged block can make the decoder nest. A real block
// is shallower: every level costs it at least three bytes.
const maxDepth = 1 << 16

func (d *decoder) node(depth int) Ref {
	if depth > maxDepth {
		d.fail("nested too deep")
	}
	tag := d.byte()
	if d.err != nil {
		return nil
	}
	switch tag & 3 {
	case tagInner:
		return d.inner(tag>>2, depth)
	case tagRef:
		if tag != tagRef {
			d.fail("bad reference")
		}
		var t [8]byte
		copy(t[:6], d.take(6))
		return NewStub(diskBit|d.gen&genMask<<genShift|binary.LittleEndian.Uint64(t[:]), d.owner)
	}
	n := uint64(tag >> 2)
	if n == 63 {
		n = d.uvarint()
	}
	rest := d.take(n)
	var val []byte
	if tag&3 == tagLeaf {
		if val = d.take(d.uvarint()); len(val) == 0 {
			d.fail("leaf without the value it announces")
		}
	}
	if d.err != nil {
		return nil
	}
	return newLeaf(unsafe.String(unsafe.SliceData(rest), len(rest)), val, 0)
}

func (d *decoder) inner(tag byte, depth int) Ref {
	plen, hasVal := tag&15, tag&16 != 0
	if plen > maxPrefix || tag > 31 {
		d.fail("bad node")
	}
	pfx := d.take(uint64(plen))
	var val Ref
	if hasVal {
		val = d.node(depth + 1)
		if val != nil && (isInner(val) || isLeaf(val) && leafRest(val) != "") {
			d.fail("value slot with a longer key")
		}
	}
	n := int(d.byte()) + 1
	if d.err != nil || 2*n > len(d.b) {
		d.fail("bad node")
		return nil
	}
	h := newInner(fit(n), d.state)
	h.setPrefix(string(pfx))
	h.val = val
	for last := -1; n > 0; n-- {
		c := d.byte()
		child := d.node(depth + 1)
		if int(c) <= last {
			d.fail("children out of order")
		}
		if d.err != nil {
			return nil
		}
		last = int(c)
		h.append(c, child)
	}
	return Ref(h)
}

// append adds a child above all others to a node that has room.
func (h *head) append(c byte, child Ref) {
	switch h.kind {
	case kind48:
		n := (*node48)(Ref(h))
		n.ch[n.n] = child
		n.idx[c] = byte(n.n + 1)
	case kind256:
		(*node256)(Ref(h)).ch[c] = child
	default:
		keys, ch := h.array()
		keys[h.n], ch[h.n] = c, child
	}
	h.n++
}

func (h *head) value() Ref { return atomic.LoadPointer(&h.val) }
