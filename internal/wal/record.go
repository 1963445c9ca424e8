// Package wal is a write-ahead log in recycled segments. It numbers records,
// writes them, syncs them, and reads them back after a crash; it knows which
// damage is a torn tail and which is the loss of something acknowledged. It must never
// know what a record means to the store that it belongs to. The
// formats and the rules L1 to L5 are in docs/artrie.md, section 3.
package wal

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"unsafe"
)

// Type is what a record says. First to Last are the owner's.
type Type byte

const (
	typeStart Type = 1
	First     Type = 2
	Last      Type = 4
	typeEnd   Type = 5
)

// Op is one logged operation of the owner. Append fills in LSN.
type Op struct {
	Type Type
	Key  string
	Val  []byte
	LSN  uint64
}

const (
	recordHead = 25
	align      = 8
	// MaxPayload bounds key and value of one record, in bytes.
	MaxPayload = 64 << 20
)

// recordSize is the room that a record takes in a segment.
func recordSize(op *Op) int64 {
	n := recordHead + uvarintLen(uint64(len(op.Key))) + len(op.Key) + len(op.Val)
	return int64(n+align-1) / align * align
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// appendRecord encodes op, padded. durable is the highest synced number.
func appendRecord(b []byte, op *Op, segment uint32, durable uint64) []byte {
	at := len(b)
	b = append(b, make([]byte, recordHead)...)
	b = binary.AppendUvarint(b, uint64(len(op.Key)))
	b = append(b, op.Key...)
	b = append(b, op.Val...)
	r := b[at:]
	binary.LittleEndian.PutUint32(r[4:], uint32(len(r)))
	binary.LittleEndian.PutUint64(r[8:], op.LSN)
	binary.LittleEndian.PutUint32(r[16:], segment)
	binary.LittleEndian.PutUint32(r[20:], uint32(min(op.LSN-durable, math.MaxUint32)))
	r[24] = byte(op.Type)
	binary.LittleEndian.PutUint32(r, crc32.Checksum(r[4:], crcTable()))
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}

// parsed is a valid record and where it ends.
type parsed struct {
	op      Op
	durable uint64
	size    int64
}

// parse reads the record at the start of b, which must not change while key and
// value are in use: they lie in it. ok is false when there is no valid record of
// that segment.
func parse(b []byte, segment uint32) (r parsed, ok bool) {
	if len(b) < recordHead+1 || binary.LittleEndian.Uint32(b[16:]) != segment {
		return r, false
	}
	n := binary.LittleEndian.Uint32(b[4:])
	if n < recordHead+1 || uint64(n) > uint64(len(b)) {
		return r, false
	}
	if crc32.Checksum(b[4:n], crcTable()) != binary.LittleEndian.Uint32(b) {
		return r, false
	}
	lsn := binary.LittleEndian.Uint64(b[8:])
	back := uint64(binary.LittleEndian.Uint32(b[20:]))
	klen, k := binary.Uvarint(b[recordHead:n])
	if k <= 0 || klen > uint64(n)-recordHead-uint64(k) || back > lsn {
		return r, false
	}
	key := recordHead + k
	r.op = Op{Type: Type(b[24]), LSN: lsn, Key: unsafe.String(&b[key-1], int(klen)+1)[1:], Val: b[key+int(klen) : n]}
	r.durable = lsn - back
	r.size = (int64(n) + align - 1) / align * align
	return r, r.op.Type >= typeStart && r.op.Type <= typeEnd
}
