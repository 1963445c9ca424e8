package server

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

// modifyIndex changes the one thing that an index's collMod may change here, when its
// documents expire, and returns the collection's indexes.
func (k *call) modifyIndex(col *collection, spec document) ([]store.IndexRecord, error) {
	a := &args{what: "collMod.index", doc: spec}
	if err := a.only([]string{"name", "keyPattern", "expireAfterSeconds", "hidden", "unique", "prepareUnique"}); err != nil {
		return nil, err
	}
	a.refuse("hidden", "unique", "prepareUnique")
	which := a.get("name")
	if value.IsMissing(which) {
		which = a.get("keyPattern")
	}
	if value.IsMissing(which) || a.has("name") && a.has("keyPattern") {
		return nil, errorf(codeInvalidOptions, "collMod.index needs exactly one of name and keyPattern")
	}
	after := a.integer("expireAfterSeconds", -1)
	if a.err != nil {
		return nil, a.err
	}
	if after < 0 || after > 1<<31-1 {
		return nil, errorf(codeInvalidOptions, "no expireAfterSeconds, or one out of range")
	}
	found, err := chosenIndexes(col, which)
	if err != nil {
		return nil, err
	}
	x := found[0]
	if len(x.pattern.Paths()) != 1 {
		return nil, errorf(codeInvalidOptions, "TTL indexes are single-field indexes")
	}
	out := slices.Clone(col.Indexes)
	b := newDoc()
	for key, v := range value.Fields(document(x.Spec)) {
		if key != "expireAfterSeconds" {
			b.AppendValue(key, v)
		}
	}
	if x.expires {
		k.out.AppendInt64("expireAfterSeconds_old", int64(x.expire.Seconds()))
	}
	k.out.AppendInt64("expireAfterSeconds_new", after)
	for i := range out {
		if out[i].ID == x.ID {
			out[i].Spec = bson.Raw(b.AppendInt32("expireAfterSeconds", int32(after)).Build())
		}
	}
	return out, nil
}
