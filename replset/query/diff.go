package query

import (
	"strconv"
	"strings"

	"github.com/assaylab/assay/replset/query/value"
)

// Diff tells what an update did, as the updateDescription of a change stream:
// updatedFields, removedFields and truncatedArrays, by dotted path. Setting and
// removing what it says, and cutting the arrays, makes after out of before.
//
// It compares the two documents, so that it does not show how the update was
// worded: a $set of a whole array that changes one element is that element here.
//
// A path is ambiguous if a name in it contains a dot or looks like a position.
// Those are also listed as disambiguatedPaths, name by name; the field is missing if
// there are none.
func Diff(before, after Document) Document {
	d := &differ{}
	d.documents(nil, before, after)
	var out value.Builder
	out.Add("updatedFields", d.updated.Value())
	out.Add("removedFields", d.removed.Array())
	out.Add("truncatedArrays", d.truncated.Array())
	if d.exact.Len() > 0 {
		out.Add("disambiguatedPaths", d.exact.Value())
	}
	return out.Document()
}

type differ struct {
	updated, removed, truncated, exact value.Builder
}

// step is one name of a path, or a position in an array.
type step struct {
	name     string
	position bool
}

func (d *differ) path(steps []step) string {
	names := make([]string, len(steps))
	ambiguous := false
	for i, s := range steps {
		names[i] = s.name
		_, number := position(s.name)
		ambiguous = ambiguous || !s.position && (number || strings.Contains(s.name, "."))
	}
	path := strings.Join(names, ".")
	if ambiguous {
		var list value.Builder
		for _, s := range steps {
			v := value.String(s.name)
			if n, ok := position(s.name); ok && s.position {
				v = value.Int32(int32(n))
			}
			list.Push(v)
		}
		d.exact.Add(path, list.Array())
	}
	return path
}

func (d *differ) documents(at []step, before, after []byte) {
	for k, was := range value.Fields(before) {
		if value.IsMissing(value.Lookup(after, k)) {
			d.removed.Push(value.String(d.path(append(at, step{name: k}))))
			continue
		}
		d.values(append(at, step{name: k}), was, value.Lookup(after, k))
	}
	for k, v := range value.Fields(after) {
		if value.IsMissing(value.Lookup(before, k)) {
			d.updated.Add(d.path(append(at, step{name: k})), v)
		}
	}
}

func (d *differ) values(at []step, was, is Value) {
	switch {
	case value.Same(was, is):
	case value.IsDocument(was) && value.IsDocument(is) && value.Len(is.Data) > 0:
		d.documents(at, was.Data, is.Data)
	case value.IsArray(was) && value.IsArray(is) && value.Len(is.Data) > 0 && value.Len(was.Data) > 0:
		d.arrays(at, was.Data, is.Data)
	default:
		d.updated.Add(d.path(at), is)
	}
}

func (d *differ) arrays(at []step, before, after []byte) {
	was, is := value.List(before), value.List(after)
	for i, v := range is {
		next := append(at, step{strconv.Itoa(i), true})
		if i < len(was) {
			d.values(next, was[i], v)
		} else {
			d.updated.Add(d.path(next), v)
		}
	}
	if len(is) < len(was) {
		var cut value.Builder
		cut.Add("field", value.String(d.path(at)))
		cut.Add("newSize", value.Int32(int32(len(is))))
		d.truncated.Push(cut.Value())
	}
}
