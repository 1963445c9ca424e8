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

// Compile checks the condition against the scope. The error says where in the
// condition the fault is; Offset gives it in characters.
func Compile(src string, scope Scope) (*Condition, error) {
	if strings.TrimSpace(src) == "" {
		return nil, errors.New("the condition is empty")
	}
	tree, err := parser.Parse(src)
	if err != nil {
		return nil, conditionError(err)
	}
	names := map[string]bool{}
	if err := collect(tree.Node, scope, names); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &ConditionError{Message: "the condition consults no result; it would be the same for every run"}
	}
	prog, err := expr.Compile(src, expr.Env(scope.types()), expr.AsBool(), expr.MaxNodes(500),
		expr.DisableAllBuiltins(), expr.EnableBuiltin("abs"), expr.EnableBuiltin("min"), expr.EnableBuiltin("max"))
	if err != nil {
		return nil, conditionError(err)
	}
	return &Condition{Source: src, Names: slices.Sorted(maps.Keys(names)), prog: prog}, nil
}

// ConditionError is a fault inside a condition.
type ConditionError struct {
	Message string
	Offset  int // characters from the start of the condition
}

func (e *ConditionError) Error() string { return e.Message }

func conditionError(err error) error {
	var fe *file.Error
	if errors.As(err, &fe) {
		return &ConditionError{Message: firstLine(fe.Message), Offset: max(fe.From, 0)}
	}
	return &ConditionError{Message: firstLine(err.Error())}
}

// collect gathers the dotted names a tree consults. Anything that would reach
// a name dynamically is refused: what a rule depends on must be readable.
func collect(n ast.Node, scope Scope, names map[string]bool) error {
	var fault error
	var walk func(n ast.Node)
	walk = func(n ast.Node) {
		if fault != nil {
			return
		}
		if path, ok := dotted(n); ok {
			if _, known := scope[path]; known {
				names[path] = true
				return
			}
			fault = &ConditionError{
				Message: fmt.Sprintf("unknown name %q%s", path, scope.hint(path)),
				Offset:  n.Location().From,
			}
			return
		}
		switch n := n.(type) {
		case *ast.BinaryNode:
			walk(n.Left)
			walk(n.Right)
		case *ast.UnaryNode:
			walk(n.Node)
		case *ast.ConditionalNode:
			walk(n.Cond)
			walk(n.Exp1)
			walk(n.Exp2)
		case *ast.BuiltinNode:
			for _, a := range n.Arguments {
				walk(a)
			}
		case *ast.CallNode:
			for _, a := range n.Arguments {
				walk(a)
			}
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.ConstantNode:
		default:
			fault = &ConditionError{
				Message: "only names, numbers, comparisons, arithmetic, && || ! and abs, min, max may stand in a condition",
				Offset:  n.Location().From,
			}
		}
	}
	walk(n)
	return fault
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
	if h := didYouMean(path, known); h != "" {
		return h
	}
	head, _, isMember := strings.Cut(path, ".")
	var same []string
	for _, k := range known {
		if isMember && strings.HasPrefix(k, head+".") {
			same = append(same, k)
		}
	}
	if len(same) == 0 {
		same = known
	}
	if len(same) > 16 {
		same = append(same[:16], "…")
	}
	return "; known here: " + strings.Join(same, " ")
}

// types is the scope as the type checker wants it.
func (s Scope) types() types.Map {
	root := types.Map{}
	for path, kind := range s {
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
		if kind == Truth {
			m[parts[len(parts)-1]] = types.Bool
		}
	}
	return root
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
	return out.(bool), nil
}

// expand replaces a preset by the outcomes it stands for.
//
// four-branch: a regression blocks whatever else holds; a significant gain
// that reaches the floor goes; a tie that a frozen condition finds worth
// having goes with a caveat; everything else is not worth an irreversible
// step. A failed check has ended the decision before any of them (ABORT).
func (d *Decision) expand(p *Protocol) {
	if d.Preset != "four-branch" {
		return
	}
	guard := ""
	block := "veto.any"
	if len(p.Gates) > 0 {
		guard, block = " && gate.all", "veto.any || !gate.all"
	}
	d.Outcomes = []Outcome{
		{Name: "REGRESSION", Class: "no-go", When: "primary.significant && primary.worse || " + block,
			Say: "The treatment makes something worse that was agreed to be untouchable."},
		{Name: "PROCEED", Class: "go", When: "primary.significant && primary.better && primary.meets_floor && !veto.any" + guard,
			Say: "The gain is real, large enough to matter, and nothing blocks it."},
	}
	if d.Caveat != "" {
		d.Outcomes = append(d.Outcomes, Outcome{Name: "PROCEED-WITH-CAVEAT", Class: "go", When: "(" + d.Caveat + ") && !veto.any" + guard,
			Say: "No proven gain on the primary metric; the secondary gain named in the protocol is there."})
	}
	d.Outcomes = append(d.Outcomes, Outcome{Name: "NO-BENEFIT", Class: "no-go",
		Say: "No gain that matters was shown; the change is not worth its risk."})
}
