package wire

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// leastLevel is the bytes that one level of nesting takes at least: type, empty name,
// length and end.
const leastLevel = 7

// tooDeep says whether a document nests deeper than MaxNesting. It keeps its own
// stack, of a fixed size, and stops where it meets no BSON, which is found by whoever
// reads that part.
func tooDeep(doc []byte) bool {
	if len(doc) <= MaxNesting*leastLevel {
		return false
	}
	var ends [MaxNesting]int // where the documents that are open end
	depth, at := 1, 4
	ends[0] = len(doc)
	for depth > 0 {
		if at >= ends[depth-1] || doc[at] == 0 {
			at = ends[depth-1]
			depth--
			continue
		}
		kind := bsoncore.Type(doc[at])
		_, rest, ok := bsoncore.ReadKeyBytes(doc[at+1 : ends[depth-1]])
		if !ok {
			return false
		}
		at = ends[depth-1] - len(rest)
		switch kind {
		case bsoncore.TypeCodeWithScope:
			// The length of all, the code, and the scope, which is a document.
			_, after, ok := bsoncore.ReadLength(rest)
			if !ok {
				return false
			}
			_, after, ok = bsoncore.ReadString(after)
			if !ok {
				return false
			}
			at = ends[depth-1] - len(after)
			fallthrough
		case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
			if at+5 > ends[depth-1] {
				return false
			}
			size := int(binary.LittleEndian.Uint32(doc[at:]))
			if size < 5 || size > ends[depth-1]-at {
				return false
			}
			if depth == MaxNesting {
				return true
			}
			ends[depth] = at + size
			depth++
			at += 4
		default:
			_, after, ok := bsoncore.ReadValue(rest, kind)
			if !ok {
				return false
			}
			at = ends[depth-1] - len(after)
		}
	}
	return false
}
