package query

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

// predicate is a condition on one value.
type predicate interface {
	holds(v Value) bool
}

// parsePredicate parses an operator that looks at one value. all is the document it
// stands in, where $regex finds its $options.
func parsePredicate(name string, arg, all Value) (predicate, error) {
	switch name {
	case "$eq":
		return equality(arg, false)
	case "$gt", "$gte", "$lt", "$lte":
		return parseComparison(name, arg)
	case "$in":
		return parseIn(arg)
	case "$regex":
		return parseRegex(arg, value.Lookup(all.Data, "$options"))
	case "$type":
		return parseType(arg)
	case "$mod":
		return parseMod(arg)
	case "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear":
		return parseBits(name, arg)
	}
	return nil, badValue("unknown operator: %s", name)
}

// collated holds for values that a predicate holds for once strings are folded.
type collated struct {
	by     *value.Collation
	folded predicate
	plain  predicate // as it was written
}

func (c collated) holds(v Value) bool { return c.folded.holds(c.by.Fold(v)) }

// collate makes a comparison one under a collation, where that makes a difference.
func collate(p predicate, by *value.Collation) predicate {
	switch c := p.(type) {
	case comparison:
		if by.Concerns(c.rhs) {
			return collated{by, comparison{c.op, by.Fold(c.rhs)}, c}
		}
	case *oneOf:
		c.collate(by)
	}
	return p
}

// exists holds for whatever is there.
type exists struct{}

func (exists) holds(v Value) bool { return !value.IsMissing(v) }

// op is a comparison.
type op int

const (
	opEq op = iota
	opGt
	opGte
	opLt
	opLte
)

var comparisons = map[string]op{"$gt": opGt, "$gte": opGte, "$lt": opLt, "$lte": opLte}

// comparison compares with a constant, within the constant's class of types only.
type comparison struct {
	op  op
	rhs Value
}

func (c comparison) holds(v Value) bool {
	class, other := value.ClassOf(c.rhs), value.ClassOf(v)
	if class != other {
		return c.acrossClasses(other)
	}
	if class == value.ClassNumber {
		if x, y := value.NumberOf(v).IsNaN(), value.NumberOf(c.rhs).IsNaN(); x || y {
			return x && y && c.op != opGt && c.op != opLt
		}
	}
	return c.op.holds(value.Compare(v, c.rhs))
}

// acrossClasses: a missing field counts as null, and the two ends of the order are
// less and greater than everything.
func (c comparison) acrossClasses(other value.Class) bool {
	switch value.ClassOf(c.rhs) {
	case value.ClassNull:
		return other == value.ClassMissing && (c.op == opEq || c.op == opGte || c.op == opLte)
	case value.ClassMaxKey:
		return c.op == opLt || c.op == opLte
	case value.ClassMinKey:
		return c.op == opGt || c.op == opGte
	}
	return false
}

func (o op) holds(c int) bool {
	switch o {
	case opGt:
		return c > 0
	case opGte:
		return c >= 0
	case opLt:
		return c < 0
	case opLte:
		return c <= 0
	}
	return c == 0
}

// equality is {field: v}. With match a regular expression is matched, without it
// ($eq) only compared.
func equality(v Value, match bool) (predicate, error) {
	switch v.Type {
	case bsoncore.TypeUndefined:
		return nil, badValue("cannot compare to undefined")
	case bsoncore.TypeRegex:
		if match {
			return parseRegex(v, value.Missing)
		}
	}
	return comparison{opEq, value.Clone(v)}, nil
}

func parseComparison(name string, arg Value) (predicate, error) {
	switch arg.Type {
	case bsoncore.TypeRegex:
		return nil, badValue("Can't have RegEx as arg to predicate over field")
	case bsoncore.TypeUndefined:
		return nil, badValue("cannot compare to undefined")
	}
	return comparison{comparisons[name], value.Clone(arg)}, nil
}

// oneOf is $in: values by their keys, and regular expressions.
type oneOf struct {
	values  []Value
	keys    map[string]bool
	regexes []predicate
	by      *value.Collation // nil also where no value depends on it
}

func (in *oneOf) collate(by *value.Collation) {
	if !slices.ContainsFunc(in.values, by.Concerns) {
		return
	}
	in.by = by
	clear(in.keys)
	for _, v := range in.values {
		in.keys[string(by.KeyOf(v))] = true
	}
}

func parseIn(arg Value) (predicate, error) {
	if !value.IsArray(arg) {
		return nil, badValue("$in needs an array")
	}
	in := &oneOf{keys: map[string]bool{}}
	for e := range value.Elements(arg.Data) {
		if isOperators(e) {
			return nil, badValue("cannot nest $ under $in")
		}
		pred, err := equality(e, true)
		if err != nil {
			return nil, err
		}
		if c, ok := pred.(comparison); ok {
			in.values = append(in.values, c.rhs)
			in.keys[string(value.KeyOf(c.rhs))] = true
			continue
		}
		in.regexes = append(in.regexes, pred)
	}
	return in, nil
}

func (in *oneOf) holds(v Value) bool {
	if value.IsMissing(v) {
		v = value.Null
	}
	var buf [64]byte
	if in.keys[string(value.AppendKey(buf[:0], in.by.Fold(v)))] {
		return true
	}
	for _, re := range in.regexes {
		if re.holds(v) {
			return true
		}
	}
	return false
}

// regex matches strings, and is equal to the same regular expression.
type regex struct {
	re   *value.Regexp
	self Value
}

func parseRegex(arg, options Value) (predicate, error) {
	var pattern, flags string
	switch {
	case value.IsString(arg):
		pattern = value.Str(arg)
	case arg.Type == bsoncore.TypeRegex:
		pattern, flags = arg.Regex()
	default:
		return nil, badValue("$regex has to be a string")
	}
	if !value.IsMissing(options) {
		if !value.IsString(options) {
			return nil, badValue("$options has to be a string")
		}
		if flags != "" {
			return nil, value.Errorf(51074, "options set in both $regex and $options")
		}
		flags = value.Str(options)
	}
	re, err := value.CompileRegex(pattern, flags, 51091)
	if err != nil {
		return nil, err
	}
	self := Value{Type: bsoncore.TypeRegex, Data: bsoncore.AppendRegex(nil, pattern, flags)}
	return regex{re, self}, nil
}

func (r regex) holds(v Value) bool {
	if value.ClassOf(v) == value.ClassString {
		return r.re.MatchString(value.Str(v))
	}
	return value.Equal(v, r.self)
}

// ofType is $type.
type ofType struct {
	types  map[bsoncore.Type]bool
	number bool
}

func parseType(arg Value) (predicate, error) {
	t := &ofType{types: map[bsoncore.Type]bool{}}
	list := []Value{arg}
	if value.IsArray(arg) {
		list = value.List(arg.Data)
		if len(list) == 0 {
			return nil, value.Errorf(value.FailedToParse, "$type must match at least one type")
		}
	}
	for _, v := range list {
		if err := t.add(v); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *ofType) add(v Value) error {
	if value.IsString(v) {
		if value.Str(v) == "number" {
			t.number = true
			return nil
		}
		typ, ok := value.TypeByAlias(value.Str(v))
		if !ok {
			return badValue("Unknown type name alias: %s", value.Str(v))
		}
		t.types[typ] = true
		return nil
	}
	if !value.IsNumber(v) {
		return value.Errorf(value.TypeMismatch, "type must be represented as a number or a string")
	}
	n, ok := value.Integer(v)
	typ, known := value.TypeByCode(n)
	if !ok || !known {
		return badValue("Invalid numerical type code: %s", value.Show(v))
	}
	t.types[typ] = true
	return nil
}

func (t *ofType) holds(v Value) bool {
	return !value.IsMissing(v) && (t.types[v.Type] || t.number && value.IsNumber(v))
}

type mod struct{ divisor, remainder int64 }

func parseMod(arg Value) (predicate, error) {
	if !value.IsArray(arg) {
		return nil, badValue("malformed mod, needs to be an array")
	}
	list := value.List(arg.Data)
	switch {
	case len(list) < 2:
		return nil, badValue("malformed mod, not enough elements")
	case len(list) > 2:
		return nil, badValue("malformed mod, too many elements")
	case !value.IsNumber(list[0]):
		return nil, badValue("malformed mod, divisor not a number")
	case !value.IsNumber(list[1]):
		return nil, badValue("malformed mod, remainder not a number")
	}
	d, ok := value.NumberOf(list[0]).Trunc64()
	if !ok {
		return nil, badValue("malformed mod, divisor value is invalid")
	}
	r, ok := value.NumberOf(list[1]).Trunc64()
	if !ok {
		return nil, badValue("malformed mod, remainder value is invalid")
	}
	if d == 0 {
		return nil, badValue("divisor cannot be 0")
	}
	return mod{d, r}, nil
}

func (p mod) holds(v Value) bool {
	if !value.IsNumber(v) {
		return false
	}
	n, ok := value.NumberOf(v).Trunc64()
	if !ok {
		return false
	}
	if p.divisor == -1 {
		return p.remainder == 0
	}
	return n%p.divisor == p.remainder
}

type sized int

func parseSize(arg Value) (predicate, error) {
	n, ok := value.Integer(arg)
	if !ok {
		return nil, badValue("Failed to parse $size. Expected an integer in: $size: %s", value.Show(arg))
	}
	if n < 0 || n > math.MaxInt32 {
		return nil, badValue("Failed to parse $size. Expected a non-negative number in: $size: %s", value.Show(arg))
	}
	return sized(n), nil
}

func (s sized) holds(v Value) bool { return value.IsArray(v) && value.Len(v.Data) == int(s) }

// bitTest is one of the $bits operators: how many of the positions must be set.
type bitTest struct {
	positions []uint64
	set       bool // look for ones, else for zeros
	all       bool
}

func parseBits(name string, arg Value) (predicate, error) {
	t := bitTest{
		set: name == "$bitsAllSet" || name == "$bitsAnySet",
		all: name == "$bitsAllSet" || name == "$bitsAllClear",
	}
	switch {
	case value.IsNumber(arg):
		mask, ok := value.Integer(arg)
		if !ok {
			return nil, value.Errorf(value.FailedToParse, "Expected an integer: %s: %s", name, value.Show(arg))
		}
		if mask < 0 {
			return nil, value.Errorf(value.FailedToParse, "Expected a non-negative number in: %s: %s", name, value.Show(arg))
		}
		for i := range uint64(63) {
			if mask>>i&1 == 1 {
				t.positions = append(t.positions, i)
			}
		}
	case arg.Type == bsoncore.TypeBinary:
		_, data, _ := arg.BinaryOK()
		for i := range uint64(len(data) * 8) {
			if data[i/8]>>(i%8)&1 == 1 {
				t.positions = append(t.positions, i)
			}
		}
	case value.IsArray(arg):
		for e := range value.Elements(arg.Data) {
			n, ok := value.Integer(e)
			if !ok || n < 0 || n > math.MaxInt32 {
				return nil, badValue("bit positions must be non-negative 32-bit integers: %s", value.Show(e))
			}
			t.positions = append(t.positions, uint64(n))
		}
	default:
		return nil, badValue("%s takes an Array, a number, or a BinData but received: %s", name, value.Show(arg))
	}
	return t, nil
}

func (t bitTest) holds(v Value) bool {
	bit, ok := bitsOf(v)
	if !ok {
		return false
	}
	for _, p := range t.positions {
		if hit := bit(p) == t.set; hit != t.all {
			return hit
		}
	}
	return t.all
}

// bitsOf reads the bits of an integer, whose sign goes on for ever, or of binary data.
func bitsOf(v Value) (bit func(uint64) bool, ok bool) {
	if _, data, isBinary := v.BinaryOK(); isBinary {
		return func(p uint64) bool { return p/8 < uint64(len(data)) && data[p/8]>>(p%8)&1 == 1 }, true
	}
	n, ok := value.Integer(v)
	return func(p uint64) bool { return n>>min(p, 63)&1 == 1 }, ok
}
