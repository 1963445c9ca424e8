package expr

import "github.com/assaylab/assay/replset/query/value"

// set is the distinct elements of an array, in order of first appearance.
type set struct {
	by    *value.Collation
	keys  map[string]bool
	items []Value
}

func (s *set) add(v Value) {
	k := string(s.by.KeyOf(v))
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	if !s.keys[k] {
		s.keys[k] = true
		s.items = append(s.items, v)
	}
}

func (s *set) has(v Value) bool { return s.keys[string(s.by.KeyOf(v))] }

func setOf(array Value) *set {
	s := &set{}
	for v := range value.Elements(array.Data) {
		s.add(v)
	}
	return s
}

// sorted is the set in order, which makes the result one of its elements alone.
func (s *set) sorted() Value {
	(&Order{whole: 1}).Sort(s.items)
	return value.ArrayOf(s.items)
}

func needArrays(name string, code int32, args []Value) error {
	for _, a := range args {
		if !value.IsArray(a) {
			return value.Errorf(code, "All operands of %s must be arrays. One argument is of type: %s", name, value.TypeName(a))
		}
	}
	return nil
}

func setEquals(args []Value) (Value, error) {
	if err := needArrays("$setEquals", 17044, args); err != nil {
		return value.Missing, err
	}
	a := setOf(args[0])
	for _, other := range args[1:] {
		b := setOf(other)
		if len(a.items) != len(b.items) || !subset(a, b) {
			return value.Bool(false), nil
		}
	}
	return value.Bool(true), nil
}

func subset(a, b *set) bool {
	for _, v := range a.items {
		if !b.has(v) {
			return false
		}
	}
	return true
}

func setIntersection(args []Value) (Value, error) {
	if anyNullish(args) {
		return value.Null, nil
	}
	if err := needArrays("$setIntersection", 17047, args); err != nil || len(args) == 0 {
		return value.ArrayOf(nil), err
	}
	out := setOf(args[0])
	for _, other := range args[1:] {
		b, kept := setOf(other), &set{}
		for _, v := range out.items {
			if b.has(v) {
				kept.add(v)
			}
		}
		out = kept
	}
	return out.sorted(), nil
}

func setUnion(args []Value) (Value, error) {
	if anyNullish(args) {
		return value.Null, nil
	}
	if err := needArrays("$setUnion", 17043, args); err != nil {
		return value.Missing, err
	}
	out := &set{}
	for _, a := range args {
		for v := range value.Elements(a.Data) {
			out.add(v)
		}
	}
	return out.sorted(), nil
}

func setDifference(a, b Value) (Value, error) {
	if value.IsNullish(a) || value.IsNullish(b) {
		return value.Null, nil
	}
	if err := needArrays("$setDifference", 17048, []Value{a, b}); err != nil {
		return value.Missing, err
	}
	other, out := setOf(b), &set{}
	for v := range value.Elements(a.Data) {
		if !other.has(v) {
			out.add(v)
		}
	}
	return value.ArrayOf(out.items), nil
}

func setIsSubset(a, b Value) (Value, error) {
	if err := needArrays("$setIsSubset", 17046, []Value{a, b}); err != nil {
		return value.Missing, err
	}
	return value.Bool(subset(setOf(a), setOf(b))), nil
}

func allElementsTrue(v Value) (Value, error) {
	if !value.IsArray(v) {
		return value.Missing, value.Errorf(17040, "$allElementsTrue's argument must be an array, but is %s", value.TypeName(v))
	}
	for e := range value.Elements(v.Data) {
		if !value.Truth(e) {
			return value.Bool(false), nil
		}
	}
	return value.Bool(true), nil
}

func anyElementTrue(v Value) (Value, error) {
	if !value.IsArray(v) {
		return value.Missing, value.Errorf(17041, "$anyElementTrue's argument must be an array, but is %s", value.TypeName(v))
	}
	for e := range value.Elements(v.Data) {
		if value.Truth(e) {
			return value.Bool(true), nil
		}
	}
	return value.Bool(false), nil
}
