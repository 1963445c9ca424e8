package expr

import (
	"strings"

	"github.com/assaylab/assay/replset/query/value"
)

func mergeObjects(args []Value) (Value, error) {
	if len(args) == 1 && value.IsArray(args[0]) {
		args = value.List(args[0].Data)
	}
	out := value.Doc((&value.Builder{}).Document())
	for _, a := range args {
		switch {
		case value.IsNullish(a):
		case !value.IsDocument(a):
			return value.Missing, value.Errorf(40400, "$mergeObjects requires object inputs, but input %s is of type %s", value.Show(a), value.TypeName(a))
		default:
			out = Merge(out, a)
		}
	}
	return out, nil
}

// Merge is document a with the fields of b: what both have keeps its place in a and
// takes its value from b.
func Merge(a, b Value) Value {
	theirs := map[string]Value{}
	var order []string
	for k, v := range value.Fields(b.Data) {
		if _, ok := theirs[k]; !ok {
			order = append(order, k)
		}
		theirs[k] = v
	}
	var out value.Builder
	for k, v := range value.Fields(a.Data) {
		if w, ok := theirs[k]; ok {
			v = w
			delete(theirs, k)
		}
		out.Add(k, v)
	}
	for _, k := range order {
		if v, ok := theirs[k]; ok {
			out.Add(k, v)
		}
	}
	return out.Value()
}

// setField is document a with one field set, in place or at the end; a missing
// value removes it.
func setField(a Value, name string, v Value) Value {
	var out value.Builder
	found := false
	for k, old := range value.Fields(a.Data) {
		if k == name {
			found = true
			old = v
		}
		out.Add(k, old)
	}
	if !found {
		out.Add(name, v)
	}
	return out.Value()
}

func parseGetField(name string, arg Value, vars *Vars) (*Expr, error) {
	field, input := arg, value.String("$$CURRENT")
	if k, _, ok := value.First(arg.Data); value.IsDocument(arg) && ok && !strings.HasPrefix(k, "$") {
		raw, err := fields(name, arg, 3041701, []string{"field", "input"}, nil)
		if err != nil {
			return nil, err
		}
		field, input = raw["field"], raw["input"]
	}
	fieldOf, err := parseFieldName(name, field, vars)
	if err != nil {
		return nil, err
	}
	from, err := Parse(input, vars)
	if err != nil {
		return nil, err
	}
	return &Expr{eval: func(e *env) (Value, error) {
		key, err := fieldOf(e)
		if err != nil {
			return value.Missing, err
		}
		v, err := from.eval(e)
		switch {
		case err != nil:
			return value.Missing, err
		case value.IsNullish(v):
			return v, nil
		case !value.IsDocument(v):
			return value.Missing, nil
		}
		return value.Lookup(v.Data, key), nil
	}}, nil
}

// parseFieldName: the name of a field is a string, bare unless it begins with '$'.
func parseFieldName(op string, v Value, vars *Vars) (func(*env) (string, error), error) {
	x, err := Parse(v, vars)
	if err != nil {
		return nil, err
	}
	return func(e *env) (string, error) {
		got, err := x.eval(e)
		if err != nil {
			return "", err
		}
		if !value.IsString(got) {
			return "", value.Errorf(3041704, "%s requires 'field' to evaluate to type String, but got %s", op, value.TypeName(got))
		}
		return value.Str(got), nil
	}, nil
}

func parseSetField(name string, arg Value, vars *Vars) (*Expr, error) {
	required := []string{"field", "input", "value"}
	if name == "$unsetField" {
		required = required[:2]
	}
	raw, err := fields(name, arg, 4161101, required, nil)
	if err != nil {
		return nil, err
	}
	field, err := Parse(raw["field"], vars)
	if err != nil {
		return nil, err
	}
	key, ok := field.Constant()
	if !ok || !value.IsString(key) {
		return nil, value.Errorf(4161106, "%s requires 'field' to evaluate to a constant, but got a non-constant argument", name)
	}
	input, err := Parse(raw["input"], vars)
	if err != nil {
		return nil, err
	}
	set := literal(value.Missing)
	if name == "$setField" {
		if set, err = Parse(raw["value"], vars); err != nil {
			return nil, err
		}
	}
	return &Expr{eval: func(e *env) (Value, error) {
		doc, err := input.eval(e)
		if err != nil {
			return value.Missing, err
		}
		v, err := set.eval(e)
		switch {
		case err != nil:
			return value.Missing, err
		case value.IsNullish(doc):
			return value.Null, nil
		case !value.IsDocument(doc):
			return value.Missing, value.Errorf(4161105, "%s requires 'input' to evaluate to type Object", name)
		}
		return setField(doc, value.Str(key), v), nil
	}}, nil
}

func objectToArray(v Value) (Value, error) {
	switch {
	case value.IsNullish(v):
		return value.Null, nil
	case !value.IsDocument(v):
		return value.Missing, value.Errorf(40390, "$objectToArray requires a document input, found: %s", value.TypeName(v))
	}
	var out value.Builder
	for k, e := range value.Fields(v.Data) {
		var pair value.Builder
		pair.Add("k", value.String(k))
		pair.Add("v", e)
		out.Push(pair.Value())
	}
	return out.Array(), nil
}

func arrayToObject(v Value) (Value, error) {
	switch {
	case value.IsNullish(v):
		return value.Null, nil
	case !value.IsArray(v):
		return value.Missing, value.Errorf(40386, "$arrayToObject requires an array input, found: %s", value.TypeName(v))
	}
	out := value.Doc((&value.Builder{}).Document())
	var form bool // of the first element: a document, else a pair
	i := 0
	for e := range value.Elements(v.Data) {
		if i == 0 {
			form = value.IsDocument(e)
		}
		k, val, err := pairOf(e, form)
		if err != nil {
			return value.Missing, err
		}
		out = setField(out, k, val)
		i++
	}
	return out, nil
}

func pairOf(e Value, asDocument bool) (key string, val Value, err error) {
	var k Value
	switch {
	case asDocument && value.IsDocument(e):
		if value.Len(e.Data) != 2 {
			return "", val, value.Errorf(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%d", value.Len(e.Data))
		}
		k, val = value.Lookup(e.Data, "k"), value.Lookup(e.Data, "v")
		if value.IsMissing(k) || value.IsMissing(val) {
			return "", val, value.Errorf(40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: %s", value.Show(e))
		}
	case !asDocument && value.IsArray(e):
		if value.Len(e.Data) != 2 {
			return "", val, value.Errorf(40397, "$arrayToObject requires an array of size 2 arrays,found array of size: %d", value.Len(e.Data))
		}
		k, val = value.At(e.Data, 0), value.At(e.Data, 1)
	default:
		return "", val, value.Errorf(40398, "Unrecognised input type format for $arrayToObject: %s", value.TypeName(e))
	}
	if !value.IsString(k) {
		return "", val, value.Errorf(40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: %s", value.TypeName(k))
	}
	if strings.IndexByte(value.Str(k), 0) >= 0 {
		return "", val, value.Errorf(4940400, "Key field cannot contain an embedded null byte")
	}
	return value.Str(k), val, nil
}

func typeOf(v Value) (Value, error) { return value.String(value.TypeName(v)), nil }

func isNumber(v Value) (Value, error) { return value.Bool(value.IsNumber(v)), nil }

func bsonSize(v Value) (Value, error) {
	switch {
	case value.IsNullish(v):
		return value.Null, nil
	case !value.IsDocument(v):
		return value.Missing, value.Errorf(31393, "$bsonSize requires a document input, found: %s", value.TypeName(v))
	}
	return value.Int32(int32(len(v.Data))), nil
}

func binarySize(v Value) (Value, error) {
	if value.IsNullish(v) {
		return value.Null, nil
	}
	if _, data, ok := v.BinaryOK(); ok {
		return value.Int32(int32(len(data))), nil
	}
	if !value.IsString(v) {
		return value.Missing, value.Errorf(51276, "$binarySize requires a string or BinData argument, found: %s", value.TypeName(v))
	}
	return value.Int32(int32(len(value.Str(v)))), nil
}

func parseRand(_ string, arg Value, _ *Vars) (*Expr, error) {
	if value.Len(arg.Data) != 0 || !value.IsDocument(arg) && !value.IsArray(arg) {
		return nil, value.Errorf(3040501, "$rand does not currently accept arguments")
	}
	return &Expr{eval: func(e *env) (Value, error) {
		f, err := random(e)
		return value.Double(f), err
	}}, nil
}

func random(e *env) (float64, error) {
	draw := e.vars.System().Rand
	if draw == nil {
		return 0, value.Errorf(value.NotImplemented, "there is no random source here")
	}
	return draw(), nil
}

func parseSampleRate(_ string, arg Value, _ *Vars) (*Expr, error) {
	rate := value.NumberOf(arg)
	if !value.IsNumber(arg) || rate.Float() < 0 || rate.Float() > 1 {
		return nil, value.Errorf(value.BadValue, "argument to $sampleRate must be a number in [0, 1]")
	}
	return &Expr{eval: func(e *env) (Value, error) {
		f, err := random(e)
		return value.Bool(f < rate.Float()), err
	}}, nil
}
