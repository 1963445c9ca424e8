package expr

import (
	"math"
	"sort"

	"github.com/assaylab/assay/replset/query/value"
)

// Accumulator collects the values of a group. Add may keep the value's bytes.
type Accumulator interface {
	Add(v Value) error
	Result() Value
}

// accumulators lists those of one argument. $count, $top and the N family are
// parsed by ParseAccumulator.
var accumulators = map[string]func(by *value.Collation) Accumulator{
	"$sum":          func(*value.Collation) Accumulator { return &sum{} },
	"$avg":          func(*value.Collation) Accumulator { return &avg{} },
	"$min":          func(by *value.Collation) Accumulator { return &extreme{sign: 1, by: by} },
	"$max":          func(by *value.Collation) Accumulator { return &extreme{sign: -1, by: by} },
	"$first":        func(*value.Collation) Accumulator { return &edge{} },
	"$last":         func(*value.Collation) Accumulator { return &edge{last: true} },
	"$push":         func(*value.Collation) Accumulator { return &push{} },
	"$addToSet":     func(by *value.Collation) Accumulator { return &addToSet{set{by: by}} },
	"$mergeObjects": func(*value.Collation) Accumulator { return &merged{} },
	"$stdDevPop":    func(*value.Collation) Accumulator { return &stdDev{} },
	"$stdDevSamp":   func(*value.Collation) Accumulator { return &stdDev{sample: true} },
}

// sum adds numbers and passes over all else. Integers stay integers until a long
// overflows; doubles are added with Neumaier's compensation, so that the order in
// which a group arrives does not show.
type sum struct {
	whole   value.Number // ints and longs
	double  float64
	rest    float64 // what adding to double has lost
	decimal value.Number
	count   int64
	kind    value.Kind
}

func (s *sum) Add(v Value) error {
	if !value.IsNumber(v) {
		return nil
	}
	n := value.NumberOf(v)
	s.count++
	s.kind = max(s.kind, n.Kind)
	switch n.Kind {
	case value.KindDecimal:
		s.decimal = addDecimal(s.decimal, n)
	case value.KindDouble:
		s.addDouble(n.Float())
	default:
		s.addWhole(n)
	}
	return nil
}

func addDecimal(a, b value.Number) value.Number {
	if a.Kind == 0 {
		return b
	}
	out, _ := value.Add(a, b)
	return value.NumberOf(out.Value()) // rounds to 34 digits
}

func (s *sum) addWhole(n value.Number) {
	if s.whole.Kind == 0 {
		s.whole = n
		return
	}
	out, exact := value.Add(s.whole, n)
	if exact {
		s.whole = out
		return
	}
	s.addDouble(s.whole.Float())
	s.whole = n
	s.kind = max(s.kind, value.KindDouble)
}

func (s *sum) addDouble(f float64) {
	t := s.double + f
	if math.Abs(s.double) >= math.Abs(f) {
		s.rest += (s.double - t) + f
	} else {
		s.rest += (f - t) + s.double
	}
	s.double = t
}

func (s *sum) number() value.Number {
	if s.kind <= value.KindLong {
		if s.whole.Kind == 0 {
			return value.IntNumber(0)
		}
		return s.whole
	}
	f := s.double
	if !math.IsInf(f, 0) && !math.IsNaN(f) {
		if s.kind == value.KindDouble && s.whole.Kind != 0 {
			s.addDouble(s.whole.Float())
			s.whole = value.Number{}
		}
		f = s.double + s.rest
	}
	if s.kind == value.KindDouble {
		return value.DoubleNumber(f)
	}
	total := s.decimal
	if s.whole.Kind != 0 {
		total = addDecimal(total, s.whole)
	}
	return addDecimal(total, value.DoubleNumber(f))
}

func (s *sum) Result() Value { return s.number().Value() }

type avg struct{ sum }

func (a *avg) Result() Value {
	if a.count == 0 {
		return value.Null
	}
	return value.Quo(a.number(), value.LongNumber(a.count)).Value()
}

// extreme is $min (sign 1) or $max (-1); null and missing do not take part.
type extreme struct {
	sign int
	by   *value.Collation
	best Value
}

func (x *extreme) Add(v Value) error {
	if value.IsNullish(v) {
		return nil
	}
	if value.IsMissing(x.best) || x.sign*x.by.Compare(v, x.best) < 0 {
		x.best = v
	}
	return nil
}

func (x *extreme) Result() Value { return orNull(x.best) }

// edge is $first or $last.
type edge struct {
	last bool
	seen bool
	v    Value
}

func (x *edge) Add(v Value) error {
	if !x.seen || x.last {
		x.seen, x.v = true, v
	}
	return nil
}

func (x *edge) Result() Value { return orNull(x.v) }

type push struct{ b value.Builder }

func (p *push) Add(v Value) error {
	if !value.IsMissing(v) {
		p.b.Push(v)
	}
	return nil
}

func (p *push) Result() Value { return p.b.Array() }

type addToSet struct{ set }

func (s *addToSet) Add(v Value) error {
	if !value.IsMissing(v) {
		s.add(v)
	}
	return nil
}

func (s *addToSet) Result() Value { return value.ArrayOf(s.items) }

type merged struct{ doc Value }

func (m *merged) Add(v Value) error {
	out, err := mergeObjects([]Value{m.doc, v})
	m.doc = out
	return err
}

func (m *merged) Result() Value {
	if value.IsMissing(m.doc) {
		return (&value.Builder{}).Value()
	}
	return m.doc
}

// stdDev is Welford's algorithm.
type stdDev struct {
	sample   bool
	n        int64
	mean, m2 float64
}

func (s *stdDev) Add(v Value) error {
	if !value.IsNumber(v) {
		return nil
	}
	f := value.NumberOf(v).Float()
	s.n++
	delta := f - s.mean
	s.mean += delta / float64(s.n)
	s.m2 += delta * (f - s.mean)
	return nil
}

func (s *stdDev) Result() Value {
	n := s.n
	if s.sample {
		n--
	}
	if n <= 0 {
		return value.Null
	}
	return value.Double(math.Sqrt(s.m2 / float64(n)))
}

// parseAccumulatorExpr: as expressions, $sum and its like take a list of arguments,
// or one that is an array.
func parseAccumulatorExpr(name string, arg Value, vars *Vars) (*Expr, error) {
	args, err := parseArgs(name, arg, vars, 0, -1)
	if err != nil {
		return nil, err
	}
	return &Expr{eval: func(e *env) (Value, error) {
		acc := accumulators[name](vars.Collation())
		for _, x := range args {
			v, err := x.eval(e)
			if err != nil {
				return value.Missing, err
			}
			if len(args) == 1 && value.IsArray(v) {
				for item := range value.Elements(v.Data) {
					if err := acc.Add(item); err != nil {
						return value.Missing, err
					}
				}
				continue
			}
			if err := acc.Add(v); err != nil {
				return value.Missing, err
			}
		}
		return acc.Result(), nil
	}}, nil
}

// Grouping is one accumulator of a $group, parsed.
type Grouping struct {
	arg  *Expr // what Add gets, for each document
	make func() Accumulator
}

// New is a fresh accumulator for a new group.
func (g *Grouping) New() Accumulator { return g.make() }

// Arg evaluates what the accumulator takes from a document.
func (g *Grouping) Arg(root Value, vars *Vars) (Value, error) { return g.arg.Eval(root, vars) }

// ParseAccumulator parses {$sum: "$x"} and its like. Errors: 15952 for one that
// does not exist, 40238 and 40234 for a wrong form.
func ParseAccumulator(field string, v Value, vars *Vars) (*Grouping, error) {
	name, arg, ok := value.First(v.Data)
	if !value.IsDocument(v) || !ok {
		return nil, value.Errorf(40234, "The field '%s' must be an accumulator object", field)
	}
	if value.Len(v.Data) != 1 {
		return nil, value.Errorf(40238, "The field '%s' must specify one accumulator", field)
	}
	if name == "$count" {
		if !value.IsDocument(arg) || value.Len(arg.Data) != 0 {
			return nil, value.Errorf(value.TypeMismatch, "$count takes no arguments, i.e. $count:{}")
		}
		return &Grouping{literal(value.Int32(1)), func() Accumulator { return &sum{} }}, nil
	}
	if f, ok := nFamily[name]; ok {
		if name == "$minN" || name == "$maxN" {
			if err := checkCollated(name, givesCompared, vars); err != nil {
				return nil, err
			}
		}
		return parseN(name, arg, f, vars)
	}
	if f, ok := topFamily[name]; ok {
		return parseTop(name, arg, f.bottom, f.n, vars)
	}
	fresh, ok := accumulators[name]
	if !ok {
		if unsupported[name] {
			return nil, value.Errorf(value.NotImplemented, "accumulator '%s' is not supported", name)
		}
		return nil, value.Errorf(15952, "unknown group operator '%s'", name)
	}
	if value.IsArray(arg) && name != "$push" && name != "$addToSet" && name != "$first" && name != "$last" {
		if value.Len(arg.Data) != 1 {
			return nil, value.Errorf(40237, "The %s accumulator is a unary operator", name)
		}
		arg = value.At(arg.Data, 0)
	}
	x, err := Parse(arg, vars)
	if err != nil {
		return nil, err
	}
	return &Grouping{x, func() Accumulator { return fresh(vars.Collation()) }}, nil
}

var nFamily = map[string]func(namedArgs) (Value, error){"$firstN": firstN, "$lastN": lastN, "$minN": minN, "$maxN": maxN}

// parseN collects the group and cuts it at the end.
func parseN(name string, arg Value, cut func(namedArgs) (Value, error), vars *Vars) (*Grouping, error) {
	raw, err := fields(name, arg, 5787901, []string{"input", "n"}, nil)
	if err != nil {
		return nil, err
	}
	n, err := constantN(raw["n"], vars)
	if err != nil {
		return nil, err
	}
	x, err := Parse(raw["input"], vars)
	if err != nil {
		return nil, err
	}
	return &Grouping{x, func() Accumulator {
		return &collected{finish: func(items Value) Value {
			out, _ := cut(namedArgs{"input": items, "n": n}) // n is checked, items is an array
			return out
		}}
	}}, nil
}

func constantN(v Value, vars *Vars) (Value, error) {
	x, err := Parse(v, vars)
	if err != nil {
		return value.Missing, err
	}
	n, ok := x.Constant()
	if !ok {
		return value.Missing, value.Errorf(value.NotImplemented, "an 'n' that is not a constant is not supported")
	}
	_, err = count(n)
	return n, err
}

type collected struct {
	b      value.Builder
	finish func(items Value) Value
}

func (c *collected) Add(v Value) error { c.b.Push(v); return nil }
func (c *collected) Result() Value     { return c.finish(c.b.Array()) }

var topFamily = map[string]struct{ bottom, n bool }{
	"$top": {false, false}, "$topN": {false, true}, "$bottom": {true, false}, "$bottomN": {true, true},
}

// parseTop pairs each output with the document it came from, and orders those.
func parseTop(name string, arg Value, bottom, many bool, vars *Vars) (*Grouping, error) {
	required := []string{"sortBy", "output"}
	if many {
		required = append(required, "n")
	}
	raw, err := fields(name, arg, 5788001, required, nil)
	if err != nil {
		return nil, err
	}
	n := value.Int32(1)
	if many {
		if n, err = constantN(raw["n"], vars); err != nil {
			return nil, err
		}
	}
	order, err := ParseOrder(raw["sortBy"], vars.Collation())
	if err != nil {
		return nil, err
	}
	output, err := Parse(raw["output"], vars)
	if err != nil {
		return nil, err
	}
	take, _ := count(n)
	pair := &Expr{eval: func(e *env) (Value, error) {
		v, err := output.eval(e)
		return value.ArrayOf([]Value{e.root, v}), err
	}}
	return &Grouping{pair, func() Accumulator {
		return &collected{finish: func(items Value) Value { return topOf(items, order, take, bottom, many) }}
	}}, nil
}

func topOf(items Value, order *Order, n int, bottom, many bool) Value {
	list := value.List(items.Data)
	doc := func(i int) Value { return value.At(list[i].Data, 0) }
	sort.SliceStable(list, func(i, j int) bool { return order.compare(doc(i), doc(j)) < 0 })
	if bottom {
		list = list[max(0, len(list)-n):]
	} else {
		list = list[:min(n, len(list))]
	}
	var out []Value
	for _, p := range list {
		out = append(out, value.At(p.Data, 1))
	}
	if !many {
		return out[0] // a group has at least one document
	}
	return value.ArrayOf(out)
}
