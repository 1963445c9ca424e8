package query_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// fromText reads extended JSON. Fuzzing text gets much further than fuzzing BSON,
// whose lengths are wrong after nearly every change.
func fromText(text string) (query.Document, bool) {
	var d bson.D
	if len(text) > 1<<12 || bson.UnmarshalExtJSON([]byte(text), false, &d) != nil {
		return nil, false
	}
	raw, err := bson.Marshal(d)
	return raw, err == nil && query.Validate(raw) == nil
}

// FuzzQuery: a document f, q, s, p, u, a is a document, a filter, a sort, a
// projection, an update and a pipeline. Whatever parses works without a panic, and
// gives BSON.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		`{"f": {"_id": 1, "a": [1, {"b": 2}]}, "q": {"a.b": {"$gt": 1}, "$or": [{"a": 1}]}, "s": {"a": 1}, "p": {"a.$": 1}, "u": {"$set": {"a.$": 1}}, "a": [{"$group": {"_id": "$a", "n": {"$sum": 1}}}]}`,
		`{"f": {"_id": 1, "a": [1]}, "q": {"a": {"$elemMatch": {"$in": [1, null]}}}, "s": {"a.b": -1}, "p": {"a": {"$slice": [1, 2]}}, "u": {"$push": {"a": {"$each": [1], "$slice": -1, "$sort": 1}}}, "a": [{"$unwind": "$a"}, {"$sort": {"a": 1}}, {"$limit": 1}]}`,
		`{"f": {"_id": 1, "a": {"b": 1}}, "q": {"a": {"$type": "object"}, "b": {"$not": {"$size": 1}}}, "s": {}, "p": {"a": {"$elemMatch": {"b": 1}}}, "u": {"$rename": {"a.b": "c"}, "$inc": {"d": 1}}, "a": [{"$facet": {"x": [{"$count": "n"}]}}]}`,
		`{"f": {"_id": 1, "x": 5}, "q": {"x": {"$bitsAllSet": [0]}, "y": {"$mod": [2, 1]}}, "s": {"x": 1, "y": 1}, "p": {"z": {"$add": ["$x", 1]}}, "u": [{"$set": {"y": "$x"}}], "a": [{"$bucket": {"groupBy": "$x", "boundaries": [1, 9]}}]}`,
		`{"f": {"_id": 1, "x": "abc"}, "q": {"x": {"$regex": "^a", "$options": "i"}}, "s": {"$natural": 1}, "p": {"x": 0}, "u": {"y": 1}, "a": [{"$lookup": {"pipeline": [{"$documents": [{"a": 1}]}], "as": "z"}}, {"$sample": {"size": 1}}]}`,
		`{"f": {"_id": 1, "a": [[1], [2]]}, "q": {"a": {"$all": [[1]]}}, "u": {"$pull": {"a": {"$in": [[1]]}}, "$bit": {"n": {"or": 1}}}, "a": [{"$sortByCount": "$a"}, {"$replaceWith": {"k": "$_id"}}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, ok := fromText(text)
		if !ok {
			return
		}
		part := func(k string) query.Document {
			if v := value.Lookup(raw, k); value.IsDocument(v) {
				return v.Data
			}
			return doc(t, `{}`)
		}
		d := part("f")
		vs := vars(t, `{}`)
		index := fuzzFilter(t, part("q"), d, vs)
		if s, err := query.ParseSort(part("s"), nil); err == nil && s != nil {
			_, err := s.Key(d)
			code(t, err)
		}
		if p, err := query.ParseProjection(part("p"), vs); err == nil {
			out, err := p.Apply(d, index)
			wellFormed(t, out, err)
		}
		if u, err := query.ParseUpdate(value.Lookup(raw, "u"), query.UpdateOptions{Vars: vs}); err == nil {
			out, _, err := u.Apply(d, query.ApplyInput{Position: index, NewID: newID})
			wellFormed(t, out, err)
		}
		fuzzPipeline(t, value.Lookup(raw, "a"), d, vs)
	})
}

func fuzzFilter(t *testing.T, q, d query.Document, vs *query.Vars) query.Position {
	f, err := query.ParseFilter(q, vs)
	if err != nil {
		code(t, err)
		return 0
	}
	ok, index, err := f.MatchPosition(d)
	code(t, err)
	f.Bounds()
	f.ID()
	if !ok {
		return 0
	}
	return index
}

func fuzzPipeline(t *testing.T, a query.Value, d query.Document, vs *query.Vars) {
	p, err := query.ParsePipeline(a, query.PipelineOptions{Vars: vs})
	if err != nil {
		code(t, err)
		return
	}
	c := p.Run(query.FromSlice([]query.Document{d, d}), nil)
	defer c.Close()
	out, err := query.ReadAll(c.Next)
	code(t, err)
	for _, o := range out {
		wellFormed(t, o, nil)
	}
}

// wellFormed: a result may be too large or too deep to be stored, but is BSON.
func wellFormed(t *testing.T, out query.Document, err error) {
	t.Helper()
	if code(t, err) != 0 {
		return
	}
	var e *query.Error
	if err := query.Validate(out); errors.As(err, &e) && e.Code == value.InvalidBSON {
		t.Errorf("the result is not BSON: %v", err)
	}
}
