package expr_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/expr"
	"github.com/assaylab/assay/replset/query/value"
)

func val(t testing.TB, json string) value.Value {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(`{"v": `+json+`}`), false, &d); err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return bsoncore.Document(raw).Lookup("v")
}

func vars(t testing.TB) *expr.Vars {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	sys := expr.System{Now: time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC), Rand: rng.Float64}
	v, err := expr.NewVars(val(t, `{"x": {"y": 7}, "lit": {"$literal": "$a"}}`).Data, sys)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func eval(t testing.TB, json, doc string) (value.Value, error) {
	t.Helper()
	vs := vars(t)
	x, err := expr.Parse(val(t, json), vs)
	if err != nil {
		return value.Missing, err
	}
	return x.Eval(val(t, doc), vs)
}

type evalCase struct{ expr, doc, want string } // want "": missing

func check(t *testing.T, cases []evalCase) {
	t.Helper()
	for _, c := range cases {
		got, err := eval(t, c.expr, c.doc)
		want := value.Missing
		if c.want != "" {
			want = val(t, c.want)
		}
		if err != nil || !value.Same(got, want) {
			t.Errorf("%s on %s: %s, %v; want %s", c.expr, c.doc, value.Show(got), err, c.want)
		}
	}
}

func TestPaths(t *testing.T) {
	check(t, []evalCase{
		{`"$a"`, `{"a": 1}`, `1`},
		{`"$a.b"`, `{"a": {"b": 1}}`, `1`},
		{`"$a.b"`, `{"a": [{"b": 1}, {"c": 2}, 3, {"b": 4}, [{"b": 5}]]}`, `[1, 4]`},
		{`"$a.b"`, `{"a": 5}`, ``},
		{`"$a.0"`, `{"a": [5]}`, `[]`},
		{`"$$ROOT.a"`, `{"a": 1}`, `1`},
		{`"$$CURRENT.a"`, `{"a": 1}`, `1`},
		{`"$$REMOVE"`, `{}`, ``},
		{`"$$NOW"`, `{}`, `{"$date": "2026-03-04T05:06:07.008Z"}`},
		{`"$$x.y"`, `{}`, `7`},
		{`"$$lit"`, `{"a": 1}`, `"$a"`},
		{`{"a": "$a", "b": ["$b", 1]}`, `{"b": 2}`, `{"b": [2, 1]}`},
		{`["$nope"]`, `{}`, `[null]`},
		{`{"$literal": {"$add": [1, 2]}}`, `{}`, `{"$add": [1, 2]}`},
		{`{"$let": {"vars": {"p": "$a", "q": 2}, "in": {"$add": ["$$p", "$$q"]}}}`, `{"a": 3}`, `5`},
		{`{"$let": {"vars": {"CURRENT": "$a"}, "in": "$b"}}`, `{"a": {"b": 3}}`, `3`},
		{`{"$let": {"vars": {"x": 1}, "in": {"$let": {"vars": {"x": 2, "z": "$$x"}, "in": "$$z"}}}}`, `{}`, `1`},
	})
}

func TestArithmetic(t *testing.T) {
	check(t, []evalCase{
		{`{"$add": ["$a", 1]}`, `{"a": 1}`, `2`},
		{`{"$add": ["$a", 1]}`, `{}`, `null`},
		{`{"$add": []}`, `{}`, `0`},
		{`{"$add": [{"$date": "2026-01-01T00:00:00Z"}, 1500]}`, `{}`, `{"$date": "2026-01-01T00:00:01.5Z"}`},
		{`{"$subtract": [{"$date": "2026-01-01T00:00:01Z"}, {"$date": "2026-01-01T00:00:00Z"}]}`, `{}`, `{"$numberLong": "1000"}`},
		{`{"$subtract": [5, 7]}`, `{}`, `-2`},
		{`{"$multiply": ["$a", 2, 3]}`, `{"a": 1.5}`, `9.0`},
		{`{"$divide": [9, 2]}`, `{}`, `4.5`},
		{`{"$divide": [{"$numberDecimal": "1"}, 8]}`, `{}`, `{"$numberDecimal": "0.125"}`},
		{`{"$mod": [-7, 3]}`, `{}`, `-1`},
		{`{"$mod": [7.5, 2]}`, `{}`, `1.5`},
		{`{"$abs": -3}`, `{}`, `3`},
		{`{"$ceil": 1.2}`, `{}`, `2.0`},
		{`{"$floor": -1.2}`, `{}`, `-2.0`},
		{`{"$round": [2.5]}`, `{}`, `2.0`},
		{`{"$round": [2.345, 2]}`, `{}`, `2.35`},
		{`{"$round": [1250, -2]}`, `{}`, `1200`},
		{`{"$trunc": [-2.789, 1]}`, `{}`, `-2.7`},
		{`{"$pow": [2, 10]}`, `{}`, `1024`},
		{`{"$pow": [2, 31]}`, `{}`, `{"$numberLong": "2147483648"}`},
		{`{"$pow": [2, -1]}`, `{}`, `0.5`},
		{`{"$pow": [-1, {"$numberLong": "9223372036854775807"}]}`, `{}`, `{"$numberLong": "-1"}`},
		{`{"$pow": [2, 100]}`, `{}`, `1.2676506002282294e30`},
		{`{"$sqrt": 16}`, `{}`, `4.0`},
		{`{"$sqrt": {"$numberDecimal": "2"}}`, `{}`, `{"$numberDecimal": "1.414213562373095048801688724209698"}`},
		{`{"$exp": 0}`, `{}`, `1.0`},
		{`{"$ln": 1}`, `{}`, `0.0`},
		{`{"$log10": 1000}`, `{}`, `3.0`},
		{`{"$log": [8, 2]}`, `{}`, `3.0`},
		{`{"$sin": 0}`, `{}`, `0.0`},
		{`{"$bitAnd": [6, 3]}`, `{}`, `2`},
		{`{"$bitXor": [6, {"$numberLong": "3"}]}`, `{}`, `{"$numberLong": "5"}`},
		{`{"$bitNot": 0}`, `{}`, `-1`},
		{`{"$sum": ["$a", 1, "x"]}`, `{"a": 2}`, `3`},
		{`{"$sum": "$a"}`, `{"a": [1, 2.5, "x"]}`, `3.5`},
		{`{"$avg": "$a"}`, `{"a": [1, 2]}`, `1.5`},
		{`{"$avg": "$a"}`, `{}`, `null`},
		{`{"$max": "$a"}`, `{"a": [1, "x", null]}`, `"x"`},
		{`{"$min": ["$a", 3]}`, `{"a": null}`, `3`},
		{`{"$stdDevPop": [1, 3]}`, `{}`, `1.0`},
		{`{"$stdDevSamp": [1]}`, `{}`, `null`},
		{`{"$sum": [{"$numberDecimal": "0.1"}, 0.2, 1]}`, `{}`, `{"$numberDecimal": "1.300000000000000"}`},
		{`{"$sum": [{"$numberLong": "9223372036854775807"}, 1]}`, `{}`, `9223372036854775808.0`},
		{`{"$sum": [1e100, 1, -1e100]}`, `{}`, `1.0`},
		{`{"$subtract": [{"$date": "2026-01-01T00:00:01Z"}, 1000]}`, `{}`, `{"$date": "2026-01-01T00:00:00Z"}`},
		{`{"$atan2": [0, 1]}`, `{}`, `0.0`},
		{`{"$bitOr": [4, 1]}`, `{}`, `5`},
		{`{"$sampleRate": 1.0}`, `{}`, `true`},
	})
}

func TestLogic(t *testing.T) {
	check(t, []evalCase{
		{`{"$eq": ["$a", 1.0]}`, `{"a": 1}`, `true`},
		{`{"$lt": ["$a", null]}`, `{}`, `true`}, // missing is before null
		{`{"$gt": ["x", 99]}`, `{}`, `true`},    // across types, unlike a filter
		{`{"$ne": [[1], [1, 2]]}`, `{}`, `true`},
		{`{"$cmp": [2, 1]}`, `{}`, `1`},
		{`{"$and": []}`, `{}`, `true`},
		{`{"$and": [false, {"$divide": [1, 0]}]}`, `{}`, `false`},
		{`{"$or": ["$a", "$b"]}`, `{"b": "x"}`, `true`},
		{`{"$not": [0]}`, `{}`, `true`},
		{`{"$not": "$a"}`, `{"a": []}`, `false`},
		{`{"$cond": ["$a", 1, {"$divide": [1, 0]}]}`, `{"a": true}`, `1`},
		{`{"$cond": {"if": false, "then": 1, "else": 2}}`, `{}`, `2`},
		{`{"$switch": {"branches": [{"case": "$a", "then": 1}, {"case": "$b", "then": 2}], "default": 3}}`, `{"b": 1}`, `2`},
		{`{"$switch": {"branches": [{"case": "$a", "then": 1}], "default": 3}}`, `{}`, `3`},
		{`{"$ifNull": ["$a", "$b", 5]}`, `{"a": null}`, `5`},
		{`{"$in": [2.0, [1, 2]]}`, `{}`, `true`},
	})
}

func TestStrings(t *testing.T) {
	check(t, []evalCase{
		{`{"$concat": ["a", "$b"]}`, `{"b": "c"}`, `"ac"`},
		{`{"$concat": ["a", null]}`, `{}`, `null`},
		{`{"$toUpper": "aé"}`, `{}`, `"Aé"`},
		{`{"$toLower": null}`, `{}`, `""`},
		{`{"$toUpper": 1}`, `{}`, `"1"`},
		{`{"$substrCP": ["aéb", 1, 1]}`, `{}`, `"é"`},
		{`{"$substrBytes": ["aéb", 1, 2]}`, `{}`, `"é"`},
		{`{"$substr": ["abc", 1, -1]}`, `{}`, `"bc"`},
		{`{"$split": ["a-b-", "-"]}`, `{}`, `["a", "b", ""]`},
		{`{"$strLenCP": "aé"}`, `{}`, `2`},
		{`{"$strLenBytes": "aé"}`, `{}`, `3`},
		{`{"$indexOfCP": ["éab", "b"]}`, `{}`, `2`},
		{`{"$indexOfBytes": ["éab", "b"]}`, `{}`, `3`},
		{`{"$indexOfCP": ["abab", "a", 1]}`, `{}`, `2`},
		{`{"$indexOfCP": ["abab", "b", 2, 3]}`, `{}`, `-1`},
		{`{"$indexOfCP": [null, "b"]}`, `{}`, `null`},
		{`{"$trim": {"input": "  a "}}`, `{}`, `"a"`},
		{`{"$ltrim": {"input": "xxa", "chars": "x"}}`, `{}`, `"a"`},
		{`{"$strcasecmp": ["a", "B"]}`, `{}`, `-1`},
		{`{"$replaceAll": {"input": "aa", "find": "a", "replacement": "b"}}`, `{}`, `"bb"`},
		{`{"$replaceOne": {"input": "aa", "find": "a", "replacement": "b"}}`, `{}`, `"ba"`},
		{`{"$regexMatch": {"input": "$a", "regex": "^X", "options": "i"}}`, `{"a": "xy"}`, `true`},
		{`{"$regexMatch": {"input": "$a", "regex": "x"}}`, `{}`, `false`},
		{`{"$regexFind": {"input": "éab", "regex": "(a)(z)?b"}}`, `{}`, `{"match": "ab", "idx": 1, "captures": ["a", null]}`},
		{`{"$regexFindAll": {"input": "aba", "regex": "a"}}`, `{}`, `[{"match": "a", "idx": 0, "captures": []}, {"match": "a", "idx": 2, "captures": []}]`},
	})
}

func TestArrays(t *testing.T) {
	check(t, []evalCase{
		{`{"$size": "$a"}`, `{"a": [1, 2]}`, `2`},
		{`{"$arrayElemAt": ["$a", -1]}`, `{"a": [1, 2]}`, `2`},
		{`{"$arrayElemAt": ["$a", 5]}`, `{"a": [1, 2]}`, ``},
		{`{"$first": "$a"}`, `{"a": [1, 2]}`, `1`},
		{`{"$last": "$a"}`, `{"a": []}`, ``},
		{`{"$concatArrays": ["$a", [3]]}`, `{"a": [1]}`, `[1, 3]`},
		{`{"$concatArrays": ["$a", [3]]}`, `{}`, `null`},
		{`{"$filter": {"input": "$a", "cond": {"$gt": ["$$this", 1]}}}`, `{"a": [1, 2, 3]}`, `[2, 3]`},
		{`{"$filter": {"input": "$a", "as": "e", "cond": {"$gt": ["$$e", 1]}, "limit": 1}}`, `{"a": [1, 2, 3]}`, `[2]`},
		{`{"$map": {"input": "$a", "as": "e", "in": {"$add": ["$$e", "$b"]}}}`, `{"a": [1, 2], "b": 10}`, `[11, 12]`},
		{`{"$map": {"input": "$a", "in": "$$this.x"}}`, `{"a": [{"x": 1}, {}]}`, `[1, null]`},
		{`{"$reduce": {"input": "$a", "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}`, `{"a": [1, 2, 3]}`, `6`},
		{`{"$slice": ["$a", 2]}`, `{"a": [1, 2, 3]}`, `[1, 2]`},
		{`{"$slice": ["$a", -2]}`, `{"a": [1, 2, 3]}`, `[2, 3]`},
		{`{"$slice": ["$a", -3, 2]}`, `{"a": [1, 2, 3]}`, `[1, 2]`},
		{`{"$indexOfArray": [[1, 2, 1], 1, 1]}`, `{}`, `2`},
		{`{"$range": [0, 5, 2]}`, `{}`, `[0, 2, 4]`},
		{`{"$range": [3, 0, -1]}`, `{}`, `[3, 2, 1]`},
		{`{"$reverseArray": [[1, 2]]}`, `{}`, `[2, 1]`},
		{`{"$isArray": ["$a"]}`, `{"a": []}`, `true`},
		{`{"$zip": {"inputs": [[1, 2], ["a"]]}}`, `{}`, `[[1, "a"]]`},
		{`{"$zip": {"inputs": [[1, 2], ["a"]], "useLongestLength": true, "defaults": [0, "z"]}}`, `{}`, `[[1, "a"], [2, "z"]]`},
		{`{"$sortArray": {"input": "$a", "sortBy": {"x": -1}}}`, `{"a": [{"x": 1}, {"x": 2}]}`, `[{"x": 2}, {"x": 1}]`},
		{`{"$sortArray": {"input": [3, "a", 1], "sortBy": 1}}`, `{}`, `[1, 3, "a"]`},
		{`{"$firstN": {"n": 2, "input": [1, 2, 3]}}`, `{}`, `[1, 2]`},
		{`{"$lastN": {"n": 2, "input": [1, 2, 3]}}`, `{}`, `[2, 3]`},
		{`{"$minN": {"n": 2, "input": [3, 1, 2]}}`, `{}`, `[1, 2]`},
		{`{"$last": [[1, 2]]}`, `{}`, `2`},
		{`{"$maxN": {"n": 2, "input": [1, 3, null, 2]}}`, `{}`, `[3, 2]`},
		{`{"$arrayToObject": [[["a", 1], ["b", 2], ["a", 3]]]}`, `{}`, `{"a": 3, "b": 2}`},
		{`{"$arrayToObject": [[{"k": "a", "v": 1}]]}`, `{}`, `{"a": 1}`},
		{`{"$objectToArray": {"a": 1}}`, `{}`, `[{"k": "a", "v": 1}]`},
		{`{"$setUnion": [[3, 1], [1.0, 2]]}`, `{}`, `[1, 2, 3]`},
		{`{"$setIntersection": [[3, 1], [1, 2]]}`, `{}`, `[1]`},
		{`{"$setDifference": [[3, 1, 3], [1]]}`, `{}`, `[3]`},
		{`{"$setEquals": [[1, 2], [2, 1, 1]]}`, `{}`, `true`},
		{`{"$setIsSubset": [[1], [2, 1]]}`, `{}`, `true`},
		{`{"$allElementsTrue": [[1, 0]]}`, `{}`, `false`},
		{`{"$anyElementTrue": [[1, 0]]}`, `{}`, `true`},
	})
}

func TestObjects(t *testing.T) {
	check(t, []evalCase{
		{`{"$mergeObjects": ["$a", {"x": 2, "y": 1}, null]}`, `{"a": {"x": 1, "z": 3}}`, `{"x": 2, "z": 3, "y": 1}`},
		{`{"$getField": "a"}`, `{"a": 1}`, `1`},
		{`{"$getField": {"field": "a.b", "input": "$o"}}`, `{"o": {"a.b": 2}}`, `2`},
		{`{"$getField": {"$literal": "$p"}}`, `{"$p": 3}`, `3`},
		{`{"$setField": {"field": "a.b", "input": "$$ROOT", "value": 1}}`, `{"c": 2}`, `{"c": 2, "a.b": 1}`},
		{`{"$setField": {"field": "c", "input": "$$ROOT", "value": "$$REMOVE"}}`, `{"c": 2}`, `{}`},
		{`{"$unsetField": {"field": "c", "input": "$$ROOT"}}`, `{"c": 2, "d": 1}`, `{"d": 1}`},
		{`{"$bsonSize": "$$ROOT"}`, `{"a": 1}`, `12`},
		{`{"$binarySize": "aé"}`, `{}`, `3`},
	})
}

func TestConversions(t *testing.T) {
	check(t, []evalCase{
		{`{"$type": "$a"}`, `{}`, `"missing"`},
		{`{"$type": "$a"}`, `{"a": 1.5}`, `"double"`},
		{`{"$isNumber": "$a"}`, `{"a": 1.5}`, `true`},
		{`{"$toInt": "12"}`, `{}`, `12`},
		{`{"$toInt": 12.9}`, `{}`, `12`},
		{`{"$toLong": true}`, `{}`, `{"$numberLong": "1"}`},
		{`{"$toDouble": "1.5"}`, `{}`, `1.5`},
		{`{"$toDecimal": "1.50"}`, `{}`, `{"$numberDecimal": "1.50"}`},
		{`{"$toString": 1.5}`, `{}`, `"1.5"`},
		{`{"$toString": {"$date": "2026-01-02T03:04:05Z"}}`, `{}`, `"2026-01-02T03:04:05.000Z"`},
		{`{"$toBool": "false"}`, `{}`, `true`},
		{`{"$toBool": 0}`, `{}`, `false`},
		{`{"$toDate": "2026-01-02"}`, `{}`, `{"$date": "2026-01-02T00:00:00Z"}`},
		{`{"$toDate": {"$numberLong": "1000"}}`, `{}`, `{"$date": "1970-01-01T00:00:01Z"}`},
		{`{"$toObjectId": "000000000000000000000007"}`, `{}`, `{"$oid": "000000000000000000000007"}`},
		{`{"$toInt": null}`, `{}`, `null`},
		{`{"$toDouble": {"$numberDecimal": "1E-3"}}`, `{}`, `0.001`},
		{`{"$toDouble": {"$date": "1970-01-01T00:00:01Z"}}`, `{}`, `1000.0`},
		{`{"$toDouble": true}`, `{}`, `1.0`},
		{`{"$toDecimal": 0.1}`, `{}`, `{"$numberDecimal": "0.100000000000000"}`},
		{`{"$toDecimal": true}`, `{}`, `{"$numberDecimal": "1"}`},
		{`{"$toString": {"$numberDecimal": "1.50"}}`, `{}`, `"1.50"`},
		{`{"$toString": 1e20}`, `{}`, `"1e+20"`},
		{`{"$toString": {"$numberDouble": "-Infinity"}}`, `{}`, `"-Infinity"`},
		{`{"$toString": true}`, `{}`, `"true"`},
		{`{"$toString": {"$oid": "000000000000000000000007"}}`, `{}`, `"000000000000000000000007"`},
		{`{"$toDate": {"$oid": "000000010000000000000000"}}`, `{}`, `{"$date": "1970-01-01T00:00:01Z"}`},
		{`{"$toDate": "2026-01-02T03:04:05.678+01:00"}`, `{}`, `{"$date": "2026-01-02T02:04:05.678Z"}`},
		{`{"$convert": {"input": "x", "to": "int", "onError": "bad"}}`, `{}`, `"bad"`},
		{`{"$convert": {"input": "$a", "to": 16, "onNull": "none"}}`, `{}`, `"none"`},
	})
}

func TestDates(t *testing.T) {
	const d = `{"d": {"$date": "2026-03-04T05:06:07.008Z"}}`
	check(t, []evalCase{
		{`{"$year": "$d"}`, d, `2026`},
		{`{"$month": {"date": "$d"}}`, d, `3`},
		{`{"$dayOfMonth": ["$d"]}`, d, `4`},
		{`{"$hour": {"date": "$d", "timezone": "+02:00"}}`, d, `7`},
		{`{"$minute": "$d"}`, d, `6`},
		{`{"$second": "$d"}`, d, `7`},
		{`{"$millisecond": "$d"}`, d, `8`},
		{`{"$dayOfWeek": "$d"}`, d, `4`},
		{`{"$isoDayOfWeek": "$d"}`, d, `3`},
		{`{"$dayOfYear": "$d"}`, d, `63`},
		{`{"$week": "$d"}`, d, `9`},
		{`{"$isoWeek": "$d"}`, d, `10`},
		{`{"$year": "$x"}`, d, `null`},
		{`{"$dateToString": {"date": "$d"}}`, d, `"2026-03-04T05:06:07.008Z"`},
		{`{"$dateToString": {"date": "$d", "format": "%Y/%m/%d %H:%M:%S.%L %j %%"}}`, d, `"2026/03/04 05:06:07.008 063 %"`},
		{`{"$dateToString": {"date": "$x", "onNull": "-"}}`, d, `"-"`},
		{`{"$dateFromParts": {"year": 2026, "month": 14, "day": 1}}`, d, `{"$date": "2027-02-01T00:00:00Z"}`},
		{`{"$dateToParts": {"date": "$d"}}`, d, `{"year": 2026, "month": 3, "day": 4, "hour": 5, "minute": 6, "second": 7, "millisecond": 8}`},
		{`{"$dateAdd": {"startDate": {"$date": "2026-01-31T00:00:00Z"}, "unit": "month", "amount": 1}}`, d, `{"$date": "2026-02-28T00:00:00Z"}`},
		{`{"$dateSubtract": {"startDate": "$d", "unit": "hour", "amount": 6}}`, d, `{"$date": "2026-03-03T23:06:07.008Z"}`},
		{`{"$dateDiff": {"startDate": {"$date": "2025-12-31T23:59:59Z"}, "endDate": "$d", "unit": "year"}}`, d, `{"$numberLong": "1"}`},
		{`{"$dateDiff": {"startDate": {"$date": "2026-02-28T00:00:00Z"}, "endDate": "$d", "unit": "week"}}`, d, `{"$numberLong": "1"}`},
		{`{"$dateTrunc": {"date": "$d", "unit": "week", "startOfWeek": "monday"}}`, d, `{"$date": "2026-03-02T00:00:00Z"}`},
		{`{"$dateTrunc": {"date": "$d", "unit": "quarter"}}`, d, `{"$date": "2026-01-01T00:00:00Z"}`},
	})
}

func TestRand(t *testing.T) {
	got, err := eval(t, `{"$rand": {}}`, `{}`)
	if err != nil || got.Type != bsoncore.TypeDouble || got.Double() < 0 || got.Double() >= 1 {
		t.Error(got, err)
	}
	x, err := expr.Parse(val(t, `{"$rand": {}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Eval(value.Missing, nil); err == nil {
		t.Error("a random number out of nothing")
	}
}

func TestErrors(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		expr string
		code int32
	}{
		{`{"$frob": 1}`, 168},
		{`{"$function": {}}`, 238},
		{`{"$add": 1, "$subtract": 2}`, 15983},
		{`{"a": 1, "$add": 2}`, 15983},
		{`{"a.b": 1}`, 16412},
		{`"$"`, 16872},
		{`"$a..b"`, 15998},
		{`"$a.$b"`, 16410},
		{`"$$nope"`, 17276},
		{`{"$subtract": [1]}`, 16020},
		{`{"$slice": [1]}`, 28667},
		{`{"$add": ["x", 1]}`, 14},
		{`{"$divide": [1, 0]}`, 2},
		{`{"$mod": [1, 0]}`, 16610},
		{`{"$abs": "x"}`, 28765},
		{`{"$sqrt": -1}`, 28714},
		{`{"$ln": 0}`, 28766},
		{`{"$exp": {"$numberDecimal": "1"}}`, 238},
		{`{"$pow": [0, -1]}`, 28764},
		{`{"$round": [1, 101]}`, 51083},
		{`{"$concat": [1]}`, 16702},
		{`{"$split": ["a", ""]}`, 40087},
		{`{"$substrBytes": ["é", 1, 1]}`, 28656},
		{`{"$toUpper": []}`, 16020},
		{`{"$size": 1}`, 17124},
		{`{"$in": [1, 2]}`, 40081},
		{`{"$arrayElemAt": [1, 2]}`, 28689},
		{`{"$concatArrays": [1]}`, 28664},
		{`{"$filter": {"input": 1, "cond": 1}}`, 28651},
		{`{"$map": {"input": [1], "in": "$$that"}}`, 17276},
		{`{"$map": {"input": [1], "as": "X", "in": 1}}`, 16867},
		{`{"$range": [0, 1, 0]}`, 34449},
		{`{"$range": [0, 2147483647]}`, 146},
		{`{"$switch": {"branches": [{"case": false, "then": 1}]}}`, 40066},
		{`{"$switch": {"branches": []}}`, 40068},
		{`{"$cond": {"if": 1}}`, 17083},
		{`{"$ifNull": [1]}`, 1257300},
		{`{"$mergeObjects": [1]}`, 40400},
		{`{"$setField": {"field": "$a", "input": {}, "value": 1}}`, 4161106},
		{`{"$toInt": "x"}`, 241},
		{`{"$toInt": 3000000000.0}`, 241},
		{`{"$toObjectId": "x"}`, 241},
		{`{"$toDate": {"$literal": {}}}`, 241},
		{`{"$convert": {"input": 1}}`, 9},
		{`{"$dateToString": {"date": "x"}}`, 16006},
		{`{"$dateToString": {"date": {"$date": "2026-01-01T00:00:00Z"}, "format": "%q"}}`, 18536},
		{`{"$hour": {"date": {"$date": "2026-01-01T00:00:00Z"}, "timezone": "Europe/Paris"}}`, 238},
		{`{"$hour": {"date": {"$date": "2026-01-01T00:00:00Z"}, "timezone": "Mars"}}`, 40485},
		{`{"$dateAdd": {"startDate": {"$date": "2026-01-01T00:00:00Z"}, "unit": "aeon", "amount": 1}}`, 9},
		{`{"$regexMatch": {"input": "x", "regex": "("}}`, 51111},
		{`{"$setUnion": [1]}`, 17043},
		{`{"$arrayToObject": [[1]]}`, 40398},
		{`{"$zip": {"inputs": 1}}`, 34461},
		{`{"$let": {"vars": {"p": 1}}}`, 16875},
		{`{"$rand": 1}`, 3040501},
		{`{"$reduce": {"input": {"$range": [0, 60]}, "initialValue": "` + long + `", "in": {"$concat": ["$$value", "$$value"]}}}`, 13548},
		{`{"$reduce": {"input": {"$range": [0, 60]}, "initialValue": "` + long + `", "in": ["$$value", "$$value"]}}`, 13548},
	} {
		_, err := eval(t, c.expr, `{}`)
		var e *value.Error
		if !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s: %v, want code %d", c.expr, err, c.code)
		}
	}
}

func TestConstantAndPath(t *testing.T) {
	parse := func(json string) *expr.Expr {
		x, err := expr.Parse(val(t, json), nil)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if v, ok := parse(`{"$literal": 5}`).Constant(); !ok || !value.Same(v, value.Int32(5)) {
		t.Error("a literal is no constant")
	}
	if _, ok := parse(`{"$add": [1, "$a"]}`).Constant(); ok {
		t.Error("an expression is a constant")
	}
	if p, ok := parse(`"$a.b"`).FieldPath(); !ok || p != "a.b" {
		t.Error("a path is no path")
	}
}

// FuzzExpr: whatever parses evaluates without a panic.
func FuzzExpr(f *testing.F) {
	for _, s := range []string{
		`{"$add": ["$a", 1]}`, `{"$map": {"input": "$a", "in": {"$toString": "$$this"}}}`, `{"$cond": ["$a", "$b", "$c"]}`,
		`{"$dateToString": {"date": "$a", "format": "%Y"}}`, `{"$slice": ["$a", 1, 2]}`, `{"$reduce": {"input": "$a", "initialValue": 0, "in": "$$value"}}`,
		`{"$switch": {"branches": [{"case": "$a", "then": 1}]}}`, `{"$substrCP": ["$a", 0, 1]}`, `{"$zip": {"inputs": ["$a", "$a"]}}`,
		`{"$indexOfCP": ["$a", "$b", 1, 2]}`, `{"$pow": ["$a", "$b"]}`, `{"$convert": {"input": "$a", "to": "decimal", "onError": 1}}`,
	} {
		f.Add(`{"e": ` + s + `, "a": [1, "x", null, {"b": 2}], "b": 5, "c": {"$date": "2026-01-01T00:00:00Z"}}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d bson.D
		if len(text) > 1<<12 || bson.UnmarshalExtJSON([]byte(text), false, &d) != nil {
			return
		}
		raw, err := bson.Marshal(d)
		if err != nil || value.Validate(raw) != nil {
			return
		}
		x, err := expr.Parse(value.Lookup(raw, "e"), nil)
		if err != nil {
			return
		}
		got, err := x.Eval(value.Doc(raw), nil)
		if err == nil && value.IsDocument(got) && len(got.Data) < 1<<20 {
			if err := value.Validate(got.Data); err != nil && value.Len(got.Data) > 0 {
				var e *value.Error
				if !errors.As(err, &e) || e.Code == value.InvalidBSON {
					t.Errorf("the result is not BSON: %v", err)
				}
			}
		}
	})
}
