// Package valuetest draws BSON values for property tests. It draws from few names
// and few numbers, so that equal values of different types, and values that are
// almost equal, turn up all the time. It must never know what is tested with them.
package valuetest

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"github.com/assaylab/assay/replset/query/value"
)

var doubles = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.1, 1.5, -1.5, 0x1p53, 0x1p53 + 2, 0x1p63, -0x1p63, 1e300, -1e300,
	math.SmallestNonzeroFloat64, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
}

var longs = []int64{0, 1, -1, 2, 1 << 53, 1<<53 + 1, -(1<<53 + 1), math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1}

var decimals = []string{
	"0", "-0", "1", "1.000", "-1", "0.1", "0.10", "1.5", "9007199254740993", "9223372036854775807", "9223372036854775808",
	"1E6144", "-1E6144", "1E-6176", "-1E-6176", "NaN", "Infinity", "-Infinity", "1E300", "123456789012345678901234567890.1234",
}

// Number draws a number of any of the four types.
func Number(t *rapid.T) value.Value {
	switch rapid.IntRange(0, 3).Draw(t, "number type") {
	case 0:
		return value.Int32(int32(rapid.IntRange(-3, 3).Draw(t, "int")))
	case 1:
		return value.Int64(rapid.OneOf(rapid.SampledFrom(longs), rapid.Int64()).Draw(t, "long"))
	case 2:
		return value.Double(rapid.OneOf(rapid.SampledFrom(doubles), rapid.Float64()).Draw(t, "double"))
	}
	d, _ := bson.ParseDecimal128(rapid.SampledFrom(decimals).Draw(t, "decimal"))
	return value.Decimal(d)
}

var texts = []string{"", "a", "ab", "b", "a\x00", "a\x00b", "\x00", "é", "\U0001F600"}

// Scalar draws a value that is neither document nor array.
func Scalar(t *rapid.T) value.Value {
	switch rapid.IntRange(0, 14).Draw(t, "scalar type") {
	case 0, 1, 2, 3:
		return Number(t)
	case 4, 5:
		return value.String(rapid.SampledFrom(texts).Draw(t, "string"))
	case 6:
		return value.Bool(rapid.Bool().Draw(t, "bool"))
	case 7:
		return value.Null
	case 8:
		return value.Date(rapid.SampledFrom(longs).Draw(t, "date"))
	case 9:
		return value.Timestamp(rapid.Uint32Range(0, 2).Draw(t, "t"), rapid.Uint32Range(0, 2).Draw(t, "i"))
	case 10:
		return value.ObjectID(bson.ObjectID{11: byte(rapid.IntRange(0, 2).Draw(t, "id"))})
	case 11:
		sub := byte(rapid.IntRange(0, 2).Draw(t, "subtype"))
		return value.Value{Type: bsoncore.TypeBinary, Data: bsoncore.AppendBinary(nil, sub, []byte(rapid.SampledFrom(texts).Draw(t, "binary")))}
	case 12:
		return value.Value{Type: bsoncore.TypeRegex, Data: bsoncore.AppendRegex(nil, rapid.SampledFrom([]string{"a", "ab", "b"}).Draw(t, "pattern"), "")}
	case 13:
		return value.Value{Type: bsoncore.TypeSymbol, Data: bsoncore.AppendSymbol(nil, rapid.SampledFrom(texts).Draw(t, "symbol"))}
	}
	return value.Value{Type: rapid.SampledFrom([]bsoncore.Type{bsoncore.TypeMinKey, bsoncore.TypeMaxKey}).Draw(t, "end")}
}

// Value draws any value, documents and arrays up to a depth.
func Value(t *rapid.T, depth int) value.Value {
	kind := rapid.IntRange(0, 4).Draw(t, "kind")
	if depth == 0 || kind < 3 {
		return Scalar(t)
	}
	if kind == 3 {
		return value.Doc(Document(t, depth-1))
	}
	var b value.Builder
	for range rapid.IntRange(0, 3).Draw(t, "length") {
		b.Push(Value(t, depth-1))
	}
	return b.Array()
}

// Document draws a document with fields out of a, b and c.
func Document(t *rapid.T, depth int) bsoncore.Document {
	var b value.Builder
	for _, k := range []string{"a", "b", "c"} {
		if rapid.Bool().Draw(t, "has "+k) {
			b.Add(k, Value(t, depth))
		}
	}
	return b.Document()
}
