package query_test

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/query/value/valuetest"
)

func update(t testing.TB, json, arrayFilters string) (*query.Update, error) {
	t.Helper()
	opts := query.UpdateOptions{Vars: vars(t, `{"k": 9}`)}
	if arrayFilters != "" {
		opts.ArrayFilters = val(t, arrayFilters)
	}
	return query.ParseUpdate(val(t, json), opts)
}

func apply(t testing.TB, json, arrayFilters, filterJSON, d string) (query.Document, bool, error) {
	t.Helper()
	u, err := update(t, json, arrayFilters)
	if err != nil {
		return nil, false, err
	}
	in := query.ApplyInput{NewID: newID}
	if filterJSON != "" {
		ok, index, err := filter(t, filterJSON).MatchPosition(doc(t, d))
		if err != nil || !ok {
			t.Fatalf("%s does not match %s", filterJSON, d)
		}
		in.Position = index
	}
	return u.Apply(doc(t, d), in)
}

func TestUpdate(t *testing.T) {
	for _, c := range []struct{ update, doc, want string }{
		// replacement
		{`{"b": 1}`, `{"_id": 1, "a": 2}`, `{"_id": 1, "b": 1}`},
		{`{"b": 1, "_id": 1}`, `{"_id": 1, "a": 2}`, `{"_id": 1, "b": 1}`},
		{`{}`, `{"_id": 1, "a": 2}`, `{"_id": 1}`},
		{`{"a.b": 1, "c": {"$d": 1}}`, `{"_id": 1}`, `{"_id": 1, "a.b": 1, "c": {"$d": 1}}`},
		{`{"t": {"$timestamp": {"t": 0, "i": 0}}}`, `{"_id": 1}`, `{"_id": 1, "t": {"$timestamp": {"t": 1772600767, "i": 1}}}`},
		// $set: in place, new fields in the order of their names
		{`{"$set": {"a": 2}}`, `{"_id": 1, "a": 1, "b": 1}`, `{"_id": 1, "a": 2, "b": 1}`},
		{`{"$set": {"z": 1, "b": 2}}`, `{"_id": 1, "a": 1}`, `{"_id": 1, "a": 1, "b": 2, "z": 1}`},
		{`{"$set": {"a.10": 1, "a.2": 2}}`, `{"_id": 1, "a": {}}`, `{"_id": 1, "a": {"2": 2, "10": 1}}`},
		{`{"$set": {"a.b.c": 1}}`, `{"_id": 1}`, `{"_id": 1, "a": {"b": {"c": 1}}}`},
		{`{"$set": {"a.1": 9}}`, `{"_id": 1, "a": [1, 2]}`, `{"_id": 1, "a": [1, 9]}`},
		{`{"$set": {"a.3": 9}}`, `{"_id": 1, "a": [1]}`, `{"_id": 1, "a": [1, null, null, 9]}`},
		{`{"$set": {"a.0.b": 9}}`, `{"_id": 1, "a": [{"b": 1}]}`, `{"_id": 1, "a": [{"b": 9}]}`},
		{`{"$set": {"_id": 1}}`, `{"_id": 1}`, `{"_id": 1}`},
		{`{"$set": {}}`, `{"_id": 1}`, `{"_id": 1}`},
		// $unset
		{`{"$unset": {"a": ""}}`, `{"_id": 1, "a": 1, "b": 1}`, `{"_id": 1, "b": 1}`},
		{`{"$unset": {"a.b": 1}}`, `{"_id": 1, "a": {"b": 1, "c": 1}}`, `{"_id": 1, "a": {"c": 1}}`},
		{`{"$unset": {"a.0": 1}}`, `{"_id": 1, "a": [1, 2]}`, `{"_id": 1, "a": [null, 2]}`},
		{`{"$unset": {"a.b": 1}}`, `{"_id": 1, "a": 5}`, `{"_id": 1, "a": 5}`},
		// $inc, $mul, $min, $max
		{`{"$inc": {"a": 1}}`, `{"_id": 1, "a": 2}`, `{"_id": 1, "a": 3}`},
		{`{"$inc": {"a": 1}}`, `{"_id": 1}`, `{"_id": 1, "a": 1}`},
		{`{"$inc": {"a": 1.5}}`, `{"_id": 1, "a": 2}`, `{"_id": 1, "a": 3.5}`},
		{`{"$inc": {"a": 1}}`, `{"_id": 1, "a": 2147483647}`, `{"_id": 1, "a": {"$numberLong": "2147483648"}}`},
		{`{"$mul": {"a": 2, "b": {"$numberLong": "3"}}}`, `{"_id": 1, "a": 2}`, `{"_id": 1, "a": 4, "b": {"$numberLong": "0"}}`},
		{`{"$min": {"a": 1, "b": 5}}`, `{"_id": 1, "a": 2}`, `{"_id": 1, "a": 1, "b": 5}`},
		{`{"$max": {"a": 1}}`, `{"_id": 1, "a": 1.0}`, `{"_id": 1, "a": 1.0}`},
		{`{"$max": {"a": "x"}}`, `{"_id": 1, "a": 99}`, `{"_id": 1, "a": "x"}`},
		// $rename, $setOnInsert, $currentDate, $bit
		{`{"$rename": {"a": "b"}}`, `{"_id": 1, "a": 2, "b": 3}`, `{"_id": 1, "b": 2}`},
		{`{"$rename": {"a": "c.d"}}`, `{"_id": 1, "a": 2, "b": 3}`, `{"_id": 1, "b": 3, "c": {"d": 2}}`},
		{`{"$rename": {"x": "y"}}`, `{"_id": 1, "y": 3}`, `{"_id": 1, "y": 3}`},
		{`{"$setOnInsert": {"a": 1}}`, `{"_id": 1}`, `{"_id": 1}`},
		{`{"$currentDate": {"a": true, "b": {"$type": "timestamp"}}}`, `{"_id": 1}`, `{"_id": 1, "a": {"$date": "2026-03-04T05:06:07.008Z"}, "b": {"$timestamp": {"t": 1772600767, "i": 1}}}`},
		{`{"$bit": {"a": {"and": 6}, "b": {"or": 4}}}`, `{"_id": 1, "a": 3}`, `{"_id": 1, "a": 2, "b": 4}`},
		{`{"$bit": {"a": {"xor": {"$numberLong": "1"}}}}`, `{"_id": 1, "a": 3}`, `{"_id": 1, "a": {"$numberLong": "2"}}`},
		// $push
		{`{"$push": {"a": 1}}`, `{"_id": 1}`, `{"_id": 1, "a": [1]}`},
		{`{"$push": {"a": [1, 2]}}`, `{"_id": 1, "a": []}`, `{"_id": 1, "a": [[1, 2]]}`},
		{`{"$push": {"a": {"$each": [3, 1], "$sort": 1, "$slice": 2}}}`, `{"_id": 1, "a": [2]}`, `{"_id": 1, "a": [1, 2]}`},
		{`{"$push": {"a": {"$each": [9], "$position": 1}}}`, `{"_id": 1, "a": [1, 2]}`, `{"_id": 1, "a": [1, 9, 2]}`},
		{`{"$push": {"a": {"$each": [9], "$position": -1}}}`, `{"_id": 1, "a": [1, 2]}`, `{"_id": 1, "a": [1, 9, 2]}`},
		{`{"$push": {"a": {"$each": [{"x": 1}], "$sort": {"x": -1}, "$slice": -1}}}`, `{"_id": 1, "a": [{"x": 3}, {"x": 0}]}`, `{"_id": 1, "a": [{"x": 0}]}`},
		{`{"$push": {"a": {"$each": []}}}`, `{"_id": 1}`, `{"_id": 1, "a": []}`},
		// $addToSet
		{`{"$addToSet": {"a": 1}}`, `{"_id": 1, "a": [1.0, 2]}`, `{"_id": 1, "a": [1.0, 2]}`},
		{`{"$addToSet": {"a": {"$each": [3, 3, 2]}}}`, `{"_id": 1, "a": [2]}`, `{"_id": 1, "a": [2, 3]}`},
		{`{"$addToSet": {"a": {"y": 1, "x": 1}}}`, `{"_id": 1, "a": [{"x": 1, "y": 1}]}`, `{"_id": 1, "a": [{"x": 1, "y": 1}, {"y": 1, "x": 1}]}`},
		// $pop, $pull, $pullAll
		{`{"$pop": {"a": 1}}`, `{"_id": 1, "a": [1, 2]}`, `{"_id": 1, "a": [1]}`},
		{`{"$pop": {"a": -1, "b": 1}}`, `{"_id": 1, "a": [1, 2]}`, `{"_id": 1, "a": [2]}`},
		{`{"$pull": {"a": 1}}`, `{"_id": 1, "a": [1, 2, 1.0]}`, `{"_id": 1, "a": [2]}`},
		{`{"$pull": {"a": {"$gte": 2}}}`, `{"_id": 1, "a": [1, 2, 3, "x"]}`, `{"_id": 1, "a": [1, "x"]}`},
		{`{"$pull": {"a": {"$in": [1, 3]}}}`, `{"_id": 1, "a": [1, 2, 3]}`, `{"_id": 1, "a": [2]}`},
		{`{"$pull": {"a": {"x": 1}}}`, `{"_id": 1, "a": [{"x": 1, "y": 2}, {"x": 2}, 1]}`, `{"_id": 1, "a": [{"x": 2}, 1]}`},
		{`{"$pull": {"a": {"x": {"$gt": 1}}}}`, `{"_id": 1, "a": [{"x": 1}, {"x": 2}]}`, `{"_id": 1, "a": [{"x": 1}]}`},
		{`{"$pull": {"a": [1]}}`, `{"_id": 1, "a": [[1], 1]}`, `{"_id": 1, "a": [1]}`},
		{`{"$pull": {"a": {"$regularExpression": {"pattern": "^x", "options": ""}}}}`, `{"_id": 1, "a": ["xy", "y"]}`, `{"_id": 1, "a": ["y"]}`},
		{`{"$pull": {"b": 1}}`, `{"_id": 1}`, `{"_id": 1}`},
		{`{"$pullAll": {"a": [1, 2]}}`, `{"_id": 1, "a": [1, 2, 3, 1]}`, `{"_id": 1, "a": [3]}`},
		// several
		{`{"$set": {"a.b": 1}, "$inc": {"a.c": 1}, "$unset": {"x": 1}}`, `{"_id": 1, "x": 1}`, `{"_id": 1, "a": {"b": 1, "c": 1}}`},
		{`{"$set": {"a.$[].b": 1}}`, `{"_id": 1, "a": [{}, {"b": 5}]}`, `{"_id": 1, "a": [{"b": 1}, {"b": 1}]}`},
		{`{"$inc": {"a.$[]": 1}}`, `{"_id": 1, "a": [1, 2]}`, `{"_id": 1, "a": [2, 3]}`},
		// pipelines
		{`[{"$set": {"b": {"$add": ["$a", 1]}}}, {"$unset": "a"}]`, `{"_id": 1, "a": 2}`, `{"_id": 1, "b": 3}`},
		{`[{"$replaceRoot": {"newRoot": "$t"}}, {"$addFields": {"foo": 1}}]`, `{"_id": 1, "t": {"u": {"v": 1}}}`, `{"_id": 1, "u": {"v": 1}, "foo": 1}`},
		{`[{"$project": {"x": 1}}]`, `{"_id": 1, "y": 2, "x": 1}`, `{"_id": 1, "x": 1}`},
		{`[{"$replaceWith": {"$setField": {"field": {"$literal": "$a"}, "value": 1, "input": "$$ROOT"}}}]`, `{"_id": 1, "foo": {}}`, `{"_id": 1, "foo": {}, "$a": 1}`},
		{`[{"$set": {"foo": {"$setField": {"field": {"$literal": "a.b"}, "value": 1, "input": "$foo"}}}}]`, `{"_id": 1, "foo": {}}`, `{"_id": 1, "foo": {"a.b": 1}}`},
		{`[{"$set": {"x": "$$k", "n": "$$NOW"}}]`, `{"_id": 1}`, `{"_id": 1, "x": 9, "n": {"$date": "2026-03-04T05:06:07.008Z"}}`},
	} {
		got, modified, err := apply(t, c.update, "", "", c.doc)
		if err != nil {
			t.Errorf("%s on %s: %v", c.update, c.doc, err)
			continue
		}
		if show(got) != show(doc(t, c.want)) {
			t.Errorf("%s on %s:\ngot  %s\nwant %s", c.update, c.doc, show(got), c.want)
		}
		if same := bytes.Equal(doc(t, c.doc), got); same == modified {
			t.Errorf("%s on %s: modified is %v", c.update, c.doc, modified)
		}
	}
}

func TestPositionalUpdate(t *testing.T) {
	for _, c := range []struct{ filter, update, arrayFilters, doc, want string }{
		{`{"a": 2}`, `{"$set": {"a.$": 9}}`, ``, `{"_id": 1, "a": [1, 2, 2]}`, `{"_id": 1, "a": [1, 9, 2]}`},
		{`{"a.x": 2}`, `{"$inc": {"a.$.y": 1}}`, ``, `{"_id": 1, "a": [{"x": 1}, {"x": 2, "y": 1}]}`, `{"_id": 1, "a": [{"x": 1}, {"x": 2, "y": 2}]}`},
		{`{"a": {"$elemMatch": {"x": 2}}}`, `{"$unset": {"a.$": 1}}`, ``, `{"_id": 1, "a": [{"x": 2}]}`, `{"_id": 1, "a": [null]}`},
		{``, `{"$set": {"a.$[i]": 0}}`, `[{"i": {"$gt": 1}}]`, `{"_id": 1, "a": [1, 2, 3]}`, `{"_id": 1, "a": [1, 0, 0]}`},
		{``, `{"$set": {"a.$[i].y": 0}}`, `[{"i.x": 1}]`, `{"_id": 1, "a": [{"x": 1}, {"x": 2}]}`, `{"_id": 1, "a": [{"x": 1, "y": 0}, {"x": 2}]}`},
		{``, `{"$set": {"a.$[i].b.$[j]": 0}}`, `[{"i.x": 1}, {"$or": [{"j": 1}, {"j": 3}]}]`, `{"_id": 1, "a": [{"x": 1, "b": [1, 2, 3]}, {"x": 2, "b": [1]}]}`, `{"_id": 1, "a": [{"x": 1, "b": [0, 2, 0]}, {"x": 2, "b": [1]}]}`},
		{``, `{"$push": {"a.$[].b": 1}}`, ``, `{"_id": 1, "a": [{}, {"b": [0]}]}`, `{"_id": 1, "a": [{"b": [1]}, {"b": [0, 1]}]}`},
		{``, `{"$set": {"a.$[i]": 1}}`, `[{"i": 9}]`, `{"_id": 1, "a": []}`, `{"_id": 1, "a": []}`},
	} {
		got, _, err := apply(t, c.update, c.arrayFilters, c.filter, c.doc)
		if err != nil {
			t.Errorf("%s: %v", c.update, err)
			continue
		}
		if show(got) != show(doc(t, c.want)) {
			t.Errorf("%s: got %s, want %s", c.update, show(got), c.want)
		}
	}
}

func TestUpdateErrors(t *testing.T) {
	for _, c := range []struct {
		update, arrayFilters, doc string
		code                      int32
	}{
		{`1`, ``, `{"_id": 1}`, 9},
		{`{"$set": {"a": 1}, "b": 2}`, ``, `{"_id": 1}`, 9},
		{`{"b": 2, "$set": {"a": 1}}`, ``, `{"_id": 1}`, 52},
		{`{"$frob": {"a": 1}}`, ``, `{"_id": 1}`, 9},
		{`{"$set": 1}`, ``, `{"_id": 1}`, 9},
		// conflicts
		{`{"$set": {"a": 1}, "$inc": {"a": 1}}`, ``, `{"_id": 1}`, 40},
		{`{"$set": {"a": 1, "a.b": 1}}`, ``, `{"_id": 1}`, 40},
		{`{"$set": {"a.b": 1}, "$unset": {"a": 1}}`, ``, `{"_id": 1}`, 40},
		{`{"$rename": {"a": "b"}, "$set": {"b": 1}}`, ``, `{"_id": 1}`, 40},
		{`{"$set": {"a.$[i]": 1, "a.$[j]": 1}}`, `[{"i": 1}, {"j": {"$lt": 5}}]`, `{"_id": 1, "a": [1]}`, 40},
		{`{"$set": {"a.$[]": 1, "a.0": 1}}`, ``, `{"_id": 1, "a": [1]}`, 40},
		// paths
		{`{"$set": {"": 1}}`, ``, `{"_id": 1}`, 56},
		{`{"$set": {"a..b": 1}}`, ``, `{"_id": 1}`, 56},
		{`{"$set": {"$a": 1}}`, ``, `{"_id": 1}`, 52},
		{`{"$set": {"a.b": 1}}`, ``, `{"_id": 1, "a": 5}`, 28},
		{`{"$set": {"a.b": 1}}`, ``, `{"_id": 1, "a": null}`, 28},
		{`{"$set": {"a.b": 1}}`, ``, `{"_id": 1, "a": [1]}`, 28},
		{`{"$set": {"a.2000000": 1}}`, ``, `{"_id": 1, "a": []}`, 2},
		// the _id
		{`{"$set": {"_id": 2}}`, ``, `{"_id": 1}`, 66},
		{`{"$unset": {"_id": 1}}`, ``, `{"_id": 1}`, 66},
		{`{"$rename": {"_id": "x"}}`, ``, `{"_id": 1}`, 66},
		{`{"_id": 2}`, ``, `{"_id": 1}`, 66},
		{`{"$set": {"_id.a": 2}}`, ``, `{"_id": {"a": 1}}`, 66},
		{`[{"$set": {"_id": 2}}]`, ``, `{"_id": 1}`, 66},
		// operands
		{`{"$inc": {"a": "x"}}`, ``, `{"_id": 1}`, 14},
		{`{"$inc": {"a": 1}}`, ``, `{"_id": 1, "a": "x"}`, 14},
		{`{"$inc": {"a": null}}`, ``, `{"_id": 1}`, 14},
		{`{"$inc": {"a": 1}}`, ``, `{"_id": 1, "a": null}`, 14},
		{`{"$inc": {"a": 1}}`, ``, `{"_id": 1, "a": {"$numberLong": "9223372036854775807"}}`, 2},
		{`{"$mul": {"a": 1}}`, ``, `{"_id": 1, "a": []}`, 14},
		{`{"$push": {"a": 1}}`, ``, `{"_id": 1, "a": 1}`, 2},
		{`{"$push": {"a": 1}}`, ``, `{"_id": 1, "a": null}`, 2},
		{`{"$push": {"a": {"$each": 1}}}`, ``, `{"_id": 1}`, 2},
		{`{"$push": {"a": {"$each": [], "$frob": 1}}}`, ``, `{"_id": 1}`, 2},
		{`{"$push": {"a": {"$each": [], "$slice": 1.5}}}`, ``, `{"_id": 1}`, 2},
		{`{"$push": {"a": {"$each": [], "$sort": 2}}}`, ``, `{"_id": 1}`, 2},
		{`{"$addToSet": {"a": 1}}`, ``, `{"_id": 1, "a": 1}`, 2},
		{`{"$addToSet": {"a": {"$each": 1}}}`, ``, `{"_id": 1}`, 14},
		{`{"$pop": {"a": 2}}`, ``, `{"_id": 1}`, 9},
		{`{"$pop": {"a": 1}}`, ``, `{"_id": 1, "a": 1}`, 14},
		{`{"$pull": {"a": 1}}`, ``, `{"_id": 1, "a": 1}`, 2},
		{`{"$pullAll": {"a": 1}}`, ``, `{"_id": 1}`, 2},
		{`{"$bit": {"a": {"and": 1.5}}}`, ``, `{"_id": 1}`, 2},
		{`{"$bit": {"a": {"nand": 1}}}`, ``, `{"_id": 1}`, 2},
		{`{"$bit": {"a": {"or": 1}}}`, ``, `{"_id": 1, "a": 1.5}`, 2},
		{`{"$currentDate": {"a": "x"}}`, ``, `{"_id": 1}`, 2},
		{`{"$rename": {"a": "a"}}`, ``, `{"_id": 1}`, 2},
		{`{"$rename": {"a": "a.b"}}`, ``, `{"_id": 1}`, 2},
		{`{"$rename": {"a": 1}}`, ``, `{"_id": 1}`, 2},
		{`{"$rename": {"a.b": "c"}}`, ``, `{"_id": 1, "a": [{"b": 1}]}`, 2},
		{`{"$rename": {"c": "a.b"}}`, ``, `{"_id": 1, "a": [{"b": 1}], "c": 1}`, 2},
		// positional
		{`{"$set": {"a.$": 1}}`, ``, `{"_id": 1, "a": [1]}`, 2},
		{`{"$set": {"a.$[]": 1}}`, ``, `{"_id": 1, "a": 5}`, 2},
		{`{"$set": {"a.$[]": 1}}`, ``, `{"_id": 1}`, 2},
		{`{"$set": {"a.$[i]": 1}}`, ``, `{"_id": 1, "a": [1]}`, 2},
		{`{"$set": {"$[].a": 1}}`, ``, `{"_id": 1}`, 2},
		{`{"$set": {"a": 1}}`, `[{"i": 1}]`, `{"_id": 1}`, 9},
		{`{"$set": {"a.$[i]": 1}}`, `[{"i": 1}, {"i": 2}]`, `{"_id": 1}`, 9},
		{`{"$set": {"a.$[i]": 1}}`, `[{"i": 1, "j": 2}]`, `{"_id": 1}`, 9},
		{`{"$set": {"a.$[i]": 1}}`, `[{}]`, `{"_id": 1}`, 9},
		{`{"$set": {"a.$[I]": 1}}`, `[{"I": 1}]`, `{"_id": 1}`, 2},
		{`{"a": 1}`, `[{"i": 1}]`, `{"_id": 1}`, 9},
		{`[{"$set": {"a": 1}}]`, `[{"i": 1}]`, `{"_id": 1}`, 9},
		// pipelines
		{`[{"$match": {}}]`, ``, `{"_id": 1}`, 72},
		{`[{"$frob": {}}]`, ``, `{"_id": 1}`, 40324},
		{`[{"$replaceWith": "$a"}]`, ``, `{"_id": 1, "a": 1}`, 40228},
		{`[{"$set": {"a": {"$divide": [1, 0]}}}]`, ``, `{"_id": 1}`, 2},
	} {
		_, _, err := apply(t, c.update, c.arrayFilters, "", c.doc)
		if got := code(t, err); got != c.code {
			t.Errorf("%s on %s: %v, want code %d", c.update, c.doc, err, c.code)
		}
	}
}

func TestUpdateLimits(t *testing.T) {
	big := query.Document(bson.Raw{})
	var b value.Builder
	b.Add("_id", value.Int32(1))
	b.Add("a", value.String(string(bytes.Repeat([]byte("x"), 15<<20))))
	big = b.Document()
	for json, want := range map[string]int32{
		`[{"$set": {"b": {"$concat": ["$a", "$a"]}}}]`: 10334,
		`{"$set": {"b": 1}}`:                           0,
	} {
		u, err := update(t, json, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := u.Apply(big, query.ApplyInput{}); code(t, err) != want {
			t.Errorf("%s: %v, want %d", json, err, want)
		}
	}
	deep := `"x"`
	for range 98 {
		deep = `{"a": ` + deep + `}`
	}
	u, err := update(t, `{"$set": {"a": {"b": {"c": 1}}, "d": `+deep+`}}`, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := u.Apply(doc(t, `{"_id": 1}`), query.ApplyInput{}); err != nil {
		t.Error(err)
	}
	u, err = update(t, `{"$set": {"d.e.f": `+deep+`}}`, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := u.Apply(doc(t, `{"_id": 1}`), query.ApplyInput{}); code(t, err) != 15 {
		t.Errorf("nested too deep: %v", err)
	}
}

func TestUpsert(t *testing.T) {
	for _, c := range []struct {
		filter, update, want string
		code                 int32
	}{
		{`{"_id": 5}`, `{"$set": {"x": 1}}`, `{"_id": 5, "x": 1}`, 0},
		{`{"a": 1, "b": {"$gt": 2}}`, `{"$set": {"x": 1}}`, `{"_id": {"$oid": "000000000000000000000007"}, "a": 1, "x": 1}`, 0},
		{`{"$and": [{"a.b": 1}, {"a.c": {"$eq": 2}}]}`, `{"$inc": {"n": 1}}`, `{"_id": {"$oid": "000000000000000000000007"}, "a": {"b": 1, "c": 2}, "n": 1}`, 0},
		{`{"$or": [{"a": 1}]}`, `{"$setOnInsert": {"n": 1}}`, `{"_id": {"$oid": "000000000000000000000007"}, "a": 1, "n": 1}`, 0},
		{`{"$or": [{"a": 1}, {"a": 2}]}`, `{"$set": {"n": 1}}`, `{"_id": {"$oid": "000000000000000000000007"}, "n": 1}`, 0},
		{`{"a": {"$all": [7]}}`, `{"$set": {"n": 1}}`, `{"_id": {"$oid": "000000000000000000000007"}, "a": 7, "n": 1}`, 0},
		{`{"a": 1, "_id": 5}`, `{"b": 2}`, `{"_id": 5, "b": 2}`, 0},
		{`{"a": 1}`, `{"b": 2}`, `{"_id": {"$oid": "000000000000000000000007"}, "b": 2}`, 0},
		{`{"a": 1}`, `{"b": 2, "_id": 3}`, `{"_id": 3, "b": 2}`, 0},
		{`{"a": 1}`, `{"$set": {"_id": 3}}`, `{"_id": 3, "a": 1}`, 0},
		{`{"a": 1}`, `[{"$set": {"b": {"$add": ["$a", 1]}}}]`, `{"_id": {"$oid": "000000000000000000000007"}, "a": 1, "b": 2}`, 0},
		{`{"_id": 5}`, `{"$set": {"_id": 6}}`, ``, 66},
		{`{"_id": 5}`, `{"_id": 6}`, ``, 66},
		{`{"a": 1, "$and": [{"a": 2}]}`, `{"$set": {"x": 1}}`, ``, 54},
		{`{"a": {"b": 1}, "a.c": 2}`, `{"$set": {"x": 1}}`, ``, 54},
		{`{"a": 1}`, `{"$set": {"_id": [1]}}`, ``, 53},
	} {
		u, err := update(t, c.update, "")
		if err != nil {
			t.Fatal(err)
		}
		base, err := u.UpsertBase(filter(t, c.filter))
		var got query.Document
		if err == nil {
			got, _, err = u.Apply(base, query.ApplyInput{Upserting: true, NewID: newID})
		}
		if code(t, err) != c.code {
			t.Errorf("%s %s: %v, want code %d", c.filter, c.update, err, c.code)
		}
		if c.code == 0 && show(got) != show(doc(t, c.want)) {
			t.Errorf("%s %s: got %s, want %s", c.filter, c.update, show(got), c.want)
		}
	}
}

func TestPrepareInsert(t *testing.T) {
	in := query.ApplyInput{NewID: newID}
	for json, want := range map[string]string{
		`{"a": 1}`:                      `{"_id": {"$oid": "000000000000000000000007"}, "a": 1}`,
		`{"a": 1, "_id": 2}`:            `{"_id": 2, "a": 1}`,
		`{"_id": null}`:                 `{"_id": null}`,
		`{"$a": 1, "b.c": 1, "_id": 1}`: `{"_id": 1, "$a": 1, "b.c": 1}`,
	} {
		got, err := query.PrepareInsert(doc(t, json), in, vars(t, `{}`))
		if err != nil {
			t.Errorf("%s: %v", json, err)
			continue
		}
		wantDoc(t, got, want)
	}
	for json, want := range map[string]int32{`{"_id": [1]}`: 53, `{"_id": {"$a": 1}}`: 52} {
		if _, err := query.PrepareInsert(doc(t, json), in, nil); code(t, err) != want {
			t.Errorf("%s: %v", json, err)
		}
	}
}

// After $set the document matches what was set, and a second time changes nothing.
func TestSetThenMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom([]string{"a", "b.x", "a.0", "c.d.e"}).Draw(t, "path")
		op := rapid.SampledFrom([]string{"$set", "$min", "$max", "$addToSet"}).Draw(t, "operator")
		v := valuetest.Value(t, 1)
		var field, all, d value.Builder
		field.Add(path, v)
		fields := field.Value()
		all.Add(op, fields)
		d.Add("_id", value.Int32(1))
		for k, e := range value.Fields(valuetest.Document(t, 2)) {
			d.Add(k, e)
		}
		u, err := query.ParseUpdate(all.Value(), query.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		once, _, err := u.Apply(d.Document(), query.ApplyInput{})
		if err != nil {
			return // a path through something without fields
		}
		twice, modified, err := u.Apply(once, query.ApplyInput{})
		if err != nil || modified || !bytes.Equal(once, twice) {
			t.Fatalf("%s %s: the second time gives %s after %s: %v", op, fields, twice, once, err)
		}
		if op != "$set" {
			return
		}
		f, err := query.ParseFilter(value.Value(equalTo(path, v)).Data, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := f.Match(once); err != nil || !ok {
			t.Fatalf("%s does not match %s", once, equalTo(path, v))
		}
	})
}

// equalTo is {path: {$eq: v}}.
func equalTo(path string, v value.Value) value.Value {
	var eq, b value.Builder
	eq.Add("$eq", v)
	b.Add(path, eq.Value())
	return b.Value()
}
