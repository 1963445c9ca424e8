package query_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset/query"
)

// doc parses relaxed extended JSON: whole numbers are ints, others doubles.
func doc(t testing.TB, json string) query.Document {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return raw
}

// val parses one value.
func val(t testing.TB, json string) query.Value {
	t.Helper()
	return doc(t, `{"v": `+json+`}`).Lookup("v")
}

func docs(t testing.TB, json ...string) []query.Document {
	t.Helper()
	var out []query.Document
	for _, j := range json {
		out = append(out, doc(t, j))
	}
	return out
}

// show is a document as relaxed extended JSON, to compare with doc(want).
func show(d query.Document) string {
	if d == nil {
		return "nothing"
	}
	out, err := bson.MarshalExtJSON(bson.Raw(d), false, false)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func wantDoc(t testing.TB, got query.Document, want string) {
	t.Helper()
	if w := show(doc(t, want)); show(got) != w {
		t.Errorf("got  %s\nwant %s", show(got), w)
	}
}

// code is the error's code, 0 if there is none.
func code(t testing.TB, err error) int32 {
	t.Helper()
	if err == nil {
		return 0
	}
	var e *query.Error
	if !errors.As(err, &e) {
		t.Fatalf("error without a code: %v", err)
	}
	if e.Name == "" || e.Message == "" {
		t.Fatalf("error %d has no name or no message", e.Code)
	}
	return e.Code
}

var now = time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)

// vars are variables with a fixed time and a seeded random source.
func vars(t testing.TB, let string) *query.Vars {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	v, err := query.NewVars(doc(t, let), query.System{Now: now, Rand: rng.Float64})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func newID() bson.ObjectID { return bson.ObjectID{11: 7} }

func filter(t testing.TB, json string) *query.Filter {
	t.Helper()
	f, err := query.ParseFilter(doc(t, json), vars(t, `{}`))
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return f
}

func itoa(i int) string { return strconv.Itoa(i) }
