package query

import (
	"strings"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

// action is what a projection does with a field.
type action int

const (
	descend action = iota // a node with children
	include
	exclude
	compute
	sliceOf
	firstMatch // $elemMatch
	positional // a.$
)

// projectionNode is a field of a projection, or its root.
type projectionNode struct {
	action   action
	kids     map[string]*projectionNode
	order    []string // of kids, as written
	x        *expr.Expr
	from, n  int64   // sliceOf
	filter   *Filter // firstMatch, on elementField
	computed bool    // it or a child is compute
	matched  bool    // it or a child is positional
}

// projectionEntry is one path of a projection, before the paths become a tree.
type projectionEntry struct {
	path string
	node *projectionNode
}

// ParseProjection parses a find's projection: inclusion or exclusion, computed
// fields, $slice, $elemMatch and the positional operator. An empty one gives nil:
// the whole document. Errors: 31249, 31250 for paths that collide, 31253, 31254 for
// inclusion mixed with exclusion, 238 for $meta.
func ParseProjection(doc Document, vars *Vars) (*Projection, error) {
	if value.Len(doc) == 0 {
		return nil, nil
	}
	return (&projectionParser{vars: vars, find: true}).parse(doc)
}

type projectionParser struct {
	vars    *Vars
	find    bool // with the operators that only find has
	entries []projectionEntry
}

// parseProject parses a $project stage.
func parseProject(doc Document, vars *Vars) (*Projection, error) {
	if value.Len(doc) == 0 {
		return nil, value.Errorf(51272, "Invalid $project :: caused by :: projection specification must have at least one field")
	}
	return (&projectionParser{vars: vars}).parse(doc)
}

func (p *projectionParser) parse(doc Document) (*Projection, error) {
	if err := p.fields("", doc); err != nil {
		return nil, err
	}
	exclusion, err := p.mode()
	if err != nil {
		return nil, err
	}
	out := &Projection{exclusion: exclusion, vars: p.vars, root: newProjectionNode(descend), keepID: true}
	for _, e := range p.entries {
		if e.path == "_id" && e.node.action == exclude {
			out.keepID = false
			if !exclusion {
				continue
			}
		}
		if exclusion && e.node.action == include {
			continue // only _id can be there, which is kept anyway
		}
		if err := out.root.insert(e.path, e.path, e.node); err != nil {
			return nil, err
		}
	}
	if n := countPositional(p.entries); n > 1 {
		return nil, value.Errorf(31276, "Cannot specify more than one positional projection per query.")
	}
	return out, nil
}

func countPositional(entries []projectionEntry) int {
	n := 0
	for _, e := range entries {
		if e.node.action == positional {
			n++
		}
	}
	return n
}

func newProjectionNode(a action) *projectionNode {
	return &projectionNode{action: a, computed: a == compute, matched: a == positional}
}

func (p *projectionParser) fields(prefix string, doc Document) error {
	for k, v := range value.Fields(doc) {
		if err := p.field(prefix+k, v); err != nil {
			return err
		}
	}
	return nil
}

func (p *projectionParser) field(path string, v Value) error {
	if p.find && strings.HasSuffix(path, ".$") {
		return p.add(strings.TrimSuffix(path, ".$"), newProjectionNode(positional))
	}
	switch {
	case value.IsNumber(v) || v.Type == typeBool:
		if value.Truth(v) {
			return p.add(path, newProjectionNode(include))
		}
		return p.add(path, newProjectionNode(exclude))
	case value.IsDocument(v) && !isOperators(v):
		if value.Len(v.Data) == 0 {
			return value.Errorf(51270, "An empty sub-projection is not a valid value. Found empty object at path")
		}
		return p.fields(path+".", v.Data)
	case value.IsDocument(v) && p.find:
		if done, err := p.findOperator(path, v); done || err != nil {
			return err
		}
	}
	x, err := expr.Parse(v, p.vars)
	if err != nil {
		return err
	}
	n := newProjectionNode(compute)
	n.x = x
	return p.add(path, n)
}

// findOperator parses what means something else in a find than in an aggregation.
func (p *projectionParser) findOperator(path string, v Value) (done bool, err error) {
	name, arg, _ := value.First(v.Data)
	switch name {
	case "$slice":
		n, err := parseProjectionSlice(arg)
		if err != nil || n == nil {
			return false, err // not of find's form: it is the expression
		}
		return true, p.add(path, n)
	case "$elemMatch":
		if !value.IsDocument(arg) {
			return false, value.Errorf(31274, "elemMatch: Invalid argument, object required, but got %s", value.TypeName(arg))
		}
		n := newProjectionNode(firstMatch)
		var b, inner value.Builder
		inner.Add("$elemMatch", arg)
		b.Add(elementField, inner.Value())
		n.filter, err = ParseFilter(b.Document(), p.vars)
		if err != nil {
			return false, err
		}
		return true, p.add(path, n)
	case "$meta":
		return false, value.Errorf(value.NotImplemented, "projecting $meta is not supported")
	}
	return false, nil
}

// parseProjectionSlice parses n or [skip, n]; nil if the argument is neither.
func parseProjectionSlice(arg Value) (*projectionNode, error) {
	out := newProjectionNode(sliceOf)
	if value.IsNumber(arg) {
		n, ok := value.NumberOf(arg).Trunc64()
		if !ok {
			return nil, badValue("$slice limit must be a 32-bit integer")
		}
		if n < 0 {
			out.from, out.n = n, -n
			return out, nil
		}
		out.n = n
		return out, nil
	}
	list := value.List(arg.Data)
	if !value.IsArray(arg) {
		return nil, value.Errorf(28667, "Invalid $slice syntax. The given syntax %s did not match the find() syntax.", value.Show(arg))
	}
	if len(list) == 2 && value.IsNumber(list[0]) && value.IsNumber(list[1]) {
		skip, okSkip := value.NumberOf(list[0]).Trunc64()
		n, ok := value.NumberOf(list[1]).Trunc64()
		if !ok || !okSkip || n <= 0 {
			return nil, value.Errorf(28724, "First argument to $slice must be an array, but is of type: %s", value.TypeName(list[0]))
		}
		out.from, out.n = skip, n
		return out, nil
	}
	return nil, nil
}

func (p *projectionParser) add(path string, n *projectionNode) error {
	for part := range strings.SplitSeq(path, ".") {
		switch {
		case part == "":
			return value.Errorf(15998, "FieldPath field names may not be empty strings.")
		case part[0] == '$':
			return value.Errorf(16410, "FieldPath field names may not start with '$'.")
		}
	}
	p.entries = append(p.entries, projectionEntry{path, n})
	return nil
}

// mode decides between inclusion and exclusion. What says 1 or computes makes an
// inclusion, what says 0 an exclusion; _id may say either, and $slice says nothing.
func (p *projectionParser) mode() (exclusion bool, err error) {
	decided := false
	for _, e := range p.entries {
		if e.path == "_id" && e.node.action <= exclude || e.node.action == sliceOf {
			continue
		}
		ex := e.node.action == exclude
		if decided && ex != exclusion {
			if exclusion {
				return false, value.Errorf(31253, "Cannot do inclusion on field %s in exclusion projection", e.path)
			}
			return false, value.Errorf(31254, "Cannot do exclusion on field %s in inclusion projection", e.path)
		}
		decided, exclusion = true, ex
	}
	if decided {
		return exclusion, nil
	}
	for _, e := range p.entries {
		if e.path == "_id" && e.node.action == include {
			return false, nil
		}
	}
	return true, nil
}

// insert puts a node into the tree under a path.
func (n *projectionNode) insert(rest, full string, leaf *projectionNode) error {
	n.computed = n.computed || leaf.computed
	n.matched = n.matched || leaf.matched
	part, tail, more := strings.Cut(rest, ".")
	if n.kids == nil {
		n.kids = map[string]*projectionNode{}
	}
	kid := n.kids[part]
	if kid == nil {
		kid = newProjectionNode(descend)
		if !more {
			kid = leaf
		}
		n.kids[part] = kid
		n.order = append(n.order, part)
		if !more {
			return nil
		}
	} else if !more {
		return value.Errorf(31250, "Path collision at %s", full)
	}
	if kid.action != descend {
		return value.Errorf(31249, "Path collision at %s remaining portion %s", full, tail)
	}
	return kid.insert(tail, full, leaf)
}
