package expr

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

func size(v Value) (Value, error) {
	if !value.IsArray(v) {
		return value.Missing, value.Errorf(17124, "The argument to $size must be an array, but was of type: %s", value.TypeName(v))
	}
	return value.Int32(int32(value.Len(v.Data))), nil
}

func isArray(v Value) (Value, error) { return value.Bool(value.IsArray(v)), nil }

func arrayElemAt(a, i Value) (Value, error) {
	if value.IsNullish(a) || value.IsNullish(i) {
		return value.Null, nil
	}
	if !value.IsArray(a) {
		return value.Missing, value.Errorf(28689, "$arrayElemAt's first argument must be an array, but is %s", value.TypeName(a))
	}
	if !value.IsNumber(i) {
		return value.Missing, value.Errorf(28690, "$arrayElemAt's second argument must be a numeric value, but is %s", value.TypeName(i))
	}
	n, ok := value.Integer(i)
	if !ok {
		return value.Missing, value.Errorf(28691, "$arrayElemAt's second argument must be representable as a 32-bit integer: %s", value.Show(i))
	}
	return elemAt(a, n), nil
}

func elemAt(a Value, n int64) Value {
	if n < 0 {
		n += int64(value.Len(a.Data))
	}
	if n < 0 || n > math.MaxInt32 {
		return value.Missing
	}
	return value.At(a.Data, int(n))
}

func first(v Value) (Value, error) { return end("$first", v, 0) }
func last(v Value) (Value, error)  { return end("$last", v, -1) }

func end(name string, v Value, at int64) (Value, error) {
	switch {
	case value.IsNullish(v):
		return value.Null, nil
	case !value.IsArray(v):
		return value.Missing, value.Errorf(28689, "%s's argument must be an array, but is %s", name, value.TypeName(v))
	}
	return elemAt(v, at), nil
}

func concatArrays(args []Value) (Value, error) {
	var b value.Builder
	for _, a := range args {
		switch {
		case value.IsNullish(a):
			return value.Null, nil
		case !value.IsArray(a):
			return value.Missing, value.Errorf(28664, "$concatArrays only supports arrays, not %s", value.TypeName(a))
		}
		for e := range value.Elements(a.Data) {
			b.Push(e)
		}
		if err := checkSize(b.Size()); err != nil {
			return value.Missing, err
		}
	}
	return b.Array(), nil
}

func slice(args []Value) (Value, error) {
	if anyNullish(args) {
		return value.Null, nil
	}
	if !value.IsArray(args[0]) {
		return value.Missing, value.Errorf(28724, "First argument to $slice must be an array, but is of type: %s", value.TypeName(args[0]))
	}
	second, ok := value.Integer(args[1])
	if !ok {
		return value.Missing, value.Errorf(28725, "Second argument to $slice must be a numeric value representable as a 32-bit integer, but is of type: %s", value.TypeName(args[1]))
	}
	if len(args) == 2 {
		if second < 0 {
			return Slice(args[0], second, -second), nil
		}
		return Slice(args[0], 0, second), nil
	}
	n, ok := value.Integer(args[2])
	if !ok {
		return value.Missing, value.Errorf(28727, "Third argument to $slice must be numeric, but is of type: %s", value.TypeName(args[2]))
	}
	if n <= 0 {
		return value.Missing, value.Errorf(28729, "Third argument to $slice must be positive: %d", n)
	}
	return Slice(args[0], second, n), nil
}

// Slice is n elements of an array from a position, which counts from the end if it
// is negative.
func Slice(array Value, from, n int64) Value {
	size := int64(value.Len(array.Data))
	if from < 0 {
		from = max(0, from+size)
	}
	var b value.Builder
	i := int64(0)
	for e := range value.Elements(array.Data) {
		if i >= from && i-from < n {
			b.Push(e)
		}
		i++
	}
	return b.Array()
}

func in(v, list Value) (Value, error) {
	if !value.IsArray(list) {
		return value.Missing, value.Errorf(40081, "$in requires an array as a second argument, found: %s", value.TypeName(list))
	}
	for e := range value.Elements(list.Data) {
		if value.Equal(e, v) {
			return value.Bool(true), nil
		}
	}
	return value.Bool(false), nil
}

func indexOfArray(args []Value) (Value, error) {
	if value.IsNullish(args[0]) {
		return value.Null, nil
	}
	if !value.IsArray(args[0]) {
		return value.Missing, value.Errorf(40090, "$indexOfArray requires an array as a first argument, found: %s", value.TypeName(args[0]))
	}
	list := value.List(args[0].Data)
	from, to, err := searchRange("$indexOfArray", args, int64(len(list)))
	if err != nil {
		return value.Missing, err
	}
	for i := from; i < to; i++ {
		if value.Equal(list[i], args[1]) {
			return value.Int32(int32(i)), nil
		}
	}
	return value.Int32(-1), nil
}

// maxRange bounds the bytes that $range may take, as the server bounds its memory.
const maxRange = 16 << 20 / 8

func rangeOf(args []Value) (Value, error) {
	bounds := [3]int64{2: 1}
	for i, a := range args {
		n, ok := value.Integer(a)
		if !value.IsNumber(a) {
			return value.Missing, value.Errorf(34443+2*int32(i), "$range requires a numeric value in position %d, found value of type: %s", i, value.TypeName(a))
		}
		if !ok || n != int64(int32(n)) {
			return value.Missing, value.Errorf(34444+2*int32(i), "$range requires a value that can be represented as a 32-bit integer in position %d, found: %s", i, value.Show(a))
		}
		bounds[i] = n
	}
	from, to, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		return value.Missing, value.Errorf(34449, "$range requires a non-zero step value")
	}
	if (to-from)/step > maxRange {
		return value.Missing, value.Errorf(value.ExceededMemoryLimit, "$range would use too much memory")
	}
	var b value.Builder
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		b.Push(value.Int32(int32(i)))
	}
	return b.Array(), nil
}

func reverseArray(v Value) (Value, error) {
	switch {
	case value.IsNullish(v):
		return value.Null, nil
	case !value.IsArray(v):
		return value.Missing, value.Errorf(34435, "The argument to $reverseArray must be an array, but was of type: %s", value.TypeName(v))
	}
	list := value.List(v.Data)
	var b value.Builder
	for i := len(list) - 1; i >= 0; i-- {
		b.Push(list[i])
	}
	return b.Array(), nil
}

func zip(a namedArgs) (Value, error) {
	if value.IsNullish(a["inputs"]) {
		return value.Null, nil
	}
	if !value.IsArray(a["inputs"]) {
		return value.Missing, value.Errorf(34461, "inputs must be an array of expressions, found %s", value.TypeName(a["inputs"]))
	}
	longest := a["useLongestLength"].Type == bsoncore.TypeBoolean && value.Truth(a["useLongestLength"])
	if a.has("useLongestLength") && a["useLongestLength"].Type != bsoncore.TypeBoolean {
		return value.Missing, value.Errorf(34463, "useLongestLength must be a bool, found %s", value.TypeName(a["useLongestLength"]))
	}
	var defaults []Value
	if a.has("defaults") {
		if !longest {
			return value.Missing, value.Errorf(34466, "cannot specify defaults unless useLongestLength is true")
		}
		defaults = value.List(a["defaults"].Data)
	}
	var columns [][]Value
	for v := range value.Elements(a["inputs"].Data) {
		switch {
		case value.IsNullish(v):
			return value.Null, nil
		case !value.IsArray(v):
			return value.Missing, value.Errorf(34468, "$zip found a non-array expression in input: %s", value.Show(v))
		}
		columns = append(columns, value.List(v.Data))
	}
	if a.has("defaults") && len(defaults) != len(columns) {
		return value.Missing, value.Errorf(34467, "defaults and inputs must have the same length")
	}
	return zipped(columns, defaults, longest), nil
}

func zipped(columns [][]Value, defaults []Value, longest bool) Value {
	rows := 0
	for i, c := range columns {
		if i == 0 || longest && len(c) > rows || !longest && len(c) < rows {
			rows = len(c)
		}
	}
	var b value.Builder
	for r := range rows {
		var row value.Builder
		for c := range columns {
			switch {
			case r < len(columns[c]):
				row.Push(columns[c][r])
			case c < len(defaults):
				row.Push(defaults[c])
			default:
				row.Push(value.Null)
			}
		}
		b.Push(row.Array())
	}
	return b.Array()
}

// count reads the n of $firstN and its like.
func count(v Value) (int, error) {
	n, ok := value.Integer(v)
	if !ok || n != int64(int32(n)) {
		return 0, value.Errorf(5787902, "Value for 'n' must be of integral type, but found %s", value.Show(v))
	}
	if n <= 0 {
		return 0, value.Errorf(5787908, "'n' must be greater than 0, found %d", n)
	}
	return int(n), nil
}

// taken is the frame of the N operators on an array.
func taken(name string, a namedArgs, f func(list []Value, n int) []Value) (Value, error) {
	n, err := count(a["n"])
	if err != nil {
		return value.Missing, err
	}
	if !value.IsArray(a["input"]) {
		return value.Missing, value.Errorf(5788200, "%s: input must be an array, found %s", name, value.TypeName(a["input"]))
	}
	return value.ArrayOf(f(value.List(a["input"].Data), n)), nil
}

func firstN(a namedArgs) (Value, error) {
	return taken("$firstN", a, func(l []Value, n int) []Value { return l[:min(n, len(l))] })
}

func lastN(a namedArgs) (Value, error) {
	return taken("$lastN", a, func(l []Value, n int) []Value { return l[len(l)-min(n, len(l)):] })
}

func minN(a namedArgs) (Value, error) { return extremes("$minN", a, 1) }
func maxN(a namedArgs) (Value, error) { return extremes("$maxN", a, -1) }

// extremes leaves nulls out.
func extremes(name string, a namedArgs, direction int) (Value, error) {
	return taken(name, a, func(l []Value, n int) []Value {
		var kept []Value
		for _, v := range l {
			if !value.IsNullish(v) {
				kept = append(kept, v)
			}
		}
		(&Order{whole: direction}).Sort(kept)
		return kept[:min(n, len(kept))]
	})
}
