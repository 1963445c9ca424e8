package expr

import (
	"strings"

	"github.com/assaylab/assay/replset/query/value"
)

// env is one evaluation: the document, and the variables in sight.
type env struct {
	root value.Value
	vars *Vars
}

// Expr is a parsed expression. It may be evaluated any number of times, also
// concurrently.
type Expr struct {
	eval func(*env) (value.Value, error)
	lit  *value.Value // not nil: a constant
	path []string     // not nil: a plain field path
}

// Eval evaluates the expression for a document, which may be Missing. vars must
// have every name that was in sight when the expression was parsed. The result may
// alias the document.
func (x *Expr) Eval(root value.Value, vars *Vars) (value.Value, error) {
	return x.eval(&env{root: root, vars: vars})
}

// Constant is the value of an expression that is a constant.
func (x *Expr) Constant() (v value.Value, ok bool) {
	if x.lit == nil {
		return value.Missing, false
	}
	return *x.lit, true
}

// FieldPath is the dotted path of an expression that is nothing but that.
func (x *Expr) FieldPath() (path string, ok bool) {
	return strings.Join(x.path, "."), x.path != nil
}

func literal(v value.Value) *Expr {
	v = value.Clone(v)
	return &Expr{lit: &v, eval: func(*env) (value.Value, error) { return v, nil }}
}

// Parse parses an expression. vars says which variables it may name. Errors: 168
// for an operator that does not exist, 238 for one that does but not here, and the
// server's own codes for wrong arguments.
func Parse(v value.Value, vars *Vars) (*Expr, error) {
	switch {
	case value.IsString(v):
		if s := value.Str(v); strings.HasPrefix(s, "$") {
			return parsePath(s, vars)
		}
	case value.IsArray(v):
		return parseArray(v, vars)
	case value.IsDocument(v):
		return parseDocument(v, vars)
	}
	return literal(v), nil
}

func parseArray(v value.Value, vars *Vars) (*Expr, error) {
	elems, constant, err := parseList(v, vars)
	if err != nil {
		return nil, err
	}
	if constant {
		return literal(v), nil
	}
	return &Expr{eval: func(e *env) (value.Value, error) {
		var b value.Builder
		for _, x := range elems {
			got, err := x.eval(e)
			if err != nil {
				return value.Missing, err
			}
			b.Push(got)
		}
		return b.Array(), checkSize(b.Size())
	}}, nil
}

// maxSize bounds what one expression may build, in bytes. Without it a few nested
// $reduce could ask for more memory than there is.
const maxSize = 64 << 20

func checkSize(n int) error {
	if n > maxSize {
		return value.Errorf(13548, "BufBuilder attempted to grow() to %d bytes, past the 64MB limit.", n)
	}
	return nil
}

func parseList(v value.Value, vars *Vars) (elems []*Expr, constant bool, err error) {
	constant = true
	for e := range value.Elements(v.Data) {
		x, err := Parse(e, vars)
		if err != nil {
			return nil, false, err
		}
		constant = constant && x.lit != nil && value.Same(*x.lit, e)
		elems = append(elems, x)
	}
	return elems, constant, nil
}

// parseDocument parses an operator, {$add: …}, or a document of expressions.
func parseDocument(v value.Value, vars *Vars) (*Expr, error) {
	first, arg, ok := value.First(v.Data)
	if !ok {
		return literal(v), nil
	}
	if strings.HasPrefix(first, "$") {
		if n := value.Len(v.Data); n != 1 {
			return nil, value.Errorf(15983, "an object representing an expression must have exactly one field: %s", value.Show(v))
		}
		return parseOperator(first, arg, vars)
	}
	return parseObject(v, vars)
}

func parseObject(v value.Value, vars *Vars) (*Expr, error) {
	type field struct {
		name string
		x    *Expr
	}
	var fields []field
	seen := map[string]bool{}
	for name, e := range value.Fields(v.Data) {
		switch {
		case strings.HasPrefix(name, "$"):
			return nil, value.Errorf(15983, "an object representing an expression must have exactly one field: %s", value.Show(v))
		case strings.Contains(name, "."):
			return nil, value.Errorf(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.")
		case seen[name]:
			return nil, value.Errorf(16406, "duplicate field name specified in object literal: %s", value.Show(v))
		}
		seen[name] = true
		x, err := Parse(e, vars)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{name, x})
	}
	return &Expr{eval: func(e *env) (value.Value, error) {
		var b value.Builder
		for _, f := range fields {
			got, err := f.x.eval(e)
			if err != nil {
				return value.Missing, err
			}
			b.Add(f.name, got)
		}
		return b.Value(), checkSize(b.Size())
	}}, nil
}

func parseOperator(name string, arg value.Value, vars *Vars) (*Expr, error) {
	if op, ok := eager[name]; ok {
		return op.parse(name, arg, vars)
	}
	if op, ok := named[name]; ok {
		return op.parse(name, arg, vars)
	}
	if form := specialForm(name); form != nil {
		return form(name, arg, vars)
	}
	if unsupported[name] {
		return nil, value.Errorf(value.NotImplemented, "expression '%s' is not supported", name)
	}
	return nil, value.Errorf(value.InvalidPipelineOp, "Unrecognized expression '%s'", name)
}

// form parses an operator that controls which of its arguments are evaluated.
type form func(name string, arg value.Value, vars *Vars) (*Expr, error)

// specialForm is a switch and not a map because the forms call Parse in turn.
func specialForm(name string) form {
	switch name {
	case "$literal", "$const":
		return parseLiteral
	case "$and", "$or":
		return parseLogic
	case "$cond":
		return parseCond
	case "$switch":
		return parseSwitch
	case "$ifNull":
		return parseIfNull
	case "$let":
		return parseLet
	case "$map":
		return parseMap
	case "$filter":
		return parseFilter
	case "$reduce":
		return parseReduce
	case "$convert":
		return parseConvert
	case "$rand":
		return parseRand
	case "$sampleRate":
		return parseSampleRate
	case "$getField":
		return parseGetField
	case "$setField", "$unsetField":
		return parseSetField
	case "$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp":
		return parseAccumulatorExpr
	case "$sortArray":
		return parseSortArray
	}
	return nil
}

// unsupported are the operators that MongoDB has and this package has not.
var unsupported = map[string]bool{
	"$function": true, "$meta": true, "$accumulator": true, "$toHashedIndexKey": true,
	"$encStrStartsWith": true, "$percentile": true, "$median": true, "$tsSecond": true, "$tsIncrement": true,
	"$dateFromString": true,
}

func parseLiteral(_ string, arg value.Value, _ *Vars) (*Expr, error) { return literal(arg), nil }

// parseArgs parses an operator's arguments: a list, or a single one bare.
func parseArgs(name string, arg value.Value, vars *Vars, lo, hi int) ([]*Expr, error) {
	args := []*Expr{}
	if value.IsArray(arg) {
		list, _, err := parseList(arg, vars)
		if err != nil {
			return nil, err
		}
		args = list
	} else {
		x, err := Parse(arg, vars)
		if err != nil {
			return nil, err
		}
		args = append(args, x)
	}
	n := len(args)
	if lo == hi && n != lo {
		return nil, value.Errorf(value.WrongExpressionArity, "Expression %s takes exactly %d arguments. %d were passed in.", name, lo, n)
	}
	if n < lo || hi >= 0 && n > hi {
		return nil, value.Errorf(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name, lo, hi, n)
	}
	return args, nil
}

// fields checks the named arguments of an operator against those it knows.
func fields(name string, arg value.Value, code int32, required, optional []string) (map[string]value.Value, error) {
	if !value.IsDocument(arg) {
		return nil, value.Errorf(code, "%s only supports an object as its argument, not %s", name, value.TypeName(arg))
	}
	got := map[string]value.Value{}
	for k, v := range value.Fields(arg.Data) {
		if !contains(required, k) && !contains(optional, k) {
			return nil, value.Errorf(code, "Unrecognized parameter to %s: %s", name, k)
		}
		got[k] = v
	}
	for _, k := range required {
		if _, ok := got[k]; !ok {
			return nil, value.Errorf(code, "Missing '%s' parameter to %s", k, name)
		}
	}
	return got, nil
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
