package wire

import (
	"encoding/binary"
	"runtime"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// allocated is what f takes from the heap, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A few bytes that would become very many are refused, at the cost of the limit at
// most, whatever size they claim.
func TestBombsAreRefused(t *testing.T) {
	const size = 64 << 20
	zeros := make([]byte, size)
	for id, name := range map[wiremessage.CompressorID]string{wiremessage.CompressorSnappy: "snappy", wiremessage.CompressorZLib: "zlib", wiremessage.CompressorZstd: "zstd"} {
		packed, err := driver.CompressPayload(zeros, driver.CompressionOpts{Compressor: id, ZlibLevel: 6, ZstdLevel: 6})
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range []int32{100, 1 << 20, MaxMessageSize - headerSize, size, -1} {
			p := wiremessage.AppendCompressedOriginalOpCode(nil, wiremessage.OpMsg)
			p = wiremessage.AppendCompressedUncompressedSize(p, claim)
			p = wiremessage.AppendCompressedCompressorID(p, id)
			m := message(wiremessage.OpCompressed, append(p, packed...))
			took := allocated(func() { _, err = read(m) })
			if err == nil {
				t.Errorf("%s: %d bytes that claim to be %d were read", name, len(packed), claim)
			}
			// What arrives, what it may become, and what growing on the way leaves behind.
			if limit := uint64(2*len(m) + 3*MaxMessageSize); took > limit {
				t.Errorf("%s: %d bytes that claim to be %d took %d bytes", name, len(packed), claim, took)
			}
		}
	}
}

// nested is a document of so many levels of documents, arrays or scopes of code.
func nested(levels int, kind bsoncore.Type) []byte {
	each := leastLevel
	if kind == bsoncore.TypeCodeWithScope {
		each += 9
	}
	var b []byte
	for i := range levels - 1 {
		left := levels - 1 - i // levels inside
		b = binary.LittleEndian.AppendUint32(b, uint32(5+each*left))
		b = append(b, byte(kind), 0)
		if kind == bsoncore.TypeCodeWithScope {
			b = binary.LittleEndian.AppendUint32(b, uint32(4+5+5+each*(left-1)))
			b = append(b, 1, 0, 0, 0, 0)
		}
	}
	b = append(b, 5, 0, 0, 0)
	return append(b, make([]byte, levels)...)
}

func TestNestingIsBounded(t *testing.T) {
	for _, kind := range []bsoncore.Type{bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray, bsoncore.TypeCodeWithScope} {
		for levels, want := range map[int]bool{1: false, 2: false, 101: false, MaxNesting: false, MaxNesting + 1: true, 5000: true} {
			doc := nested(levels, kind)
			if got := tooDeep(doc); got != want {
				t.Errorf("%d levels of %s: too deep: %v", levels, kind, got)
			}
			// Siblings do not add up.
			wide := bsoncore.NewDocumentBuilder().AppendDocument("a", doc).AppendInt32("b", 1).AppendDocument("c", doc).Build()
			if got := tooDeep(wide); got != (levels >= MaxNesting) {
				t.Errorf("two of %d levels of %s: too deep: %v", levels, kind, got)
			}
			// What is cut anywhere does no harm.
			for i := 0; i < len(doc); i += 1 + len(doc)/97 {
				tooDeep(doc[:i])
			}
		}
	}
	r, err := read(msg(0, bodySection(bsoncore.NewDocumentBuilder().AppendInt32("insert", 1).AppendDocument("d", nested(100_000, bsoncore.TypeArray)).Build())))
	if err == nil && !r.TooDeep {
		t.Error("100,000 levels were read")
	}
	r, err = read(msg(0, bodySection(body("insert")), sequence("documents", body("a"), nested(1000, bsoncore.TypeEmbeddedDocument))))
	if err != nil || !r.TooDeep {
		t.Errorf("a sequence of deep documents gave %v, %v", r, err)
	}
}
