// Package value is what a BSON value means: how values compare, what their keys
// look like in an index, and how numbers of different types are added. It
// must never know filters, updates or expressions, which are built on it.
//
// A value is a bsoncore.Value. The zero value, Missing, stands for a field that is
// not there; no BSON document can contain it. Every function expects values taken
// from documents that Validate accepts, and never changes the bytes it is given.
package value
