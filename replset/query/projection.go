package query

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

const typeBool = bsoncore.TypeBoolean

// Projection makes a document out of parts of another.
type Projection struct {
	root      *projectionNode
	exclusion bool
	keepID    bool
	vars      *Vars
}

// NeedsPosition says whether Apply needs what the filter matched.
func (p *Projection) NeedsPosition() bool { return p != nil && p.root.matched }

// Apply projects a document. at is what Filter.MatchPosition gave for it. A nil
// Projection is the document itself. Error: 51246 if a positional projection has no
// position.
func (p *Projection) Apply(doc Document, at Position) (Document, error) {
	if p == nil {
		return doc, nil
	}
	return p.applyWith(doc, at, p.vars)
}

func (p *Projection) applyWith(doc Document, at Position, vars *Vars) (Document, error) {
	run := projecting{p: p, root: value.Doc(doc), index: at.index(), vars: vars}
	if p.exclusion {
		out, err := run.exclude(p.root, doc)
		return out.Data, err
	}
	out, err := run.include(p.root, doc, p.keepID)
	if err == nil && p.root.computed {
		out, err = run.compute(p.root, out)
	}
	return out.Data, err
}

// projecting is one document being projected.
type projecting struct {
	p     *Projection
	root  Value
	index int
	vars  *Vars
}

func (r *projecting) include(n *projectionNode, doc Document, keepID bool) (Value, error) {
	var b value.Builder
	for k, v := range value.Fields(doc) {
		kid := n.kids[k]
		if kid == nil {
			if keepID && k == "_id" {
				b.Add(k, v)
			}
			continue
		}
		got, err := r.includeValue(kid, v)
		if err != nil {
			return got, err
		}
		b.Add(k, got)
	}
	return b.Value(), nil
}

// includeValue is what is left of a field; Missing if nothing is.
func (r *projecting) includeValue(n *projectionNode, v Value) (Value, error) {
	switch n.action {
	case include:
		return v, nil
	case compute:
		return value.Missing, nil // compute adds it
	case descend:
		if n.matched && value.IsArray(v) {
			one, err := r.positional(v)
			if err != nil {
				return one, err
			}
			v = one
		}
		return r.mapDocuments(v, value.Missing, func(d Document) (Value, error) { return r.include(n, d, false) })
	}
	return r.cut(n, v)
}

// cut applies the operators that take a part of an array.
func (r *projecting) cut(n *projectionNode, v Value) (Value, error) {
	switch n.action {
	case sliceOf:
		if value.IsArray(v) {
			return expr.Slice(v, n.from, n.n), nil
		}
	case positional:
		if value.IsArray(v) {
			return r.positional(v)
		}
	case firstMatch:
		return r.firstMatch(n, v)
	}
	return v, nil
}

func (r *projecting) positional(array Value) (Value, error) {
	if r.index >= 0 {
		if e := value.At(array.Data, r.index); !value.IsMissing(e) {
			return value.ArrayOf([]Value{e}), nil
		}
	}
	return value.Missing, value.Errorf(51246, "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array")
}

func (r *projecting) firstMatch(n *projectionNode, v Value) (Value, error) {
	if !value.IsArray(v) {
		return value.Missing, nil
	}
	var b value.Builder
	b.Add(elementField, v)
	ok, at, err := n.filter.matchWith(b.Document(), r.vars)
	if err != nil || !ok {
		return value.Missing, err
	}
	return value.ArrayOf([]Value{value.At(v.Data, at.index())}), nil
}

// mapDocuments applies f to a document, or to every document in an array and the
// arrays in it. other stands for what is neither; it is v itself if it is Null.
func (r *projecting) mapDocuments(v, other Value, f func(Document) (Value, error)) (Value, error) {
	switch {
	case value.IsDocument(v):
		return f(v.Data)
	case value.IsArray(v):
		var b value.Builder
		for e := range value.Elements(v.Data) {
			got, err := r.mapDocuments(e, other, f)
			if err != nil {
				return got, err
			}
			if !value.IsMissing(got) {
				b.Push(got)
			}
		}
		return b.Array(), nil
	case value.IsMissing(other):
		return other, nil
	}
	return v, nil
}

func (r *projecting) exclude(n *projectionNode, doc Document) (Value, error) {
	var b value.Builder
	for k, v := range value.Fields(doc) {
		if kid := n.kids[k]; kid != nil {
			got, err := r.excludeValue(kid, v)
			if err != nil {
				return got, err
			}
			v = got
		}
		b.Add(k, v)
	}
	return b.Value(), nil
}

func (r *projecting) excludeValue(n *projectionNode, v Value) (Value, error) {
	switch n.action {
	case exclude:
		return value.Missing, nil
	case descend:
		return r.mapDocuments(v, value.Null, func(d Document) (Value, error) { return r.exclude(n, d) })
	}
	return r.cut(n, v)
}

// compute sets the computed fields on a document that has the others already: in
// place where they exist, else at the end in the order written.
func (r *projecting) compute(n *projectionNode, doc Value) (Value, error) {
	set := map[string]Value{}
	for _, k := range n.order {
		kid := n.kids[k]
		if !kid.computed {
			continue
		}
		v, err := r.computeValue(kid, value.Lookup(doc.Data, k))
		if err != nil {
			return v, err
		}
		set[k] = v
	}
	var b value.Builder
	for k, v := range value.Fields(doc.Data) {
		if got, ok := set[k]; ok {
			v = got
			delete(set, k)
		}
		b.Add(k, v)
	}
	for _, k := range n.order {
		if v, ok := set[k]; ok {
			b.Add(k, v)
		}
	}
	return b.Value(), nil
}

func (r *projecting) computeValue(n *projectionNode, v Value) (Value, error) {
	if n.action == compute {
		return n.x.Eval(r.root, r.vars)
	}
	if !value.IsArray(v) {
		if !value.IsDocument(v) {
			v = (&value.Builder{}).Value()
		}
		return r.compute(n, v)
	}
	var b value.Builder
	for e := range value.Elements(v.Data) {
		got, err := r.computeValue(n, e)
		if err != nil {
			return got, err
		}
		b.Push(got)
	}
	return b.Array(), nil
}

// parseAddFields parses a $set or $addFields stage: computed fields only, where also
// a number or a boolean is a value.
func parseAddFields(stage string, v Value, vars *Vars) (*Projection, error) {
	if !value.IsDocument(v) {
		return nil, value.Errorf(40272, "%s specification stage must be an object, got %s", stage, value.TypeName(v))
	}
	p := &projectionParser{vars: vars}
	if err := p.computed("", v.Data); err != nil {
		return nil, err
	}
	out := &Projection{root: newProjectionNode(descend), vars: vars}
	for _, e := range p.entries {
		if err := out.root.insert(e.path, e.path, e.node); err != nil {
			return nil, err
		}
	}
	if len(p.entries) == 0 {
		return nil, value.Errorf(40177, "Invalid %s :: caused by :: specification must have at least one field", stage)
	}
	return out, nil
}

func (p *projectionParser) computed(prefix string, doc Document) error {
	for k, v := range value.Fields(doc) {
		if value.IsDocument(v) && !isOperators(v) && value.Len(v.Data) > 0 {
			if err := p.computed(prefix+k+".", v.Data); err != nil {
				return err
			}
			continue
		}
		x, err := expr.Parse(v, p.vars)
		if err != nil {
			return err
		}
		n := newProjectionNode(compute)
		n.x = x
		if err := p.add(prefix+k, n); err != nil {
			return err
		}
	}
	return nil
}

// addFields sets the computed fields and keeps all others.
func (p *Projection) addFields(doc Document, vars *Vars) (Document, error) {
	run := projecting{p: p, root: value.Doc(doc), index: -1, vars: vars}
	out, err := run.compute(p.root, value.Doc(doc))
	return out.Data, err
}
