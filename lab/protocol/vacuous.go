package protocol

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// A condition that holds whatever is measured decides nothing, however much it
// looks like a rule; neither does one that never holds. Both are found here by
// trying every kind of result that the condition can tell apart.
//
// Where a condition compares a name with constants only, the values at and
// between those constants are all there is to try, and the answer is exact.
// Any other comparison, of two names or of a sum, may go either way. So what
// is found is certain, and something may be overlooked.

// maxWorlds bounds how many combinations are tried; beyond it nothing is
// claimed.
const maxWorlds = 1 << 12

// world gives a value to each name that is consulted, and to each comparison
// that may go either way; that one goes by its text.
type world map[string]any

// varying is one thing that results can vary, and the values to try.
type varying struct {
	name   string
	values []any
}

// search is what is known of the names before anything is measured.
type search struct {
	scope Scope
	fixed map[string]float64 // settled by the protocol itself
}

// answers says whether some result makes the condition true, and some other
// false. Both are true where that cannot be found out.
func (s search) answers(c *Condition) (canHold, canFail bool) {
	vars := s.variables(c.tree)
	if tooMany(vars) {
		return true, true
	}
	worlds(vars, world{}, func(w world) bool {
		if s.holds(c.tree, w) {
			canHold = true
		} else {
			canFail = true
		}
		return !canHold || !canFail
	})
	return canHold, canFail
}

func tooMany(vars []varying) bool {
	n := 1
	for _, v := range vars {
		if n *= len(v.values); n > maxWorlds {
			return true
		}
	}
	return false
}

// worlds calls visit with every possible combination until it returns false,
// and says whether it never did.
func worlds(vars []varying, w world, visit func(world) bool) bool {
	if len(vars) == 0 {
		return visit(w)
	}
	v := vars[0]
	for _, value := range v.values {
		// Nothing is better and worse at once.
		if of, isWorse := strings.CutSuffix(v.name, "worse"); isWorse && value == true && w[of+"better"] == true {
			continue
		}
		w[v.name] = value
		if !worlds(vars[1:], w, visit) {
			return false
		}
	}
	delete(w, v.name)
	return true
}

// variables are what the conditions consult, sorted by name.
func (s search) variables(conditions ...ast.Node) []varying {
	cuts := map[string][]float64{} // constants that a number is compared with
	either := map[string]bool{}
	var walk func(n ast.Node)
	walk = func(n ast.Node) {
		if name, ok := dotted(n); ok {
			either[name] = true
			return
		}
		switch n := n.(type) {
		case *ast.UnaryNode:
			walk(n.Node)
		case *ast.ConditionalNode:
			walk(n.Cond)
			walk(n.Exp1)
			walk(n.Exp2)
		case *ast.BinaryNode:
			switch c := s.comparison(n); {
			case s.truth(n.Left):
				walk(n.Left)
				walk(n.Right)
			case c.name != "":
				cuts[c.name] = append(cuts[c.name], c.right)
			case !c.settled:
				either[n.String()] = true
			}
		}
	}
	for _, n := range conditions {
		walk(n)
	}
	var vars []varying
	for name := range either {
		vars = append(vars, varying{name, []any{false, true}})
	}
	for name, at := range cuts {
		vars = append(vars, varying{name, samples(name, at)})
	}
	slices.SortFunc(vars, func(a, b varying) int { return cmp.Compare(a.name, b.name) })
	return vars
}

// samples are the constants that a number is compared with, and one value on
// each side of each, as far as the number can get there.
func samples(name string, at []float64) []any {
	low, high := math.Inf(-1), math.Inf(1)
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "p":
		low, high = 0, 1 // reached only where nothing varies at all
	case "n":
		low, high = 0, maxRounds+1
	}
	at = slices.DeleteFunc(slices.Clone(at), func(x float64) bool { return x <= low || x >= high })
	slices.Sort(at)
	at = slices.Compact(at)
	edge := func(x float64) float64 { return max(1, math.Abs(x)) }
	if math.IsInf(low, 0) {
		low, high = at[0]-2*edge(at[0]), at[len(at)-1]+2*edge(at[len(at)-1])
	}
	var out []any
	for _, x := range append(at, high) {
		out = append(out, low+(x-low)/2, x)
		low = x
	}
	return out[:len(out)-1]
}

// compared is a comparison of numbers, with the name on the left: of one name
// with a constant, or settled because both sides are constants. Otherwise it
// may go either way.
type compared struct {
	name        string
	operator    string
	left, right float64
	settled     bool
}

var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

func (s search) comparison(n *ast.BinaryNode) compared {
	left, leftOK := s.constant(n.Left)
	right, rightOK := s.constant(n.Right)
	leftName, _ := dotted(n.Left)
	rightName, _ := dotted(n.Right)
	switch {
	case leftOK && rightOK:
		return compared{operator: n.Operator, left: left, right: right, settled: true}
	case rightOK && leftName != "":
		return compared{name: leftName, operator: n.Operator, right: right}
	case leftOK && rightName != "":
		return compared{name: rightName, operator: mirrored[n.Operator], right: left}
	}
	return compared{}
}

func (c compared) holds(left float64) bool {
	switch c.operator {
	case "<":
		return left < c.right
	case "<=":
		return left <= c.right
	case ">":
		return left > c.right
	case ">=":
		return left >= c.right
	case "==":
		return left == c.right
	default:
		return left != c.right
	}
}

// constant is the value of a number that no result can change.
func (s search) constant(n ast.Node) (x float64, ok bool) {
	if name, isName := dotted(n); isName {
		x, ok = s.fixed[name]
		return x, ok
	}
	switch n := n.(type) {
	case *ast.IntegerNode:
		return float64(n.Value), true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.UnaryNode:
		x, ok = s.constant(n.Node)
		if n.Operator == "-" {
			x = -x
		}
		return x, ok
	case *ast.BinaryNode:
		f := operations[n.Operator]
		a, aOK := s.constant(n.Left)
		b, bOK := s.constant(n.Right)
		if f == nil || !aOK || !bOK {
			return 0, false
		}
		x = f(a, b)
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	return 0, false
}

// truth says whether the node, which was typed, is a truth.
func (s search) truth(n ast.Node) bool {
	if name, ok := dotted(n); ok {
		return s.scope[name] == Truth
	}
	switch n := n.(type) {
	case *ast.BoolNode:
		return true
	case *ast.UnaryNode:
		return n.Operator == "!" || n.Operator == "not"
	case *ast.BinaryNode:
		return operations[n.Operator] == nil
	case *ast.ConditionalNode:
		return s.truth(n.Exp1)
	}
	return false
}

// holds evaluates a condition in a world.
func (s search) holds(n ast.Node, w world) bool {
	if name, ok := dotted(n); ok {
		return w[name] == true
	}
	switch n := n.(type) {
	case *ast.BoolNode:
		return n.Value
	case *ast.UnaryNode:
		return !s.holds(n.Node, w)
	case *ast.ConditionalNode:
		if s.holds(n.Cond, w) {
			return s.holds(n.Exp1, w)
		}
		return s.holds(n.Exp2, w)
	case *ast.BinaryNode:
		if !s.truth(n.Left) {
			switch c := s.comparison(n); {
			case c.settled:
				return c.holds(c.left)
			case c.name != "":
				return c.holds(w[c.name].(float64))
			}
			return w[n.String()] == true
		}
		switch n.Operator {
		case "&&", "and":
			return s.holds(n.Left, w) && s.holds(n.Right, w)
		case "||", "or":
			return s.holds(n.Left, w) || s.holds(n.Right, w)
		case "==":
			return s.holds(n.Left, w) == s.holds(n.Right, w)
		default:
			return s.holds(n.Left, w) != s.holds(n.Right, w)
		}
	}
	panic("protocol: a condition of " + n.String())
}

// first is the outcome that a world ends in: the first whose condition holds,
// len(conditions) for the default.
func (s search) first(conditions []*Condition, w world) int {
	if i := slices.IndexFunc(conditions, func(c *Condition) bool { return s.holds(c.tree, w) }); i >= 0 {
		return i
	}
	return len(conditions)
}

// effects says which conditions are ever the first that holds, and which of the
// names in them ever change the outcome. ok is false where that cannot be found
// out.
func (s search) effects(conditions []*Condition) (reached []bool, matters map[string]bool, ok bool) {
	var trees []ast.Node
	for _, c := range conditions {
		trees = append(trees, c.tree)
	}
	vars := s.variables(trees...)
	if tooMany(vars) {
		return nil, nil, false
	}
	reached, matters = make([]bool, len(conditions)+1), map[string]bool{}
	worlds(vars, world{}, func(w world) bool {
		i := s.first(conditions, w)
		reached[i] = true
		for _, v := range vars {
			if truth, isTruth := w[v.name].(bool); isTruth && !matters[v.name] {
				w[v.name] = !truth
				matters[v.name] = s.first(conditions, w) != i
				w[v.name] = truth
			}
		}
		return true
	})
	return reached, matters, true
}

// goOnNothing is the first go outcome that is reached although nothing was
// shown: the primary comparison is not significant, and every gate is broken.
// Then it must not matter how favourable its point estimates happen to be. An
// interval, or the effect on another metric, counts as something shown.
func (s search) goOnNothing(outcomes []Outcome, conditions []*Condition) (index int, found bool) {
	var trees []ast.Node
	for _, c := range conditions {
		trees = append(trees, c.tree)
	}
	var chance, shown []varying
	for _, v := range s.variables(trees...) {
		of, name, _ := strings.Cut(v.name, ".")
		switch {
		case v.name == "primary.significant" || of == "gate" || of == "veto":
			chance = append(chance, varying{v.name, []any{false}})
		case v.name == "primary.p":
			chance = append(chance, varying{v.name, []any{s.fixed["primary.alpha"] * (1 + 1e-9)}})
		case of == "primary" && slices.Contains([]string{"better", "worse", "meets_floor", "d", "dz", "diff", "ratio", "change", "n"}, name):
			chance = append(chance, v)
		default:
			shown = append(shown, v)
		}
	}
	if tooMany(append(slices.Clone(chance), shown...)) {
		return 0, false
	}
	never := worlds(chance, world{}, func(w world) bool {
		return !worlds(shown, w, func(w world) bool {
			index = s.first(conditions, w)
			return index < len(conditions) && outcomes[index].Class == "go"
		})
	})
	return index, !never
}
