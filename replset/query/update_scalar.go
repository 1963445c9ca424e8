package query

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

// The operators on a field as a whole.

func setTo(v Value) change {
	v = value.Clone(v)
	return func(*applying, string, Value) (Value, error) { return v, nil }
}

func parseSet(_ *Update, _ string, arg Value) (change, error) { return setTo(arg), nil }

func parseUnset(*Update, string, Value) (change, error) { return setTo(value.Missing), nil }

func parseInc(_ *Update, path string, arg Value) (change, error) {
	return arithmetic("$inc", "increment", path, arg, value.Add, func(n value.Number) value.Number { return n })
}

func parseMul(_ *Update, path string, arg Value) (change, error) {
	return arithmetic("$mul", "multiply", path, arg, value.Mul, func(n value.Number) value.Number { return value.Sub(n, n) })
}

// arithmetic is $inc and $mul; fresh is what a field that is not there becomes.
func arithmetic(op, verb, path string, arg Value, f func(a, b value.Number) (value.Number, bool), fresh func(value.Number) value.Number) (change, error) {
	if !value.IsNumber(arg) {
		return nil, value.Errorf(value.TypeMismatch, "Cannot %s with non-numeric argument: {%s: %s}", verb, path, value.Show(arg))
	}
	operand := value.NumberOf(arg)
	return func(r *applying, path string, old Value) (Value, error) {
		if value.IsMissing(old) {
			return fresh(operand).Value(), nil
		}
		if !value.IsNumber(old) {
			return old, value.Errorf(value.TypeMismatch, "Cannot apply %s to a value of non-numeric type. {_id: %s} has the field '%s' of non-numeric type %s",
				op, value.Show(r.id), lastPart(path), value.TypeName(old))
		}
		out, exact := f(value.NumberOf(old), operand)
		if !exact {
			return old, badValue("Failed to apply %s operations to current value (%s) for document {_id: %s}", op, value.Show(old), value.Show(r.id))
		}
		return out.Value(), nil
	}, nil
}

func parseMin(u *Update, _ string, arg Value) (change, error) { return bounded(arg, 1, u.vars), nil }
func parseMax(u *Update, _ string, arg Value) (change, error) { return bounded(arg, -1, u.vars), nil }

func bounded(arg Value, sign int, vars *Vars) change {
	by := vars.Collation()
	arg = value.Clone(arg)
	return func(_ *applying, _ string, old Value) (Value, error) {
		if value.IsMissing(old) || sign*by.Compare(arg, old) < 0 {
			return arg, nil
		}
		return old, nil
	}
}

func parseCurrentDate(_ *Update, path string, arg Value) (change, error) {
	kind := "date"
	switch {
	case arg.Type == typeBool:
	case value.IsDocument(arg):
		k, v, _ := value.First(arg.Data)
		kind = value.Str(v)
		if k != "$type" || value.Len(arg.Data) != 1 || kind != "date" && kind != "timestamp" {
			return nil, badValue("The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}")
		}
	default:
		return nil, badValue("%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: 'timestamp/date'}).", value.TypeName(arg))
	}
	return func(r *applying, _ string, _ Value) (Value, error) {
		now := r.u.vars.System().Now
		if kind == "timestamp" {
			return r.in.timestamp(now), nil
		}
		return value.DateOf(now), nil
	}, nil
}

// bitOp is one operand of $bit.
type bitOp struct {
	f    func(a, b int64) int64
	n    int64
	long bool
}

func bitFunction(name string) func(a, b int64) int64 {
	switch name {
	case "and":
		return func(a, b int64) int64 { return a & b }
	case "or":
		return func(a, b int64) int64 { return a | b }
	case "xor":
		return func(a, b int64) int64 { return a ^ b }
	}
	return nil
}

func isInteger(v Value) bool { return v.Type == bsoncore.TypeInt32 || v.Type == bsoncore.TypeInt64 }

func parseBit(_ *Update, path string, arg Value) (change, error) {
	if !value.IsDocument(arg) || value.Len(arg.Data) == 0 {
		return nil, badValue("The $bit modifier is not compatible with a %s. You must pass in an embedded document: {$bit: {field: {and/or/xor: #}}", value.TypeName(arg))
	}
	var ops []bitOp
	for k, v := range value.Fields(arg.Data) {
		f := bitFunction(k)
		if f == nil {
			return nil, badValue("The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator: {%s: %s}", k, path, value.Show(arg))
		}
		if !isInteger(v) {
			return nil, badValue("The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%s: %s}", value.TypeName(v), path, value.Show(arg))
		}
		n, _ := value.Integer(v)
		ops = append(ops, bitOp{f, n, v.Type == bsoncore.TypeInt64})
	}
	return func(r *applying, path string, old Value) (Value, error) { return applyBits(r, path, old, ops) }, nil
}

func applyBits(r *applying, path string, old Value, ops []bitOp) (Value, error) {
	n, long := int64(0), false
	if !value.IsMissing(old) {
		if !isInteger(old) {
			return old, badValue("Cannot apply $bit to a value of non-integral type. {_id: %s} has the field %s of non-integer type %s", value.Show(r.id), lastPart(path), value.TypeName(old))
		}
		n, _ = value.Integer(old)
		long = old.Type == bsoncore.TypeInt64
	}
	for _, op := range ops {
		n = op.f(n, op.n)
		long = long || op.long
	}
	if long {
		return value.Int64(n), nil
	}
	return value.Int32(int32(n)), nil
}
