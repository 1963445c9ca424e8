package value

import (
	"encoding/binary"
	"math"
	"strings"
)

// KeyOf encodes a value so that bytes.Compare of two keys is Compare of the values:
// equal values, equal keys. No key is the beginning of another, so keys can be
// concatenated, and turned round byte by byte for a descending index.
//
// A key is the class byte and a payload. In a document each field is class, name,
// payload, which is the order in which Compare looks at them; a zero byte ends it.
//
// A number is the largest double not above its magnitude, which most numbers are
// exactly, followed by the decimal digits of what is left. The longest keys are
// those of decimals near zero, of about a thousand bytes.
func KeyOf(v Value) []byte { return AppendKey(make([]byte, 0, len(v.Data)+4), v) }

// AppendKey appends the key of v to dst.
func AppendKey(dst []byte, v Value) []byte {
	return appendPayload(append(dst, byte(ClassOf(v))), v)
}

// Invert turns a key round in place, so that greater becomes less.
func Invert(key []byte) {
	for i := range key {
		key[i] = ^key[i]
	}
}

func appendPayload(dst []byte, v Value) []byte {
	switch ClassOf(v) {
	case ClassNumber:
		return appendNumber(dst, NumberOf(v))
	case ClassString, ClassCode:
		return appendText(dst, text(v.Data))
	case ClassDocument:
		return appendDocument(dst, v.Data)
	case ClassArray:
		for e := range Elements(v.Data) {
			dst = AppendKey(dst, e)
		}
		return append(dst, 0)
	case ClassBinary:
		sub, data, _ := v.BinaryOK()
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)))
		return append(append(dst, sub), data...)
	case ClassDate:
		return binary.BigEndian.AppendUint64(dst, uint64(Millis(v))^1<<63)
	case ClassTimestamp:
		return binary.BigEndian.AppendUint64(dst, timestampBits(v))
	case ClassDBPointer:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(v.Data)))
	case ClassCodeWithScope:
		code, scope := scoped(v)
		return appendDocument(appendText(dst, code), scope)
	}
	return append(dst, v.Data...)
}

func appendDocument(dst, doc []byte) []byte {
	Walk(doc, func(key []byte, v Value) bool {
		dst = append(dst, byte(ClassOf(v)))
		dst = append(append(dst, key...), 0)
		dst = appendPayload(dst, v)
		return true
	})
	return append(dst, 0)
}

// appendText writes text that may contain zero bytes: a zero is 00 FF, the end 00 01.
func appendText(dst, s []byte) []byte {
	for _, c := range s {
		dst = append(dst, c)
		if c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 1)
}

// First byte of a number's payload.
const (
	numNaN byte = iota + 1
	numNegInf
	numNegative
	numZero
	numPositive
	numPosInf
)

func appendNumber(dst []byte, n Number) []byte {
	switch {
	case n.IsNaN():
		return append(dst, numNaN)
	case n.IsInf() && n.Sign() < 0:
		return append(dst, numNegInf)
	case n.IsInf():
		return append(dst, numPosInf)
	case n.IsZero():
		return append(dst, numZero)
	case n.Sign() > 0:
		return appendMagnitude(append(dst, numPositive), n)
	}
	dst = append(dst, numNegative)
	at := len(dst)
	dst = appendMagnitude(dst, n)
	Invert(dst[at:])
	return dst
}

// appendMagnitude writes |n|, which is finite and not zero.
func appendMagnitude(dst []byte, n Number) []byte {
	base := math.Abs(n.Float())
	if n.Kind == KindDouble || n.integral() && base < 1<<53 {
		return append(binary.BigEndian.AppendUint64(dst, math.Float64bits(base)), 0)
	}
	size := n.exact().abs()
	base = min(base, math.MaxFloat64)
	if decOfFloat(base).cmp(size) > 0 {
		base = math.Nextafter(base, 0)
	}
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(base))
	rest := size.add(decOfFloat(base).negated())
	if rest.isZero() {
		return append(dst, 0)
	}
	digits, exp := rest.digits()
	dst = append(dst, 1)
	dst = binary.BigEndian.AppendUint16(dst, uint16(exp+1<<15))
	dst = append(dst, strings.TrimLeft(digits, "0")...)
	return append(dst, 0)
}
