package query_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/query/value/valuetest"
)

func pattern(t testing.TB, json string) *query.KeyPattern {
	t.Helper()
	p, err := query.ParseKeyPattern(doc(t, json))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestIndexKeys(t *testing.T) {
	for _, c := range []struct {
		pattern, doc string
		want         string // each key as an array of the values in it
		multikey     bool
	}{
		{`{"a": 1}`, `{"a": 5}`, `[[5]]`, false},
		{`{"a": 1}`, `{}`, `[[null]]`, false},
		{`{"a": 1}`, `{"a": null}`, `[[null]]`, false},
		{`{"a": 1}`, `{"a": []}`, `[[{"$undefined": true}]]`, true},
		{`{"a": 1}`, `{"a": [2, 1, 2.0]}`, `[[1], [2]]`, true},
		{`{"a": 1}`, `{"a": [[1, 2]]}`, `[[[1, 2]]]`, true},
		{`{"a": 1}`, `{"a": {"b": 1}}`, `[[{"b": 1}]]`, false},
		{`{"a.b": 1}`, `{"a": {"b": 1}}`, `[[1]]`, false},
		{`{"a.b": 1}`, `{"a": [{"b": 1}, {"b": [2, 3]}, {}, 7]}`, `[[null], [1], [2], [3]]`, true},
		{`{"a.b": 1}`, `{"a": []}`, `[[null]]`, true},
		{`{"a.b": 1}`, `{"a": 3}`, `[[null]]`, false},
		{`{"a.1": 1}`, `{"a": [5, 6]}`, `[[6]]`, false},
		{`{"a.1.b": 1}`, `{"a": [5, {"b": 6}]}`, `[[6]]`, false},
		{`{"a": 1, "b": 1}`, `{"a": 1, "b": [1, 2]}`, `[[1, 1], [1, 2]]`, true},
		{`{"a.b": 1, "a.c": 1}`, `{"a": [{"b": 1, "c": 2}, {"b": 3}]}`, `[[1, 2], [3, null]]`, true},
		{`{"a": 1, "a.b": 1}`, `{"a": [{"b": 1}]}`, `[[{"b": 1}, 1]]`, true},
		{`{"a.b.c": 1, "a.d": 1}`, `{"a": [{"b": [{"c": 1}, {"c": 2}], "d": 9}]}`, `[[1, 9], [2, 9]]`, true},
	} {
		keys, multikey, err := pattern(t, c.pattern).Keys(doc(t, c.doc))
		if err != nil {
			t.Errorf("%s on %s: %v", c.pattern, c.doc, err)
			continue
		}
		var want [][]byte
		for k := range value.Elements(val(t, c.want).Data) {
			var key []byte
			for v := range value.Elements(k.Data) {
				key = value.AppendKey(key, v)
			}
			want = append(want, key)
		}
		if !slices.EqualFunc(keys, want, bytes.Equal) || multikey != c.multikey {
			t.Errorf("%s on %s: keys %x (multikey %v), want %x", c.pattern, c.doc, keys, multikey, want)
		}
	}
}

func TestDescendingKeysAreInverted(t *testing.T) {
	p := pattern(t, `{"a": 1, "b": -1}`)
	var keys [][]byte
	for _, d := range []string{`{"a": 1, "b": 3}`, `{"a": 1, "b": 2}`, `{"a": 1, "b": null}`, `{"a": 2, "b": "x"}`, `{"a": 2, "b": 9}`} {
		k, _, err := p.Keys(doc(t, d))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k...)
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Errorf("not in order: %x", keys)
	}
}

func TestIndexKeyErrors(t *testing.T) {
	_, _, err := pattern(t, `{"a": 1, "b": 1}`).Keys(doc(t, `{"a": [1], "b": [2]}`))
	if code(t, err) != 171 {
		t.Error(err)
	}
	for json, want := range map[string]int32{
		`{}`: 67, `{"a": 0}`: 67, `{"a": true}`: 67, `{"a..b": 1}`: 67, `{"$a": 1}`: 67,
		`{"a": "text"}`: 238, `{"a": "hashed"}`: 238, `{"$**": 1}`: 238,
	} {
		if _, err := query.ParseKeyPattern(doc(t, json)); code(t, err) != want {
			t.Errorf("%s: %v, want %d", json, err, want)
		}
	}
}

func TestPresent(t *testing.T) {
	p := pattern(t, `{"a.b": 1, "c": 1}`)
	for json, want := range map[string]bool{
		`{}`: false, `{"a": 1}`: false, `{"a": {"b": null}}`: true, `{"a": [{}, {"b": 1}]}`: true, `{"c": []}`: true,
	} {
		if got := p.Present(doc(t, json)); got != want {
			t.Errorf("%s: %v", json, got)
		}
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		filter string
		want   string
	}{
		{`{"a": 1, "b": {"$gt": 2}}`, "a=points(1) b=range(1)"},
		{`{"a": {"$in": [3, 1, 1.0]}}`, "a=points(2)"},
		{`{"a": {"$in": []}}`, "a=points(0)"},
		{`{"a": null}`, "a=points(1)?"},
		{`{"a": [1, 2]}`, "a=points(2)"},
		{`{"a": {"$gt": 1, "$lt": 5}}`, "a=range(1) a=range(1)"},
		{`{"$and": [{"a": 1}, {"b": 1}]}`, "a=points(1) b=points(1)"},
		{`{"$or": [{"a": 1}, {"b": 1}]}`, ""},
		{`{"$or": [{"a": 1}]}`, "a=points(1)"},
		{`{"a": {"$ne": 1}}`, ""},
		{`{"a": {"$not": {"$gt": 1}}}`, ""},
		{`{"a": {"$exists": true}}`, ""},
		{`{"a": {"$in": [{"$regularExpression": {"pattern": "x", "options": ""}}]}}`, ""},
		{`{"a": {"$elemMatch": {"b": 1, "c": null}}}`, "a.b=points(1)"},
		{`{"a": {"$all": [1, 2]}}`, "a=points(1) a=points(1)"},
		{`{"a.0": 1}`, ""},
		{`{"a": {"$lt": {"$maxKey": 1}}}`, ""},
		{`{"a": {"$gte": [1]}}`, ""},
	} {
		var got []string
		for _, b := range filter(t, c.filter).Bounds() {
			kind := "range"
			if b.Points() {
				kind = "points"
			}
			s := b.Path + "=" + kind + "(" + string(rune('0'+len(b.Ranges))) + ")"
			if b.Missing {
				s += "?"
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.filter, s, c.want)
		}
	}
}

// A document that matches has, for each bound, a key within it: an index scan over
// the bound's spans misses nothing. In both directions, behind a prefix and before
// a suffix.
func TestBoundsCoverWhatMatches(t *testing.T) {
	matched := 0
	check := func(t *rapid.T) {
		d := valuetest.Document(t, 2)
		f, err := query.ParseFilter(drawFilter(t), nil)
		if err != nil {
			return
		}
		ok, err := f.Match(d)
		if err != nil || !ok {
			return
		}
		for _, b := range f.Bounds() {
			matched++
			desc := rapid.Bool().Draw(t, "descending")
			if !covered(t, b, d, desc) {
				t.Fatalf("%s matches, but no key of %s is in %v", d, b.Path, b.Ranges)
			}
		}
	}
	// Few random filters match a random document.
	for round := 0; round < 100 && matched < 5 && !t.Failed(); round++ {
		rapid.Check(t, check)
	}
	if matched == 0 {
		t.Error("no document ever matched")
	}
}

func drawFilter(t *rapid.T) query.Document {
	path := rapid.SampledFrom([]string{"a", "b", "a.b", "a.b.c"}).Draw(t, "path")
	op := rapid.SampledFrom([]string{"$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$all", "$elemMatch"}).Draw(t, "op")
	v := valuetest.Value(t, 1)
	var arg value.Builder
	switch op {
	case "$in", "$all":
		arg.Add(op, value.ArrayOf([]value.Value{v, valuetest.Value(t, 1)}))
	case "$elemMatch":
		var inner value.Builder
		inner.Add("b", v)
		arg.Add(op, inner.Value())
	default:
		arg.Add(op, v)
	}
	var b value.Builder
	b.Add(path, arg.Value())
	return b.Document()
}

func covered(t *rapid.T, b query.Bound, d query.Document, desc bool) bool {
	dir := int32(1)
	if desc {
		dir = -1
	}
	var spec value.Builder
	spec.Add(b.Path, value.Int32(dir))
	p, err := query.ParseKeyPattern(spec.Document())
	if err != nil {
		t.Fatal(err)
	}
	if b.Missing && !p.Present(d) {
		return true
	}
	keys, _, err := p.Keys(d)
	if err != nil {
		t.Fatal(err)
	}
	prefix, suffix := value.KeyOf(value.Int32(7)), value.KeyOf(value.Value{Type: bsoncore.TypeMaxKey})
	for _, k := range keys {
		entry := slices.Concat(prefix, k, suffix)
		for _, r := range b.Ranges {
			from, to := r.Span(prefix, desc)
			if bytes.Compare(from, entry) <= 0 && bytes.Compare(entry, to) < 0 {
				return true
			}
		}
	}
	return false
}

// Spans are tight too: what a comparison on a scalar field excludes is outside.
func TestSpansExclude(t *testing.T) {
	for _, c := range []struct{ filter, in, out string }{
		{`{"a": {"$gt": 1}}`, `{"a": 1.5}`, `{"a": 1}`},
		{`{"a": {"$gte": 1}}`, `{"a": 1}`, `{"a": 0.5}`},
		{`{"a": {"$lt": 1}}`, `{"a": 0.5}`, `{"a": 1}`},
		{`{"a": {"$lte": 1}}`, `{"a": 1}`, `{"a": 1.5}`},
		{`{"a": {"$lte": 1}}`, `{"a": -5}`, `{"a": null}`},
		{`{"a": {"$gte": 1}}`, `{"a": 5}`, `{"a": "x"}`},
		{`{"a": 1}`, `{"a": 1.0}`, `{"a": 2}`},
		{`{"a": {"$lte": {"b": 1}}}`, `{"a": {}}`, `{"a": "x"}`},
	} {
		for _, spec := range []string{`{"a": 1}`, `{"a": -1}`} {
			p := pattern(t, spec)
			b := filter(t, c.filter).Bounds()[0]
			from, to := b.Ranges[0].Span(nil, p.Descending(0))
			inside := func(json string) bool {
				keys, _, err := p.Keys(doc(t, json))
				if err != nil {
					t.Fatal(err)
				}
				entry := append(keys[0], value.KeyOf(value.Int32(1))...)
				return bytes.Compare(from, entry) <= 0 && bytes.Compare(entry, to) < 0
			}
			if !inside(c.in) || inside(c.out) {
				t.Errorf("%s on %s: %s inside %v, %s inside %v", c.filter, spec, c.in, inside(c.in), c.out, inside(c.out))
			}
		}
	}
}
