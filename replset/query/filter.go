package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

// Filter is a parsed query. The filter of an empty document matches everything.
type Filter struct {
	root node
	vars *Vars
}

// Position is which element of an array a filter matched, counted from one. Zero:
// none. It is what a positional operator stands for.
type Position int

// positionAt is the Position of an index counted from zero, or of -1.
func positionAt(index int) Position { return Position(index + 1) }

// index counts from zero; -1 is none.
func (p Position) index() int { return int(p) - 1 }

// Match says whether a document matches. An error can only come from $expr.
func (f *Filter) Match(doc Document) (bool, error) {
	ok, _, err := f.matchWith(doc, f.vars)
	return ok, err
}

// MatchPosition is Match, and gives the array element that matched last.
func (f *Filter) MatchPosition(doc Document) (ok bool, at Position, err error) {
	return f.matchWith(doc, f.vars)
}

func (f *Filter) matchWith(doc Document, vars *Vars) (ok bool, at Position, err error) {
	m := &matching{root: value.Doc(doc), vars: vars, index: -1}
	ok, err = f.root.match(m, doc)
	return ok, positionAt(m.index), err
}

// matching is one document being matched.
type matching struct {
	root  Value
	vars  *Vars
	index int // position of the array element that matched last, or -1
}

func (m *matching) record(index int) {
	if index >= 0 {
		m.index = index
	}
}

// node is a part of a filter. doc is what its paths start from: the document, or an
// element of an array inside $elemMatch.
type node interface {
	match(m *matching, doc []byte) (bool, error)
}

type and []node

func (n and) match(m *matching, doc []byte) (bool, error) {
	for _, k := range n {
		if ok, err := k.match(m, doc); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

type or []node

func (n or) match(m *matching, doc []byte) (bool, error) {
	for _, k := range n {
		if ok, err := k.match(m, doc); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

type not struct{ kid node }

func (n not) match(m *matching, doc []byte) (bool, error) {
	index := m.index
	ok, err := n.kid.match(m, doc)
	m.index = index // what did not match has no position
	return !ok, err
}

type exprNode struct{ x *expr.Expr }

func (n exprNode) match(m *matching, _ []byte) (bool, error) {
	v, err := n.x.Eval(m.root, m.vars)
	return err == nil && value.Truth(v), err
}

type constant bool

func (n constant) match(*matching, []byte) (bool, error) { return bool(n), nil }

// leaf applies a predicate to each value that a path means.
type leaf struct {
	name   string
	path   []string
	pred   predicate
	expand bool // an array stands also for each of its elements
}

func (n *leaf) match(m *matching, doc []byte) (bool, error) {
	return walk(doc, n.path, -1, n.expand, func(v Value, index int) bool {
		if !n.pred.holds(v) {
			return false
		}
		m.record(index)
		return true
	}), nil
}

// elemMatch looks for one array element that satisfies a whole filter.
type elemMatch struct {
	name string
	path []string
	kid  node      // for documents; nil if preds are set
	pred predicate // for values
}

func (n *elemMatch) match(m *matching, doc []byte) (bool, error) {
	var failed error
	found := walk(doc, n.path, -1, false, func(v Value, index int) bool {
		if !value.IsArray(v) {
			return false
		}
		i := 0
		for e := range value.Elements(v.Data) {
			ok, err := n.element(m, e)
			if err != nil {
				failed = err
				return true
			}
			if ok {
				m.record(outermost(index, i))
				return true
			}
			i++
		}
		return false
	})
	return found && failed == nil, failed
}

func (n *elemMatch) element(m *matching, e Value) (bool, error) {
	if n.kid == nil {
		return n.pred.holds(e), nil
	}
	if !value.IsDocument(e) && !value.IsArray(e) {
		return false, nil
	}
	return n.kid.match(m, e.Data)
}

// ParseFilter parses a query. Errors: 2 for a malformed one, 51091 for a regular
// expression that cannot be compiled, 238 for $where, $text and the geospatial
// operators.
func ParseFilter(doc Document, vars *Vars) (*Filter, error) {
	root, err := (&filterParser{vars: vars}).document(doc)
	if err != nil {
		return nil, err
	}
	return &Filter{root: root, vars: vars}, nil
}

type filterParser struct {
	vars   *Vars
	nested bool // inside $elemMatch, where $expr may not be
}

func (p *filterParser) document(doc Document) (node, error) {
	var out and
	for k, v := range value.Fields(doc) {
		var n node
		var err error
		if strings.HasPrefix(k, "$") {
			n, err = p.topLevel(k, v)
		} else {
			n, err = p.field(k, v)
		}
		if err != nil {
			return nil, err
		}
		if n != nil {
			out = append(out, n)
		}
	}
	if len(out) == 1 {
		return out[0], nil
	}
	return out, nil
}

func (p *filterParser) topLevel(name string, v Value) (node, error) {
	switch name {
	case "$and":
		kids, err := p.list(name, v)
		return and(kids), err
	case "$or":
		kids, err := p.list(name, v)
		return or(kids), err
	case "$nor":
		kids, err := p.list(name, v)
		return not{or(kids)}, err
	case "$expr":
		if p.nested {
			return nil, badValue("$expr can only be applied to the top-level document")
		}
		x, err := expr.Parse(v, p.vars)
		return exprNode{x}, err
	case "$comment":
		return nil, nil
	case "$alwaysTrue", "$alwaysFalse":
		if n, ok := value.Integer(v); !ok || n != 1 {
			return nil, value.Errorf(value.FailedToParse, "%s must be an integer value of 1", name)
		}
		return constant(name == "$alwaysTrue"), nil
	case "$sampleRate":
		x, err := expr.Parse(value.Doc(bsoncore.BuildDocument(nil, bsoncore.AppendValueElement(nil, name, v))), p.vars)
		return exprNode{x}, err
	case "$jsonSchema":
		return parseSchema(v)
	case "$where", "$text", "$_internalSchemaCond":
		return nil, value.Errorf(value.NotImplemented, "query operator %s is not supported", name)
	}
	return nil, badValue("unknown top level operator: %s. If you have a field name that starts with a '$' symbol, consider using $getField or $setField.", name)
}

func badValue(format string, args ...any) error {
	return value.Errorf(value.BadValue, format, args...)
}

func (p *filterParser) list(name string, v Value) ([]node, error) {
	if !value.IsArray(v) || value.Len(v.Data) == 0 {
		return nil, badValue("$and/$or/$nor must be a nonempty array")
	}
	var kids []node
	for e := range value.Elements(v.Data) {
		if !value.IsDocument(e) {
			return nil, badValue("%s entries need to be full objects", name)
		}
		n, err := p.document(e.Data)
		if err != nil {
			return nil, err
		}
		kids = append(kids, n)
	}
	return kids, nil
}

// isOperators says whether a document is {$op: …} and not a value to compare with.
func isOperators(v Value) bool {
	if !value.IsDocument(v) {
		return false
	}
	k, _, ok := value.First(v.Data)
	return ok && strings.HasPrefix(k, "$") && k != "$ref" && k != "$id" && k != "$db"
}

func (p *filterParser) field(path string, v Value) (node, error) {
	if !isOperators(v) {
		pred, err := equality(v, true)
		if err != nil {
			return nil, err
		}
		return p.leaf(path, pred), nil
	}
	return p.operators(path, v)
}

func (p *filterParser) leaf(path string, pred predicate) *leaf {
	return &leaf{name: path, path: splitPath(path), pred: collate(pred, p.vars.Collation()), expand: true}
}

func (p *filterParser) operators(path string, ops Value) (node, error) {
	var out and
	for name, arg := range value.Fields(ops.Data) {
		n, err := p.operator(path, name, arg, ops)
		if err != nil {
			return nil, err
		}
		if n != nil {
			out = append(out, n)
		}
	}
	if len(out) == 1 {
		return out[0], nil
	}
	return out, nil
}

// operator parses one operator on a field. all is the document it stands in.
func (p *filterParser) operator(path, name string, arg, all Value) (node, error) {
	switch name {
	case "$not":
		return p.not(path, arg)
	case "$ne", "$nin":
		if name == "$ne" && arg.Type == bsoncore.TypeRegex {
			return nil, badValue("Can't have regex as arg to $ne.")
		}
		pred, err := parsePredicate(map[string]string{"$ne": "$eq", "$nin": "$in"}[name], arg, all)
		return not{p.leaf(path, pred)}, err
	case "$exists":
		n := &leaf{name: path, path: splitPath(path), pred: exists{}}
		if value.Truth(arg) {
			return n, nil
		}
		return not{n}, nil
	case "$size":
		size, err := parseSize(arg)
		return &leaf{name: path, path: splitPath(path), pred: size}, err
	case "$all":
		return p.all(path, arg)
	case "$elemMatch":
		return p.elemMatch(path, arg)
	case "$options":
		if value.IsMissing(value.Lookup(all.Data, "$regex")) {
			return nil, badValue("$options needs a $regex")
		}
		return nil, nil
	case "$geoWithin", "$geoIntersects", "$near", "$nearSphere", "$within", "$geoNear", "$maxDistance", "$minDistance":
		return nil, value.Errorf(value.NotImplemented, "query operator %s is not supported", name)
	case "$comment":
		return nil, nil
	}
	pred, err := parsePredicate(name, arg, all)
	if err != nil {
		return nil, err
	}
	return p.leaf(path, pred), nil
}

func (p *filterParser) not(path string, arg Value) (node, error) {
	if arg.Type == bsoncore.TypeRegex {
		pred, err := equality(arg, true)
		return not{p.leaf(path, pred)}, err
	}
	if !value.IsDocument(arg) {
		return nil, badValue("$not needs a regex or a document")
	}
	if value.Len(arg.Data) == 0 {
		return nil, badValue("$not cannot be empty")
	}
	kid, err := p.operators(path, arg)
	return not{kid}, err
}

func (p *filterParser) all(path string, arg Value) (node, error) {
	if !value.IsArray(arg) {
		return nil, badValue("$all needs an array")
	}
	var out and
	for e := range value.Elements(arg.Data) {
		n, err := p.allElement(path, e)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		return constant(false), nil
	}
	return out, nil
}

func (p *filterParser) allElement(path string, e Value) (node, error) {
	if isOperators(e) {
		name, arg, _ := value.First(e.Data)
		if name != "$elemMatch" {
			return nil, badValue("no $ expressions in $all")
		}
		return p.elemMatch(path, arg)
	}
	pred, err := equality(e, true)
	if err != nil {
		return nil, err
	}
	return p.leaf(path, pred), nil
}

func (p *filterParser) elemMatch(path string, arg Value) (node, error) {
	if !value.IsDocument(arg) {
		return nil, badValue("$elemMatch needs an Object")
	}
	n := &elemMatch{name: path, path: splitPath(path)}
	if isValueMatch(arg) {
		pred, err := p.elementPredicate(arg)
		n.pred = pred
		return n, err
	}
	kid, err := (&filterParser{vars: p.vars, nested: true}).document(arg.Data)
	n.kid = kid
	return n, err
}

// isValueMatch tells $elemMatch on values, {$gt: 1}, from that on documents.
func isValueMatch(arg Value) bool {
	if !isOperators(arg) {
		return false
	}
	k, _, _ := value.First(arg.Data)
	return k != "$and" && k != "$or" && k != "$nor" && k != "$where" && k != "$expr" && k != "$comment"
}

// elementPredicate is a document of operators as one predicate on an element: the
// element is wrapped in a document, so that all operators work on it.
func (p *filterParser) elementPredicate(ops Value) (predicate, error) {
	kid, err := (&filterParser{vars: p.vars, nested: true}).operators(elementField, ops)
	return wrapped{kid}, err
}

// elementField is the field in which elementPredicate puts an element.
const elementField = "e"

// wrapped applies a filter on elementField to a bare value. Unlike a field, the
// value does not stand for its elements if it is an array.
type wrapped struct{ kid node }

func (w wrapped) holds(v Value) bool {
	var b value.Builder
	b.Add(elementField, v)
	ok, err := matchUnexpanded(w.kid, b.Document())
	return ok && err == nil
}

// matchUnexpanded matches with every leaf's expansion off.
func matchUnexpanded(n node, doc []byte) (bool, error) {
	switch n := n.(type) {
	case and:
		for _, k := range n {
			if ok, err := matchUnexpanded(k, doc); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	case not:
		ok, err := matchUnexpanded(n.kid, doc)
		return !ok, err
	case *leaf:
		flat := *n
		flat.expand = false
		return flat.match(&matching{}, doc)
	}
	return n.match(&matching{}, doc)
}
