package expr

import (
	"math"
	"sort"

	"github.com/assaylab/assay/replset/query/value"
)

// The operators that bind variables for a part of themselves.

func (e *env) with(name string, v Value) *env {
	return &env{root: e.root, vars: e.vars.With(name, v)}
}

func parseLet(name string, arg Value, vars *Vars) (*Expr, error) {
	raw, err := fields(name, arg, 16875, []string{"vars", "in"}, nil)
	if err != nil {
		return nil, err
	}
	if !value.IsDocument(raw["vars"]) {
		return nil, value.Errorf(10065, "invalid parameter: expected an object (vars)")
	}
	type binding struct {
		name string
		x    *Expr
	}
	var bindings []binding
	inner := vars
	for k, v := range value.Fields(raw["vars"].Data) {
		if err := checkLetName(k); err != nil {
			return nil, err
		}
		x, err := Parse(v, vars)
		if err != nil {
			return nil, err
		}
		bindings = append(bindings, binding{k, x})
		inner = inner.With(k, value.Missing)
	}
	in, err := Parse(raw["in"], inner)
	if err != nil {
		return nil, err
	}
	return &Expr{eval: func(e *env) (Value, error) {
		bound := e
		for _, b := range bindings { // all see the outer variables only
			v, err := b.x.eval(e)
			if err != nil {
				return value.Missing, err
			}
			bound = bound.with(b.name, v)
		}
		return in.eval(bound)
	}}, nil
}

func checkLetName(name string) error {
	if name == "CURRENT" {
		return nil
	}
	return CheckName(name)
}

// loop is what $map, $filter and $reduce share: an input array and a variable.
type loop struct {
	input *Expr
	as    string
	body  *Expr
}

func parseLoop(raw map[string]Value, body string, vars *Vars) (loop, error) {
	input, err := Parse(raw["input"], vars)
	if err != nil {
		return loop{}, err
	}
	as := "this"
	if v, ok := raw["as"]; ok {
		as = value.Str(v)
		if err := CheckName(as); err != nil {
			return loop{}, err
		}
	}
	x, err := Parse(raw[body], vars.With(as, value.Missing))
	return loop{input, as, x}, err
}

// items are the elements to go through; null is true if the input is null.
func (l loop) items(e *env, name string, code int32) (items []Value, null bool, err error) {
	v, err := l.input.eval(e)
	switch {
	case err != nil:
		return nil, false, err
	case value.IsNullish(v):
		return nil, true, nil
	case !value.IsArray(v):
		return nil, false, value.Errorf(code, "input to %s must be an array not %s", name, value.TypeName(v))
	}
	return value.List(v.Data), false, nil
}

func parseMap(name string, arg Value, vars *Vars) (*Expr, error) {
	raw, err := fields(name, arg, 16879, []string{"input", "in"}, []string{"as"})
	if err != nil {
		return nil, err
	}
	l, err := parseLoop(raw, "in", vars)
	if err != nil {
		return nil, err
	}
	return &Expr{eval: func(e *env) (Value, error) {
		items, null, err := l.items(e, name, 16883)
		if err != nil || null {
			return value.Null, err
		}
		var b value.Builder
		for _, item := range items {
			v, err := l.body.eval(e.with(l.as, item))
			if err == nil {
				err = checkSize(b.Size() + len(v.Data))
			}
			if err != nil {
				return value.Missing, err
			}
			b.Push(v)
		}
		return b.Array(), nil
	}}, nil
}

func parseFilter(name string, arg Value, vars *Vars) (*Expr, error) {
	raw, err := fields(name, arg, 28647, []string{"input", "cond"}, []string{"as", "limit"})
	if err != nil {
		return nil, err
	}
	l, err := parseLoop(raw, "cond", vars)
	if err != nil {
		return nil, err
	}
	limit := literal(value.Null)
	if v, ok := raw["limit"]; ok {
		if limit, err = Parse(v, vars); err != nil {
			return nil, err
		}
	}
	return &Expr{eval: func(e *env) (Value, error) {
		items, null, err := l.items(e, name, 28651)
		if err != nil || null {
			return value.Null, err
		}
		most, err := filterLimit(limit, e)
		if err != nil {
			return value.Missing, err
		}
		var b value.Builder
		for _, item := range items {
			v, err := l.body.eval(e.with(l.as, item))
			if err != nil {
				return value.Missing, err
			}
			if value.Truth(v) {
				b.Push(item)
			}
			if int64(b.Len()) >= most {
				break
			}
		}
		return b.Array(), nil
	}}, nil
}

func filterLimit(limit *Expr, e *env) (int64, error) {
	v, err := limit.eval(e)
	if err != nil || value.IsNullish(v) {
		return math.MaxInt64, err
	}
	n, ok := value.Integer(v)
	if !ok || n < 1 {
		return 0, value.Errorf(327391, "$filter: limit must be represented as a 32-bit integral value greater than 0: %s", value.Show(v))
	}
	return n, nil
}

func parseReduce(name string, arg Value, vars *Vars) (*Expr, error) {
	raw, err := fields(name, arg, 40076, []string{"input", "initialValue", "in"}, nil)
	if err != nil {
		return nil, err
	}
	initial, err := Parse(raw["initialValue"], vars)
	if err != nil {
		return nil, err
	}
	l, err := parseLoop(raw, "in", vars.With("value", value.Missing))
	if err != nil {
		return nil, err
	}
	return &Expr{eval: func(e *env) (Value, error) {
		items, null, err := l.items(e, name, 40080)
		if err != nil || null {
			return value.Null, err
		}
		acc, err := initial.eval(e)
		for _, item := range items {
			if err != nil {
				return value.Missing, err
			}
			acc, err = l.body.eval(e.with("value", acc).with(l.as, item))
		}
		return acc, err
	}}, nil
}

// parseSortArray parses {$sortArray: {input, sortBy}}.
func parseSortArray(name string, arg Value, vars *Vars) (*Expr, error) {
	raw, err := fields(name, arg, 2942500, []string{"input", "sortBy"}, nil)
	if err != nil {
		return nil, err
	}
	input, err := Parse(raw["input"], vars)
	if err != nil {
		return nil, err
	}
	order, err := ParseOrder(raw["sortBy"], vars.Collation())
	if err != nil {
		return nil, err
	}
	return &Expr{eval: func(e *env) (Value, error) {
		v, err := input.eval(e)
		switch {
		case err != nil:
			return value.Missing, err
		case value.IsNullish(v):
			return value.Null, nil
		case !value.IsArray(v):
			return value.Missing, value.Errorf(2942504, "The input argument to $sortArray must be an array, but was of type: %s", value.TypeName(v))
		}
		items := value.List(v.Data)
		order.Sort(items)
		return value.ArrayOf(items), nil
	}}, nil
}

// Order sorts the elements of an array: by themselves, or by fields of theirs.
type Order struct {
	whole int // not 0: by the whole element, in this direction
	by    *value.Collation
	parts []orderPart
}

type orderPart struct {
	path []string
	desc bool
}

// ParseOrder parses 1, -1 or {field: 1, …}, with strings in the order by. Error: 2.
func ParseOrder(v Value, by *value.Collation) (*Order, error) {
	if !value.IsDocument(v) {
		dir, err := direction(v)
		return &Order{whole: dir, by: by}, err
	}
	o := &Order{by: by}
	for k, d := range value.Fields(v.Data) {
		if k == "" {
			return nil, value.Errorf(value.BadValue, "The sort pattern contains an empty field name")
		}
		if err := checkFieldPath(k); err != nil {
			return nil, value.Errorf(value.BadValue, "The sort pattern '%s' is not a valid path", k)
		}
		dir, err := direction(d)
		if err != nil {
			return nil, err
		}
		o.parts = append(o.parts, orderPart{splitPath(k), dir < 0})
	}
	if len(o.parts) == 0 {
		return nil, value.Errorf(value.BadValue, "The sort pattern is empty when it should be a set of fields.")
	}
	return o, nil
}

func direction(v Value) (int, error) {
	n, ok := value.Integer(v)
	if !ok || n != 1 && n != -1 {
		return 0, value.Errorf(value.BadValue, "The $sort element value must be either 1 or -1")
	}
	return int(n), nil
}

// Sort sorts in place; equal elements keep their order.
func (o *Order) Sort(items []Value) {
	sort.SliceStable(items, func(i, j int) bool { return o.compare(items[i], items[j]) < 0 })
}

func (o *Order) compare(a, b Value) int {
	if o.whole != 0 {
		return o.whole * o.by.Compare(a, b)
	}
	for _, p := range o.parts {
		c := o.by.Compare(orNull(Walk(a, p.path)), orNull(Walk(b, p.path)))
		if p.desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func orNull(v Value) Value {
	if value.IsMissing(v) {
		return value.Null
	}
	return v
}
