package main

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"unsafe"
)

// mix is splitmix64.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// key is the i-th key of the workload: scattered, with a suffix that is not ASCII.
func key(i int) string { return string(appendKey(make([]byte, 0, keyRoom), i)) }

// keyRoom is enough for a key, in bytes.
const keyRoom = 48

// bytesString is b as a string that is good while b does not change: a reader of many
// keys leaves no garbage then.
func bytesString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func appendKey(b []byte, i int) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], mix(uint64(i)^0x9E3779B97F4A7C15))
	b = hex.AppendEncode(append(b, "ngram-"...), raw[:])
	return strconv.AppendInt(append(b, "-語"...), int64(i), 10)
}
