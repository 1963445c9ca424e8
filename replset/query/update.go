package query

import (
	"bytes"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

// Update changes a document: by operators, by a replacement, or by a pipeline.
// Exactly one of the three is set.
type Update struct {
	ops         []operation
	replacement Document
	pipeline    *Pipeline

	dynamic bool // an operator's path has a positional part
	filters map[string]*Filter
	vars    *Vars
}

// UpdateOptions are what a statement says beside the update itself.
type UpdateOptions struct {
	// ArrayFilters is the statement's arrayFilters: an array of documents, or Missing.
	ArrayFilters Value
	Vars         *Vars
}

// ApplyInput is what an update needs to know about the document it is applied to.
type ApplyInput struct {
	// Position is what Filter.MatchPosition gave for the document. Only the positional
	// operator $ reads it.
	Position Position
	// Upserting: the document is from UpsertBase and is about to be inserted.
	Upserting bool
	// NewID makes an _id for a document that would be inserted without one.
	NewID func() bson.ObjectID
	// Timestamp is for $currentDate and for timestamps of zero. Nil: made from $$NOW.
	Timestamp func() (t, i uint32)
}

// IsReplacement says whether the update is a whole document.
func (u *Update) IsReplacement() bool { return u.replacement != nil }

// ParseUpdate parses an update: a document, or an array of stages. Errors: 9 for a
// malformed one, 40 for paths that conflict, 2 and 14 for wrong operands, 52, 56 for
// wrong paths.
func ParseUpdate(u Value, opts UpdateOptions) (*Update, error) {
	out := &Update{vars: opts.Vars}
	switch {
	case value.IsArray(u):
		if !value.IsMissing(opts.ArrayFilters) {
			return nil, value.Errorf(value.FailedToParse, "arrayFilters may not be specified for pipeline-style updates")
		}
		p, err := parseUpdatePipeline(u, opts.Vars)
		out.pipeline = p
		return out, err
	case !value.IsDocument(u):
		return nil, value.Errorf(value.FailedToParse, "Update argument must be either an object or an array")
	}
	if k, _, ok := value.First(u.Data); !ok || !strings.HasPrefix(k, "$") {
		if value.IsArray(opts.ArrayFilters) && value.Len(opts.ArrayFilters.Data) > 0 {
			return nil, value.Errorf(value.FailedToParse, "arrayFilters may not be specified for replacement-style updates")
		}
		return out, out.parseReplacement(u.Data)
	}
	if err := out.parseArrayFilters(opts.ArrayFilters); err != nil {
		return nil, err
	}
	return out, out.parseOperators(u)
}

func (u *Update) parseReplacement(doc Document) error {
	for k := range value.Fields(doc) {
		if strings.HasPrefix(k, "$") {
			return value.Errorf(value.DollarPrefixedField, "The dollar ($) prefixed field '%s' in '%s' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.", k, k)
		}
	}
	u.replacement = bytes.Clone(doc)
	return nil
}

// Apply gives the changed document. modified is false if it is what it was, byte
// for byte. Errors: 66 if the _id would change, 28 for a path through something that
// has no fields, 14 and 2 for operands of the wrong type, 10334 and 15 for a result
// too large or too deep.
func (u *Update) Apply(doc Document, in ApplyInput) (out Document, modified bool, err error) {
	switch {
	case u.replacement != nil:
		out = u.replace(doc, in)
	case u.pipeline != nil:
		out, err = u.pipeline.one(doc)
	default:
		out, err = u.applyOperators(doc, in)
		if err == nil && value.IsMissing(value.Lookup(out, "_id")) && !value.IsMissing(value.Lookup(doc, "_id")) {
			err = immutableID()
		}
	}
	if err != nil {
		return nil, false, err
	}
	if out, err = finish(doc, out, in); err != nil {
		return nil, false, err
	}
	return out, !bytes.Equal(doc, out), nil
}

// replace keeps the old _id unless the new document has one.
func (u *Update) replace(doc Document, in ApplyInput) Document {
	out := u.replacement
	if value.IsMissing(value.Lookup(out, "_id")) {
		out = withID(out, value.Lookup(doc, "_id"))
	}
	return fillTimestamps(out, in, u.vars)
}

// withID puts an _id before all other fields, and drops one that is elsewhere.
func withID(doc Document, id Value) Document {
	if k, v, ok := value.First(doc); value.IsMissing(id) || ok && k == "_id" && value.Same(v, id) {
		return doc
	}
	var b value.Builder
	b.Add("_id", id)
	for k, v := range value.Fields(doc) {
		if k != "_id" {
			b.Add(k, v)
		}
	}
	return b.Document()
}

// finish checks what holds for every stored document, and that the _id is the old one.
func finish(old, doc Document, in ApplyInput) (Document, error) {
	before, after := value.Lookup(old, "_id"), value.Lookup(doc, "_id")
	switch {
	case value.IsMissing(after) && in.Upserting && value.IsMissing(before):
		if in.NewID == nil {
			return nil, value.Errorf(value.BadValue, "the document to insert has no _id")
		}
		after = value.ObjectID(in.NewID())
	case value.IsMissing(after):
		after = before // a pipeline may drop the _id, but not change it
	case !value.IsMissing(before) && !value.Equal(before, after):
		return nil, immutableID()
	}
	if err := checkID(after); err != nil {
		return nil, err
	}
	doc = withID(doc, after)
	return doc, value.Validate(doc)
}

func immutableID() error {
	return value.Errorf(value.ImmutableField, "Performing an update on the path '_id' would modify the immutable field '_id'")
}

func checkID(id Value) error {
	switch id.Type {
	case bsoncore.TypeArray, bsoncore.TypeRegex, bsoncore.TypeUndefined:
		return value.Errorf(value.InvalidIDField, "The '_id' value cannot be of type %s", value.TypeName(id))
	case bsoncore.TypeEmbeddedDocument:
		for k := range value.Fields(id.Data) {
			if strings.HasPrefix(k, "$") {
				return value.Errorf(value.DollarPrefixedField, "The dollar ($) prefixed field '%s' in '_id.%s' is not valid for storage.", k, k)
			}
		}
	}
	return nil
}

// PrepareInsert makes a document fit to be stored: the _id first, made if there is
// none; timestamps of zero filled in; form, size and nesting checked. Errors: 53 for
// an _id of a type that cannot be one, and those of Validate.
func PrepareInsert(doc Document, in ApplyInput, vars *Vars) (Document, error) {
	if err := value.Validate(doc); err != nil {
		return nil, err
	}
	in.Upserting = true
	return finish(emptyDocument().Data, fillTimestamps(bytes.Clone(doc), in, vars), in)
}

// fillTimestamps gives the present time to top-level timestamps of zero.
func fillTimestamps(doc Document, in ApplyInput, vars *Vars) Document {
	zero := false
	for k, v := range value.Fields(doc) {
		zero = zero || isZeroTimestamp(v) && k != "_id"
	}
	if !zero {
		return doc
	}
	var b value.Builder
	for k, v := range value.Fields(doc) {
		if isZeroTimestamp(v) && k != "_id" {
			v = in.timestamp(vars.System().Now)
		}
		b.Add(k, v)
	}
	return b.Document()
}

func isZeroTimestamp(v Value) bool {
	t, i, ok := v.TimestampOK()
	return ok && t == 0 && i == 0
}

func (in ApplyInput) timestamp(now time.Time) Value {
	if in.Timestamp == nil {
		return value.Timestamp(uint32(now.Unix()), 1)
	}
	return value.Timestamp(in.Timestamp())
}

// UpsertBase is the document that an upsert starts from: what the filter demands by
// equality. A replacement takes only the _id from it. Error: 54 if the filter
// demands two values of one field.
func (u *Update) UpsertBase(f *Filter) (Document, error) {
	root := newTree(emptyDocument())
	var seen pathSet
	for _, e := range equalities(f.root) {
		if u.replacement != nil && e.path != "_id" {
			continue
		}
		if at, ok := seen.add(e.path); !ok {
			if at == e.path && seen.full[at] {
				return nil, value.Errorf(value.NotSingleValueField, "cannot infer query fields to set, path '%s' is matched twice", at)
			}
			return nil, value.Errorf(value.NotSingleValueField, "cannot infer query fields to set, both paths '%s' and '%s' are matched", e.path, at)
		}
		set := operation{name: "$set", path: splitPath(e.path), full: e.path, create: true, change: setTo(e.v)}
		if err := (&applying{u: u}).apply(root, set.path, "", &set); err != nil {
			return nil, err
		}
	}
	out := root.value().Data
	return withID(out, value.Lookup(out, "_id")), nil
}
