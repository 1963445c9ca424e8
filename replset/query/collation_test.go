package query_test

import (
	"slices"
	"testing"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

func collation(t *testing.T, json string) *query.Collation {
	t.Helper()
	by, err := query.ParseCollation(doc(t, json))
	if err != nil {
		t.Fatal(err)
	}
	return by
}

func collatedVars(t *testing.T, json string) *query.Vars {
	t.Helper()
	vars, err := query.NewVars(nil, query.System{Collation: collation(t, json)})
	if err != nil {
		t.Fatal(err)
	}
	return vars
}

func TestWhatIsRefusedInACollation(t *testing.T) {
	for json, want := range map[string]int32{
		`{}`: 0, `{"locale": "simple"}`: 0, `{"locale": "en_US", "strength": 2}`: 0, `{"locale": "de", "caseLevel": true, "numericOrdering": true}`: 0,
		`{"locale": "fr", "alternate": "non-ignorable", "backwards": false, "normalization": false, "caseFirst": "off"}`: 0,

		`{"strength": 1}`: 40414, `{"locale": 1}`: 14, `{"locale": "simple", "strength": 1}`: 2, `{"locale": "xx"}`: 2, `{"locale": ""}`: 2,
		`{"locale": "en", "strength": 0}`: 2, `{"locale": "en", "strength": 6}`: 2, `{"locale": "en", "strengh": 1}`: 40415,
		`{"locale": "en", "caseLevel": 1}`: 14, `{"locale": "en", "numericOrdering": "yes"}`: 14,

		`{"locale": "en", "strength": 4}`: 238, `{"locale": "en", "strength": 5}`: 238, `{"locale": "en", "caseFirst": "upper"}`: 238,
		`{"locale": "en", "alternate": "shifted"}`: 238, `{"locale": "en", "maxVariable": "punct"}`: 238, `{"locale": "fr", "backwards": true}`: 238,
		`{"locale": "en", "normalization": true}`: 238, `{"locale": "de@collation=phonebook"}`: 238,
	} {
		if _, err := query.ParseCollation(doc(t, json)); code(t, err) != want {
			t.Errorf("%s: %v, want code %d", json, err, want)
		}
	}
}

func TestStringsInTheOrderOfACollation(t *testing.T) {
	for json, want := range map[string][]string{
		// "|" is where a string is greater than the one before it.
		`{"locale": "en", "strength": 1}`:                     {"cote", "Cote", "coté", "|", "côtf"},
		`{"locale": "en", "strength": 2}`:                     {"cote", "COTE", "|", "coté", "|", "côte"},
		`{"locale": "en"}`:                                    {"cote", "|", "Cote", "|", "coté"},
		`{"locale": "en", "strength": 1, "caseLevel": true}`:  {"cote", "coté", "|", "Cote", "Coté"},
		`{"locale": "en", "strength": 2, "caseLevel": true}`:  {"cote", "|", "Cote", "|", "coté"},
		`{"locale": "en", "caseLevel": true}`:                 {"cote", "|", "Cote", "|", "coté"},
		`{"locale": "en", "numericOrdering": true}`:           {"a2", "|", "a10", "|", "b1"},
		`{"locale": "sv"}`:                                    {"z", "|", "å", "|", "ä", "|", "ö"},
		`{"locale": "de"}`:                                    {"a", "|", "ä", "|", "z"},
		`{"locale": "es"}`:                                    {"n", "|", "ñ", "|", "o"},
		`{"locale": "en", "strength": 3}`:                     {"a b", "|", "ab"},
		`{"locale": "en", "strength": 1, "caseLevel": false}`: {"", "|", "a", "|", "ab"},
	} {
		by := collation(t, json)
		greater := false
		last := ""
		for i, s := range want {
			if s == "|" {
				greater = true
				continue
			}
			if i > 0 {
				c := by.Compare(value.String(last), value.String(s))
				if greater && c >= 0 || !greater && c != 0 {
					t.Errorf("%s: %q against %q is %d", json, last, s, c)
				}
				if k := slices.Compare(by.KeyOf(value.String(last)), by.KeyOf(value.String(s))); k != c {
					t.Errorf("%s: the keys of %q and %q compare as %d, they as %d", json, last, s, k, c)
				}
			}
			last, greater = s, false
		}
	}
}

func TestFiltersUnderACollation(t *testing.T) {
	vars := collatedVars(t, `{"locale": "en", "strength": 2}`)
	for _, c := range []struct {
		filter, doc string
		want        bool
	}{
		{`{"a": "PING"}`, `{"a": "ping"}`, true},
		{`{"a": "PING"}`, `{"a": ["x", "ping"]}`, true},
		{`{"a": "PING"}`, `{"a": "pong"}`, false},
		{`{"a": {"$ne": "PING"}}`, `{"a": "ping"}`, false},
		{`{"a": {"$in": ["x", "PING"]}}`, `{"a": "ping"}`, true},
		{`{"a": {"$nin": ["PING"]}}`, `{"a": "ping"}`, false},
		{`{"a": {"$gt": "B"}}`, `{"a": "b"}`, false},
		{`{"a": {"$gte": "B"}}`, `{"a": "b"}`, true},
		{`{"a": {"$lt": "B"}}`, `{"a": "a"}`, true},
		{`{"a": {"b": "X"}}`, `{"a": {"b": "x"}}`, true},
		{`{"a": {"B": "X"}}`, `{"a": {"b": "x"}}`, false},
		{`{"a": ["X", 1]}`, `{"a": ["x", 1]}`, true},
		{`{"a": {"$all": ["X", "Y"]}}`, `{"a": ["y", "x"]}`, true},
		{`{"a": {"$elemMatch": {"$eq": "X"}}}`, `{"a": ["x"]}`, true},
		{`{"a": {"$elemMatch": {"b": "X"}}}`, `{"a": [{"b": "x"}]}`, true},
		{`{"a": {"$not": {"$eq": "X"}}}`, `{"a": "x"}`, false},
		{`{"a": 1}`, `{"a": "x"}`, false},
		{`{"a": {"$gt": 1}}`, `{"a": "x"}`, false},
		// A regular expression does not know of collations.
		{`{"a": {"$regex": "^PI"}}`, `{"a": "ping"}`, false},
		{`{"a": {"$in": [{"$regularExpression": {"pattern": "^pi", "options": ""}}, "Q"]}}`, `{"a": "ping"}`, true},
		{`{"$expr": {"$eq": ["$a", "PING"]}}`, `{"a": "ping"}`, true},
		{`{"$expr": {"$in": ["PING", "$a"]}}`, `{"a": ["ping"]}`, true},
		{`{"$expr": {"$setEquals": ["$a", ["X", "x"]]}}`, `{"a": ["x"]}`, true},
		{`{"$expr": {"$eq": [{"$indexOfArray": ["$a", "Y"]}, 1]}}`, `{"a": ["x", "y"]}`, true},
	} {
		f, err := query.ParseFilter(doc(t, c.filter), vars)
		if err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		if got, err := f.Match(doc(t, c.doc)); got != c.want || err != nil {
			t.Errorf("%s on %s: %v, %v", c.filter, c.doc, got, err)
		}
	}
}

// An index is by bytes: no bound may leave out what equals by the collation only.
func TestNoBoundOnStringsUnderACollation(t *testing.T) {
	vars := collatedVars(t, `{"locale": "en", "strength": 1}`)
	for json, want := range map[string]int{
		`{"a": "x"}`: 0, `{"a": {"$gt": "x"}}`: 0, `{"a": {"$in": [1, "x"]}}`: 0, `{"a": {"b": "x"}}`: 0, `{"a": ["x"]}`: 0,
		`{"a": 1}`: 1, `{"a": {"$in": [1, 2]}}`: 1, `{"a": {"$lt": 3}, "b": "x"}`: 1,
	} {
		f, err := query.ParseFilter(doc(t, json), vars)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Bounds(); len(got) != want {
			t.Errorf("%s has the bounds %v", json, got)
		}
	}
	s, err := query.ParseSort(doc(t, `{"a": 1}`), collation(t, `{"locale": "en"}`))
	if err != nil || s.Pattern() != nil {
		t.Errorf("a sort under a collation offers the pattern %v, %v", s.Pattern(), err)
	}
}

func TestAnUpsertKeepsTheStringOfItsFilter(t *testing.T) {
	vars := collatedVars(t, `{"locale": "en", "strength": 1}`)
	f, err := query.ParseFilter(doc(t, `{"a": "Ping"}`), vars)
	if err != nil {
		t.Fatal(err)
	}
	u, err := query.ParseUpdate(value.Doc(doc(t, `{"$set": {"b": 1}}`)), query.UpdateOptions{Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	base, err := u.UpsertBase(f)
	if err != nil {
		t.Fatal(err)
	}
	wantDoc(t, base, `{"a": "Ping"}`)
}

func TestUpdatesUnderACollation(t *testing.T) {
	vars := collatedVars(t, `{"locale": "en", "strength": 2}`)
	for _, c := range []struct{ update, before, after string }{
		{`{"$min": {"a": "B"}}`, `{"_id": 1, "a": "c"}`, `{"_id": 1, "a": "B"}`},
		{`{"$max": {"a": "B"}}`, `{"_id": 1, "a": "b"}`, `{"_id": 1, "a": "b"}`},
		{`{"$addToSet": {"a": "X"}}`, `{"_id": 1, "a": ["x"]}`, `{"_id": 1, "a": ["x"]}`},
		{`{"$pull": {"a": "X"}}`, `{"_id": 1, "a": ["x", "y"]}`, `{"_id": 1, "a": ["y"]}`},
		{`{"$pull": {"a": {"$in": ["X"]}}}`, `{"_id": 1, "a": ["x", "y"]}`, `{"_id": 1, "a": ["y"]}`},
		{`{"$pullAll": {"a": ["X"]}}`, `{"_id": 1, "a": ["x", "y"]}`, `{"_id": 1, "a": ["y"]}`},
		{`{"$push": {"a": {"$each": [], "$sort": 1}}}`, `{"_id": 1, "a": ["b", "A"]}`, `{"_id": 1, "a": ["A", "b"]}`},
	} {
		u, err := query.ParseUpdate(value.Doc(doc(t, c.update)), query.UpdateOptions{Vars: vars})
		if err != nil {
			t.Errorf("%s: %v", c.update, err)
			continue
		}
		got, _, err := u.Apply(doc(t, c.before), query.ApplyInput{})
		if err != nil {
			t.Errorf("%s: %v", c.update, err)
			continue
		}
		wantDoc(t, got, c.after)
	}
}

func TestPipelinesUnderACollation(t *testing.T) {
	vars := collatedVars(t, `{"locale": "en", "strength": 2}`)
	run := func(json string) ([]query.Document, error) {
		p, err := query.ParsePipeline(value.Lookup(doc(t, `{"p": `+json+`}`), "p"), query.PipelineOptions{Vars: vars})
		if err != nil {
			return nil, err
		}
		return query.ReadAll(p.Run(query.FromSlice(docs(t, `{"_id": 1, "a": "b"}`, `{"_id": 2, "a": "A"}`, `{"_id": 3, "a": "B"}`)), nil).Next)
	}
	for json, want := range map[string][]string{
		`[{"$match": {"a": "B"}}]`:                                                            {`{"_id": 1, "a": "b"}`, `{"_id": 3, "a": "B"}`},
		`[{"$sort": {"a": 1, "_id": 1}}, {"$project": {"_id": 1}}]`:                           {`{"_id": 2}`, `{"_id": 1}`, `{"_id": 3}`},
		`[{"$group": {"_id": "$a", "n": {"$sum": 1}}}]`:                                       {`{"_id": "b", "n": 2}`, `{"_id": "A", "n": 1}`},
		`[{"$group": {"_id": null, "s": {"$addToSet": "$a"}}}]`:                               {`{"_id": null, "s": ["b", "A"]}`},
		`[{"$group": {"_id": null, "s": {"$min": "$a"}}}]`:                                    {`{"_id": null, "s": "A"}`},
		`[{"$group": {"_id": null, "s": {"$top": {"sortBy": {"a": -1}, "output": "$_id"}}}}]`: {`{"_id": null, "s": 1}`},
	} {
		got, err := run(json)
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %v, %v", json, got, err)
			continue
		}
		for i, w := range want {
			wantDoc(t, got[i], w)
		}
	}
	for _, json := range []string{
		`[{"$project": {"x": {"$setUnion": [["a"], ["A"]]}}}]`, `[{"$project": {"x": {"$maxN": {"n": 1, "input": ["a"]}}}}]`,
		`[{"$group": {"_id": null, "s": {"$minN": {"n": 1, "input": "$a"}}}}]`, `[{"$bucket": {"groupBy": "$a", "boundaries": ["a", "b"]}}]`,
	} {
		if _, err := run(json); code(t, err) != 238 {
			t.Errorf("%s was not refused: %v", json, err)
		}
	}
}
