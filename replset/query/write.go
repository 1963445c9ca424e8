package query

import (
	"slices"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

// Write is a pipeline's final $out or $merge, for the caller to carry out.
type Write struct {
	// Replace: $out. The target is replaced by the results, all at once. Else $merge.
	Replace bool
	Target  Namespace
	// On are the fields that identify a document for $merge; ["_id"] unless said.
	On []string
	// WhenMatched is replace, keepExisting, merge, fail or pipeline.
	WhenMatched string
	// WhenNotMatched is insert, discard or fail.
	WhenNotMatched string

	let      []letBinding
	pipeline *Pipeline
	vars     *Vars
}

func parseWrite(name string, spec Value, vars *Vars) (*Write, error) {
	if name == "$out" {
		ns, err := parseNamespace("$out", spec)
		return &Write{Replace: true, Target: ns}, err
	}
	w := &Write{On: []string{"_id"}, WhenMatched: "merge", WhenNotMatched: "insert", vars: vars}
	if value.IsString(spec) {
		ns, err := parseNamespace("$merge", spec)
		w.Target = ns
		return w, err
	}
	if !value.IsDocument(spec) {
		return nil, value.Errorf(51182, "$merge requires a string or object argument, but found %s", value.TypeName(spec))
	}
	return w, w.parseMerge(spec.Data, vars)
}

func (w *Write) parseMerge(spec Document, vars *Vars) error {
	matched := value.Missing
	for k, v := range value.Fields(spec) {
		var err error
		switch k {
		case "into":
			w.Target, err = parseNamespace("$merge", v)
		case "on":
			w.On, err = parseOn(v)
		case "let":
			w.let, _, err = parseLookupLet(v, vars)
		case "whenMatched":
			matched = v
		case "whenNotMatched":
			w.WhenNotMatched = value.Str(v)
		default:
			err = value.Errorf(40415, "BSON field '$merge.%s' is an unknown field.", k)
		}
		if err != nil {
			return err
		}
	}
	if w.Target.Coll == "" {
		return value.Errorf(40414, "BSON field '$merge.into' is missing but a required field")
	}
	if !slices.Contains([]string{"insert", "discard", "fail"}, w.WhenNotMatched) {
		return value.Errorf(value.BadValue, "Enumeration value '%s' for field 'whenNotMatched' is not a valid value.", w.WhenNotMatched)
	}
	return w.parseMatched(matched)
}

func (w *Write) parseMatched(v Value) error {
	switch {
	case value.IsArray(v):
		return w.parseMatchedPipeline(v)
	case !value.IsMissing(v):
		w.WhenMatched = value.Str(v)
	}
	if !slices.Contains([]string{"replace", "keepExisting", "merge", "fail"}, w.WhenMatched) {
		return value.Errorf(value.BadValue, "Enumeration value '%s' for field 'whenMatched' is not a valid value.", w.WhenMatched)
	}
	if w.let != nil {
		return value.Errorf(51199, "Cannot use 'let' variables with 'whenMatched: %s' mode", w.WhenMatched)
	}
	return nil
}

// parseMatchedPipeline: the pipeline sees the incoming document as $$new, unless let
// says otherwise.
func (w *Write) parseMatchedPipeline(v Value) error {
	w.WhenMatched = "pipeline"
	if !slices.ContainsFunc(w.let, func(b letBinding) bool { return b.name == "new" }) {
		root, err := expr.Parse(value.String("$$ROOT"), w.vars)
		if err != nil {
			return err
		}
		w.let = append(w.let, letBinding{"new", root})
	}
	inner := w.vars
	for _, b := range w.let {
		inner = inner.With(b.name, value.Missing)
	}
	var err error
	w.pipeline, err = parseUpdatePipeline(v, inner)
	return err
}

func parseOn(v Value) ([]string, error) {
	list := []Value{v}
	if value.IsArray(v) {
		list = value.List(v.Data)
		if len(list) == 0 {
			return nil, value.Errorf(51187, "If explicitly specifying $merge 'on', must include at least one field")
		}
	}
	var out []string
	for _, e := range list {
		if !value.IsString(e) {
			return nil, value.Errorf(51186, "$merge 'on' field must be either a string or an array of strings, but found %s", value.TypeName(e))
		}
		if slices.Contains(out, value.Str(e)) {
			return nil, value.Errorf(31465, "Found a duplicate field '%s'", value.Str(e))
		}
		out = append(out, value.Str(e))
	}
	return out, nil
}

// Filter finds the document of the target that an incoming one is to be merged
// with. The incoming document must have an _id if On names it. Error: 51132 if a field of On is
// missing, null or an array.
func (w *Write) Filter(incoming Document) (*Filter, error) {
	var all and
	for _, path := range w.On {
		v := lookupPath(incoming, splitPath(path))
		if value.IsNullish(v) && path != "_id" || value.IsArray(v) {
			return nil, value.Errorf(51132, "$merge write error: 'on' field '%s' cannot be missing, null, undefined or an array", path)
		}
		all = append(all, (&filterParser{}).leaf(path, comparison{opEq, v}))
	}
	return &Filter{root: all, vars: w.vars}, nil
}

// Merge is what becomes of a document of the target that matches. Errors: 11000 if
// the write is to fail then, 66 if the _id would change.
func (w *Write) Merge(existing, incoming Document) (Document, error) {
	out := existing
	var err error
	switch w.WhenMatched {
	case "keepExisting":
		return existing, nil
	case "fail":
		return nil, value.Errorf(value.DuplicateKey, "$merge could not find a matching document in the target collection for at least one document in the source collection")
	case "replace":
		out = incoming
	case "merge":
		out = expr.Merge(value.Doc(existing), value.Doc(incoming)).Data
	case "pipeline":
		vars, bindErr := bind(w.let, value.Doc(incoming), w.vars)
		if bindErr != nil {
			return nil, bindErr
		}
		if out, err = w.pipeline.oneWith(existing, vars); err != nil {
			return nil, err
		}
	}
	return finish(existing, out, ApplyInput{})
}
