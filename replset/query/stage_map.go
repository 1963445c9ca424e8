package query

import (
	"io"
	"strings"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

// The stages that turn one document into one, or drop it.

// mapStage applies f to each document.
type mapStage struct {
	f func(doc Document, vars *Vars) (Document, error)
}

func (s *mapStage) run(c *running, in Source) Source {
	return func() (Document, error) {
		doc, err := in()
		if err != nil {
			return nil, err
		}
		return s.f(doc, c.vars)
	}
}

type matchStage struct{ filter *Filter }

func (s *matchStage) run(c *running, in Source) Source {
	return func() (Document, error) {
		for {
			doc, err := in()
			if err != nil {
				return nil, err
			}
			ok, _, err := s.filter.matchWith(doc, c.vars)
			if err != nil {
				return nil, err
			}
			if ok {
				return doc, nil
			}
		}
	}
}

func parseMatch(p *pipelineParser, v Value) ([]stage, error) {
	if !value.IsDocument(v) {
		return nil, value.Errorf(15959, "the match filter must be an expression in an object")
	}
	f, err := ParseFilter(v.Data, p.vars)
	return []stage{&matchStage{f}}, err
}

func parseProjectStage(p *pipelineParser, v Value) ([]stage, error) {
	if !value.IsDocument(v) {
		return nil, value.Errorf(15969, "$project specification must be an object")
	}
	proj, err := parseProject(v.Data, p.vars)
	return []stage{&mapStage{func(doc Document, vars *Vars) (Document, error) { return proj.applyWith(doc, 0, vars) }}}, err
}

func parseAddFieldsStage(name string, p *pipelineParser, v Value) ([]stage, error) {
	proj, err := parseAddFields(name, v, p.vars)
	return []stage{&mapStage{func(doc Document, vars *Vars) (Document, error) { return proj.addFields(doc, vars) }}}, err
}

func parseUnsetStage(p *pipelineParser, v Value) ([]stage, error) {
	list := []Value{v}
	if value.IsArray(v) {
		list = value.List(v.Data)
	}
	if len(list) == 0 {
		return nil, value.Errorf(31119, "$unset specification must be a string or an array with at least one field")
	}
	var b value.Builder
	for _, f := range list {
		if !value.IsString(f) {
			return nil, value.Errorf(31120, "$unset specification must be a string or an array containing only string values")
		}
		b.Add(value.Str(f), value.Bool(false))
	}
	return parseProjectStage(p, b.Value())
}

func parseReplaceRoot(p *pipelineParser, v Value) ([]stage, error) {
	if !value.IsDocument(v) {
		return nil, value.Errorf(40229, "expected an object as specification for $replaceRoot stage, got %s", value.TypeName(v))
	}
	for k := range value.Fields(v.Data) {
		if k != "newRoot" {
			return nil, value.Errorf(40230, "unrecognized option to $replaceRoot stage: %s, only valid option is 'newRoot'.", k)
		}
	}
	root := value.Lookup(v.Data, "newRoot")
	if value.IsMissing(root) {
		return nil, value.Errorf(40231, "no newRoot specified for the $replaceRoot stage")
	}
	return parseReplaceWith(p, root)
}

func parseReplaceWith(p *pipelineParser, v Value) ([]stage, error) {
	x, err := expr.Parse(v, p.vars)
	return []stage{&mapStage{func(doc Document, vars *Vars) (Document, error) {
		got, err := x.Eval(value.Doc(doc), vars)
		if err != nil {
			return nil, err
		}
		if !value.IsDocument(got) {
			return nil, value.Errorf(40228, "'newRoot' expression must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'.", value.Show(got), value.TypeName(got))
		}
		return got.Data, nil
	}}}, err
}

type limitStage struct{ n int64 }

func (s *limitStage) run(_ *running, in Source) Source {
	left := s.n
	return func() (Document, error) {
		if left == 0 {
			return nil, io.EOF
		}
		left--
		return in()
	}
}

type skipStage struct{ n int64 }

func (s *skipStage) run(_ *running, in Source) Source {
	left := s.n
	return func() (Document, error) {
		for ; left > 0; left-- {
			if _, err := in(); err != nil {
				return nil, err
			}
		}
		return in()
	}
}

func parseLimit(_ *pipelineParser, v Value) ([]stage, error) {
	n, ok := value.Integer(v)
	switch {
	case !ok || n < 0:
		return nil, value.Errorf(2107201, "invalid argument to $limit stage: Expected a non-negative number in: $limit: %s", value.Show(v))
	case n == 0:
		return nil, value.Errorf(15958, "the limit must be positive")
	}
	return []stage{&limitStage{n}}, nil
}

func parseSkip(_ *pipelineParser, v Value) ([]stage, error) {
	n, ok := value.Integer(v)
	if !ok || n < 0 {
		return nil, value.Errorf(5107200, "invalid argument to $skip stage: Expected a non-negative number in: $skip: %s", value.Show(v))
	}
	return []stage{&skipStage{n}}, nil
}

// unwindStage gives a document for each element of an array.
type unwindStage struct {
	path  []string
	index []string // nil: the position is not wanted
	keep  bool     // keep documents in which there is nothing to unwind
}

func parseUnwind(_ *pipelineParser, v Value) ([]stage, error) {
	s := &unwindStage{}
	path := v
	if value.IsDocument(v) {
		path = value.Missing
		for k, arg := range value.Fields(v.Data) {
			switch {
			case k == "path":
				path = arg
			case k == "preserveNullAndEmptyArrays" && arg.Type == typeBool:
				s.keep = value.Truth(arg)
			case k == "preserveNullAndEmptyArrays":
				return nil, value.Errorf(28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s", value.TypeName(arg))
			case k == "includeArrayIndex" && value.IsString(arg) && value.Str(arg) != "":
				if strings.HasPrefix(value.Str(arg), "$") {
					return nil, value.Errorf(28822, "includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s", value.Str(arg))
				}
				s.index = splitPath(value.Str(arg))
			case k == "includeArrayIndex":
				return nil, value.Errorf(28810, "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got %s", value.TypeName(arg))
			default:
				return nil, value.Errorf(28811, "unrecognized option to $unwind stage: %s", k)
			}
		}
		if value.IsMissing(path) {
			return nil, value.Errorf(28812, "no path specified to $unwind stage")
		}
	} else if !value.IsString(v) {
		return nil, value.Errorf(15981, "expected either a string or an object as specification for $unwind stage, got %s", value.TypeName(v))
	}
	if !value.IsString(path) {
		return nil, value.Errorf(28808, "expected a string as the path for $unwind stage, got %s", value.TypeName(path))
	}
	text, ok := strings.CutPrefix(value.Str(path), "$")
	if !ok || text == "" || strings.HasPrefix(text, "$") {
		return nil, value.Errorf(28818, "path option to $unwind stage should be prefixed with a '$': %s", value.Str(path))
	}
	s.path = splitPath(text)
	return []stage{s}, nil
}

func (s *unwindStage) run(_ *running, in Source) Source {
	var pending []Document
	return func() (Document, error) {
		for len(pending) == 0 {
			doc, err := in()
			if err != nil {
				return nil, err
			}
			pending = s.unwind(doc)
		}
		d := pending[0]
		pending = pending[1:]
		return d, nil
	}
}

func (s *unwindStage) unwind(doc Document) []Document {
	v := lookupPath(doc, s.path)
	switch {
	case value.IsNullish(v):
		if !s.keep {
			return nil
		}
		return []Document{s.withIndex(doc, value.Null)}
	case !value.IsArray(v):
		return []Document{s.withIndex(doc, value.Null)}
	case value.Len(v.Data) == 0:
		if !s.keep {
			return nil
		}
		return []Document{s.withIndex(setPath(doc, s.path, value.Missing), value.Null)}
	}
	var out []Document
	i := int64(0)
	for e := range value.Elements(v.Data) {
		out = append(out, s.withIndex(setPath(doc, s.path, e), value.Int64(i)))
		i++
	}
	return out
}

func (s *unwindStage) withIndex(doc Document, i Value) Document {
	if s.index == nil {
		return doc
	}
	return setPath(doc, s.index, i)
}

// lookupPath follows a path through documents only.
func lookupPath(doc Document, path []string) Value {
	v := value.Doc(doc)
	for _, part := range path {
		if !value.IsDocument(v) {
			return value.Missing
		}
		v = value.Lookup(v.Data, part)
	}
	return v
}

// setPath sets what is at a path, in place or at the end, making documents where
// there are none. A missing value removes it.
func setPath(doc Document, path []string, v Value) Document {
	old := value.Lookup(doc, path[0])
	if len(path) > 1 {
		inner := emptyDocument()
		if value.IsDocument(old) {
			inner = old
		}
		v = value.Doc(setPath(inner.Data, path[1:], v))
	}
	var b value.Builder
	for k, e := range value.Fields(doc) {
		if k == path[0] {
			e = v
		}
		b.Add(k, e)
	}
	if value.IsMissing(old) {
		b.Add(path[0], v)
	}
	return b.Document()
}
