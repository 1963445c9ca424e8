package query_test

import (
	"testing"

	"github.com/assaylab/assay/replset/query"
)

func TestProjection(t *testing.T) {
	for _, c := range []struct{ projection, doc, want string }{
		{`{}`, `{"_id": 1, "a": 2}`, `{"_id": 1, "a": 2}`},
		{`{"a": 1}`, `{"b": 3, "a": 2, "_id": 1}`, `{"a": 2, "_id": 1}`},
		{`{"a": 1, "_id": 0}`, `{"_id": 1, "a": 2, "b": 3}`, `{"a": 2}`},
		{`{"_id": 0}`, `{"_id": 1, "a": 2}`, `{"a": 2}`},
		{`{"_id": 1}`, `{"_id": 1, "a": 2}`, `{"_id": 1}`},
		{`{"a": 0}`, `{"_id": 1, "a": 2, "b": 3}`, `{"_id": 1, "b": 3}`},
		{`{"a": 0, "_id": 1}`, `{"_id": 1, "a": 2, "b": 3}`, `{"_id": 1, "b": 3}`},
		{`{"a.b": 1}`, `{"_id": 1, "a": {"b": 1, "c": 2}}`, `{"_id": 1, "a": {"b": 1}}`},
		{`{"a": {"b": 1}}`, `{"a": {"b": 1, "c": 2}}`, `{"a": {"b": 1}}`},
		{`{"a.b": 1}`, `{"a": [{"b": 1, "c": 2}, 5, {"c": 1}, [{"b": 3}]]}`, `{"a": [{"b": 1}, {}, [{"b": 3}]]}`},
		{`{"a.b": 1}`, `{"a": 5}`, `{}`},
		{`{"a.b": 0}`, `{"a": [{"b": 1, "c": 2}, 5]}`, `{"a": [{"c": 2}, 5]}`},
		{`{"a": 1, "b": 1}`, `{"b": 1, "a": 2}`, `{"b": 1, "a": 2}`},
		// $slice, $elemMatch
		{`{"a": {"$slice": 2}}`, `{"_id": 1, "a": [1, 2, 3], "b": 1}`, `{"_id": 1, "a": [1, 2], "b": 1}`},
		{`{"a": {"$slice": -2}}`, `{"a": [1, 2, 3]}`, `{"a": [2, 3]}`},
		{`{"a": {"$slice": [1, 1]}}`, `{"a": [1, 2, 3]}`, `{"a": [2]}`},
		{`{"a": {"$slice": [-2, 1]}}`, `{"a": [1, 2, 3]}`, `{"a": [2]}`},
		{`{"a": {"$slice": 1}, "b": 1}`, `{"a": [1, 2], "b": 1, "c": 1}`, `{"a": [1], "b": 1}`},
		{`{"a": {"$slice": 1}}`, `{"a": 5}`, `{"a": 5}`},
		{`{"a": {"$slice": ["$b", 1]}}`, `{"a": 5, "b": [7, 8]}`, `{"a": [7]}`},
		{`{"a": {"$elemMatch": {"x": 2}}}`, `{"_id": 1, "a": [{"x": 1}, {"x": 2, "y": 1}, {"x": 2}], "b": 1}`, `{"_id": 1, "a": [{"x": 2, "y": 1}]}`},
		{`{"a": {"$elemMatch": {"$gt": 2}}}`, `{"a": [1, 3, 4]}`, `{"a": [3]}`},
		{`{"a": {"$elemMatch": {"x": 9}}}`, `{"a": [{"x": 1}]}`, `{}`},
		// computed
		{`{"b": {"$add": ["$a", 1]}}`, `{"_id": 1, "a": 2}`, `{"_id": 1, "b": 3}`},
		{`{"b": "$a", "a": 1}`, `{"a": 2, "z": 1}`, `{"a": 2, "b": 2}`},
		{`{"b": "text"}`, `{"a": 2}`, `{"b": "text"}`},
		{`{"b": {"$literal": 1}}`, `{"a": 2}`, `{"b": 1}`},
		{`{"b": "$missing"}`, `{"a": 2}`, `{}`},
		{`{"a.c": "$x"}`, `{"a": [{"b": 1}, {"c": 2}], "x": 7}`, `{"a": [{"c": 7}, {"c": 7}]}`},
		{`{"a.c": "$x"}`, `{"x": 7}`, `{"a": {"c": 7}}`},
		{`{"a": ["$x", "$y"]}`, `{"x": 7}`, `{"a": [7, null]}`},
	} {
		p, err := query.ParseProjection(doc(t, c.projection), vars(t, `{}`))
		if err != nil {
			t.Errorf("%s: %v", c.projection, err)
			continue
		}
		got, err := p.Apply(doc(t, c.doc), 0)
		if err != nil {
			t.Errorf("%s: %v", c.projection, err)
			continue
		}
		if show(got) != show(doc(t, c.want)) {
			t.Errorf("%s on %s:\ngot  %s\nwant %s", c.projection, c.doc, show(got), c.want)
		}
	}
}

func TestPositionalProjection(t *testing.T) {
	p, err := query.ParseProjection(doc(t, `{"a.$": 1, "_id": 0}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := doc(t, `{"_id": 1, "a": [{"x": 1}, {"x": 2, "y": 3}], "b": 1}`)
	_, index, err := filter(t, `{"a.x": 2}`).MatchPosition(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Apply(d, index)
	if err != nil || !p.NeedsPosition() {
		t.Fatal(err)
	}
	wantDoc(t, got, `{"a": [{"x": 2, "y": 3}]}`)
	if _, err := p.Apply(d, 0); code(t, err) != 51246 {
		t.Error(err)
	}
}

func TestProjectionErrors(t *testing.T) {
	for json, want := range map[string]int32{
		`{"a": 1, "b": 0}`:             31254,
		`{"a": 0, "b": 1}`:             31253,
		`{"a": 1, "a.b": 1}`:           31249,
		`{"a.b": 1, "a": 1}`:           31250,
		`{"a": {}}`:                    51270,
		`{"a..b": 1}`:                  15998,
		`{"$a": 1}`:                    16410,
		`{"a.$": 1, "b.$": 1}`:         31276,
		`{"a": {"$elemMatch": 1}}`:     31274,
		`{"a": {"$meta": "x"}}`:        238,
		`{"a": {"$frob": 1}}`:          168,
		`{"a": {"$slice": "x"}}`:       28667,
		`{"a": {"$slice": [1, 2, 3]}}`: 0, // the expression: wrong only when evaluated
	} {
		if _, err := query.ParseProjection(doc(t, json), nil); code(t, err) != want {
			t.Errorf("%s: %v, want %d", json, err, want)
		}
	}
}
