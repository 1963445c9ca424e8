package value

import (
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Kind is the type of a number. A sum has the greater kind of its two parts.
type Kind int

// The kinds of number, from the narrowest on.
const (
	KindInt Kind = iota + 1
	KindLong
	KindDouble
	KindDecimal
)

// Number is a BSON number of any of the four types. The zero Number is no number.
type Number struct {
	Kind Kind
	i    int64   // KindInt, KindLong
	f    float64 // KindDouble
	d    dec     // KindDecimal
}

// NumberOf is the number in v; of a value that is none, the zero Number.
func NumberOf(v Value) Number {
	switch {
	case v.Type == bsoncore.TypeInt32 && len(v.Data) >= 4:
		return Number{Kind: KindInt, i: int64(int32(binary.LittleEndian.Uint32(v.Data)))}
	case v.Type == bsoncore.TypeInt64 && len(v.Data) >= 8:
		return Number{Kind: KindLong, i: int64(binary.LittleEndian.Uint64(v.Data))}
	case v.Type == bsoncore.TypeDouble && len(v.Data) >= 8:
		return Number{Kind: KindDouble, f: math.Float64frombits(binary.LittleEndian.Uint64(v.Data))}
	case v.Type == bsoncore.TypeDecimal128 && len(v.Data) >= 16:
		lo, hi := binary.LittleEndian.Uint64(v.Data), binary.LittleEndian.Uint64(v.Data[8:])
		return Number{Kind: KindDecimal, d: decOf128(bson.NewDecimal128(hi, lo))}
	}
	return Number{}
}

// LongNumber is a number of kind long.
func LongNumber(i int64) Number { return Number{Kind: KindLong, i: i} }

// IntNumber is a number of kind int.
func IntNumber(i int32) Number { return Number{Kind: KindInt, i: int64(i)} }

// DoubleNumber is a number of kind double.
func DoubleNumber(f float64) Number { return Number{Kind: KindDouble, f: f} }

// Value is the number as BSON, of the type of its kind.
func (n Number) Value() Value {
	switch n.Kind {
	case KindInt:
		return Int32(int32(n.i))
	case KindLong:
		return Int64(n.i)
	case KindDouble:
		return Double(n.f)
	case KindDecimal:
		return Decimal(n.d.to128())
	}
	return Missing
}

func (n Number) integral() bool { return n.Kind == KindInt || n.Kind == KindLong }

// exact is the number as a decimal, with nothing lost.
func (n Number) exact() dec {
	switch n.Kind {
	case KindDouble:
		return decOfFloat(n.f)
	case KindDecimal:
		return n.d
	}
	return decOfInt(n.i)
}

// coerced is the number as decimal arithmetic takes it.
func (n Number) coerced() dec {
	if n.Kind == KindDouble {
		return decOfFloat15(n.f)
	}
	return n.exact()
}

// IsZero says whether the number is 0, of either sign.
func (n Number) IsZero() bool {
	switch n.Kind {
	case KindDouble:
		return n.f == 0
	case KindDecimal:
		return n.d.isZero()
	}
	return n.i == 0
}

// IsNaN says whether the number is not a number.
func (n Number) IsNaN() bool {
	return n.Kind == KindDouble && math.IsNaN(n.f) || n.Kind == KindDecimal && n.d.nan
}

// IsInf says whether the number is an infinity of either sign.
func (n Number) IsInf() bool {
	return n.Kind == KindDouble && math.IsInf(n.f, 0) || n.Kind == KindDecimal && n.d.inf
}

// Sign is -1, 0 or 1; 0 for NaN.
func (n Number) Sign() int {
	switch n.Kind {
	case KindDouble:
		switch {
		case n.f < 0:
			return -1
		case n.f > 0:
			return 1
		}
		return 0
	case KindDecimal:
		return n.d.sign()
	}
	return cmpInt(n.i, 0)
}

// Float is the nearest double.
func (n Number) Float() float64 {
	switch n.Kind {
	case KindDouble:
		return n.f
	case KindDecimal:
		return n.d.float()
	}
	return float64(n.i)
}

// Int64 is the number as an integer; ok is false if it is none, or does not fit.
func (n Number) Int64() (i int64, ok bool) {
	switch n.Kind {
	case KindInt, KindLong:
		return n.i, true
	case KindDouble:
		if n.f != math.Trunc(n.f) || n.f < -0x1p63 || n.f >= 0x1p63 {
			return 0, false
		}
		return int64(n.f), true
	case KindDecimal:
		return n.d.int64()
	}
	return 0, false
}

func (d dec) int64() (int64, bool) {
	if d.nan || d.inf {
		return 0, false
	}
	t := d.trimmed(0)
	if t.exp < 0 || t.exp > 20 {
		return 0, t.isZero()
	}
	c := t.scaled(0)
	return c.Int64(), c.IsInt64()
}

// Trunc64 is the number cut to an integer; ok is false if it does not fit.
func (n Number) Trunc64() (i int64, ok bool) {
	switch n.Kind {
	case KindDouble:
		return DoubleNumber(math.Trunc(n.f)).Int64()
	case KindDecimal:
		return n.d.at(0, toZero).int64()
	}
	return n.Int64()
}

// Integer is v as an integer, if it is a number with an integral value.
func Integer(v Value) (i int64, ok bool) { return NumberOf(v).Int64() }

// widest is the kind of a result of a and b.
func widest(a, b Number) Kind { return max(a.Kind, b.Kind) }

// ofInt is an integral result: an int stays one while it fits.
func ofInt(i int64, k Kind) Number {
	if k == KindInt && i == int64(int32(i)) {
		return Number{Kind: KindInt, i: i}
	}
	return Number{Kind: KindLong, i: i}
}

// Add is a + b. Ints grow into longs; exact is false if longs overflowed, and then
// the sum is a double.
func Add(a, b Number) (sum Number, exact bool) {
	switch k := widest(a, b); k {
	case KindDecimal:
		return Number{Kind: k, d: a.coerced().add(b.coerced())}, true
	case KindDouble:
		return DoubleNumber(a.Float() + b.Float()), true
	default:
		s := a.i + b.i
		if (s > a.i) == (b.i > 0) {
			return ofInt(s, k), true
		}
		return DoubleNumber(float64(a.i) + float64(b.i)), false
	}
}

// Negate is -n.
func Negate(n Number) Number {
	switch n.Kind {
	case KindDecimal:
		n.d = n.d.negated()
	case KindDouble:
		n.f = -n.f
	default:
		if n.i == math.MinInt64 {
			return DoubleNumber(0x1p63)
		}
		return ofInt(-n.i, n.Kind)
	}
	return n
}

// Sub is a - b, with the types of Add.
func Sub(a, b Number) Number {
	if b.integral() && b.i == math.MinInt64 {
		s, _ := Add(a, DoubleNumber(0x1p63))
		return s
	}
	s, _ := Add(a, Negate(b))
	if s.Kind == KindLong && widest(a, b) == KindInt {
		return ofInt(s.i, KindInt)
	}
	return s
}

// Mul is a × b, with the types of Add.
func Mul(a, b Number) (product Number, exact bool) {
	switch k := widest(a, b); k {
	case KindDecimal:
		return Number{Kind: k, d: a.coerced().mul(b.coerced())}, true
	case KindDouble:
		return DoubleNumber(a.Float() * b.Float()), true
	default:
		p := a.i * b.i
		if a.i == 0 || p/a.i == b.i && !(a.i == -1 && b.i == math.MinInt64) {
			return ofInt(p, k), true
		}
		return DoubleNumber(float64(a.i) * float64(b.i)), false
	}
}

// Quo is a / b: a double, or a decimal if either is. b is not zero.
func Quo(a, b Number) Number {
	if widest(a, b) == KindDecimal {
		return Number{Kind: KindDecimal, d: a.coerced().quo(b.coerced())}
	}
	return DoubleNumber(a.Float() / b.Float())
}

// Rem is the remainder of a / b with the sign of a. b is not zero.
func Rem(a, b Number) Number {
	switch k := widest(a, b); k {
	case KindDecimal:
		return Number{Kind: k, d: a.coerced().rem(b.coerced())}
	case KindDouble:
		return DoubleNumber(math.Mod(a.Float(), b.Float()))
	default:
		if b.i == -1 {
			return ofInt(0, k)
		}
		return ofInt(a.i%b.i, k)
	}
}

// Rounding is a way to reach a whole number.
type Rounding int

// The ways to reach a whole number.
const (
	RoundHalfEven Rounding = iota
	RoundToZero
	RoundDown
	RoundUp
)

// Round cuts n to a number of decimal places, which may be negative. The type
// stays; an int that grows becomes a long.
func Round(n Number, places int, how Rounding) Number {
	if n.IsNaN() || n.IsInf() {
		return n
	}
	switch n.Kind {
	case KindDecimal:
		return Number{Kind: KindDecimal, d: n.d.at(-places, rounding(how))}
	case KindDouble:
		return DoubleNumber(roundFloat(n.f, places, how))
	}
	if places >= 0 {
		return n
	}
	i, ok := decOfInt(n.i).at(-places, rounding(how)).int64()
	if !ok {
		return DoubleNumber(decOfInt(n.i).at(-places, rounding(how)).float())
	}
	return ofInt(i, n.Kind)
}

func roundFloat(f float64, places int, how Rounding) float64 {
	if places == 0 {
		switch how {
		case RoundHalfEven:
			return math.RoundToEven(f)
		case RoundToZero:
			return math.Trunc(f)
		case RoundDown:
			return math.Floor(f)
		}
		return math.Ceil(f)
	}
	out := decOfFloat(f).at(-places, rounding(how)).float()
	if out == 0 {
		return math.Copysign(0, f)
	}
	return out
}

// Sqrt is the square root of n, which is not negative.
func Sqrt(n Number) Number {
	if n.Kind == KindDecimal {
		return Number{Kind: KindDecimal, d: n.d.sqrt()}
	}
	return DoubleNumber(math.Sqrt(n.Float()))
}

// ToDecimal is n as a decimal; a double keeps 15 digits.
func ToDecimal(n Number) Number { return Number{Kind: KindDecimal, d: n.coerced()} }

// CompareNumbers compares exactly, whatever the types: no long is rounded to a
// double on the way. NaN is below all numbers and equal to itself.
func CompareNumbers(a, b Number) int {
	if a.integral() && b.integral() {
		return cmpInt(a.i, b.i)
	}
	if a.Kind == KindDecimal || b.Kind == KindDecimal {
		return a.exact().cmp(b.exact())
	}
	if a.IsNaN() || b.IsNaN() {
		return boolCmp(!a.IsNaN(), !b.IsNaN())
	}
	switch {
	case a.integral():
		return cmpIntFloat(a.i, b.f)
	case b.integral():
		return -cmpIntFloat(b.i, a.f)
	case a.f < b.f:
		return -1
	case a.f > b.f:
		return 1
	}
	return 0
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// cmpIntFloat compares an integer with a double that is not NaN.
func cmpIntFloat(i int64, f float64) int {
	switch {
	case f >= 0x1p63:
		return -1
	case f < -0x1p63:
		return 1
	}
	whole := math.Trunc(f)
	if c := cmpInt(i, int64(whole)); c != 0 {
		return c
	}
	switch {
	case f > whole:
		return -1
	case f < whole:
		return 1
	}
	return 0
}
