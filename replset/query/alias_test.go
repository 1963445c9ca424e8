package query_test

import (
	"bytes"
	"testing"

	"github.com/assaylab/assay/replset/query"
)

// What is parsed does not depend on the bytes it was parsed from: a connection
// reads its next message into the same buffer.
func TestParsedPartsOwnTheirBytes(t *testing.T) {
	d := doc(t, `{"_id": 1, "a": [{"x": "one"}, {"x": "two"}], "s": "text", "n": 5}`)
	parts := map[string]func(spec query.Document) func() (query.Document, error){
		`{"s": "text", "n": {"$in": [5]}, "a.x": {"$regex": "^tw"}, "$expr": {"$eq": ["$s", "text"]}, "a": {"$elemMatch": {"x": "two"}}}`: func(spec query.Document) func() (query.Document, error) {
			f, err := query.ParseFilter(spec, nil)
			return func() (query.Document, error) {
				if err != nil {
					return nil, err
				}
				if ok, err := f.Match(d); !ok || err != nil {
					return nil, err
				}
				return d, nil
			}
		},
		`{"a": {"$elemMatch": {"x": "two"}}, "k": {"$literal": "kept"}, "c": {"$concat": ["$s", "!"]}}`: func(spec query.Document) func() (query.Document, error) {
			p, err := query.ParseProjection(spec, nil)
			return func() (query.Document, error) {
				if err != nil {
					return nil, err
				}
				return p.Apply(d, 0)
			}
		},
		`{"$set": {"b.c": {"deep": "value"}}, "$push": {"l": {"$each": ["p", "q"]}}, "$addToSet": {"m": "r"}, "$pull": {"a": {"x": "one"}}, "$max": {"s": "zzz"}, "$rename": {"n": "o"}}`: updateOwner(d),
		`{"s": "replaced", "t": ["u"]}`: updateOwner(d),
		`{"0": {"$set": {"s": "set", "v": "$$ROOT.n"}}, "1": {"$bucket": {"groupBy": "$n", "boundaries": ["a", "b"], "default": "other", "output": {"l": {"$push": "literal"}}}}}`: func(spec query.Document) func() (query.Document, error) {
			v := val(t, `[]`)
			v.Data = spec
			p, err := query.ParsePipeline(v, query.PipelineOptions{})
			return func() (query.Document, error) {
				if err != nil {
					return nil, err
				}
				return p.Run(query.FromSlice([]query.Document{d}), nil).Next()
			}
		},
	}
	for spec, parse := range parts {
		buffer := doc(t, spec)
		use := parse(buffer)
		before, err := use()
		if err != nil || before == nil {
			t.Errorf("%s: %s, %v", spec, show(before), err)
			continue
		}
		before = bytes.Clone(before)
		for i := range buffer {
			buffer[i] = 0xAA
		}
		after, err := use()
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s:\nbefore %s\nafter  %s %v", spec, show(before), show(after), err)
		}
	}
}

func updateOwner(d query.Document) func(query.Document) func() (query.Document, error) {
	return func(spec query.Document) func() (query.Document, error) {
		u, err := query.ParseUpdate(query.Value{Type: 3, Data: spec}, query.UpdateOptions{})
		return func() (query.Document, error) {
			if err != nil {
				return nil, err
			}
			out, _, err := u.Apply(d, query.ApplyInput{})
			return out, err
		}
	}
}
