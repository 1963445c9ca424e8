package query_test

import (
	"testing"

	"github.com/assaylab/assay/replset/query"
)

func TestFilterMatch(t *testing.T) {
	for _, c := range []struct {
		filter, doc string
		want        bool
	}{
		{`{}`, `{"a": 1}`, true},
		// equality, across numeric types, and within arrays
		{`{"a": 1}`, `{"a": 1.0}`, true},
		{`{"a": 1}`, `{"a": {"$numberLong": "1"}}`, true},
		{`{"a": 1}`, `{"a": {"$numberDecimal": "1.000"}}`, true},
		{`{"a": 0.1}`, `{"a": {"$numberDecimal": "0.1"}}`, false},
		{`{"a": {"$numberLong": "9007199254740993"}}`, `{"a": 9007199254740992.0}`, false},
		{`{"a": 1}`, `{"a": [3, 1]}`, true},
		{`{"a": 1}`, `{"a": [[1]]}`, false},
		{`{"a": [1]}`, `{"a": [[1]]}`, true},
		{`{"a": [1, 2]}`, `{"a": [1, 2]}`, true},
		{`{"a": [1, 2]}`, `{"a": [2, 1]}`, false},
		{`{"a": {"b": 1}}`, `{"a": {"b": 1}}`, true},
		{`{"a": {"b": 1}}`, `{"a": {"b": 1, "c": 2}}`, false},
		{`{"a": {"b": 1, "c": 2}}`, `{"a": {"c": 2, "b": 1}}`, false},
		{`{"a": "x"}`, `{"a": {"$symbol": "x"}}`, true},
		// null, missing and undefined
		{`{"a": null}`, `{}`, true},
		{`{"a": null}`, `{"a": null}`, true},
		{`{"a": null}`, `{"a": []}`, false},
		{`{"a": null}`, `{"a": [null]}`, true},
		{`{"a": null}`, `{"a": {"$undefined": true}}`, false},
		{`{"a": {"$ne": null}}`, `{}`, false},
		{`{"a": {"$ne": null}}`, `{"a": []}`, true},
		{`{"a.b": null}`, `{"a": {}}`, true},
		{`{"a.b": null}`, `{"a": 4}`, true},
		{`{"a.b": null}`, `{"a": []}`, false},
		{`{"a.b": null}`, `{"a": [4]}`, false},
		{`{"a.b": null}`, `{"a": [{}]}`, true},
		{`{"a.b": null}`, `{"a": [{"b": 1}, {"c": 1}]}`, true},
		{`{"a.b": {"$exists": false}}`, `{"a": []}`, true},
		{`{"a.b": {"$exists": false}}`, `{"a": [{"b": 1}, {}]}`, false},
		{`{"a": {"$exists": true}}`, `{"a": null}`, true},
		{`{"a": {"$exists": 0}}`, `{"a": null}`, false},
		{`{"a": {"$gte": null}}`, `{}`, true},
		{`{"a": {"$gt": null}}`, `{"a": null}`, false},
		{`{"a": {"$in": [null]}}`, `{}`, true},
		{`{"a": {"$nin": [null]}}`, `{}`, false},
		// comparison stays within a class of types
		{`{"a": {"$gt": 1}}`, `{"a": "x"}`, false},
		{`{"a": {"$lt": "z"}}`, `{"a": 1}`, false},
		{`{"a": {"$gt": 1}}`, `{"a": 1.5}`, true},
		{`{"a": {"$gt": 1, "$lt": 5}}`, `{"a": [0, 10]}`, true},
		{`{"a": {"$elemMatch": {"$gt": 1, "$lt": 5}}}`, `{"a": [0, 10]}`, false},
		{`{"a": {"$elemMatch": {"$gt": 1, "$lt": 5}}}`, `{"a": [0, 3]}`, true},
		{`{"a": {"$elemMatch": {"$gt": 1, "$lt": 5}}}`, `{"a": 3}`, false},
		{`{"a": {"$lt": {"$maxKey": 1}}}`, `{"a": "x"}`, true},
		{`{"a": {"$gt": {"$maxKey": 1}}}`, `{"a": "x"}`, false},
		{`{"a": {"$gt": {"$minKey": 1}}}`, `{"a": null}`, true},
		{`{"a": {"$lt": 5}}`, `{"a": {"$numberDouble": "NaN"}}`, false},
		{`{"a": {"$lte": {"$numberDouble": "NaN"}}}`, `{"a": {"$numberDouble": "NaN"}}`, true},
		{`{"a": {"$gte": {"$numberDouble": "NaN"}}}`, `{"a": 1}`, false},
		{`{"a": {"$gt": [1]}}`, `{"a": [1, 2]}`, true},
		{`{"a": {"$gt": {"b": 1}}}`, `{"a": {"b": 2}}`, true},
		// dotted paths and positions
		{`{"a.b": 1}`, `{"a": [{"b": 2}, {"b": 1}]}`, true},
		{`{"a.b": 1}`, `{"a": [{"b": [2, 1]}]}`, true},
		{`{"a.0": 1}`, `{"a": [1, 2]}`, true},
		{`{"a.1": 1}`, `{"a": [1, 2]}`, false},
		{`{"a.0.b": 1}`, `{"a": [{"b": 1}]}`, true},
		{`{"a.0": 1}`, `{"a": {"0": 1}}`, true},
		{`{"a.0": 1}`, `{"a": [{"0": 1}]}`, true},
		{`{"a.00": 1}`, `{"a": [1]}`, false},
		{`{"a.b.c": 1}`, `{"a": [{"b": [{"c": 1}]}]}`, true},
		{`{"a.b": 1}`, `{"a": [[{"b": 1}]]}`, false},
		// negation is of the whole
		{`{"a": {"$ne": 1}}`, `{"a": [1, 2]}`, false},
		{`{"a": {"$ne": 3}}`, `{"a": [1, 2]}`, true},
		{`{"a": {"$not": {"$gt": 1}}}`, `{}`, true},
		{`{"a": {"$not": {"$gt": 1}}}`, `{"a": "x"}`, true},
		{`{"a": {"$not": {"$gt": 1, "$lt": 9}}}`, `{"a": 10}`, true},
		{`{"$nor": [{"a": 1}, {"b": 1}]}`, `{"a": 2}`, true},
		{`{"$or": [{"a": 1}, {"b": 1}]}`, `{"b": 1}`, true},
		{`{"$and": [{"a": 1}, {"a": 2}]}`, `{"a": [1, 2]}`, true},
		// $in and regular expressions
		{`{"a": {"$in": [2.0, "x"]}}`, `{"a": 2}`, true},
		{`{"a": {"$in": [[1, 2]]}}`, `{"a": [1, 2]}`, true},
		{`{"a": {"$in": [{"$regularExpression": {"pattern": "^x", "options": ""}}]}}`, `{"a": ["y", "xy"]}`, true},
		{`{"a": {"$in": []}}`, `{"a": 1}`, false},
		{`{"a": {"$nin": [1]}}`, `{"a": [1, 2]}`, false},
		{`{"a": {"$regex": "^AB", "$options": "i"}}`, `{"a": "abc"}`, true},
		{`{"a": {"$regex": "a b # c", "$options": "x"}}`, `{"a": "ab"}`, true},
		{`{"a": {"$regex": "b$"}}`, `{"a": "ab\n"}`, true},
		{`{"a": {"$regularExpression": {"pattern": "b", "options": ""}}}`, `{"a": {"$regularExpression": {"pattern": "b", "options": ""}}}`, true},
		{`{"a": {"$regex": "1"}}`, `{"a": 1}`, false},
		{`{"a": {"$not": {"$regularExpression": {"pattern": "x", "options": ""}}}}`, `{"a": "y"}`, true},
		// $type, $size, $mod, $all
		{`{"a": {"$type": "number"}}`, `{"a": {"$numberDecimal": "1"}}`, true},
		{`{"a": {"$type": 2}}`, `{"a": [1, "x"]}`, true},
		{`{"a": {"$type": "array"}}`, `{"a": [1]}`, true},
		{`{"a": {"$type": "array"}}`, `{"a": 1}`, false},
		{`{"a": {"$type": ["string", "null"]}}`, `{"a": null}`, true},
		{`{"a": {"$type": "null"}}`, `{}`, false},
		{`{"a": {"$type": -1}}`, `{"a": {"$minKey": 1}}`, true},
		{`{"a": {"$size": 2}}`, `{"a": [1, [2]]}`, true},
		{`{"a": {"$size": 0}}`, `{}`, false},
		{`{"a": {"$size": 1}}`, `{"a": [[1, 2]]}`, true},
		{`{"a": {"$mod": [4, 2]}}`, `{"a": 6.9}`, true},
		{`{"a": {"$mod": [4, -2]}}`, `{"a": -6}`, true},
		{`{"a": {"$mod": [4, 2]}}`, `{"a": "6"}`, false},
		{`{"a": {"$all": [1, 2]}}`, `{"a": [2, 3, 1]}`, true},
		{`{"a": {"$all": [1]}}`, `{"a": 1}`, true},
		{`{"a": {"$all": []}}`, `{"a": []}`, false},
		{`{"a": {"$all": [[1, 2]]}}`, `{"a": [1, 2]}`, true},
		{`{"a": {"$all": [{"$elemMatch": {"x": 1}}, {"$elemMatch": {"x": 2}}]}}`, `{"a": [{"x": 2}, {"x": 1}]}`, true},
		// $elemMatch on documents
		{`{"a": {"$elemMatch": {"b": 1, "c": 2}}}`, `{"a": [{"b": 1}, {"c": 2}]}`, false},
		{`{"a": {"$elemMatch": {"b": 1, "c": 2}}}`, `{"a": [{"b": 1, "c": 2}]}`, true},
		{`{"a": {"$elemMatch": {"0": 5}}}`, `{"a": [[5]]}`, true},
		{`{"a": {"$elemMatch": {"$not": {"$gte": 3}}}}`, `{"a": [3, 1]}`, true},
		{`{"a": {"$elemMatch": {"$elemMatch": {"$gt": 3}}}}`, `{"a": [[1, 4]]}`, true},
		{`{"a": {"$elemMatch": {"$gt": 3}}}`, `{"a": [[1, 4]]}`, false},
		{`{"a.b": {"$elemMatch": {"c": 1}}}`, `{"a": [{"b": [{"c": 1}]}]}`, true},
		{`{"a": {"$elemMatch": {"$or": [{"b": 1}, {"b": 2}]}}}`, `{"a": [{"b": 2}]}`, true},
		// bits
		{`{"a": {"$bitsAllSet": 5}}`, `{"a": 7}`, true},
		{`{"a": {"$bitsAllSet": [0, 3]}}`, `{"a": 7}`, false},
		{`{"a": {"$bitsAnySet": [0, 3]}}`, `{"a": 7}`, true},
		{`{"a": {"$bitsAllClear": [3, 4]}}`, `{"a": 7}`, true},
		{`{"a": {"$bitsAnyClear": [0, 4]}}`, `{"a": 7}`, true},
		{`{"a": {"$bitsAllSet": [200]}}`, `{"a": -1}`, true},
		{`{"a": {"$bitsAllSet": [1]}}`, `{"a": 1.5}`, false},
		{`{"a": {"$bitsAllSet": [9]}}`, `{"a": {"$binary": {"base64": "AAI=", "subType": "00"}}}`, true},
		// $expr, references, constants
		{`{"$expr": {"$gt": ["$a", "$b"]}}`, `{"a": 2, "b": 1}`, true},
		{`{"$expr": "$a"}`, `{"a": 0}`, false},
		{`{"r": {"$ref": "c", "$id": 1}}`, `{"r": {"$ref": "c", "$id": 1}}`, true},
		{`{"$alwaysFalse": 1}`, `{}`, false},
		{`{"$comment": "x", "a": {"$eq": 1, "$comment": "y"}}`, `{"a": 1}`, true},
	} {
		got, err := filter(t, c.filter).Match(doc(t, c.doc))
		if err != nil || got != c.want {
			t.Errorf("%s on %s: %v, %v; want %v", c.filter, c.doc, got, err, c.want)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	for _, c := range []struct {
		filter string
		code   int32
	}{
		{`{"$foo": 1}`, 2},
		{`{"a": {"$foo": 1}}`, 2},
		{`{"a": {"$gt": 1, "b": 2}}`, 2},
		{`{"$and": []}`, 2},
		{`{"$or": [1]}`, 2},
		{`{"$nor": {"a": 1}}`, 2},
		{`{"a": {"$in": 1}}`, 2},
		{`{"a": {"$in": [{"$gt": 1}]}}`, 2},
		{`{"a": {"$not": 1}}`, 2},
		{`{"a": {"$not": {}}}`, 2},
		{`{"a": {"$gt": {"$regularExpression": {"pattern": "x", "options": ""}}}}`, 2},
		{`{"a": {"$ne": {"$regularExpression": {"pattern": "x", "options": ""}}}}`, 2},
		{`{"a": {"$regex": "(?=x)"}}`, 51091},
		{`{"a": {"$regex": "("}}`, 51091},
		{`{"a": {"$regex": "x", "$options": "q"}}`, 51108},
		{`{"a": {"$options": "i"}}`, 2},
		{`{"a": {"$size": -1}}`, 2},
		{`{"a": {"$size": "x"}}`, 2},
		{`{"a": {"$mod": [0, 1]}}`, 2},
		{`{"a": {"$mod": [1]}}`, 2},
		{`{"a": {"$type": "frog"}}`, 2},
		{`{"a": {"$all": 1}}`, 2},
		{`{"a": {"$elemMatch": 1}}`, 2},
		{`{"a": {"$elemMatch": {"$expr": 1}}}`, 2},
		{`{"a": {"$bitsAllSet": -1}}`, 9},
		{`{"a": {"$undefined": true}}`, 2},
		{`{"$where": "1"}`, 238},
		{`{"$text": {"$search": "x"}}`, 238},

		{`{"a": {"$near": [0, 0]}}`, 238},
		{`{"$expr": {"$frob": 1}}`, 168},
		{`{"$expr": "$$nope"}`, 17276},
	} {
		_, err := query.ParseFilter(doc(t, c.filter), nil)
		if got := code(t, err); got != c.code {
			t.Errorf("%s: %v, want code %d", c.filter, err, c.code)
		}
	}
}

func TestFilterVariables(t *testing.T) {
	f, err := query.ParseFilter(doc(t, `{"$expr": {"$eq": ["$name", "$$name"]}}`), vars(t, `{"name": "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := f.Match(doc(t, `{"name": "x"}`)); !ok || err != nil {
		t.Error(ok, err)
	}
	if _, err := query.NewVars(doc(t, `{"Bad": 1}`), query.System{}); code(t, err) != 16867 {
		t.Error(err)
	}
	f, err = query.ParseFilter(doc(t, `{"$expr": {"$divide": [1, "$a"]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Match(doc(t, `{"a": 0}`)); code(t, err) != 2 {
		t.Error(err)
	}
}

func TestFilterPosition(t *testing.T) {
	for _, c := range []struct {
		filter, doc string
		want        query.Position
	}{
		{`{"a": 2}`, `{"a": [1, 2]}`, 2},
		{`{"a": {"$elemMatch": {"b": 3}}}`, `{"a": [{"b": 1}, {"b": 3}]}`, 2},
		{`{"a.b": 3}`, `{"a": [{"b": [9]}, {"b": [1, 3]}]}`, 2},
		{`{"a": [1, 2]}`, `{"a": [1, 2]}`, 0},
		{`{"a": 1}`, `{"a": 1}`, 0},
		{`{"a.1": 2}`, `{"a": [1, 2]}`, 0},
		{`{"b": {"$ne": 1}, "a": 2}`, `{"a": [1, 2], "b": [3]}`, 2},
		{`{"a": {"$not": {"$gt": 5}}}`, `{"a": [1]}`, 0},
	} {
		ok, got, err := filter(t, c.filter).MatchPosition(doc(t, c.doc))
		if err != nil || !ok || got != c.want {
			t.Errorf("%s on %s: %v %d %v, want %d", c.filter, c.doc, ok, got, err, c.want)
		}
	}
}

func TestFilterID(t *testing.T) {
	for _, c := range []struct {
		filter string
		pinned bool
	}{
		{`{"_id": 1}`, true},
		{`{"_id": {"$eq": 1}, "a": 2}`, true},
		{`{"$and": [{"a": 1}, {"_id": 1}]}`, true},
		{`{"_id": {"$in": [1]}}`, false},
		{`{"$or": [{"_id": 1}, {"a": 1}]}`, false},
		{`{"_id": {"$regularExpression": {"pattern": "x", "options": ""}}}`, false},
		{`{"_id": {"$gt": 1}}`, false},
		{`{"_id.a": 1}`, false},
	} {
		if _, ok := filter(t, c.filter).ID(); ok != c.pinned {
			t.Errorf("%s: pins _id: %v", c.filter, ok)
		}
	}
}
