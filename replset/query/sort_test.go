package query_test

import (
	"testing"

	"github.com/assaylab/assay/replset/query"
)

func TestSort(t *testing.T) {
	for _, c := range []struct {
		sort string
		docs []string // in the order wanted
	}{
		{`{"a": 1}`, []string{`{"a": []}`, `{"n": 1}`, `{"a": null}`, `{"a": 1}`, `{"a": 2.5}`, `{"a": "x"}`, `{"a": {"b": 1}}`}},
		{`{"a": -1}`, []string{`{"a": "x"}`, `{"a": 2}`, `{"a": 1}`, `{}`}},
		{`{"a": 1}`, []string{`{"a": [5, 1]}`, `{"a": 2}`, `{"a": [4, 3]}`}},  // the least element counts
		{`{"a": -1}`, []string{`{"a": [5, 1]}`, `{"a": [4, 3]}`, `{"a": 2}`}}, // the greatest
		{`{"a": 1}`, []string{`{"a": 1, "n": 1}`, `{"a": 1.0, "n": 2}`}},      // equal ones stay as they are
		{`{"a": 1, "b": -1}`, []string{`{"a": 1, "b": 2}`, `{"a": 1, "b": 1}`, `{"a": 2, "b": 9}`}},
		{`{"a.b": 1}`, []string{`{"a": [{"b": 1}, {"b": 9}]}`, `{"a": {"b": 2}}`}},
		{`{"a.b": 1, "a.c": 1}`, []string{`{"a": [{"b": 1, "c": 5}, {"b": 2, "c": 0}]}`, `{"a": {"b": 1, "c": 6}}`}},
	} {
		s, err := query.ParseSort(doc(t, c.sort), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := docs(t, c.docs...)
		got := docs(t, c.docs...)
		if len(got) > 2 { // rotate, so that there is something to do; two equals must stay
			got = append(got[1:], got[0])
		}
		if err := s.Documents(got); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if show(got[i]) != show(want[i]) {
				t.Errorf("%s: place %d is %s, want %s", c.sort, i, show(got[i]), show(want[i]))
			}
		}
	}
}

func TestSortErrors(t *testing.T) {
	for json, want := range map[string]int32{
		`{"a": 2}`: 15975, `{"a": "x"}`: 15974, `{"a": {"$meta": "textScore"}}`: 238, `{"a..b": 1}`: 15998, `{"$a": 1}`: 16410,
		`{"$natural": 2}`: 2,
	} {
		if _, err := query.ParseSort(doc(t, json), nil); code(t, err) != want {
			t.Errorf("%s: %v, want %d", json, err, want)
		}
	}
	s, err := query.ParseSort(doc(t, `{"a": 1, "b": 1}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Key(doc(t, `{"a": [1], "b": [1]}`)); code(t, err) != 2 {
		t.Error(err)
	}
	if s, err := query.ParseSort(doc(t, `{}`), nil); s != nil || err != nil {
		t.Error("an empty sort is an order")
	}
	if s, err := query.ParseSort(doc(t, `{"$natural": -1}`), nil); err != nil || s.Natural() != -1 {
		t.Error(s, err)
	}
}

func TestDistinct(t *testing.T) {
	d := query.NewDistinct("a.b", nil)
	for _, x := range docs(t, `{"a": {"b": 1}}`, `{"a": [{"b": 2}, {"b": [3, 1.0]}]}`, `{}`, `{"a": {"b": null}}`, `{"a": 5}`) {
		d.Add(x)
	}
	got := query.Document(d.Values().Data)
	wantDoc(t, got, `{"0": 1, "1": 2, "2": 3, "3": null}`)
}
