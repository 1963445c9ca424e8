package radix

import (
	"encoding/binary"
	"unsafe"
)

// Leaves, pointer-free:
//
//	set   kind, length of the rest, rest
//	leaf  kind, length of the rest, length of the value, rest, value
//	big   kind, 7 unused, state 8, length of the rest 4, length of the value 4, rest, value
const (
	setHead, leafHead, bigHead = 2, 3, 24
)

func newLeaf(rest string, val []byte, state uint64) Ref {
	var b []byte
	switch {
	case leafHead+len(rest)+len(val) > maxLeaf:
		b = make([]byte, bigHead+len(rest)+len(val))
		b[0] = kindBig
		binary.LittleEndian.PutUint64(b[8:], state)
		binary.LittleEndian.PutUint32(b[16:], uint32(len(rest)))
		binary.LittleEndian.PutUint32(b[20:], uint32(len(val)))
		copy(b[bigHead:], rest)
		copy(b[bigHead+len(rest):], val)
	case len(val) == 0:
		b = make([]byte, setHead+len(rest))
		b[0], b[1] = kindSet, byte(len(rest))
		copy(b[setHead:], rest)
	default:
		b = make([]byte, leafHead+len(rest)+len(val))
		b[0], b[1], b[2] = kindLeaf, byte(len(rest)), byte(len(val))
		copy(b[leafHead:], rest)
		copy(b[leafHead+len(rest):], val)
	}
	return Ref(unsafe.SliceData(b))
}

// leafLens gives where the rest of the key begins, its length and the value's.
func leafLens(p Ref) (at, rest, val int) {
	switch kindOf(p) {
	case kindSet:
		return setHead, int(*(*byte)(unsafe.Add(p, 1))), 0
	case kindLeaf:
		return leafHead, int(*(*byte)(unsafe.Add(p, 1))), int(*(*byte)(unsafe.Add(p, 2)))
	}
	return bigHead, int(*(*uint32)(unsafe.Add(p, 16))), int(*(*uint32)(unsafe.Add(p, 20)))
}

// leafRest is the rest of the key, in the leaf's memory.
func leafRest(p Ref) string {
	at, r, _ := leafLens(p)
	if r == 0 {
		return ""
	}
	return unsafe.String((*byte)(unsafe.Add(p, at)), r)
}

// leafVal is the value, in the leaf's memory, with no room to append.
func leafVal(p Ref) []byte {
	at, r, v := leafLens(p)
	if v == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(p, at+r)), v)
}

func leafSize(p Ref) int64 {
	at, r, v := leafLens(p)
	return sizeClass(at + r + v)
}

// sizeClass is about what the allocator hands out for n pointer-free bytes.
func sizeClass(n int) int64 {
	up := func(to int) int64 { return int64((n + to - 1) / to * to) }
	switch {
	case n <= 32:
		return up(8)
	case n <= 256:
		return up(16)
	case n <= 512:
		return up(32)
	case n <= 1024:
		return up(128)
	case n <= 8192:
		return up(512)
	}
	return up(8192)
}
