package value

import (
	"bytes"
	"encoding/binary"
	"iter"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Value is short for the driver's raw BSON value.
type Value = bsoncore.Value

// Missing is the value of a field that is not there.
var Missing = Value{}

// IsMissing says whether v is Missing.
func IsMissing(v Value) bool { return v.Type == 0 }

// IsNullish says whether v is null, undefined or missing.
func IsNullish(v Value) bool {
	return v.Type == 0 || v.Type == bsoncore.TypeNull || v.Type == bsoncore.TypeUndefined
}

// IsDocument says whether v is an embedded document.
func IsDocument(v Value) bool { return v.Type == bsoncore.TypeEmbeddedDocument }

// IsArray says whether v is an array.
func IsArray(v Value) bool { return v.Type == bsoncore.TypeArray }

// IsString says whether v is a string; a symbol is not.
func IsString(v Value) bool { return v.Type == bsoncore.TypeString }

// Fields are the fields of a document, or the elements of an array under their
// keys, in order. Values alias doc.
func Fields(doc []byte) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		Walk(doc, func(key []byte, v Value) bool { return yield(string(key), v) })
	}
}

// Elements are the elements of an array in order. Their keys do not count: an
// array's order is that of its bytes. Values alias array.
func Elements(array []byte) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		Walk(array, func(_ []byte, v Value) bool { return yield(v) })
	}
}

// Walk is Fields without a copy of the keys, until yield returns false. Keys alias doc
// too.
func Walk(doc []byte, yield func(key []byte, v Value) bool) {
	if len(doc) < 5 {
		return
	}
	rest := doc[4:]
	for {
		key, v, tail, ok := next(rest)
		if !ok || !yield(key, v) {
			return
		}
		rest = tail
	}
}

// next cuts the first element off a list of elements. It fails at the end of the
// document and where the bytes make no sense.
func next(src []byte) (key []byte, v Value, rest []byte, ok bool) {
	if len(src) < 2 || src[0] == 0 {
		return nil, Value{}, nil, false
	}
	end := bytes.IndexByte(src[1:], 0)
	if end < 0 {
		return nil, Value{}, nil, false
	}
	v, rest, ok = bsoncore.ReadValue(src[end+2:], bsoncore.Type(src[0]))
	return src[1 : end+1], v, rest, ok
}

// Lookup is the value of a top-level field, or Missing. The result aliases doc.
func Lookup(doc []byte, field string) Value {
	found := Missing
	if len(doc) < 5 {
		return found
	}
	for rest := doc[4:]; ; {
		key, v, tail, ok := next(rest)
		if !ok {
			return Missing
		}
		if string(key) == field {
			return v
		}
		rest = tail
	}
}

// At is the i-th element of an array, or Missing.
func At(array []byte, i int) Value {
	n := 0
	for v := range Elements(array) {
		if n == i {
			return v
		}
		n++
	}
	return Missing
}

// Len is the number of fields of a document or elements of an array.
func Len(doc []byte) int {
	n := 0
	Walk(doc, func([]byte, Value) bool { n++; return true })
	return n
}

// List is the elements of an array as a slice.
func List(array []byte) []Value {
	var out []Value
	for v := range Elements(array) {
		out = append(out, v)
	}
	return out
}

// First is the first field of a document; ok is false if it has none.
func First(doc []byte) (key string, v Value, ok bool) {
	for k, v := range Fields(doc) {
		return k, v, true
	}
	return "", Missing, false
}

// Str is the text of a string, symbol or code value; "" for any other.
func Str(v Value) string {
	switch v.Type {
	case bsoncore.TypeString, bsoncore.TypeSymbol, bsoncore.TypeJavaScript:
		if len(v.Data) >= 5 {
			return string(v.Data[4 : len(v.Data)-1])
		}
	}
	return ""
}

// Millis is a date's distance from the epoch in milliseconds.
func Millis(v Value) int64 {
	if len(v.Data) < 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(v.Data))
}

// Time is a date as a time in UTC.
func Time(v Value) time.Time { return time.UnixMilli(Millis(v)).UTC() }

// Truth is what a value counts as where a condition is expected: false, null,
// undefined, missing and zero are false, all else is true.
func Truth(v Value) bool {
	switch v.Type {
	case 0, bsoncore.TypeNull, bsoncore.TypeUndefined:
		return false
	case bsoncore.TypeBoolean:
		return len(v.Data) == 1 && v.Data[0] != 0
	}
	if IsNumber(v) {
		return !NumberOf(v).IsZero()
	}
	return true
}

// Same says whether two values are the same bytes of the same type; 1 and 1.0 are
// not the same, although they compare equal.
func Same(a, b Value) bool { return a.Type == b.Type && bytes.Equal(a.Data, b.Data) }
