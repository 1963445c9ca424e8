// Package query is what MongoDB's filters, sorts, projections, updates and
// pipelines mean, over raw BSON. It is pure: no clock, no random source, no store;
// time, random numbers and the variables of a command come in as Vars, other
// collections as callbacks.
//
// Everything is parsed once and then applied to any number of documents, also
// concurrently: a parsed Filter, Sort, Projection, Update or Pipeline never
// changes. What this package does not know it refuses when it parses, with the code
// that MongoDB has for it or with 238; nothing is ever ignored.
//
// Documents that come in must have passed Validate. They are not changed, and must
// not be changed by others while they are in use. A document that goes out may
// share bytes with one that came in.
//
// It must never know where documents are kept, nor who asks.
//
// The parts stand on each other in this order: value (order, keys, numbers), expr
// (expressions), and here filter, sort and projection, update, pipeline.
package query

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

// Value is a BSON value.
type Value = bsoncore.Value

// Document is a BSON document.
type Document = bsoncore.Document

// Error is an error as a command answers it. All errors of this package are of this
// type, except those that a callback returned.
type Error = value.Error

// Vars are the variables of a command: see NewVars.
type Vars = expr.Vars

// System is the time and the random numbers that a command sees.
type System = expr.System

// NewVars evaluates a command's let document, which may be nil, once.
func NewVars(let Document, sys System) (*Vars, error) { return expr.NewVars(let, sys) }

// Validate checks a document's form, size and nesting; see value.Validate.
func Validate(doc Document) error { return value.Validate(doc) }

// Collation is an order of strings; nil is by bytes.
type Collation = value.Collation

// ParseCollation parses a collation document; see value.ParseCollation.
func ParseCollation(doc Document) (*Collation, error) { return value.ParseCollation(doc) }

// Distinct is the values that a path has in documents, each once. It goes through
// arrays as a filter does: an array counts as its elements.
type Distinct struct {
	path []string
	by   *Collation
	seen map[string]bool
	out  value.Builder
}

// NewDistinct collects the values of a dotted path; of strings that are equal by the
// collation, the first.
func NewDistinct(path string, by *Collation) *Distinct {
	return &Distinct{path: splitPath(path), by: by, seen: map[string]bool{}}
}

// Add takes in one document.
func (d *Distinct) Add(doc Document) {
	walk(doc, d.path, -1, false, func(v Value, _ int) bool {
		if !value.IsArray(v) {
			d.add(v)
			return false
		}
		for e := range value.Elements(v.Data) {
			d.add(e)
		}
		return false
	})
}

func (d *Distinct) add(v Value) {
	if value.IsMissing(v) {
		return
	}
	if k := string(d.by.KeyOf(v)); !d.seen[k] {
		d.seen[k] = true
		d.out.Push(v)
	}
}

// Values is the distinct values as an array, in the order in which they came.
// Nothing may be added after it.
func (d *Distinct) Values() Value { return d.out.Array() }
