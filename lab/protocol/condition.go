package protocol

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

// Condition is a compiled condition of a rule or an outcome. It can name only
// what its scope offers, so that a misspelt name is a fault of the protocol
// and never a silent false.
type Condition struct {
	Source string
	Names  []string // every name it consults, such as "primary.p", sorted
	prog   *vm.Program
	tree   ast.Node
}

// Scope is what a condition may name: "p" or "primary.p" to Number or Truth.
type Scope map[string]Kind

// Kind is the type of a named result.
type Kind int

// The kinds of named result.
const (
	Number Kind = iota
	Truth
)

// comparison is what a rule sees of its metric in one cell.
var comparison = Scope{
	"ref": Number, "treat": Number, "diff": Number, "diff_low": Number, "diff_high": Number,
	"ratio": Number, "ratio_low": Number, "ratio_high": Number, "change": Number,
	"p": Number, "d": Number, "dz": Number, "n": Number,
	"better": Truth, "worse": Truth,
}

// RuleScope is what the rule's condition may name. Statistics other than the
// mean have no test, so p, d and dz do not exist there; only mean and pooled
// have intervals.
func RuleScope(statistic string) Scope {
	s := maps.Clone(comparison)
	if statistic != StatMean && statistic != "" {
		delete(s, "p")
		delete(s, "d")
		delete(s, "dz")
		if statistic != StatPooled {
			for _, k := range []string{"diff_low", "diff_high", "ratio_low", "ratio_high"} {
				delete(s, k)
			}
		}
	}
	return s
}

// OutcomeScope is what the protocol's outcomes may name.
func (p *Protocol) OutcomeScope() Scope {
	s := Scope{
		"primary.p": Number, "primary.alpha": Number, "primary.d": Number, "primary.dz": Number,
		"primary.diff": Number, "primary.diff_low": Number, "primary.diff_high": Number,
		"primary.ratio": Number, "primary.change": Number, "primary.n": Number,
		"primary.significant": Truth, "primary.better": Truth, "primary.worse": Truth, "primary.meets_floor": Truth,
		"veto.any": Truth, "gate.all": Truth,
	}
	for _, v := range p.Vetoes {
		s["veto."+v.Name] = Truth
	}
	for _, g := range p.Gates {
		s["gate."+g.Name] = Truth
	}
	for _, m := range p.Metrics {
		for k, kind := range comparison {
			s["effect."+m.Name+"."+k] = kind
		}
	}
	return s
}

// maxCondition is the length of a condition in characters. What does not fit
// is no rule that a team can agree on.
const maxCondition = 1000

// Compile checks the condition against the scope. The error says where in the
// condition the fault is; Offset gives it in characters.
func Compile(src string, scope Scope) (*Condition, error) {
	if strings.TrimSpace(src) == "" {
		return nil, errors.New("the condition is empty")
	}
	if n := len([]rune(src)); n > maxCondition {
		return nil, &ConditionError{Message: fmt.Sprintf("the condition has %d characters; at most %d can be agreed on", n, maxCondition)}
	}
	for i, c := range src {
		// A comment would cut short what a preset puts behind the condition;
		// the other signs would reach a name in a way that a reader may miss.
		rest := src[i:]
		if !strings.ContainsRune(legal, c) || strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") {
			what := cut(rest, 1)
			if c == '/' {
				what = rest[:2]
			}
			return nil, &ConditionError{Message: fmt.Sprintf("%q is not allowed: %s", strings.TrimSuffix(what, "…"), onlyPlain), Offset: len([]rune(src[:i]))}
		}
	}
	tree, err := parser.Parse(src)
	if err != nil {
		return nil, conditionError(err)
	}
	t := typing{scope: scope, names: map[string]bool{}}
	kind, err := t.kind(tree.Node)
	if err != nil {
		return nil, err
	}
	if kind != Truth {
		return nil, &ConditionError{Message: "the condition is a number; compare it with something", Offset: start(tree.Node)}
	}
	if len(t.names) == 0 {
		return nil, &ConditionError{Message: "the condition consults no result; it would be the same for every run"}
	}
	names := slices.Sorted(maps.Keys(t.names))
	prog, err := expr.Compile(src, append(arithmetic(), expr.Env(scope.types(names)), expr.AsBool(), expr.MaxNodes(2*maxCondition),
		expr.DisableAllBuiltins(), expr.EnableBuiltin("abs"), expr.EnableBuiltin("min"), expr.EnableBuiltin("max"))...)
	if err != nil {
		return nil, conditionError(err)
	}
	return &Condition{Source: src, Names: names, prog: prog, tree: tree.Node}, nil
}

const (
	legal     = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_. \t\n()<>=!&|+-*/,?:"
	onlyPlain = "a condition has names, numbers, comparisons, + - * /, && || !, ?: and abs, min, max"
)

// ConditionError is a fault inside a condition.
type ConditionError struct {
	Message string
	Offset  int // characters from the start of the condition

	unknown string // the name that does not exist, if that is the fault
}

func (e *ConditionError) Error() string { return e.Message }

func conditionError(err error) error {
	var fe *file.Error
	if errors.As(err, &fe) {
		return &ConditionError{Message: firstLine(fe.Message), Offset: max(fe.From, 0)}
	}
	return &ConditionError{Message: firstLine(err.Error())}
}

// typing finds the kind of a condition's parts and gathers the dotted names it
// consults. Anything that would reach a name dynamically is refused: what a
// rule depends on must be readable.
type typing struct {
	scope Scope
	names map[string]bool
}

func (t *typing) kind(n ast.Node) (Kind, error) {
	if path, ok := dotted(n); ok {
		kind, known := t.scope[path]
		if !known {
			return 0, &ConditionError{
				Message: fmt.Sprintf("unknown name %q%s", cut(path, 60), t.scope.hint(path)),
				Offset:  start(n), unknown: path,
			}
		}
		t.names[path] = true
		return kind, nil
	}
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return Number, nil
	case *ast.BoolNode:
		return Truth, nil
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			return Truth, t.all(Truth, n.Operator, n.Node)
		}
		return Number, t.all(Number, n.Operator, n.Node)
	case *ast.BinaryNode:
		switch n.Operator {
		case "&&", "and", "||", "or":
			return Truth, t.all(Truth, n.Operator, n.Left, n.Right)
		case "<", "<=", ">", ">=":
			return Truth, t.all(Number, n.Operator, n.Left, n.Right)
		case "==", "!=":
			kind, err := t.kind(n.Left)
			if err != nil {
				return 0, err
			}
			return Truth, t.all(kind, n.Operator, n.Right)
		case "/":
			if x, ok := (search{}).constant(n.Right); ok && x == 0 {
				return 0, &ConditionError{Message: "division by zero", Offset: start(n.Right)}
			}
			fallthrough
		case "+", "-", "*":
			return Number, t.all(Number, n.Operator, n.Left, n.Right)
		}
		return 0, &ConditionError{Message: fmt.Sprintf("%q is not allowed: %s", n.Operator, onlyPlain), Offset: n.Location().From}
	case *ast.ConditionalNode:
		if err := t.all(Truth, "?:", n.Cond); err != nil {
			return 0, err
		}
		kind, err := t.kind(n.Exp1)
		if err != nil {
			return 0, err
		}
		return kind, t.all(kind, "?:", n.Exp2)
	case *ast.BuiltinNode:
		if n.Name == "abs" || n.Name == "min" || n.Name == "max" {
			return Number, t.all(Number, n.Name, n.Arguments...)
		}
		return 0, &ConditionError{Message: fmt.Sprintf("%q is not allowed: %s", n.Name, onlyPlain), Offset: start(n)}
	}
	return 0, &ConditionError{Message: "not allowed: " + onlyPlain, Offset: start(n)}
}

// all demands that the operands are of the kind.
func (t *typing) all(want Kind, operator string, operands ...ast.Node) error {
	for _, n := range operands {
		got, err := t.kind(n)
		if err != nil {
			return err
		}
		if got != want {
			return &ConditionError{Message: fmt.Sprintf("%s wants %s here, and this is %s", operator, want, got), Offset: start(n)}
		}
	}
	return nil
}

func (k Kind) String() string {
	if k == Truth {
		return "a truth"
	}
	return "a number"
}

// start is where the text of the node begins.
func start(n ast.Node) int {
	from := n.Location().From
	switch n := n.(type) {
	case *ast.MemberNode:
		return min(from, start(n.Node))
	case *ast.BinaryNode:
		return min(from, start(n.Left))
	case *ast.ConditionalNode:
		return min(from, start(n.Cond))
	case *ast.CallNode:
		return min(from, start(n.Callee))
	case *ast.ChainNode:
		return min(from, start(n.Node))
	}
	return from
}

func dotted(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value, true
	case *ast.MemberNode:
		head, ok := dotted(n.Node)
		prop, isString := n.Property.(*ast.StringNode)
		if ok && isString && !n.Optional {
			return head + "." + prop.Value, true
		}
	}
	return "", false
}

func (s Scope) hint(path string) string {
	known := slices.Sorted(maps.Keys(s))
	head, _, isMember := strings.Cut(path, ".")
	var same []string
	for _, k := range known {
		if strings.HasPrefix(k, path+".") || isMember && strings.HasPrefix(k, head+".") {
			same = append(same, k)
		}
	}
	if h := didYouMean(path, known); h != "" && (isMember || len(same) == 0) {
		return h
	}
	if len(same) > 0 {
		return "; known here: " + few(same, " ")
	}
	var heads []string
	for _, k := range known {
		if head, _, isMember := strings.Cut(k, "."); isMember && !slices.Contains(heads, head+".") {
			heads = append(heads, head+".")
		}
	}
	if len(heads) > 0 {
		return "; names here begin with " + strings.Join(heads, " ")
	}
	return "; known here: " + few(known, " ")
}

// few is the list, cut where no one would read on.
func few(list []string, separator string) string {
	if len(list) > 16 {
		return strings.Join(list[:16], separator) + separator + "…"
	}
	return strings.Join(list, separator)
}

// types are the names as the type checker wants them.
func (s Scope) types(names []string) types.Map {
	root := types.Map{}
	for _, path := range names {
		m := root
		parts := strings.Split(path, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := m[p].(types.Map)
			if !ok {
				next = types.Map{}
				m[p] = next
			}
			m = next
		}
		m[parts[len(parts)-1]] = types.Float64
		if s[path] == Truth {
			m[parts[len(parts)-1]] = types.Bool
		}
	}
	return root
}

// arithmetic makes every number a float and every operation one that fails
// where its result is none: a comparison with NaN is false, its negation true,
// and either would be an answer to a question without one.
func arithmetic() []expr.Option {
	var opts []expr.Option
	for op, f := range operations {
		opts = append(opts, expr.Function(functionOf(op), func(args ...any) (any, error) {
			a, b := args[0].(float64), args[1].(float64)
			x := f(a, b)
			if math.IsNaN(x) || math.IsInf(x, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
				return nil, fmt.Errorf("%v %s %v is no number", a, op, b)
			}
			return x, nil
		}, new(func(float64, float64) float64)))
	}
	return append(opts, expr.Patch(floats{}))
}

var operations = map[string]func(a, b float64) float64{
	"+": func(a, b float64) float64 { return a + b },
	"-": func(a, b float64) float64 { return a - b },
	"*": func(a, b float64) float64 { return a * b },
	"/": func(a, b float64) float64 { return a / b },
}

// functionOf is a name that no condition can call.
func functionOf(operator string) string { return "float" + operator }

type floats struct{}

func (floats) Visit(n *ast.Node) {
	switch x := (*n).(type) {
	case *ast.IntegerNode:
		ast.Patch(n, &ast.FloatNode{Value: float64(x.Value)})
	case *ast.BinaryNode:
		if _, ok := operations[x.Operator]; ok {
			ast.Patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: functionOf(x.Operator)}, Arguments: []ast.Node{x.Left, x.Right}})
		}
	}
}

// Named are results by name: float64 for a Number, bool for a Truth. A name
// that is absent, and a number that is NaN, is missing.
type Named map[string]any

// MissingError says that a condition could not be evaluated because results
// it consults do not exist. It is never a false and never a true.
type MissingError struct{ Names []string }

func (e *MissingError) Error() string {
	return "missing: " + strings.Join(e.Names, ", ")
}

// Eval evaluates the condition. All names it consults must be present, also
// those that evaluation would not have reached: otherwise *MissingError.
func (c *Condition) Eval(values Named) (bool, error) {
	env := map[string]any{}
	var missing []string
	for _, name := range c.Names {
		v, ok := values[name]
		if f, isFloat := v.(float64); !ok || isFloat && math.IsNaN(f) {
			missing = append(missing, name)
			continue
		}
		m := env
		parts := strings.Split(name, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := m[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				m[p] = next
			}
			m = next
		}
		m[parts[len(parts)-1]] = v
	}
	if len(missing) > 0 {
		return false, &MissingError{missing}
	}
	out, err := expr.Run(c.prog, env)
	if err != nil {
		return false, fmt.Errorf("condition %q: %s", c.Source, firstLine(err.Error()))
	}
	truth, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("condition %q: %v is neither true nor false", c.Source, out)
	}
	return truth, nil
}
