package query_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/assaylab/assay/replset/query"
)

// world is the collections that $lookup and $unionWith can open. It counts what is
// open, and serves only what meets the hint, as an index would.
type world struct {
	t     testing.TB
	colls map[string][]query.Document
	open  int
	hints int
}

func (w *world) opener(ns query.Namespace, hint *query.Filter) (query.Source, func(), error) {
	w.open++
	var out []query.Document
	for _, d := range w.colls[ns.Coll] {
		if hint != nil {
			w.hints++
			ok, err := hint.Match(d)
			if err != nil {
				return nil, nil, err
			}
			if !ok {
				continue
			}
		}
		out = append(out, d)
	}
	return query.FromSlice(out), func() { w.open-- }, nil
}

func parsePipeline(t testing.TB, json string) (*query.Pipeline, error) {
	t.Helper()
	return query.ParsePipeline(val(t, json), query.PipelineOptions{Vars: vars(t, `{"k": 3}`), SourceStages: []string{"$listLocalSessions"}})
}

func run(t testing.TB, w *world, pipeline string, in []query.Document) ([]query.Document, error) {
	t.Helper()
	p, err := parsePipeline(t, pipeline)
	if err != nil {
		return nil, err
	}
	c := p.Run(query.FromSlice(in), w.opener)
	defer func() {
		c.Close()
		if w.open != 0 {
			t.Errorf("%s: %d collections are still open", pipeline, w.open)
		}
	}()
	return query.ReadAll(c.Next)
}

func TestPipeline(t *testing.T) {
	const people = `{"_id": 1, "n": "a", "age": 30, "tags": ["x", "y"]}
{"_id": 2, "n": "b", "age": 20, "tags": []}
{"_id": 3, "n": "c", "age": 30}
{"_id": 4, "n": "d", "age": 40, "tags": ["y"], "boss": 1}`
	w := &world{t: t, colls: map[string][]query.Document{
		"orders": docs(t, `{"_id": 10, "by": 1, "sum": 5}`, `{"_id": 11, "by": [2, 4], "sum": 7}`, `{"_id": 12, "sum": 1}`, `{"_id": 13, "by": 1, "sum": 9}`),
		"more":   docs(t, `{"_id": 7}`, `{"_id": 8}`),
	}}
	for _, c := range []struct{ pipeline, want string }{
		{`[]`, people},
		{`[{"$match": {"age": {"$gt": 25}}}, {"$project": {"n": 1, "_id": 0}}]`, `{"n": "a"}
{"n": "c"}
{"n": "d"}`},
		{`[{"$sort": {"age": -1, "n": -1}}, {"$limit": 2}, {"$project": {"n": 1}}]`, `{"_id": 4, "n": "d"}
{"_id": 3, "n": "c"}`},
		{`[{"$sort": {"age": 1}}, {"$skip": 1}, {"$limit": 1}, {"$project": {"_id": 1}}]`, `{"_id": 1}`},
		{`[{"$skip": 3}, {"$unset": ["tags", "boss"]}]`, `{"_id": 4, "n": "d", "age": 40}`},
		{`[{"$limit": 1}, {"$set": {"age": {"$add": ["$age", "$$k"]}, "z.y": "$n"}}, {"$unset": "tags"}]`, `{"_id": 1, "n": "a", "age": 33, "z": {"y": "a"}}`},
		{`[{"$limit": 1}, {"$addFields": {"n": "$$REMOVE", "tags": 1}}]`, `{"_id": 1, "age": 30, "tags": 1}`},
		{`[{"$group": {"_id": "$age", "c": {"$sum": 1}, "names": {"$push": "$n"}}}, {"$sort": {"_id": 1}}]`, `{"_id": 20, "c": 1, "names": ["b"]}
{"_id": 30, "c": 2, "names": ["a", "c"]}
{"_id": 40, "c": 1, "names": ["d"]}`},
		{`[{"$group": {"_id": null, "min": {"$min": "$age"}, "max": {"$max": "$age"}, "avg": {"$avg": "$age"}, "first": {"$first": "$n"}, "last": {"$last": "$boss"}, "set": {"$addToSet": "$age"}, "n": {"$count": {}}}}]`,
			`{"_id": null, "min": 20, "max": 40, "avg": 30.0, "first": "a", "last": 1, "set": [30, 20, 40], "n": 4}`},
		{`[{"$group": {"_id": "$boss", "n": {"$sum": 1}}}]`, `{"_id": null, "n": 3}
{"_id": 1, "n": 1}`},
		{`[{"$group": {"_id": {"a": "$age"}, "top": {"$top": {"sortBy": {"n": -1}, "output": "$n"}}, "two": {"$bottomN": {"n": 2, "sortBy": {"n": 1}, "output": "$n"}}, "fn": {"$firstN": {"input": "$n", "n": 1}}, "mx": {"$maxN": {"input": "$_id", "n": 1}}}}, {"$match": {"_id.a": 30}}]`,
			`{"_id": {"a": 30}, "top": "c", "two": ["a", "c"], "fn": ["a"], "mx": [3]}`},
		{`[{"$group": {"_id": 1, "m": {"$mergeObjects": {"a": "$age", "b": "$boss"}}, "sd": {"$stdDevPop": "$age"}}}, {"$set": {"sd": {"$round": ["$sd", 3]}}}]`, `{"_id": 1, "m": {"a": 40, "b": 1}, "sd": 7.071}`},
		{`[{"$match": {"_id": 99}}, {"$group": {"_id": null, "n": {"$sum": 1}}}]`, ``},
		{`[{"$count": "total"}]`, `{"total": 4}`},
		{`[{"$match": {"_id": 99}}, {"$count": "total"}]`, ``},
		{`[{"$sortByCount": "$age"}, {"$limit": 1}]`, `{"_id": 30, "count": 2}`},
		{`[{"$bucket": {"groupBy": "$age", "boundaries": [0, 25, 35], "default": "old"}}]`, `{"_id": 0, "count": 1}
{"_id": 25, "count": 2}
{"_id": "old", "count": 1}`},
		// $unwind
		{`[{"$unwind": "$tags"}, {"$project": {"tags": 1}}]`, `{"_id": 1, "tags": "x"}
{"_id": 1, "tags": "y"}
{"_id": 4, "tags": "y"}`},
		{`[{"$unwind": {"path": "$tags", "includeArrayIndex": "i", "preserveNullAndEmptyArrays": true}}, {"$project": {"tags": 1, "i": 1}}]`, `{"_id": 1, "tags": "x", "i": {"$numberLong": "0"}}
{"_id": 1, "tags": "y", "i": {"$numberLong": "1"}}
{"_id": 2, "i": null}
{"_id": 3, "i": null}
{"_id": 4, "tags": "y", "i": {"$numberLong": "0"}}`},
		{`[{"$limit": 1}, {"$unwind": "$age"}, {"$project": {"age": 1}}]`, `{"_id": 1, "age": 30}`},
		// roots
		{`[{"$limit": 1}, {"$replaceRoot": {"newRoot": {"x": "$n"}}}]`, `{"x": "a"}`},
		{`[{"$limit": 1}, {"$replaceWith": {"$mergeObjects": ["$$ROOT", {"n": 5}]}}, {"$unset": "tags"}]`, `{"_id": 1, "n": 5, "age": 30}`},
		// joins
		{`[{"$lookup": {"from": "orders", "localField": "_id", "foreignField": "by", "as": "o"}}, {"$project": {"o._id": 1}}]`, `{"_id": 1, "o": [{"_id": 10}, {"_id": 13}]}
{"_id": 2, "o": [{"_id": 11}]}
{"_id": 3, "o": []}
{"_id": 4, "o": [{"_id": 11}]}`},
		{`[{"$match": {"_id": {"$gte": 3}}}, {"$lookup": {"from": "orders", "localField": "boss", "foreignField": "by", "as": "o.list"}}, {"$project": {"o.list._id": 1}}]`, `{"_id": 3, "o": {"list": [{"_id": 12}]}}
{"_id": 4, "o": {"list": [{"_id": 10}, {"_id": 13}]}}`},
		{`[{"$limit": 1}, {"$lookup": {"from": "orders", "let": {"me": "$_id", "k": 100}, "pipeline": [{"$match": {"$expr": {"$eq": ["$by", "$$me"]}}}, {"$project": {"_id": 1, "k": "$$k"}}], "as": "n"}}, {"$project": {"n": 1}}]`, `{"_id": 1, "n": [{"_id": 10, "k": 100}, {"_id": 13, "k": 100}]}`},
		{`[{"$limit": 1}, {"$lookup": {"from": "orders", "localField": "_id", "foreignField": "by", "pipeline": [{"$match": {"sum": {"$gt": 5}}}], "as": "n"}}, {"$project": {"n._id": 1}}]`, `{"_id": 1, "n": [{"_id": 13}]}`},
		{`[{"$limit": 1}, {"$lookup": {"pipeline": [{"$documents": [{"x": 1}]}], "as": "n"}}, {"$project": {"n": 1}}]`, `{"_id": 1, "n": [{"x": 1}]}`},
		{`[{"$limit": 1}, {"$lookup": {"from": "orders", "let": {"me": "$_id"}, "pipeline": [{"$limit": 1}, {"$lookup": {"from": "more", "pipeline": [{"$match": {"$expr": {"$gt": ["$_id", {"$add": ["$$me", 6]}]}}}], "as": "x"}}], "as": "n"}}, {"$project": {"n.x": 1}}]`, `{"_id": 1, "n": [{"x": [{"_id": 8}]}]}`},
		{`[{"$match": {"_id": 1}}, {"$project": {"_id": 1}}, {"$unionWith": {"coll": "more", "pipeline": [{"$match": {"_id": 8}}]}}]`, `{"_id": 1}
{"_id": 8}`},
		{`[{"$match": {"_id": 99}}, {"$unionWith": "more"}, {"$limit": 1}]`, `{"_id": 7}`},
		{`[{"$facet": {"n": [{"$count": "c"}], "old": [{"$match": {"age": 40}}, {"$project": {"n": 1}}]}}]`, `{"n": [{"c": 4}], "old": [{"_id": 4, "n": "d"}]}`},
		{`[{"$documents": [{"_id": 2, "x": "$$k"}]}, {"$match": {"x": 3}}]`, `{"_id": 2, "x": 3}`},
		{`[{"$match": {"$expr": {"$eq": ["$_id", "$$k"]}}}, {"$project": {"_id": 0, "k": "$$k"}}]`, `{"k": 3}`},
		{`[{"$sample": {"size": 10}}, {"$count": "n"}]`, `{"n": 4}`},
		{`[{"$sample": {"size": 2}}, {"$count": "n"}]`, `{"n": 2}`},
	} {
		got, err := run(t, w, c.pipeline, docs(t, strings.Split(people, "\n")...))
		if err != nil {
			t.Errorf("%s: %v", c.pipeline, err)
			continue
		}
		var lines, want []string
		for _, d := range got {
			lines = append(lines, show(d))
		}
		for line := range strings.Lines(c.want) {
			want = append(want, show(doc(t, line)))
		}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.pipeline, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
	if w.hints == 0 {
		t.Error("no collection was opened with a hint")
	}
}

func TestPipelineErrors(t *testing.T) {
	for _, c := range []struct {
		pipeline string
		code     int32
	}{
		{`{}`, 14},
		{`[1]`, 14},
		{`[{}]`, 40323},
		{`[{"$match": {}, "$limit": 1}]`, 40323},
		{`[{"$frob": 1}]`, 40324},
		{`[{"$graphLookup": {}}]`, 238},
		{`[{"$changeStream": {}}]`, 238},
		{`[{"$match": 1}]`, 15959},
		{`[{"$limit": 0}]`, 15958},
		{`[{"$limit": "x"}]`, 2107201},
		{`[{"$skip": -1}]`, 5107200},
		{`[{"$sort": {}}]`, 15976},
		{`[{"$sort": {"a": 2}}]`, 15975},
		{`[{"$project": {}}]`, 51272},
		{`[{"$project": {"a": {"$slice": 1}}}]`, 28667},
		{`[{"$group": {}}]`, 15955},
		{`[{"$group": {"_id": 1, "a.b": {"$sum": 1}}}]`, 40235},
		{`[{"$group": {"_id": 1, "a": 1}}]`, 40234},
		{`[{"$group": {"_id": 1, "a": {"$frob": 1}}}]`, 15952},
		{`[{"$group": {"_id": 1, "a": {"$sum": 1, "$avg": 1}}}]`, 40238},
		{`[{"$group": {"_id": 1, "a": {"$firstN": {"input": 1, "n": 0}}}}]`, 5787908},
		{`[{"$count": ""}]`, 40156},
		{`[{"$count": "$a"}]`, 40158},
		{`[{"$unwind": "a"}]`, 28818},
		{`[{"$unwind": {"path": "$a", "x": 1}}]`, 28811},
		{`[{"$unwind": {}}]`, 28812},
		{`[{"$replaceRoot": {}}]`, 40231},
		{`[{"$replaceWith": "$nope"}]`, 40228},
		{`[{"$lookup": {"from": "x"}}]`, 9},
		{`[{"$lookup": {"from": "x", "as": "y"}}]`, 9},
		{`[{"$lookup": {"from": "x", "as": "y", "localField": "a"}}]`, 9},
		{`[{"$lookup": {"from": "x", "as": "y", "pipeline": [{"$out": "z"}]}}]`, 51047},
		{`[{"$lookup": {"from": "x", "as": "y", "pipeline": [], "frob": 1}}]`, 9},
		{`[{"$unionWith": {"coll": "x", "pipeline": [{"$merge": "z"}]}}]`, 31441},
		{`[{"$facet": {}}]`, 40169},
		{`[{"$facet": {"a": [{"$facet": {"b": []}}]}}]`, 40600},
		{`[{"$facet": {"a": [{"$out": "b"}]}}]`, 40600},
		{`[{"$out": "x"}, {"$match": {}}]`, 40601},
		{`[{"$match": {}}, {"$documents": []}]`, 40602},
		{`[{"$match": {}}, {"$listLocalSessions": {}}]`, 40602},
		{`[{"$documents": 1}]`, 5858203},
		{`[{"$sample": {"size": 0}}]`, 28747},
		{`[{"$bucket": {"groupBy": "$a", "boundaries": [1]}}]`, 40192},
		{`[{"$bucket": {"groupBy": "$a", "boundaries": [2, 1]}}]`, 40194},
		{`[{"$merge": {"into": "x", "whenMatched": "frob"}}]`, 2},
		{`[{"$merge": {"on": "x"}}]`, 40414},
		{`[{"$merge": 1}]`, 51182},
		{`[{"$project": {"a": {"$divide": [1, 0]}}}]`, 2},
	} {
		_, err := run(t, &world{}, c.pipeline, docs(t, `{"_id": 1}`))
		if got := code(t, err); got != c.code {
			t.Errorf("%s: %v, want code %d", c.pipeline, err, c.code)
		}
	}
}

func TestPipelineShape(t *testing.T) {
	p, err := parsePipeline(t, `[{"$listLocalSessions": {}}, {"$limit": 1}, {"$addFields": {"dummy": "x"}}, {"$project": {"_id": 0, "dummy": 1}}, {"$merge": {"into": "c"}}]`)
	if err != nil {
		t.Fatal(err)
	}
	if p.SourceStage().Name != "$listLocalSessions" || p.ReadsCollection() || p.Write() == nil {
		t.Error("the shape is wrong")
	}
	p, err = parsePipeline(t, `[{"$match": {"_id": 5}}, {"$lookup": {"from": "a", "localField": "x", "foreignField": "y", "as": "z"}}, {"$facet": {"f": [{"$unionWith": {"coll": "b", "pipeline": [{"$lookup": {"from": "c", "pipeline": [], "as": "d"}}]}}]}}, {"$out": {"db": "d", "coll": "e"}}]`)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Leading().ID(); !ok {
		t.Error("the leading filter is lost")
	}
	if r := p.Reads(); len(r) != 3 || r[0].Coll != "a" || r[1].Coll != "b" || r[2].Coll != "c" {
		t.Errorf("reads %v", r)
	}
	if w := p.Write(); !w.Replace || w.Target != (query.Namespace{DB: "d", Coll: "e"}) {
		t.Errorf("writes %+v", w)
	}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		merge, old, incoming, want string
		code                       int32
	}{
		{`"c"`, `{"_id": 1, "a": 1, "b": 1}`, `{"_id": 1, "b": 2, "c": 3}`, `{"_id": 1, "a": 1, "b": 2, "c": 3}`, 0},
		{`{"into": "c", "whenMatched": "replace"}`, `{"_id": 1, "a": 1}`, `{"_id": 1, "b": 2}`, `{"_id": 1, "b": 2}`, 0},
		{`{"into": "c", "whenMatched": "keepExisting"}`, `{"_id": 1, "a": 1}`, `{"_id": 1, "b": 2}`, `{"_id": 1, "a": 1}`, 0},
		{`{"into": "c", "whenMatched": "fail"}`, `{"_id": 1, "a": 1}`, `{"_id": 1, "b": 2}`, ``, 11000},
		{`{"into": "c", "on": "k", "whenMatched": [{"$set": {"n": {"$add": ["$n", "$$new.n"]}}}]}`, `{"_id": 1, "k": 5, "n": 1}`, `{"_id": 9, "k": 5, "n": 2}`, `{"_id": 1, "k": 5, "n": 3}`, 0},
		{`{"into": "c", "on": "k", "let": {"d": "$n"}, "whenMatched": [{"$set": {"n": "$$d"}}]}`, `{"_id": 1, "k": 5, "n": 1}`, `{"_id": 9, "k": 5, "n": 2}`, `{"_id": 1, "k": 5, "n": 2}`, 0},
		{`{"into": "c", "on": "k", "whenMatched": "replace"}`, `{"_id": 1, "k": 5}`, `{"_id": 9, "k": 5}`, ``, 66},
	} {
		p, err := parsePipeline(t, `[{"$merge": `+c.merge+`}]`)
		if err != nil {
			t.Errorf("%s: %v", c.merge, err)
			continue
		}
		f, err := p.Write().Filter(doc(t, c.incoming))
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := f.Match(doc(t, c.old)); err != nil || !ok {
			t.Errorf("%s: %s is not found", c.merge, c.old)
		}
		got, err := p.Write().Merge(doc(t, c.old), doc(t, c.incoming))
		if code(t, err) != c.code {
			t.Errorf("%s: %v, want %d", c.merge, err, c.code)
		}
		if c.code == 0 && show(got) != show(doc(t, c.want)) {
			t.Errorf("%s: got %s, want %s", c.merge, show(got), c.want)
		}
	}
	p, err := parsePipeline(t, `[{"$merge": {"into": "c", "on": ["k", "l"]}}]`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write().Filter(doc(t, `{"_id": 1, "k": 1}`)); code(t, err) != 51132 {
		t.Error(err)
	}
}

// An abandoned cursor closes what it has opened, and an error of the source comes
// through as it is.
func TestCursorLifetime(t *testing.T) {
	w := &world{t: t, colls: map[string][]query.Document{"more": docs(t, `{"_id": 7}`, `{"_id": 8}`)}}
	p, err := parsePipeline(t, `[{"$unionWith": "more"}]`)
	if err != nil {
		t.Fatal(err)
	}
	c := p.Run(query.FromSlice(nil), w.opener)
	if _, err := c.Next(); err != nil || w.open != 1 {
		t.Fatal(err, w.open)
	}
	c.Close()
	c.Close()
	if w.open != 0 {
		t.Error("still open")
	}
	broken := errors.New("disk on fire")
	p, err = parsePipeline(t, `[{"$group": {"_id": 1}}]`)
	if err != nil {
		t.Fatal(err)
	}
	c = p.Run(func() (query.Document, error) { return nil, broken }, nil)
	if _, err := c.Next(); !errors.Is(err, broken) {
		t.Error(err)
	}
	c = p.Run(query.FromSlice(nil), nil)
	if _, err := c.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// A sort that is cut short gives what the whole sort begins with.
func TestTopIsTheBeginOfTheSort(t *testing.T) {
	var in []query.Document
	for i := range 500 {
		in = append(in, doc(t, `{"_id": `+itoa(i)+`, "a": `+itoa(i*7919%101)+`}`))
	}
	whole, err := run(t, &world{}, `[{"$sort": {"a": 1}}]`, in)
	if err != nil {
		t.Fatal(err)
	}
	top, err := run(t, &world{}, `[{"$sort": {"a": 1}}, {"$skip": 5}, {"$limit": 20}]`, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range top {
		if show(top[i]) != show(whole[i+5]) {
			t.Fatalf("place %d: %s, want %s", i, show(top[i]), show(whole[i+5]))
		}
	}
	if len(top) != 20 {
		t.Errorf("%d documents", len(top))
	}
}
