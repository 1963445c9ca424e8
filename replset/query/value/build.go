package value

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Null is BSON null.
var Null = Value{Type: bsoncore.TypeNull}

// Undefined is BSON's deprecated undefined; an index holds it for an empty array.
var Undefined = Value{Type: bsoncore.TypeUndefined}

// Int32 makes an int.
func Int32(i int32) Value {
	return Value{Type: bsoncore.TypeInt32, Data: binary.LittleEndian.AppendUint32(nil, uint32(i))}
}

// Int64 makes a long.
func Int64(i int64) Value {
	return Value{Type: bsoncore.TypeInt64, Data: binary.LittleEndian.AppendUint64(nil, uint64(i))}
}

// Double makes a double.
func Double(f float64) Value {
	return Value{Type: bsoncore.TypeDouble, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}

// Decimal makes a decimal.
func Decimal(d bson.Decimal128) Value {
	hi, lo := d.GetBytes()
	return Value{Type: bsoncore.TypeDecimal128, Data: bsoncore.AppendDecimal128(nil, hi, lo)}
}

// Bool makes a boolean.
func Bool(b bool) Value {
	return Value{Type: bsoncore.TypeBoolean, Data: bsoncore.AppendBoolean(nil, b)}
}

// String makes a string.
func String(s string) Value {
	return Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, s)}
}

// Date makes a date from milliseconds since the epoch.
func Date(ms int64) Value {
	return Value{Type: bsoncore.TypeDateTime, Data: bsoncore.AppendDateTime(nil, ms)}
}

// DateOf makes a date, cut to milliseconds.
func DateOf(t time.Time) Value { return Date(t.UnixMilli()) }

// Timestamp makes a timestamp.
func Timestamp(t, i uint32) Value {
	return Value{Type: bsoncore.TypeTimestamp, Data: bsoncore.AppendTimestamp(nil, t, i)}
}

// ObjectID makes an object id.
func ObjectID(id bson.ObjectID) Value {
	return Value{Type: bsoncore.TypeObjectID, Data: bytes.Clone(id[:])}
}

// Doc makes an embedded document of a document; it aliases doc.
func Doc(doc bsoncore.Document) Value {
	return Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}
}

// ArrayOf makes an array. The elements are copied.
func ArrayOf(elems []Value) Value {
	var b Builder
	for _, v := range elems {
		b.Push(v)
	}
	return b.Array()
}

// Clone is a copy that shares no bytes with v.
func Clone(v Value) Value { return Value{Type: v.Type, Data: bytes.Clone(v.Data)} }

// Builder writes a document or an array, field by field. The zero Builder is
// empty and ready.
type Builder struct {
	buf []byte
	n   int
}

func (b *Builder) start() {
	if b.buf == nil {
		b.buf = make([]byte, 4, 128)
	}
}

// Add appends a field; a missing value adds nothing. The bytes are copied.
func (b *Builder) Add(key string, v Value) {
	if IsMissing(v) {
		return
	}
	b.start()
	b.buf = append(b.buf, byte(v.Type))
	b.buf = append(b.buf, key...)
	b.buf = append(b.buf, 0)
	b.buf = append(b.buf, v.Data...)
	b.n++
}

// Push appends an array element; a missing value becomes null, so that the
// positions after it hold.
func (b *Builder) Push(v Value) {
	if IsMissing(v) {
		v = Null
	}
	b.start()
	b.buf = append(b.buf, byte(v.Type))
	b.buf = strconv.AppendInt(b.buf, int64(b.n), 10)
	b.buf = append(b.buf, 0)
	b.buf = append(b.buf, v.Data...)
	b.n++
}

// Len is the number of fields or elements so far.
func (b *Builder) Len() int { return b.n }

// Size is the number of bytes so far.
func (b *Builder) Size() int { return len(b.buf) }

// Document ends the document. The Builder must not be used after that.
func (b *Builder) Document() bsoncore.Document {
	b.start()
	b.buf = append(b.buf, 0)
	binary.LittleEndian.PutUint32(b.buf, uint32(len(b.buf)))
	return b.buf
}

// Value ends the document and returns it as a value.
func (b *Builder) Value() Value { return Doc(b.Document()) }

// Array ends the array.
func (b *Builder) Array() Value {
	return Value{Type: bsoncore.TypeArray, Data: b.Document()}
}
