package value

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// Class is a value's place in BSON's order of types. Types of one class compare
// with each other: all numbers, and strings with symbols. A filter's $lt and its
// like compare only within a class.
type Class byte

// The classes in order. They are the first byte of a key, so zero is left for the
// end of a document, gaps keep a class and its successor apart, and 0xFF is never
// used: it ends a range.
const (
	ClassMinKey        Class = 0x10
	ClassMissing       Class = 0x14
	ClassUndefined     Class = 0x18
	ClassNull          Class = 0x1c
	ClassNumber        Class = 0x20
	ClassString        Class = 0x24
	ClassDocument      Class = 0x28
	ClassArray         Class = 0x2c
	ClassBinary        Class = 0x30
	ClassObjectID      Class = 0x34
	ClassBool          Class = 0x38
	ClassDate          Class = 0x3c
	ClassTimestamp     Class = 0x40
	ClassRegex         Class = 0x44
	ClassDBPointer     Class = 0x48
	ClassCode          Class = 0x4c
	ClassCodeWithScope Class = 0x50
	ClassMaxKey        Class = 0x54
)

// typeInfo is one row of the table of BSON types.
type typeInfo struct {
	typ   bsoncore.Type
	class Class
	alias string // what $type takes and gives
}

var typeTable = []typeInfo{
	{0, ClassMissing, "missing"},
	{bsoncore.TypeDouble, ClassNumber, "double"},
	{bsoncore.TypeString, ClassString, "string"},
	{bsoncore.TypeEmbeddedDocument, ClassDocument, "object"},
	{bsoncore.TypeArray, ClassArray, "array"},
	{bsoncore.TypeBinary, ClassBinary, "binData"},
	{bsoncore.TypeUndefined, ClassUndefined, "undefined"},
	{bsoncore.TypeObjectID, ClassObjectID, "objectId"},
	{bsoncore.TypeBoolean, ClassBool, "bool"},
	{bsoncore.TypeDateTime, ClassDate, "date"},
	{bsoncore.TypeNull, ClassNull, "null"},
	{bsoncore.TypeRegex, ClassRegex, "regex"},
	{bsoncore.TypeDBPointer, ClassDBPointer, "dbPointer"},
	{bsoncore.TypeJavaScript, ClassCode, "javascript"},
	{bsoncore.TypeSymbol, ClassString, "symbol"},
	{bsoncore.TypeCodeWithScope, ClassCodeWithScope, "javascriptWithScope"},
	{bsoncore.TypeInt32, ClassNumber, "int"},
	{bsoncore.TypeTimestamp, ClassTimestamp, "timestamp"},
	{bsoncore.TypeInt64, ClassNumber, "long"},
	{bsoncore.TypeDecimal128, ClassNumber, "decimal"},
	{bsoncore.TypeMinKey, ClassMinKey, "minKey"},
	{bsoncore.TypeMaxKey, ClassMaxKey, "maxKey"},
}

var typesByByte = func() (table [256]typeInfo) {
	for _, row := range typeTable {
		table[row.typ] = row
	}
	return table
}()

// ClassOf is v's class.
func ClassOf(v Value) Class { return typesByByte[v.Type].class }

// TypeName is the name of v's type as $type gives it; "missing" if v is.
func TypeName(v Value) string { return typesByByte[v.Type].alias }

// TypeByAlias is the type that an alias such as "objectId" names.
func TypeByAlias(alias string) (bsoncore.Type, bool) {
	for _, row := range typeTable {
		if row.alias == alias && row.typ != 0 {
			return row.typ, true
		}
	}
	return 0, false
}

// TypeByCode is the type with a number; -1 is minKey.
func TypeByCode(code int64) (bsoncore.Type, bool) {
	if code == -1 {
		return bsoncore.TypeMinKey, true
	}
	if code <= 0 || code > 127 {
		return 0, false
	}
	row := typesByByte[byte(code)]
	return row.typ, row.typ != 0
}

// IsNumber says whether v is an int, long, double or decimal.
func IsNumber(v Value) bool { return ClassOf(v) == ClassNumber }
