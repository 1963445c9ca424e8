package query

import (
	"errors"
	"io"
	"strings"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

// The stages that read other collections, or run pipelines of their own.

// lookupStage joins: by equal fields, by a pipeline, or both.
type lookupStage struct {
	from     Namespace
	local    []string // nil: not by fields
	foreign  string
	let      []letBinding
	pipeline *Pipeline
	as       []string
}

type letBinding struct {
	name string
	x    *expr.Expr
}

func parseLookup(p *pipelineParser, v Value) ([]stage, error) {
	if !value.IsDocument(v) {
		return nil, value.Errorf(value.FailedToParse, "the $lookup stage specification must be an object, but found %s", value.TypeName(v))
	}
	s := &lookupStage{pipeline: &Pipeline{}}
	inner := p.vars
	pipeline := value.Missing
	for k, arg := range value.Fields(v.Data) {
		var err error
		switch k {
		case "from":
			s.from, err = parseNamespace("$lookup", arg)
		case "localField", "foreignField", "as":
			err = s.setField(k, arg)
		case "let":
			s.let, inner, err = parseLookupLet(arg, p.vars)
		case "pipeline":
			pipeline = arg
		default:
			err = value.Errorf(value.FailedToParse, "unknown argument to $lookup: %s", k)
		}
		if err != nil {
			return nil, err
		}
	}
	if !value.IsMissing(pipeline) {
		var err error
		if s.pipeline, err = (&pipelineParser{vars: inner, place: inLookup}).parse(pipeline); err != nil {
			return nil, err
		}
	}
	return []stage{s}, s.check(!value.IsMissing(pipeline))
}

func (s *lookupStage) setField(k string, arg Value) error {
	if !value.IsString(arg) {
		return value.Errorf(value.FailedToParse, "$lookup argument '%s: %s' must be a string, is type %s", k, value.Show(arg), value.TypeName(arg))
	}
	text := value.Str(arg)
	for part := range strings.SplitSeq(text, ".") {
		switch {
		case part == "":
			return value.Errorf(15998, "FieldPath field names may not be empty strings.")
		case part[0] == '$':
			return value.Errorf(16410, "FieldPath field names may not start with '$'.")
		}
	}
	switch k {
	case "localField":
		s.local = splitPath(text)
	case "foreignField":
		s.foreign = text
	case "as":
		s.as = splitPath(text)
	}
	return nil
}

func (s *lookupStage) check(hasPipeline bool) error {
	switch {
	case s.as == nil:
		return value.Errorf(value.FailedToParse, "must specify 'as' field for a $lookup")
	case (s.local == nil) != (s.foreign == ""):
		return value.Errorf(value.FailedToParse, "$lookup requires both or neither of 'localField' and 'foreignField' to be specified")
	case s.local == nil && !hasPipeline:
		return value.Errorf(value.FailedToParse, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	case s.from.Coll == "" && s.pipeline.ReadsCollection():
		return value.Errorf(value.FailedToParse, "must specify 'pipeline' with $documents as first stage when 'from' is empty")
	}
	return nil
}

func parseLookupLet(arg Value, vars *Vars) (let []letBinding, inner *Vars, err error) {
	if !value.IsDocument(arg) {
		return nil, nil, value.Errorf(value.FailedToParse, "$lookup argument 'let' must be an object, is type %s", value.TypeName(arg))
	}
	inner = vars
	for k, v := range value.Fields(arg.Data) {
		if err := expr.CheckName(k); err != nil {
			return nil, nil, err
		}
		x, err := expr.Parse(v, vars)
		if err != nil {
			return nil, nil, err
		}
		let = append(let, letBinding{k, x})
		inner = inner.With(k, value.Missing)
	}
	return let, inner, nil
}

// bind evaluates the let variables for a document.
func bind(let []letBinding, root Value, vars *Vars) (*Vars, error) {
	inner := vars
	for _, b := range let {
		v, err := b.x.Eval(root, vars)
		if err != nil {
			return nil, err
		}
		inner = inner.With(b.name, v)
	}
	return inner, nil
}

// parseNamespace reads "coll" or {db, coll}.
func parseNamespace(stage string, arg Value) (Namespace, error) {
	if value.IsString(arg) && value.Str(arg) != "" {
		return Namespace{Coll: value.Str(arg)}, nil
	}
	var ns Namespace
	for k, v := range value.Fields(arg.Data) {
		switch {
		case k == "db" && value.IsString(v):
			ns.DB = value.Str(v)
		case k == "coll" && value.IsString(v):
			ns.Coll = value.Str(v)
		default:
			return ns, value.Errorf(value.FailedToParse, "unrecognized field in the namespace of %s: %s", stage, k)
		}
	}
	if !value.IsDocument(arg) || ns.Coll == "" {
		return ns, value.Errorf(value.FailedToParse, "%s needs the name of a collection, found %s", stage, value.Show(arg))
	}
	return ns, nil
}

func (s *lookupStage) run(c *running, in Source) Source {
	return func() (Document, error) {
		doc, err := in()
		if err != nil {
			return nil, err
		}
		found, err := s.join(c, doc)
		if err != nil {
			return nil, err
		}
		return setPath(doc, s.as, found), nil
	}
}

// join is the array of what belongs to a document.
func (s *lookupStage) join(c *running, doc Document) (Value, error) {
	vars, err := bind(s.let, value.Doc(doc), c.vars)
	if err != nil {
		return value.Missing, err
	}
	var equal *Filter
	if s.local != nil {
		equal = &Filter{root: (&filterParser{vars: vars}).leaf(s.foreign, localValues(doc, s.local)), vars: vars}
	}
	src, done, err := s.source(c, equal, vars)
	if err != nil {
		return value.Missing, err
	}
	defer done()
	if equal != nil {
		src = (&matchStage{equal}).run(&running{vars: vars}, src)
	}
	cursor := s.pipeline.runWith(src, c.open, vars)
	defer cursor.Close()
	var b value.Builder
	for {
		d, err := cursor.Next()
		if errors.Is(err, io.EOF) {
			return b.Array(), nil
		}
		if err != nil {
			return value.Missing, err
		}
		b.Push(value.Doc(d))
	}
}

func (s *lookupStage) source(c *running, equal *Filter, vars *Vars) (Source, func(), error) {
	if s.from.Coll == "" {
		return FromSlice(nil), func() {}, nil
	}
	hint := equal
	if hint == nil {
		hint = s.pipeline.Leading().with(vars)
	}
	return c.openOther(s.from, hint)
}

// with is the filter under the variables of the present document.
func (f *Filter) with(vars *Vars) *Filter {
	if f == nil {
		return nil
	}
	return &Filter{root: f.root, vars: vars}
}

func (c *running) openOther(ns Namespace, hint *Filter) (Source, func(), error) {
	if c.open == nil {
		return nil, nil, value.Errorf(value.NotImplemented, "no other collection can be read here")
	}
	src, done, err := c.open(ns, hint)
	if done == nil {
		done = func() {}
	}
	return src, done, err
}

// localValues are the values that a foreign field may equal: those at the path, an
// array's elements each, null if there is nothing.
func localValues(doc Document, path []string) *oneOf {
	in := &oneOf{keys: map[string]bool{}}
	add := func(v Value) {
		if value.IsMissing(v) {
			v = value.Null
		}
		if k := string(value.KeyOf(v)); !in.keys[k] {
			in.keys[k] = true
			in.values = append(in.values, v)
		}
	}
	walk(doc, path, -1, false, func(v Value, _ int) bool {
		if !value.IsArray(v) {
			add(v)
			return false
		}
		for e := range value.Elements(v.Data) {
			add(e)
		}
		return false
	})
	return in
}

// unionStage appends another collection.
type unionStage struct {
	from     Namespace
	pipeline *Pipeline
}

func parseUnion(p *pipelineParser, v Value) ([]stage, error) {
	s := &unionStage{pipeline: &Pipeline{vars: p.vars}}
	if value.IsString(v) {
		ns, err := parseNamespace("$unionWith", v)
		s.from = ns
		return []stage{s}, err
	}
	if !value.IsDocument(v) {
		return nil, value.Errorf(value.FailedToParse, "the $unionWith stage specification must be an object or string, but found %s", value.TypeName(v))
	}
	for k, arg := range value.Fields(v.Data) {
		var err error
		switch k {
		case "coll":
			s.from, err = parseNamespace("$unionWith", arg)
		case "pipeline":
			s.pipeline, err = (&pipelineParser{vars: p.vars, place: inUnion}).parse(arg)
		default:
			err = value.Errorf(40415, "BSON field '$unionWith.%s' is an unknown field.", k)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.from.Coll == "" && s.pipeline.ReadsCollection() {
		return nil, value.Errorf(value.FailedToParse, "$unionWith stage without explicit collection must have a pipeline with $documents as first stage")
	}
	return []stage{s}, nil
}

func (s *unionStage) run(c *running, in Source) Source {
	var second *Cursor
	return func() (Document, error) {
		if second == nil {
			doc, err := in()
			if !errors.Is(err, io.EOF) {
				return doc, err
			}
			if second, err = s.open(c); err != nil {
				return nil, err
			}
		}
		return second.Next()
	}
}

func (s *unionStage) open(c *running) (*Cursor, error) {
	src := FromSlice(nil)
	if s.from.Coll != "" {
		opened, done, err := c.openOther(s.from, s.pipeline.Leading().with(c.vars))
		if err != nil {
			return nil, err
		}
		c.closers = append(c.closers, done)
		src = opened
	}
	cursor := s.pipeline.runWith(src, c.open, c.vars)
	c.closers = append(c.closers, cursor.Close)
	return cursor, nil
}

// facetStage runs several pipelines on the same documents.
type facetStage struct{ facets []facet }

type facet struct {
	name     string
	pipeline *Pipeline
}

func parseFacet(p *pipelineParser, v Value) ([]stage, error) {
	if !value.IsDocument(v) || value.Len(v.Data) == 0 {
		return nil, value.Errorf(40169, "the $facet specification must be a non-empty object")
	}
	s := &facetStage{}
	for k, arg := range value.Fields(v.Data) {
		if strings.HasPrefix(k, "$") || strings.Contains(k, ".") || k == "" {
			return nil, value.Errorf(16410, "FieldPath field names may not start with '$', contain '.' or be empty: %s", k)
		}
		if !value.IsArray(arg) {
			return nil, value.Errorf(40170, "arguments to $facet must be arrays, %s is type %s", k, value.TypeName(arg))
		}
		sub, err := (&pipelineParser{vars: p.vars, place: inFacet}).parse(arg)
		if err != nil {
			return nil, err
		}
		s.facets = append(s.facets, facet{k, sub})
	}
	return []stage{s}, nil
}

func (s *facetStage) run(c *running, in Source) Source {
	return later(func() ([]Document, error) {
		docs, err := ReadAll(in)
		if err != nil {
			return nil, err
		}
		var b value.Builder
		for _, f := range s.facets {
			list, err := f.run(c, docs)
			if err != nil {
				return nil, err
			}
			b.Add(f.name, list)
		}
		return []Document{b.Document()}, nil
	})
}

func (f facet) run(c *running, docs []Document) (Value, error) {
	cursor := f.pipeline.runWith(FromSlice(docs), c.open, c.vars)
	defer cursor.Close()
	out, err := ReadAll(cursor.Next)
	if err != nil {
		return value.Missing, err
	}
	var b value.Builder
	for _, d := range out {
		b.Push(value.Doc(d))
	}
	return b.Array(), nil
}

// documentsStage makes documents of an expression.
type documentsStage struct{ x *expr.Expr }

func parseDocuments(p *pipelineParser, v Value) ([]stage, error) {
	x, err := expr.Parse(v, p.vars)
	return []stage{&documentsStage{x}}, err
}

func (s *documentsStage) run(c *running, _ Source) Source {
	return later(func() ([]Document, error) {
		v, err := s.x.Eval(value.Missing, c.vars)
		if err != nil {
			return nil, err
		}
		if !value.IsArray(v) {
			return nil, value.Errorf(5858203, "$documents must evaluate to an array of objects, found %s", value.TypeName(v))
		}
		var out []Document
		for e := range value.Elements(v.Data) {
			if !value.IsDocument(e) {
				return nil, value.Errorf(40228, "'newRoot' expression must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'.", value.Show(e), value.TypeName(e))
			}
			out = append(out, e.Data)
		}
		return out, nil
	})
}
