package radix

import (
	"encoding/binary"
	"unsafe"
)

// A block in memory is the encoding of a subtree as it lies on disk: pointer-free,
// half as large as the nodes would be, and made by one copy. It has no references.
// Lookups search it; a put makes another block (Edit.putBlock), and what a block cannot
// take in, or a delete, makes nodes of it (Edit.unfold); eviction and fault-in swap it
// with its stub like a node.
//
//	block  kind, 3 unused, length of the payload 4, state 8, payload
const blockInMemory = 16

// NewBlock makes the block in memory of the payload at address w. ok is false for a
// payload that is none: a leaf, one with references, or one that Decode refuses.
func NewBlock(payload []byte, w uint64) (p Ref, ok bool) {
	if len(payload) == 0 || payload[0]&3 != tagInner {
		return nil, false
	}
	if end := skip(payload, 0, 0); end != len(payload) {
		return nil, false
	}
	p, b := makeBlock(len(payload), Address(w)|touchBit)
	copy(b, payload)
	return p, true
}

// makeBlock is a block whose payload, of n bytes, is yet to be filled in.
func makeBlock(n int, state uint64) (p Ref, payload []byte) {
	b := make([]byte, blockInMemory+n)
	b[0] = kindBlock
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	binary.LittleEndian.PutUint64(b[8:], state)
	return Ref(unsafe.SliceData(b)), b[blockInMemory:]
}

func isBlock(p Ref) bool { return kindOf(p) == kindBlock }

// encoded is the payload of a block in memory.
func encoded(p Ref) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(p, blockInMemory)), *(*uint32)(unsafe.Add(p, 4)))
}

// prefixLen is the length of the prefix of the topmost node in a block.
func prefixLen(p Ref) int { return int(encoded(p)[0] >> 2 & 15) }

// blockSize is what a block takes in memory, in bytes.
func blockSize(p Ref) int64 { return sizeClass(blockInMemory + len(encoded(p))) }

// unfolded is what a block in memory encodes, as nodes whose state is that given.
func unfolded(p Ref, state uint64) Ref {
	d := decoder{b: encoded(p), state: state}
	return d.node(0) // NewBlock has seen that it can be read
}

// skip is where the subtree at b[i] ends; -1 when it has a reference or Decode would
// refuse it.
func skip(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	tag := b[i]
	if tag&3 != tagInner {
		_, _, end := leafAt(b, i)
		return end
	}
	plen := int(tag >> 2 & 15)
	if plen > maxPrefix || tag>>2 > 31 {
		return -1
	}
	i += 1 + plen
	if tag>>2&16 != 0 {
		if rest, _, end := leafAt(b, i); end < 0 || len(rest) > 0 {
			return -1
		} else {
			i = end
		}
	}
	if i >= len(b) {
		return -1
	}
	n := int(b[i]) + 1
	i++
	for last := -1; n > 0; n-- {
		if i >= len(b) || int(b[i]) <= last {
			return -1
		}
		last = int(b[i])
		if i = skip(b, i+1, depth+1); i < 0 {
			return -1
		}
	}
	return i
}

// leafAt is the leaf at b[i] and where it ends; -1 when there is no whole leaf.
func leafAt(b []byte, i int) (rest, val []byte, end int) {
	if i >= len(b) || b[i]&3 > tagLeaf {
		return nil, nil, -1
	}
	tag := b[i]
	i++
	n := uint64(tag >> 2)
	if n == 63 {
		v, k := binary.Uvarint(b[i:])
		if k <= 0 {
			return nil, nil, -1
		}
		n, i = v, i+k
	}
	if n > uint64(len(b)-i) {
		return nil, nil, -1
	}
	rest, i = b[i:i+int(n)], i+int(n)
	if tag&3 == tagSet {
		return rest, nil, i
	}
	v, k := binary.Uvarint(b[i:])
	if k <= 0 || v == 0 || v > uint64(len(b)-i-k) {
		return nil, nil, -1
	}
	i += k
	return rest, b[i : i+int(v) : i+int(v)], i + int(v)
}

// search looks key up in the payload of a block in memory.
func search(b []byte, key string) (val []byte, found bool) {
	for i := 0; ; {
		tag := b[i]
		if tag&3 != tagInner {
			rest, val, _ := leafAt(b, i)
			if string(rest) != key {
				return nil, false
			}
			return val, true
		}
		plen := int(tag >> 2 & 15)
		i++
		if len(key) < plen || string(b[i:i+plen]) != key[:plen] {
			return nil, false
		}
		i, key = i+plen, key[plen:]
		if tag>>2&16 != 0 {
			_, val, end := leafAt(b, i)
			if key == "" {
				return val, true
			}
			i = end
		}
		if key == "" {
			return nil, false
		}
		n := int(b[i]) + 1
		for i++; ; i = skip(b, i+1, 0) {
			if n == 0 || b[i] > key[0] {
				return nil, false
			}
			if b[i] == key[0] {
				break
			}
			n--
		}
		i, key = i+1, key[1:]
	}
}
