package query

import (
	"regexp"
	"strings"

	"github.com/assaylab/assay/replset/query/value"
)

// applying is one document being changed by operators.
type applying struct {
	u       *Update
	in      ApplyInput
	id      Value // for messages
	touched pathSet
}

func (u *Update) applyOperators(doc Document, in ApplyInput) (Document, error) {
	root := newTree(value.Doc(doc))
	r := &applying{u: u, in: in, id: value.Lookup(doc, "_id")}
	for i := range u.ops {
		op := &u.ops[i]
		if op.onInsert && !in.Upserting {
			continue
		}
		if op.rename != nil {
			if err := r.rename(root, op); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.apply(root, op.path, "", op); err != nil {
			return nil, err
		}
	}
	return root.value().Data, nil
}

// apply walks down a path and changes what is at its end. at is the path so far, as
// it really is: with positions in place of positional operators.
func (r *applying) apply(t *tree, path []string, at string, op *operation) error {
	switch part := path[0]; {
	case part == "$":
		if r.in.Position == 0 {
			return badValue("The positional operator did not find the match needed from the query.")
		}
		return r.step(t, indexKey(r.in.Position.index()), path, at, op)
	case strings.HasPrefix(part, "$["):
		return r.each(t, path, at, op)
	default:
		return r.step(t, part, path, at, op)
	}
}

// each goes on with the elements that $[] or $[id] selects.
func (r *applying) each(t *tree, path []string, at string, op *operation) error {
	if !t.isArray() {
		return badValue("Cannot apply array updates to non-array element %s: %s", lastPart(at), value.Show(t.value()))
	}
	t.unfold()
	id := strings.TrimSuffix(path[0][2:], "]")
	for i := range t.kids {
		if id != "" {
			ok, err := r.selects(id, t.kids[i].sub.value())
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		if err := r.step(t, indexKey(i), path, at, op); err != nil {
			return err
		}
	}
	return nil
}

// selects asks the array filter of an identifier about an element.
func (r *applying) selects(id string, e Value) (bool, error) {
	var b value.Builder
	b.Add(id, e)
	return r.u.filters[id].Match(b.Document())
}

// step goes on under one key.
func (r *applying) step(t *tree, key string, path []string, at string, op *operation) error {
	full := joinPath(at, key)
	if !t.isDocument() && !t.isArray() {
		return r.notViable(t, key, at, op)
	}
	i := t.find(key)
	if i < 0 && t.isArray() {
		if _, ok := position(key); !ok {
			return r.notViable(t, key, at, op)
		}
	}
	if len(path) == 1 {
		return r.change(t, i, key, full, op)
	}
	if i < 0 {
		if !op.create {
			return nil
		}
		if strings.HasPrefix(path[1], "$[") {
			return badValue("The path '%s' must exist in the document in order to apply array updates.", full)
		}
		var err error
		if i, err = grow(t, key, newTree(emptyDocument())); err != nil {
			return err
		}
	}
	return r.apply(t.kids[i].sub, path[1:], full, op)
}

func (r *applying) notViable(t *tree, key, at string, op *operation) error {
	if !op.create {
		return nil
	}
	return value.Errorf(value.PathNotViable, "Cannot create field '%s' in element {%s: %s}", key, lastPart(at), value.Show(t.value()))
}

// maxPadding is how far beyond its end an array may be extended.
const maxPadding = 1500000

// grow adds a child: to a document at the end, to an array at a position, with nulls
// before it.
func grow(t *tree, key string, sub *tree) (int, error) {
	if t.isArray() {
		n, _ := position(key)
		if n-len(t.kids) > maxPadding {
			return 0, badValue("can't backfill more than %d elements", maxPadding)
		}
		for len(t.kids) < n {
			t.add("", newTree(value.Null))
		}
	}
	t.add(key, sub)
	return len(t.kids) - 1, nil
}

// change computes the new value of a field and puts it in place.
func (r *applying) change(t *tree, i int, key, full string, op *operation) error {
	if r.u.dynamic {
		if where, ok := r.touched.add(full); !ok {
			return conflict(full, where)
		}
	}
	old := value.Missing
	if i >= 0 {
		old = t.kids[i].sub.value()
	} else if !op.create {
		return nil
	}
	v, err := op.change(r, full, old)
	if err != nil {
		return err
	}
	switch {
	case value.IsMissing(v) && i < 0:
		return nil
	case value.IsMissing(v) && t.isArray():
		t.kids[i].sub = newTree(value.Null) // the elements behind keep their positions
	case value.IsMissing(v):
		t.removeAt(i)
	case i >= 0:
		t.kids[i].sub = newTree(v)
	default:
		_, err = grow(t, key, newTree(v))
	}
	return err
}

func conflict(path, at string) error {
	return value.Errorf(value.ConflictingOperators, "Updating the path '%s' would create a conflict at '%s'", path, at)
}

// rename takes a field out and sets it elsewhere. Neither path may go through an
// array.
func (r *applying) rename(root *tree, op *operation) error {
	t := root
	for n, part := range op.rename {
		if t.isArray() {
			return badValue("The source field cannot be an array element, '%s' in doc with _id: %s has an array field called '%s'",
				strings.Join(op.rename, "."), value.Show(r.id), op.rename[n-1])
		}
		if !t.isDocument() {
			return nil
		}
		i := t.find(part)
		if i < 0 {
			return nil
		}
		if n < len(op.rename)-1 {
			t = t.kids[i].sub
			continue
		}
		v := t.kids[i].sub.value()
		if err := r.checkTarget(root, op); err != nil {
			return err
		}
		t.removeAt(i)
		set := operation{name: "$rename", path: op.path, full: op.full, create: true, change: setTo(v)}
		return r.apply(root, op.path, "", &set)
	}
	return nil
}

func (r *applying) checkTarget(root *tree, op *operation) error {
	t := root
	for n, part := range op.path {
		if t.isArray() {
			return badValue("The destination field cannot be an array element, '%s' in doc with _id: %s has an array field called '%s'",
				op.full, value.Show(r.id), op.path[n-1])
		}
		if !t.isDocument() {
			return nil
		}
		i := t.find(part)
		if i < 0 {
			return nil
		}
		t = t.kids[i].sub
	}
	return nil
}

var identifierForm = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

func (u *Update) parseArrayFilters(list Value) error {
	if value.IsMissing(list) {
		return nil
	}
	if !value.IsArray(list) {
		return value.Errorf(value.TypeMismatch, "BSON field 'update.arrayFilters' is the wrong type '%s', expected type 'array'", value.TypeName(list))
	}
	u.filters = map[string]*Filter{}
	for e := range value.Elements(list.Data) {
		if !value.IsDocument(e) {
			return value.Errorf(value.TypeMismatch, "Each array filter must be an object, found %s", value.TypeName(e))
		}
		f, err := ParseFilter(e.Data, u.vars)
		if err != nil {
			return err
		}
		id, err := identifierOf(f.root)
		if err != nil {
			return err
		}
		if u.filters[id] != nil {
			return value.Errorf(value.FailedToParse, "Found multiple array filters with the same top-level field name %s", id)
		}
		u.filters[id] = f
	}
	return nil
}

// identifierOf is the one name with which all paths of an array filter begin.
func identifierOf(n node) (string, error) {
	names := map[string]bool{}
	if err := topLevelNames(n, names); err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", value.Errorf(value.FailedToParse, "Cannot use an expression without a top-level field name in arrayFilters")
	}
	id := ""
	for name := range names {
		if id != "" {
			return "", value.Errorf(value.FailedToParse, "Error parsing array filter :: caused by :: Expected a single top-level field name, found '%s' and '%s'", min(id, name), max(id, name))
		}
		id = name
	}
	if !identifierForm.MatchString(id) {
		return "", badValue("Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '%s'", id)
	}
	return id, nil
}

func topLevelNames(n node, names map[string]bool) error {
	var kids []node
	switch n := n.(type) {
	case and:
		kids = n
	case or:
		kids = n
	case not:
		kids = []node{n.kid}
	case *leaf:
		names[n.path[0]] = true
	case *elemMatch:
		names[n.path[0]] = true
	case exprNode:
		return value.Errorf(224, "$expr is not allowed in the context of an array filter")
	}
	for _, k := range kids {
		if err := topLevelNames(k, names); err != nil {
			return err
		}
	}
	return nil
}
