package value

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Compare orders values of all types: first by class, then within it. It is a total
// order in which 1, 1.0 and NumberDecimal("1") are one value, and so are a string
// and a symbol. Strings compare by bytes: the simple collation is the only one.
func Compare(a, b Value) int {
	if ca, cb := ClassOf(a), ClassOf(b); ca != cb {
		return int(ca) - int(cb)
	}
	return compareWithin(a, b)
}

// Equal says whether Compare gives 0.
func Equal(a, b Value) bool { return Compare(a, b) == 0 }

func compareWithin(a, b Value) int {
	switch ClassOf(a) {
	case ClassNumber:
		return CompareNumbers(NumberOf(a), NumberOf(b))
	case ClassString, ClassCode:
		return bytes.Compare(text(a.Data), text(b.Data))
	case ClassDocument:
		return compareDocuments(a.Data, b.Data)
	case ClassArray:
		return compareArrays(a.Data, b.Data)
	case ClassBinary:
		return compareBinary(a, b)
	case ClassDate:
		return cmpInt(Millis(a), Millis(b))
	case ClassTimestamp:
		return compareTimestamps(a, b)
	case ClassDBPointer:
		return compareSized(a.Data, b.Data)
	case ClassCodeWithScope:
		return compareScoped(a, b)
	}
	return bytes.Compare(a.Data, b.Data) // object ids, booleans, regexes; nothing for the rest
}

// text is the content of a string: without its length and final zero.
func text(data []byte) []byte {
	if len(data) < 5 {
		return nil
	}
	return data[4 : len(data)-1]
}

// compareDocuments compares field by field: class of the value, then name, then
// value. A document that ends first is less.
func compareDocuments(a, b []byte) int {
	ra, rb := body(a), body(b)
	for {
		ka, va, ta, oka := next(ra)
		kb, vb, tb, okb := next(rb)
		if !oka || !okb {
			return boolCmp(oka, okb)
		}
		if ca, cb := ClassOf(va), ClassOf(vb); ca != cb {
			return int(ca) - int(cb)
		}
		if c := bytes.Compare(ka, kb); c != 0 {
			return c
		}
		if c := compareWithin(va, vb); c != 0 {
			return c
		}
		ra, rb = ta, tb
	}
}

func compareArrays(a, b []byte) int {
	ra, rb := body(a), body(b)
	for {
		_, va, ta, oka := next(ra)
		_, vb, tb, okb := next(rb)
		if !oka || !okb {
			return boolCmp(oka, okb)
		}
		if c := Compare(va, vb); c != 0 {
			return c
		}
		ra, rb = ta, tb
	}
}

func body(doc []byte) []byte {
	if len(doc) < 5 {
		return nil
	}
	return doc[4:]
}

// compareBinary: length, then subtype, then bytes.
func compareBinary(a, b Value) int {
	sa, da, _ := a.BinaryOK()
	sb, db, _ := b.BinaryOK()
	if c := len(da) - len(db); c != 0 {
		return c
	}
	if sa != sb {
		return int(sa) - int(sb)
	}
	return bytes.Compare(da, db)
}

func compareTimestamps(a, b Value) int {
	x, y := timestampBits(a), timestampBits(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func timestampBits(v Value) uint64 {
	if len(v.Data) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(v.Data) // seconds are the high half
}

// compareSized: the shorter first, then by bytes.
func compareSized(a, b []byte) int {
	if c := len(a) - len(b); c != 0 {
		return c
	}
	return bytes.Compare(a, b)
}

func compareScoped(a, b Value) int {
	ca, sa := scoped(a)
	cb, sb := scoped(b)
	if c := bytes.Compare(ca, cb); c != 0 {
		return c
	}
	return compareDocuments(sa, sb)
}

// scoped cuts a code with scope into its code and its scope.
func scoped(v Value) (code, scope []byte) {
	if len(v.Data) < 8 {
		return nil, nil
	}
	s, rest, ok := bsoncore.ReadValue(v.Data[4:], bsoncore.TypeString)
	if !ok {
		return nil, nil
	}
	return text(s.Data), rest
}
