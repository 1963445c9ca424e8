package server

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// generic are the fields that every command may have.
var generic = []string{
	"$db", "lsid", "txnNumber", "autocommit", "startTransaction", "$clusterTime", "$readPreference", "readConcern",
	"writeConcern", "maxTimeMS", "comment", "apiVersion", "apiStrict", "apiDeprecationErrors", "maxTimeMSOpOnly",
	"coordinator", "help",
}

// args reads fields of a document by name and keeps the first error.
type args struct {
	what string // for messages: the command, or a statement in it
	doc  document
	err  error

	fields []field // of doc, where it is asked for many; nil: doc is looked through each time
}

type field struct {
	key   []byte
	value query.Value
}

// takeApart looks through the document, once for all who ask.
func (a *args) takeApart() {
	a.fields = make([]field, 0, 16)
	value.Walk(a.doc, func(key []byte, v query.Value) bool {
		a.fields = append(a.fields, field{key, v})
		return true
	})
}

// only refuses fields that are not listed.
func (a *args) only(lists ...[]string) error {
	if a.fields == nil {
		b := *a
		b.takeApart()
		a = &b
	}
	known := func(key []byte) bool {
		for _, l := range lists {
			for _, name := range l {
				if string(key) == name {
					return true
				}
			}
		}
		return false
	}
	// Every field is known and none is there twice, so that there are no more than are
	// known, and to compare each with those before it is quick.
	for i, f := range a.fields {
		if !known(f.key) {
			return errorf(codeUnknownField, "BSON field '%s.%s' is an unknown field.", a.what, f.key)
		}
		for _, before := range a.fields[:i] {
			if string(before.key) == string(f.key) {
				return errorf(40413, "BSON field '%s.%s' is a duplicate field", a.what, f.key)
			}
		}
	}
	return nil
}

func (a *args) get(name string) query.Value {
	if a.fields == nil {
		return value.Lookup(a.doc, name)
	}
	for i := range a.fields {
		if string(a.fields[i].key) == name {
			return a.fields[i].value
		}
	}
	return value.Missing
}

func (a *args) has(name string) bool { return !value.IsMissing(a.get(name)) }

func (a *args) wrong(name string, v query.Value, want string) {
	if a.err == nil {
		a.err = errorf(codeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type '%s'", a.what, name, value.TypeName(v), want)
	}
}

func (a *args) boolean(name string, otherwise bool) bool {
	v := a.get(name)
	switch {
	case value.IsMissing(v):
		return otherwise
	case v.Type == bsoncore.TypeBoolean:
		return v.Boolean()
	case value.IsNumber(v):
		return value.Truth(v)
	}
	a.wrong(name, v, "bool")
	return otherwise
}

// integer is a number with an integral value; a double is cut.
func (a *args) integer(name string, otherwise int64) int64 {
	v := a.get(name)
	if value.IsMissing(v) || value.IsNullish(v) {
		return otherwise
	}
	if !value.IsNumber(v) {
		a.wrong(name, v, "long")
		return otherwise
	}
	n, ok := value.NumberOf(v).Trunc64()
	if !ok && a.err == nil {
		a.err = errorf(codeBadValue, "BSON field '%s.%s' is out of range", a.what, name)
	}
	return n
}

// count is an integer that may not be negative.
func (a *args) count(name string, otherwise int64) int64 {
	n := a.integer(name, otherwise)
	if n < 0 && n != otherwise && a.err == nil {
		a.err = errorf(51024, "BSON field '%s' value must be >= 0, actual value '%d'", name, n)
	}
	return n
}

func (a *args) text(name string) string {
	v := a.get(name)
	if value.IsMissing(v) {
		return ""
	}
	if !value.IsString(v) {
		a.wrong(name, v, "string")
		return ""
	}
	return value.Str(v)
}

// document is nil if the field is not there.
func (a *args) document(name string) document {
	v := a.get(name)
	if value.IsMissing(v) || value.IsNullish(v) {
		return nil
	}
	if !value.IsDocument(v) {
		a.wrong(name, v, "object")
		return nil
	}
	return v.Data
}

func (a *args) array(name string) query.Value {
	v := a.get(name)
	if !value.IsMissing(v) && !value.IsArray(v) {
		a.wrong(name, v, "array")
		return value.Missing
	}
	return v
}

// refuse answers 238 for a field that is known, has a value that matters, and
// is not supported here.
func (a *args) refuse(names ...string) {
	for _, name := range names {
		if v := a.get(name); a.err == nil && value.Truth(v) {
			a.err = errorf(codeNotImplemented, "option '%s' of %s is not supported", name, a.what)
		}
	}
}

func (a *args) collation() (by *query.Collation) {
	if d := a.document("collation"); d != nil && a.err == nil {
		by, a.err = query.ParseCollation(d)
	}
	return by
}

// bytesOnly refuses a collation where none but the simple one is supported.
func (a *args) bytesOnly() {
	if by := a.collation(); by != nil && a.err == nil {
		a.err = errorf(codeNotImplemented, "a collation other than simple is not supported in %s", a.what)
	}
}

// must refuses a document without the field.
func (a *args) must(names ...string) {
	for _, name := range names {
		if !a.has(name) && a.err == nil {
			a.err = errorf(codeMissingField, "BSON field '%s.%s' is missing but a required field", a.what, name)
		}
	}
}

func appendArray(b *builder, name string, docs []document) {
	b.AppendArray(name, docArray(docs))
}

func docArray(docs []document) bsoncore.Array {
	at, out := bsoncore.AppendArrayStart(nil)
	for i, d := range docs {
		out = bsoncore.AppendDocumentElement(out, digits(i), d)
	}
	out, _ = bsoncore.AppendArrayEnd(out, at)
	return out
}

func textArray(list []string) bsoncore.Array {
	b := bsoncore.NewArrayBuilder()
	for _, s := range list {
		b.AppendString(s)
	}
	return b.Build()
}
