package query

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

// The operators on a field that is an array.

// elementsOf is the content of an array field, which may not be there yet.
func elementsOf(r *applying, path string, old Value) ([]Value, error) {
	if value.IsMissing(old) {
		return nil, nil
	}
	if !value.IsArray(old) {
		return nil, badValue("The field '%s' must be an array but is of type %s in document {_id: %s}", path, value.TypeName(old), value.Show(r.id))
	}
	return value.List(old.Data), nil
}

// pushing is $push with its modifiers.
type pushing struct {
	each     []Value
	position *int64
	slice    *int64
	sort     *expr.Order
}

func parsePush(u *Update, path string, arg Value) (change, error) {
	p := pushing{each: []Value{value.Clone(arg)}}
	if value.IsDocument(arg) && !value.IsMissing(value.Lookup(arg.Data, "$each")) {
		var err error
		if p, err = parseModifiers(arg, u.vars); err != nil {
			return nil, err
		}
	}
	return func(r *applying, path string, old Value) (Value, error) {
		list, err := elementsOf(r, path, old)
		if err != nil {
			return old, err
		}
		return value.ArrayOf(p.apply(list)), nil
	}, nil
}

func parseModifiers(arg Value, vars *Vars) (pushing, error) {
	var p pushing
	for k, v := range value.Fields(arg.Data) {
		var err error
		switch k {
		case "$each":
			p.each, err = parseEach("$push", v)
		case "$position":
			p.position, err = parseOffset("$position", v)
		case "$slice":
			p.slice, err = parseOffset("$slice", v)
		case "$sort":
			p.sort, err = expr.ParseOrder(v, vars.Collation())
		default:
			err = badValue("Unrecognized clause in $push: %s", k)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

func parseEach(op string, v Value) ([]Value, error) {
	if !value.IsArray(v) {
		if op == "$addToSet" {
			return nil, value.Errorf(value.TypeMismatch, "The argument to $each in $addToSet must be an array but it was of type %s", value.TypeName(v))
		}
		return nil, badValue("The argument to $each in %s must be an array but it was of type: %s", op, value.TypeName(v))
	}
	return value.List(value.Clone(v).Data), nil
}

func parseOffset(name string, v Value) (*int64, error) {
	n, ok := value.Integer(v)
	if !ok {
		return nil, badValue("The value for %s must be an integer value but was given type: %s", name, value.TypeName(v))
	}
	return &n, nil
}

// apply inserts, then sorts, then cuts.
func (p pushing) apply(list []Value) []Value {
	at := len(list)
	if p.position != nil {
		n := *p.position
		if n < 0 {
			n = max(0, n+int64(len(list)))
		}
		at = int(min(n, int64(len(list))))
	}
	list = slices.Insert(list, at, p.each...)
	if p.sort != nil {
		p.sort.Sort(list)
	}
	if p.slice == nil {
		return list
	}
	size := int64(len(list))
	if n := *p.slice; n < 0 {
		return list[max(0, size+n):]
	}
	return list[:min(*p.slice, size)]
}

func parseAddToSet(u *Update, _ string, arg Value) (change, error) {
	by := u.vars.Collation()
	each := []Value{value.Clone(arg)}
	if k, v, _ := value.First(arg.Data); value.IsDocument(arg) && k == "$each" {
		if value.Len(arg.Data) > 1 {
			return nil, badValue("Found unexpected fields after $each in $addToSet: %s", value.Show(arg))
		}
		var err error
		if each, err = parseEach("$addToSet", v); err != nil {
			return nil, err
		}
	}
	return func(r *applying, path string, old Value) (Value, error) {
		if !value.IsMissing(old) && !value.IsArray(old) {
			return old, badValue("Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", lastPart(path), value.TypeName(old))
		}
		list, err := elementsOf(r, path, old)
		if err != nil {
			return old, err
		}
		have := keySet(list, by)
		for _, v := range each {
			if k := string(by.KeyOf(v)); !have[k] {
				have[k] = true
				list = append(list, v)
			}
		}
		return value.ArrayOf(list), nil
	}, nil
}

func keySet(list []Value, by *Collation) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, v := range list {
		set[string(by.KeyOf(v))] = true
	}
	return set
}

func parsePop(_ *Update, path string, arg Value) (change, error) {
	n, ok := value.Integer(arg)
	if !ok || n != 1 && n != -1 {
		return nil, value.Errorf(value.FailedToParse, "$pop expects 1 or -1, found: %s", value.Show(arg))
	}
	return func(r *applying, path string, old Value) (Value, error) {
		if !value.IsArray(old) {
			return old, value.Errorf(value.TypeMismatch, "Path '%s' contains an element of non-array type '%s'", path, value.TypeName(old))
		}
		list := value.List(old.Data)
		switch {
		case len(list) == 0:
			return old, nil
		case n < 0:
			return value.ArrayOf(list[1:]), nil
		}
		return value.ArrayOf(list[:len(list)-1]), nil
	}, nil
}

// removing keeps the elements of an array that gone does not hold for.
func removing(op string, gone func(Value) (bool, error)) change {
	return func(_ *applying, _ string, old Value) (Value, error) {
		if !value.IsArray(old) {
			return old, badValue("Cannot apply %s to a non-array value", op)
		}
		var kept []Value
		n := 0
		for e := range value.Elements(old.Data) {
			n++
			drop, err := gone(e)
			if err != nil {
				return old, err
			}
			if !drop {
				kept = append(kept, e)
			}
		}
		if len(kept) == n {
			return old, nil
		}
		return value.ArrayOf(kept), nil
	}
}

func parsePullAll(u *Update, _ string, arg Value) (change, error) {
	if !value.IsArray(arg) {
		return nil, badValue("$pullAll requires an array argument but was given a %s", value.TypeName(arg))
	}
	by := u.vars.Collation()
	gone := keySet(value.List(arg.Data), by)
	return removing("$pullAll", func(e Value) (bool, error) { return gone[string(by.KeyOf(e))], nil }), nil
}

// parsePull: operators are a condition on each element, other documents a filter on
// those elements that are documents, anything else a value.
func parsePull(u *Update, _ string, arg Value) (change, error) {
	switch {
	case isOperators(arg):
		pred, err := (&filterParser{vars: u.vars}).elementPredicate(arg)
		return removing("$pull", func(e Value) (bool, error) { return pred.holds(e), nil }), err
	case value.IsDocument(arg):
		f, err := ParseFilter(arg.Data, u.vars)
		return removing("$pull", func(e Value) (bool, error) {
			if !value.IsDocument(e) {
				return false, nil
			}
			return f.Match(e.Data)
		}), err
	case arg.Type == bsoncore.TypeRegex:
		pred, err := equality(arg, true)
		return removing("$pull", func(e Value) (bool, error) { return pred.holds(e), nil }), err
	}
	arg = value.Clone(arg)
	return removing("$pull", func(e Value) (bool, error) { return u.vars.Collation().Equal(e, arg), nil }), nil
}
