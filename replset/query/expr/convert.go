package expr

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

func failed(format string, args ...any) error {
	return value.Errorf(value.ConversionFailure, format+" with no onError value", args...)
}

func unsupportedConversion(v Value, to bsoncore.Type) error {
	return failed("Unsupported conversion from %s to %s in $convert", value.TypeName(v), value.TypeName(Value{Type: to}))
}

// converter is $toInt and its like: null stays null.
func converter(alias string) operator {
	to, _ := value.TypeByAlias(alias)
	return one(func(v Value) (Value, error) {
		if value.IsNullish(v) {
			return value.Null, nil
		}
		return convert(v, to)
	})
}

func parseConvert(name string, arg Value, vars *Vars) (*Expr, error) {
	raw, err := fields(name, arg, value.FailedToParse, []string{"input", "to"}, []string{"onError", "onNull"})
	if err != nil {
		return nil, err
	}
	parts := map[string]*Expr{"onNull": literal(value.Null)}
	for k, v := range raw {
		if parts[k], err = Parse(v, vars); err != nil {
			return nil, err
		}
	}
	return &Expr{eval: func(e *env) (Value, error) {
		v, err := parts["input"].eval(e)
		if err != nil {
			return value.Missing, err
		}
		to, err := parts["to"].eval(e)
		if err != nil {
			return value.Missing, err
		}
		if value.IsNullish(v) {
			return parts["onNull"].eval(e)
		}
		if value.IsNullish(to) {
			return value.Null, nil
		}
		typ, err := convertTarget(to)
		if err != nil {
			return value.Missing, err
		}
		got, err := convert(v, typ)
		if err != nil && parts["onError"] != nil {
			return parts["onError"].eval(e)
		}
		return got, err
	}}, nil
}

func convertTarget(to Value) (bsoncore.Type, error) {
	if value.IsString(to) {
		if t, ok := value.TypeByAlias(value.Str(to)); ok {
			return t, nil
		}
		return 0, value.Errorf(value.BadValue, "Unknown type name: %s", value.Str(to))
	}
	if n, ok := value.Integer(to); ok {
		if t, ok := value.TypeByCode(n); ok {
			return t, nil
		}
		return 0, value.Errorf(value.BadValue, "Invalid numeric type code: %d", n)
	}
	return 0, value.Errorf(value.FailedToParse, "$convert's 'to' argument must be a string or number, but is %s", value.TypeName(to))
}

func convert(v Value, to bsoncore.Type) (Value, error) {
	if v.Type == to {
		return v, nil
	}
	switch to {
	case bsoncore.TypeBoolean:
		return value.Bool(value.Truth(v)), nil
	case bsoncore.TypeString:
		return toString(v)
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		return toIntegral(v, to)
	case bsoncore.TypeDouble:
		return toDouble(v)
	case bsoncore.TypeDecimal128:
		return toDecimal(v)
	case bsoncore.TypeDateTime:
		return toDate(v)
	case bsoncore.TypeObjectID:
		return toObjectID(v)
	}
	return value.Missing, unsupportedConversion(v, to)
}

func toIntegral(v Value, to bsoncore.Type) (Value, error) {
	var n int64
	switch {
	case value.IsNumber(v):
		num := value.NumberOf(v)
		if num.IsNaN() || num.IsInf() {
			return value.Missing, failed("Attempt to convert NaN or infinity value to integer type in $convert")
		}
		i, ok := num.Trunc64()
		if !ok {
			return value.Missing, failed("Conversion would overflow target type in $convert: %s", numberText(v))
		}
		n = i
	case value.IsString(v):
		i, err := strconv.ParseInt(strings.TrimPrefix(value.Str(v), "+"), 10, 64)
		if err != nil || value.Str(v) == "" {
			return value.Missing, failed("Failed to parse number '%s' in $convert", value.Str(v))
		}
		n = i
	case v.Type == bsoncore.TypeBoolean:
		if value.Truth(v) {
			n = 1
		}
	case isDate(v) && to == bsoncore.TypeInt64:
		n = value.Millis(v)
	default:
		return value.Missing, unsupportedConversion(v, to)
	}
	if to == bsoncore.TypeInt64 {
		return value.Int64(n), nil
	}
	if n != int64(int32(n)) {
		return value.Missing, failed("Conversion would overflow target type in $convert: %d", n)
	}
	return value.Int32(int32(n)), nil
}

func toDouble(v Value) (Value, error) {
	switch {
	case value.IsNumber(v):
		n := value.NumberOf(v)
		f := n.Float()
		if math.IsInf(f, 0) && !n.IsInf() {
			return value.Missing, failed("Conversion would overflow target type in $convert: %s", numberText(v))
		}
		return value.Double(f), nil
	case value.IsString(v):
		f, err := strconv.ParseFloat(value.Str(v), 64)
		if err != nil || strings.ContainsAny(value.Str(v), "xX_") {
			return value.Missing, failed("Failed to parse number '%s' in $convert", value.Str(v))
		}
		return value.Double(f), nil
	case v.Type == bsoncore.TypeBoolean:
		if value.Truth(v) {
			return value.Double(1), nil
		}
		return value.Double(0), nil
	case isDate(v):
		return value.Double(float64(value.Millis(v))), nil
	}
	return value.Missing, unsupportedConversion(v, bsoncore.TypeDouble)
}

func toDecimal(v Value) (Value, error) {
	switch {
	case value.IsNumber(v):
		return value.ToDecimal(value.NumberOf(v)).Value(), nil
	case value.IsString(v):
		d, err := bson.ParseDecimal128(value.Str(v))
		if err != nil {
			return value.Missing, failed("Failed to parse number '%s' in $convert", value.Str(v))
		}
		return value.Decimal(d), nil
	case v.Type == bsoncore.TypeBoolean || isDate(v):
		i, err := toIntegral(v, bsoncore.TypeInt64)
		if err != nil {
			return value.Missing, err
		}
		return value.ToDecimal(value.NumberOf(i)).Value(), nil
	}
	return value.Missing, unsupportedConversion(v, bsoncore.TypeDecimal128)
}

func toDate(v Value) (Value, error) {
	switch v.Type {
	case bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		ms, ok := value.NumberOf(v).Trunc64()
		if !ok {
			return value.Missing, failed("Conversion would overflow target type in $convert: %s", numberText(v))
		}
		return value.Date(ms), nil
	case bsoncore.TypeObjectID:
		return value.DateOf(bson.ObjectID(v.ObjectID()).Timestamp()), nil
	case bsoncore.TypeTimestamp:
		t, _ := v.Timestamp()
		return value.Date(int64(t) * 1000), nil
	case bsoncore.TypeString:
		return parseDate(value.Str(v))
	}
	return value.Missing, unsupportedConversion(v, bsoncore.TypeDateTime)
}

// dateLayouts are the ISO 8601 forms that a string may have.
var dateLayouts = []string{
	"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02",
}

func parseDate(s string) (Value, error) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return value.DateOf(t), nil
		}
	}
	return value.Missing, failed("Error parsing date string '%s'", s)
}

func toObjectID(v Value) (Value, error) {
	if !value.IsString(v) {
		return value.Missing, unsupportedConversion(v, bsoncore.TypeObjectID)
	}
	id, err := bson.ObjectIDFromHex(value.Str(v))
	if err != nil {
		return value.Missing, failed("Failed to parse objectId '%s' in $convert: Invalid string length for parsing to OID, expected 24 but found %d", value.Str(v), len(value.Str(v)))
	}
	return value.ObjectID(id), nil
}

func toString(v Value) (Value, error) {
	switch {
	case value.IsNumber(v):
		return value.String(numberText(v)), nil
	case isDate(v):
		return value.String(isoDate(value.Time(v))), nil
	case v.Type == bsoncore.TypeSymbol:
		return value.String(value.Str(v)), nil
	case v.Type == bsoncore.TypeBoolean:
		return value.String(strconv.FormatBool(value.Truth(v))), nil
	case v.Type == bsoncore.TypeObjectID:
		return value.String(hex.EncodeToString(v.Data)), nil
	}
	return value.Missing, unsupportedConversion(v, bsoncore.TypeString)
}

// numberText is a number as $toString writes it.
func numberText(v Value) string {
	switch v.Type {
	case bsoncore.TypeDouble:
		f := value.NumberOf(v).Float()
		switch {
		case math.IsNaN(f):
			return "NaN"
		case math.IsInf(f, 1):
			return "Infinity"
		case math.IsInf(f, -1):
			return "-Infinity"
		case f == math.Trunc(f) && math.Abs(f) < 1e15:
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case bsoncore.TypeDecimal128:
		hi, lo := v.Decimal128()
		return bson.NewDecimal128(hi, lo).String()
	}
	i, _ := value.Integer(v)
	return strconv.FormatInt(i, 10)
}

func isoDate(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
