package query_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/query/value/valuetest"
)

func TestImplies(t *testing.T) {
	for _, c := range []struct {
		filter, other string
		want          bool
	}{
		{`{"a": 5}`, `{}`, true},
		{`{"a": 5}`, `{"a": {"$exists": true}}`, true},
		{`{"a": null}`, `{"a": {"$exists": true}}`, false},
		{`{"a": {"$gt": 5}}`, `{"a": {"$gt": 3}}`, true},
		{`{"a": {"$gt": 3}}`, `{"a": {"$gt": 3}}`, true},
		{`{"a": {"$gte": 3}}`, `{"a": {"$gt": 3}}`, false},
		{`{"a": {"$gt": 3}}`, `{"a": {"$gte": 3}}`, true},
		{`{"a": {"$gt": 3}}`, `{"a": {"$lt": 9}}`, false},
		{`{"a": {"$in": [4, 5]}}`, `{"a": {"$gt": 3, "$lt": 9}}`, true},
		{`{"a": {"$in": [4, 50]}}`, `{"a": {"$gt": 3, "$lt": 9}}`, false},
		{`{"a": "x"}`, `{"a": {"$gt": 3}}`, false},
		{`{"a": 5, "b": 1}`, `{"b": 1}`, true},
		{`{"a": 5}`, `{"b": 1}`, false},
		{`{"a": 5}`, `{"a": {"$type": "int"}}`, false},
		{`{"$or": [{"a": 5}, {"a": 6}]}`, `{"a": {"$gt": 3}}`, false},
		{`{"a": {"$ne": 5}}`, `{"a": {"$exists": true}}`, false},
	} {
		if got := filter(t, c.filter).Implies(filter(t, c.other)); got != c.want {
			t.Errorf("%s implies %s: %v", c.filter, c.other, got)
		}
	}
}

func TestWhatIsImpliedMatches(t *testing.T) {
	tried := 0
	check := func(t *rapid.T) {
		f, other := drawComparison(t), drawComparison(t)
		if !f.Implies(other) {
			return
		}
		var list, d value.Builder
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list.Push(valuetest.Scalar(t))
		}
		d.Add("a", list.Array())
		doc := d.Document()
		ok, err := f.Match(doc)
		if err != nil || !ok {
			return
		}
		tried++
		if ok, err := other.Match(doc); err != nil || !ok {
			t.Fatalf("%s matches the one and not the other: %v", doc, err)
		}
	}
	// Few draws imply one another and match as well.
	for round := 0; round < 50 && tried < 5 && !t.Failed(); round++ {
		rapid.Check(t, check)
	}
	if tried == 0 {
		t.Error("nothing was put to the test")
	}
}

// drawComparison is a filter on field a, mostly with numbers.
func drawComparison(t *rapid.T) *query.Filter {
	op := rapid.SampledFrom([]string{"$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$exists"}).Draw(t, "op")
	v := valuetest.Number(t)
	if rapid.IntRange(0, 9).Draw(t, "any type") == 0 {
		v = valuetest.Value(t, 1)
	}
	if op == "$in" {
		v = value.ArrayOf([]value.Value{v, valuetest.Number(t)})
	}
	var arg, b value.Builder
	arg.Add(op, v)
	b.Add("a", arg.Value())
	f, err := query.ParseFilter(b.Document(), nil)
	if err != nil {
		t.Skip()
	}
	return f
}
