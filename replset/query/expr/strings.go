package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

func splitPath(path string) []string { return strings.Split(path, ".") }

func concat(args []Value) (Value, error) {
	var b strings.Builder
	for _, a := range args {
		switch {
		case value.IsNullish(a):
			return value.Null, nil
		case !value.IsString(a):
			return value.Missing, value.Errorf(16702, "$concat only supports strings, not %s", value.TypeName(a))
		}
		b.WriteString(value.Str(a))
		if err := checkSize(b.Len()); err != nil {
			return value.Missing, err
		}
	}
	return value.String(b.String()), nil
}

// asText is a value as the older string operators take it: null is "", numbers and
// dates are written out.
func asText(v Value) (string, error) {
	switch {
	case value.IsNullish(v):
		return "", nil
	case value.ClassOf(v) == value.ClassString:
		return value.Str(v), nil
	case value.IsNumber(v):
		return numberText(v), nil
	case isDate(v):
		return isoDate(value.Time(v)), nil
	case v.Type == bsoncore.TypeTimestamp:
		t, i := v.Timestamp()
		return "Timestamp(" + strconv.Itoa(int(t)) + ", " + strconv.Itoa(int(i)) + ")", nil
	case v.Type == bsoncore.TypeJavaScript:
		return value.Str(v), nil
	}
	return "", value.Errorf(16007, "can't convert from BSON type %s to String", value.TypeName(v))
}

// asciiMap changes ASCII letters only, as $toUpper and $toLower do.
func asciiMap(v Value, lo, hi byte, by int) (Value, error) {
	s, err := asText(v)
	if err != nil {
		return value.Missing, err
	}
	out := []byte(s)
	for i, c := range out {
		if c >= lo && c <= hi {
			out[i] = byte(int(c) + by)
		}
	}
	return value.String(string(out)), nil
}

func toLower(v Value) (Value, error) { return asciiMap(v, 'A', 'Z', 32) }
func toUpper(v Value) (Value, error) { return asciiMap(v, 'a', 'z', -32) }

func strcasecmp(a, b Value) (Value, error) {
	x, err := toUpper(a)
	if err != nil {
		return value.Missing, err
	}
	y, err := toUpper(b)
	if err != nil {
		return value.Missing, err
	}
	return value.Int32(int32(strings.Compare(value.Str(x), value.Str(y)))), nil
}

func substrBytes(args []Value) (Value, error) {
	s, err := asText(args[0])
	if err != nil {
		return value.Missing, err
	}
	if !value.IsNumber(args[1]) {
		return value.Missing, value.Errorf(16034, "$substrBytes:  starting index must be a numeric type (is BSON type %s)", value.TypeName(args[1]))
	}
	if !value.IsNumber(args[2]) {
		return value.Missing, value.Errorf(16035, "$substrBytes:  length must be a numeric type (is BSON type %s)", value.TypeName(args[2]))
	}
	from, _ := value.NumberOf(args[1]).Trunc64()
	n, _ := value.NumberOf(args[2]).Trunc64()
	if from < 0 {
		return value.Missing, value.Errorf(50752, "$substrBytes:  starting index must be non-negative (got: %d)", from)
	}
	size := int64(len(s))
	from = min(from, size)
	to := size
	if n >= 0 && n < size-from {
		to = from + n
	}
	if from < size && !utf8.RuneStart(s[from]) {
		return value.Missing, value.Errorf(28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.")
	}
	if to < size && !utf8.RuneStart(s[to]) {
		return value.Missing, value.Errorf(28657, "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.")
	}
	return value.String(s[from:to]), nil
}

func substrCP(args []Value) (Value, error) {
	s, err := asText(args[0])
	if err != nil {
		return value.Missing, err
	}
	from, ok := value.Integer(args[1])
	if !ok || from < 0 {
		return value.Missing, value.Errorf(34450, "$substrCP: starting index must be a non-negative integer (is %s)", value.Show(args[1]))
	}
	n, ok := value.Integer(args[2])
	if !ok || n < 0 {
		return value.Missing, value.Errorf(34452, "$substrCP: length must be a non-negative integer (is %s)", value.Show(args[2]))
	}
	r := []rune(s)
	from = min(from, int64(len(r)))
	n = min(n, int64(len(r))-from)
	return value.String(string(r[from : from+n])), nil
}

func split(s, sep Value) (Value, error) {
	switch {
	case value.IsNullish(s) || value.IsNullish(sep):
		return value.Null, nil
	case !value.IsString(s):
		return value.Missing, value.Errorf(40085, "$split requires an expression that evaluates to a string as a first argument, found: %s", value.TypeName(s))
	case !value.IsString(sep):
		return value.Missing, value.Errorf(40086, "$split requires an expression that evaluates to a string as a second argument, found: %s", value.TypeName(sep))
	case value.Str(sep) == "":
		return value.Missing, value.Errorf(40087, "$split requires a non-empty separator")
	}
	var b value.Builder
	for _, part := range strings.Split(value.Str(s), value.Str(sep)) {
		b.Push(value.String(part))
	}
	return b.Array(), nil
}

func strLenBytes(v Value) (Value, error) {
	if !value.IsString(v) {
		return value.Missing, value.Errorf(34473, "$strLenBytes requires a string argument, found: %s", value.TypeName(v))
	}
	return value.Int32(int32(len(value.Str(v)))), nil
}

func strLenCP(v Value) (Value, error) {
	if !value.IsString(v) {
		return value.Missing, value.Errorf(34471, "$strLenCP requires a string argument, found: %s", value.TypeName(v))
	}
	return value.Int32(int32(utf8.RuneCountInString(value.Str(v)))), nil
}

// indexOfBytes and indexOfCP differ only in what a position is.
func indexOfBytes(args []Value) (Value, error) {
	return indexOf("$indexOfBytes", 40091, args, func(s string) int { return len(s) }, func(s string, n int) int { return n })
}

func indexOfCP(args []Value) (Value, error) {
	return indexOf("$indexOfCP", 40093, args, utf8.RuneCountInString, func(s string, n int) int {
		for i := range s {
			if n == 0 {
				return i
			}
			n--
		}
		return len(s)
	})
}

// indexOf finds args[1] in args[0]. length counts positions in a text, offset is
// where the n-th of them begins.
func indexOf(name string, code int32, args []Value, length func(string) int, offset func(string, int) int) (Value, error) {
	if value.IsNullish(args[0]) {
		return value.Null, nil
	}
	if !value.IsString(args[0]) {
		return value.Missing, value.Errorf(code, "%s requires a string as the first argument, found: %s", name, value.TypeName(args[0]))
	}
	if !value.IsString(args[1]) {
		return value.Missing, value.Errorf(code+1, "%s requires a string as the second argument, found: %s", name, value.TypeName(args[1]))
	}
	s, sub := value.Str(args[0]), value.Str(args[1])
	from, to, err := searchRange(name, args, int64(length(s)))
	if err != nil {
		return value.Missing, err
	}
	if from > to {
		return value.Int32(-1), nil
	}
	lo, hi := offset(s, int(from)), offset(s, int(to))
	i := strings.Index(s[lo:hi], sub)
	if i < 0 {
		return value.Int32(-1), nil
	}
	return value.Int32(int32(length(s[:lo+i]))), nil
}

// searchRange reads the optional start and end of a search.
func searchRange(name string, args []Value, size int64) (from, to int64, err error) {
	to = size
	for i, p := range []*int64{&from, &to} {
		if len(args) <= 2+i {
			continue
		}
		n, ok := value.Integer(args[2+i])
		if !ok {
			return 0, 0, value.Errorf(40096, "%s requires an integral index, found a value of type: %s", name, value.TypeName(args[2+i]))
		}
		if n < 0 {
			return 0, 0, value.Errorf(40097, "%s requires a nonnegative index, found: %d", name, n)
		}
		*p = n
	}
	return from, min(to, size), nil
}

func trimmer(left, right bool) func(namedArgs) (Value, error) {
	return func(a namedArgs) (Value, error) {
		input := a["input"]
		switch {
		case value.IsNullish(input):
			return value.Null, nil
		case !value.IsString(input):
			return value.Missing, value.Errorf(50699, "$trim requires its input to be a string, got %s (of type %s) instead.", value.Show(input), value.TypeName(input))
		}
		cut := "\x00\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
		if a.has("chars") {
			chars := a["chars"]
			switch {
			case value.IsNullish(chars):
				return value.Null, nil
			case !value.IsString(chars):
				return value.Missing, value.Errorf(50700, "$trim requires 'chars' to be a string, got %s (of type %s) instead.", value.Show(chars), value.TypeName(chars))
			}
			cut = value.Str(chars)
		}
		s := value.Str(input)
		if left {
			s = strings.TrimLeft(s, cut)
		}
		if right {
			s = strings.TrimRight(s, cut)
		}
		return value.String(s), nil
	}
}

func replacer(n int) func(namedArgs) (Value, error) {
	return func(a namedArgs) (Value, error) {
		parts := make([]string, 3)
		null := false
		for i, k := range []string{"input", "find", "replacement"} {
			switch v := a[k]; {
			case value.IsNullish(v):
				null = true
			case !value.IsString(v):
				return value.Missing, value.Errorf(51746-int32(i), "$replaceOne and $replaceAll require that '%s' be a string, found: %s", k, value.Show(v))
			default:
				parts[i] = value.Str(v)
			}
		}
		if null {
			return value.Null, nil
		}
		if err := checkSize(len(parts[0]) + (strings.Count(parts[0], parts[1])+1)*len(parts[2])); n < 0 && err != nil {
			return value.Missing, err
		}
		return value.String(strings.Replace(parts[0], parts[1], parts[2], n)), nil
	}
}
