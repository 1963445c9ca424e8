package query

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

// The stages that must see all their input before they give the first document.

// later makes a source of what f computes when the first document is asked for.
func later(f func() ([]Document, error)) Source {
	var out Source
	return func() (Document, error) {
		if out == nil {
			docs, err := f()
			if err != nil {
				return nil, err
			}
			out = FromSlice(docs)
		}
		return out()
	}
}

// sortStage sorts; with a limit it never holds more than twice that many documents.
type sortStage struct {
	sort  *Sort
	limit int64 // of documents that are wanted; 0: all
}

func parseSortStage(p *pipelineParser, v Value) ([]stage, error) {
	if !value.IsDocument(v) {
		return nil, value.Errorf(15973, "the $sort key specification must be an object")
	}
	s, err := ParseSort(v.Data, p.vars.Collation())
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, value.Errorf(15976, "$sort stage must have at least one sort key")
	}
	if s.Natural() != 0 {
		return nil, value.Errorf(16410, "FieldPath field names may not start with '$'.")
	}
	return []stage{&sortStage{sort: s}}, nil
}

// limitSorts tells each $sort how much of its result the stages behind it can use.
func limitSorts(stages []stage) {
	for i, s := range stages {
		sorter, ok := s.(*sortStage)
		if !ok {
			continue
		}
		skipped := int64(0)
		for _, next := range stages[i+1:] {
			if skip, ok := next.(*skipStage); ok {
				skipped += skip.n
				continue
			}
			if limit, ok := next.(*limitStage); ok && skipped+limit.n < maxTop {
				sorter.limit = skipped + limit.n
			}
			break
		}
	}
}

// maxTop is above which keeping only the first documents is not worth it.
const maxTop = 1 << 20

func (s *sortStage) run(_ *running, in Source) Source {
	return later(func() ([]Document, error) {
		var list []keyed
		for {
			doc, err := in()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			key, err := s.sort.Key(doc)
			if err != nil {
				return nil, err
			}
			list = append(list, keyed{key, doc})
			if s.limit > 0 && int64(len(list)) >= 2*s.limit {
				list = s.cut(list)
			}
		}
		list = s.cut(list)
		out := make([]Document, len(list))
		for i, k := range list {
			out[i] = k.doc
		}
		return out, nil
	})
}

func (s *sortStage) cut(list []keyed) []keyed {
	slices.SortStableFunc(list, func(a, b keyed) int { return bytes.Compare(a.key, b.key) })
	if s.limit > 0 && int64(len(list)) > s.limit {
		clear(list[s.limit:])
		list = list[:s.limit]
	}
	return list
}

// groupStage collects documents by a key.
type groupStage struct {
	id     func(root Value, vars *Vars) (Value, error)
	fields []groupField
	sorted bool // give the groups in order of their keys
}

type groupField struct {
	name string
	g    *expr.Grouping
}

type group struct {
	id   Value
	accs []expr.Accumulator
}

func parseGroup(p *pipelineParser, v Value) ([]stage, error) {
	if !value.IsDocument(v) {
		return nil, value.Errorf(15947, "a group's fields must be specified in an object")
	}
	s := &groupStage{}
	for k, arg := range value.Fields(v.Data) {
		if k == "_id" {
			x, err := expr.Parse(arg, p.vars)
			if err != nil {
				return nil, err
			}
			s.id = x.Eval
			continue
		}
		if err := s.add(k, arg, p.vars); err != nil {
			return nil, err
		}
	}
	if s.id == nil {
		return nil, value.Errorf(15955, "a group specification must include an _id")
	}
	return []stage{s}, nil
}

func (s *groupStage) add(name string, arg Value, vars *Vars) error {
	switch {
	case strings.Contains(name, "."):
		return value.Errorf(40235, "The field name '%s' cannot contain '.'", name)
	case strings.HasPrefix(name, "$"):
		return value.Errorf(40236, "The field name '%s' cannot be an operator name", name)
	}
	g, err := expr.ParseAccumulator(name, arg, vars)
	s.fields = append(s.fields, groupField{name, g})
	return err
}

func (s *groupStage) run(c *running, in Source) Source {
	return later(func() ([]Document, error) {
		groups := map[string]*group{}
		var order []*group
		for {
			doc, err := in()
			if errors.Is(err, io.EOF) {
				return s.results(order), nil
			}
			if err != nil {
				return nil, err
			}
			root := value.Doc(doc)
			id, err := s.id(root, c.vars)
			if err != nil {
				return nil, err
			}
			if value.IsMissing(id) {
				id = value.Null
			}
			key := string(c.vars.Collation().KeyOf(id))
			g := groups[key]
			if g == nil {
				g = s.newGroup(id)
				groups[key] = g
				order = append(order, g)
			}
			if err := s.take(g, root, c.vars); err != nil {
				return nil, err
			}
		}
	})
}

func (s *groupStage) newGroup(id Value) *group {
	g := &group{id: id}
	for _, f := range s.fields {
		g.accs = append(g.accs, f.g.New())
	}
	return g
}

func (s *groupStage) take(g *group, root Value, vars *Vars) error {
	for i, f := range s.fields {
		v, err := f.g.Arg(root, vars)
		if err != nil {
			return err
		}
		if err := g.accs[i].Add(v); err != nil {
			return err
		}
	}
	return nil
}

func (s *groupStage) results(order []*group) []Document {
	if s.sorted {
		slices.SortFunc(order, func(a, b *group) int { return value.Compare(a.id, b.id) })
	}
	var out []Document
	for _, g := range order {
		var b value.Builder
		b.Add("_id", g.id)
		for i, f := range s.fields {
			b.Add(f.name, g.accs[i].Result())
		}
		out = append(out, b.Document())
	}
	return out
}

// parseCount: a $count is a group of all, without its key.
func parseCount(p *pipelineParser, v Value) ([]stage, error) {
	name := value.Str(v)
	switch {
	case !value.IsString(v):
		return nil, value.Errorf(40156, "the count field must be a non-empty string")
	case name == "":
		return nil, value.Errorf(40156, "the count field must be a non-empty string")
	case strings.HasPrefix(name, "$"):
		return nil, value.Errorf(40158, "the count field cannot be a $-prefixed path")
	case strings.Contains(name, "."):
		return nil, value.Errorf(40160, "the count field cannot contain '.'")
	}
	g := &groupStage{id: func(Value, *Vars) (Value, error) { return value.Null, nil }}
	if err := g.add(name, counting(), p.vars); err != nil {
		return nil, err
	}
	return []stage{g, &mapStage{func(doc Document, _ *Vars) (Document, error) {
		var b value.Builder
		b.Add(name, value.Lookup(doc, name))
		return b.Document(), nil
	}}}, nil
}

// counting is {$sum: 1}.
func counting() Value {
	var b value.Builder
	b.Add("$sum", value.Int32(1))
	return b.Value()
}

func parseSortByCount(p *pipelineParser, v Value) ([]stage, error) {
	if !isOperators(v) && !(value.IsString(v) && strings.HasPrefix(value.Str(v), "$")) {
		return nil, value.Errorf(40147, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
	}
	x, err := expr.Parse(v, p.vars)
	if err != nil {
		return nil, err
	}
	g := &groupStage{id: x.Eval}
	if err := g.add("count", counting(), p.vars); err != nil {
		return nil, err
	}
	var b value.Builder
	b.Add("count", value.Int32(-1))
	s, err := ParseSort(b.Document(), nil)
	return []stage{g, &sortStage{sort: s}}, err
}

// parseBucket: a $bucket is a group whose key is the lower boundary.
func parseBucket(p *pipelineParser, v Value) ([]stage, error) {
	if p.vars.Collation() != nil {
		return nil, value.Errorf(value.NotImplemented, "$bucket is not supported with a collation")
	}
	if !value.IsDocument(v) {
		return nil, value.Errorf(40201, "Argument to $bucket stage must be an object, but found type: %s", value.TypeName(v))
	}
	b := bucket{}
	g := &groupStage{sorted: true, id: b.id}
	output := false
	for k, arg := range value.Fields(v.Data) {
		var err error
		switch k {
		case "groupBy":
			b.by, err = expr.Parse(arg, p.vars)
		case "boundaries":
			b.bounds, err = parseBoundaries(arg)
		case "default":
			b.other = value.Clone(arg)
		case "output":
			output = true
			for name, acc := range value.Fields(arg.Data) {
				if err == nil {
					err = g.add(name, acc, p.vars)
				}
			}
		default:
			err = value.Errorf(40197, "Unrecognized option to $bucket: %s.", k)
		}
		if err != nil {
			return nil, err
		}
	}
	if b.by == nil || b.bounds == nil {
		return nil, value.Errorf(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.")
	}
	if !value.IsMissing(b.other) && value.Compare(b.other, b.bounds[0]) >= 0 && value.Compare(b.other, b.bounds[len(b.bounds)-1]) < 0 {
		return nil, value.Errorf(40199, "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.")
	}
	if !output {
		if err := g.add("count", counting(), p.vars); err != nil {
			return nil, err
		}
	}
	g.id = b.id
	return []stage{g}, nil
}

type bucket struct {
	by     *expr.Expr
	bounds []Value
	other  Value
}

func (b bucket) id(root Value, vars *Vars) (Value, error) {
	v, err := b.by.Eval(root, vars)
	if err != nil {
		return v, err
	}
	for i := range b.bounds[1:] {
		if value.Compare(v, b.bounds[i]) >= 0 && value.Compare(v, b.bounds[i+1]) < 0 {
			return b.bounds[i], nil
		}
	}
	if value.IsMissing(b.other) {
		return v, value.Errorf(40066, "$switch could not find a matching branch for an input, and no default was specified.")
	}
	return b.other, nil
}

func parseBoundaries(arg Value) ([]Value, error) {
	if !value.IsArray(arg) {
		return nil, value.Errorf(40200, "The $bucket 'boundaries' field must be an array, but found type: %s.", value.TypeName(arg))
	}
	list := value.List(value.Clone(arg).Data)
	if len(list) < 2 {
		return nil, value.Errorf(40192, "The $bucket 'boundaries' field must have at least 2 values, but found %d value(s).", len(list))
	}
	for i := range list[1:] {
		if value.ClassOf(list[i]) != value.ClassOf(list[i+1]) {
			return nil, value.Errorf(40193, "All values in the 'boundaries' option to $bucket must have the same type.")
		}
		if value.Compare(list[i], list[i+1]) >= 0 {
			return nil, value.Errorf(40194, "The 'boundaries' option to $bucket must be sorted in ascending order.")
		}
	}
	return list, nil
}

// sampleStage draws documents without replacement.
type sampleStage struct{ n int }

func parseSample(_ *pipelineParser, v Value) ([]stage, error) {
	if !value.IsDocument(v) {
		return nil, value.Errorf(28745, "the $sample stage specification must be an object")
	}
	size := value.Missing
	for k, arg := range value.Fields(v.Data) {
		if k != "size" {
			return nil, value.Errorf(28748, "unrecognized option to $sample: %s", k)
		}
		size = arg
	}
	if value.IsMissing(size) {
		return nil, value.Errorf(28749, "$sample stage must specify a size")
	}
	if !value.IsNumber(size) {
		return nil, value.Errorf(28746, "size argument to $sample must be a number")
	}
	n, ok := value.NumberOf(size).Trunc64()
	if !ok || n <= 0 {
		return nil, value.Errorf(28747, "size argument to $sample must be a positive integer")
	}
	return []stage{&sampleStage{int(min(n, 1<<31-1))}}, nil
}

func (s *sampleStage) run(c *running, in Source) Source {
	return later(func() ([]Document, error) {
		draw := c.vars.System().Rand
		if draw == nil {
			return nil, value.Errorf(value.NotImplemented, "there is no random source here")
		}
		var kept []Document
		for seen := 0; ; seen++ {
			doc, err := in()
			if errors.Is(err, io.EOF) {
				shuffle(kept, draw)
				return kept, nil
			}
			if err != nil {
				return nil, err
			}
			if len(kept) < s.n {
				kept = append(kept, doc)
			} else if i := int(draw() * float64(seen+1)); i < s.n {
				kept[i] = doc
			}
		}
	})
}

func shuffle(docs []Document, draw func() float64) {
	for i := len(docs) - 1; i > 0; i-- {
		j := int(draw() * float64(i+1))
		docs[i], docs[j] = docs[j], docs[i]
	}
}
