package value_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/query/value/valuetest"
)

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func dec(s string) value.Value {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return value.Decimal(d)
}

// ladder is values in their order; those on one rung are equal.
func ladder() [][]value.Value {
	doc := func(k string, v value.Value) value.Value {
		var b value.Builder
		b.Add(k, v)
		return b.Value()
	}
	code := func(t bsoncore.Type, data []byte) value.Value { return value.Value{Type: t, Data: data} }
	scoped := code(bsoncore.TypeCodeWithScope, bsoncore.AppendCodeWithScope(nil, "x", doc("a", value.Int32(1)).Data))
	return [][]value.Value{
		{{Type: bsoncore.TypeMinKey}},
		{value.Missing},
		{value.Undefined},
		{value.Null},
		{value.Double(math.NaN()), dec("NaN")},
		{value.Double(math.Inf(-1)), dec("-Infinity")},
		{dec("-1E6144")},
		{value.Double(-math.MaxFloat64)},
		{value.Int64(math.MinInt64), value.Double(-0x1p63), dec("-9223372036854775808")},
		{value.Int64(math.MinInt64 + 1)},
		{value.Double(-1.5), dec("-1.50")},
		{dec("-1E-6176")},
		{value.Int32(0), value.Int64(0), value.Double(0), value.Double(math.Copysign(0, -1)), dec("0"), dec("-0E-10")},
		{dec("1E-6176")},
		{value.Double(math.SmallestNonzeroFloat64)},
		{dec("0.1")},
		{value.Double(0.1)}, // a little more than a tenth
		{value.Int32(1), value.Int64(1), value.Double(1), dec("1.00")},
		{value.Int64(1 << 53), value.Double(0x1p53)},
		{value.Int64(1<<53 + 1), dec("9007199254740993")},
		{value.Double(0x1p53 + 2)},
		{value.Int64(math.MaxInt64 - 1)},
		{value.Int64(math.MaxInt64), dec("9223372036854775807")},
		{value.Double(0x1p63), dec("9223372036854775808")},
		{value.Double(math.MaxFloat64)},
		{dec("1E6144")},
		{value.Double(math.Inf(1)), dec("Infinity")},
		{value.String("")},
		{value.String("\x00")},
		{value.String("a"), {Type: bsoncore.TypeSymbol, Data: bsoncore.AppendSymbol(nil, "a")}},
		{value.String("a\x00")},
		{value.String("ab")},
		{doc("", value.Missing)},
		{doc("b", value.Int32(1)), doc("b", value.Double(1))}, // number before string, whatever the name
		{doc("a", value.String("x"))},
		{value.ArrayOf(nil)},
		{value.ArrayOf([]value.Value{value.Int32(1)})},
		{value.ArrayOf([]value.Value{value.Int32(1), value.Int32(0)})},
		{value.ArrayOf([]value.Value{value.Int32(2)})},
		{{Type: bsoncore.TypeBinary, Data: bsoncore.AppendBinary(nil, 5, []byte("z"))}},
		{{Type: bsoncore.TypeBinary, Data: bsoncore.AppendBinary(nil, 0, []byte("aa"))}},
		{value.ObjectID(bson.ObjectID{})},
		{value.ObjectID(bson.ObjectID{1})},
		{value.Bool(false)},
		{value.Bool(true)},
		{value.Date(-1)},
		{value.Date(1)},
		{value.Timestamp(1, 9)},
		{value.Timestamp(2, 0)},
		{{Type: bsoncore.TypeRegex, Data: bsoncore.AppendRegex(nil, "a", "i")}},
		{{Type: bsoncore.TypeRegex, Data: bsoncore.AppendRegex(nil, "b", "")}},
		{{Type: bsoncore.TypeDBPointer, Data: bsoncore.AppendDBPointer(nil, "c", [12]byte{})}},
		{code(bsoncore.TypeJavaScript, bsoncore.AppendJavaScript(nil, "x"))},
		{scoped},
		{{Type: bsoncore.TypeMaxKey}},
	}
}

func TestOrderOfTypes(t *testing.T) {
	rungs := ladder()
	for i, lower := range rungs {
		for j, upper := range rungs {
			for _, a := range lower {
				for _, b := range upper {
					want := sign(i - j)
					if got := sign(value.Compare(a, b)); got != want {
						t.Errorf("Compare(%s, %s) = %d, want %d", value.Show(a), value.Show(b), got, want)
					}
					if got := bytes.Compare(value.KeyOf(a), value.KeyOf(b)); got != want {
						t.Errorf("keys of %s and %s compare %d, want %d", value.Show(a), value.Show(b), got, want)
					}
				}
			}
		}
	}
}

func TestKeysOrderAsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := valuetest.Value(t, 2), valuetest.Value(t, 2)
		ka, kb := value.KeyOf(a), value.KeyOf(b)
		c := sign(value.Compare(a, b))
		if got := bytes.Compare(ka, kb); got != c {
			t.Fatalf("Compare(%s, %s) = %d, keys %x %x", a, b, c, ka, kb)
		}
		if c != 0 && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
			t.Fatalf("a key is the beginning of another: %x %x", ka, kb)
		}
		value.Invert(ka)
		value.Invert(kb)
		if got := bytes.Compare(ka, kb); got != -c {
			t.Fatalf("inverted keys compare %d", got)
		}
	})
}

func TestCompareIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := valuetest.Value(t, 1), valuetest.Value(t, 1), valuetest.Value(t, 1)
		if value.Compare(a, a) != 0 || sign(value.Compare(a, b)) != -sign(value.Compare(b, a)) {
			t.Fatalf("not symmetric: %s %s", a, b)
		}
		if value.Compare(a, b) <= 0 && value.Compare(b, c) <= 0 && value.Compare(a, c) > 0 {
			t.Fatalf("not transitive: %s %s %s", a, b, c)
		}
	})
}

func TestArithmetic(t *testing.T) {
	add := func(a, b value.Number) value.Number { n, _ := value.Add(a, b); return n }
	mul := func(a, b value.Number) value.Number { n, _ := value.Mul(a, b); return n }
	for _, c := range []struct {
		op   func(a, b value.Number) value.Number
		a, b value.Value
		want value.Value
	}{
		{add, value.Int32(1), value.Int32(2), value.Int32(3)},
		{add, value.Int32(math.MaxInt32), value.Int32(1), value.Int64(1 << 31)},
		{add, value.Int32(1), value.Int64(2), value.Int64(3)},
		{add, value.Int32(1), value.Double(2), value.Double(3)},
		{add, value.Int64(math.MaxInt64), value.Int32(1), value.Double(0x1p63)},
		{add, value.Double(0.1), dec("0.2"), dec("0.300000000000000")},
		{add, dec("1E34"), dec("1"), dec("1.000000000000000000000000000000000E+34")},
		{add, dec("Infinity"), dec("-Infinity"), dec("NaN")},
		{value.Sub, value.Int32(math.MinInt32), value.Int32(1), value.Int64(math.MinInt32 - 1)},
		{value.Sub, value.Int64(0), value.Int64(math.MinInt64), value.Double(0x1p63)},
		{mul, value.Int32(1 << 20), value.Int32(1 << 20), value.Int64(1 << 40)},
		{mul, value.Int64(math.MinInt64), value.Int64(-1), value.Double(0x1p63)},
		{mul, dec("1.1"), value.Int32(3), dec("3.3")},
		{value.Quo, value.Int32(4), value.Int32(2), value.Double(2)},
		{value.Quo, dec("1"), value.Int32(3), dec("0.3333333333333333333333333333333333")},
		{value.Quo, dec("2"), value.Int32(3), dec("0.6666666666666666666666666666666667")},
		{value.Quo, dec("10"), dec("4"), dec("2.5")},
		{mul, dec("1E6144"), dec("10"), dec("Infinity")},
		{mul, dec("-1E6144"), dec("1E6144"), dec("-Infinity")},
		{mul, dec("1E-6176"), dec("0.1"), dec("0E-6176")},
		{mul, dec("1E3100"), dec("1E3040"), dec("1.00000000000000000000000000000E+6140")},
		{add, dec("9999999999999999999999999999999999"), dec("1"), dec("1.000000000000000000000000000000000E+34")},
		{value.Sub, value.Double(1), value.Int32(2), value.Double(-1)},
		{value.Sub, dec("1.5"), dec("0.5"), dec("1.0")},
		{value.Rem, value.Int32(-7), value.Int32(3), value.Int32(-1)},
		{value.Rem, value.Int64(math.MinInt64), value.Int64(-1), value.Int64(0)},
		{value.Rem, dec("7.5"), value.Int32(2), dec("1.5")},
	} {
		if got := c.op(value.NumberOf(c.a), value.NumberOf(c.b)).Value(); !value.Same(got, c.want) {
			t.Errorf("%s and %s: got %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

func TestOverflowIsReported(t *testing.T) {
	if _, exact := value.Add(value.LongNumber(math.MaxInt64), value.IntNumber(1)); exact {
		t.Error("a sum that overflows counts as exact")
	}
	if _, exact := value.Mul(value.LongNumber(math.MaxInt64), value.IntNumber(2)); exact {
		t.Error("a product that overflows counts as exact")
	}
}

func TestRound(t *testing.T) {
	for _, c := range []struct {
		v      value.Value
		places int
		how    value.Rounding
		want   value.Value
	}{
		{value.Double(2.5), 0, value.RoundHalfEven, value.Double(2)},
		{value.Double(3.5), 0, value.RoundHalfEven, value.Double(4)},
		{value.Double(-2.5), 0, value.RoundDown, value.Double(-3)},
		{value.Double(1.25), 1, value.RoundHalfEven, value.Double(1.2)},
		{value.Double(-1.29), 1, value.RoundToZero, value.Double(-1.2)},
		{value.Int32(1250), -2, value.RoundHalfEven, value.Int32(1200)},
		{value.Int32(math.MaxInt32), -1, value.RoundHalfEven, value.Int64(2147483650)},
		{dec("2.675"), 2, value.RoundHalfEven, dec("2.68")},
		{dec("-2.1"), 0, value.RoundUp, dec("-2")},
		{value.Int32(7), 2, value.RoundHalfEven, value.Int32(7)},
	} {
		if got := value.Round(value.NumberOf(c.v), c.places, c.how).Value(); !value.Same(got, c.want) {
			t.Errorf("%s to %d places: %s, want %s", c.v, c.places, got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	nested := func(levels int) []byte {
		doc := bsoncore.Document{5, 0, 0, 0, 0}
		for range levels - 1 {
			var b value.Builder
			b.Add("a", value.Doc(doc))
			doc = b.Document()
		}
		return doc
	}
	big := func(n int) []byte {
		var b value.Builder
		b.Add("a", value.String(strings.Repeat("x", n)))
		return b.Document()
	}
	for name, c := range map[string]struct {
		doc  []byte
		code int32
	}{
		"empty":            {[]byte{5, 0, 0, 0, 0}, 0},
		"nothing":          {nil, 22},
		"short length":     {[]byte{4, 0, 0, 0, 0}, 22},
		"long length":      {[]byte{6, 0, 0, 0, 0}, 22},
		"no end":           {[]byte{5, 0, 0, 0, 1}, 22},
		"end in between":   {[]byte{7, 0, 0, 0, 0, 0, 0}, 22},
		"unknown type":     {[]byte{8, 0, 0, 0, 0x55, 'a', 0, 0}, 22},
		"boolean of 2":     {[]byte{9, 0, 0, 0, 8, 'a', 0, 2, 0}, 22},
		"string of 0":      {[]byte{12, 0, 0, 0, 2, 'a', 0, 0, 0, 0, 0, 0}, 22},
		"nested 100 deep":  {nested(100), 0},
		"nested 101 deep":  {nested(101), 15},
		"large":            {big(16<<20 - 100), 0},
		"larger than 16 M": {big(16 << 20), 10334},
	} {
		err := value.Validate(c.doc)
		var e *value.Error
		if c.code == 0 && err != nil || c.code != 0 && (!errors.As(err, &e) || e.Code != c.code) {
			t.Errorf("%s: %v, want code %d", name, err, c.code)
		}
	}
}

// FuzzValidate: what Validate accepts can be read, compared and encoded.
func FuzzValidate(f *testing.F) {
	for _, rung := range ladder() {
		var b value.Builder
		b.Add("a", rung[0])
		f.Add([]byte(b.Document()))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if value.Validate(doc) != nil {
			return
		}
		v := value.Doc(doc)
		if !value.Equal(v, v) || !bytes.Equal(value.KeyOf(v), value.KeyOf(value.Clone(v))) {
			t.Error("not equal to itself")
		}
		value.Show(v)
	})
}
