package server

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestRecordsAreBSON compares what is written by hand with the driver's own encoding, both
// ways: members of different versions read each other's records.
func TestRecordsAreBSON(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		rec := &record{Number: r.Int64() - 1<<62, Committed: r.IntN(2) == 0}
		for range r.IntN(4) {
			s := stmt{ID: r.Int32()}
			if r.IntN(3) > 0 {
				s.Reply, _ = bson.Marshal(bson.D{{Key: "n", Value: r.Int32()}, {Key: "value", Value: bson.D{{Key: "_id", Value: "x"}}}})
			}
			rec.Done = append(rec.Done, s)
		}
		want, err := bson.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		got := rec.encode([]byte("id"))
		if !bytes.Equal(got.Record, want) || string(got.ID) != "id" {
			t.Fatalf("%v is %v, want %v (seed %d)", rec, bson.Raw(got.Record), bson.Raw(want), seed)
		}
		again, err := decodeRecord(want)
		if err != nil {
			t.Fatal(err)
		}
		var back record
		if err := bson.Unmarshal(want, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*again, back) {
			t.Fatalf("%v reads as %+v, want %+v (seed %d)", bson.Raw(want), again, back, seed)
		}
	}
	for what, doc := range map[string]any{
		"a number that is a text": bson.M{"n": "x"}, "statements that are a number": bson.M{"s": 1}, "a statement that is none": bson.M{"s": bson.A{1}},
		"an id that is a text": bson.M{"s": bson.A{bson.M{"i": "x"}}}, "a reply that is a number": bson.M{"s": bson.A{bson.M{"i": 1, "r": 1}}},
	} {
		b, err := bson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := decodeRecord(b); err == nil {
			t.Errorf("%s reads as %+v", what, r)
		}
	}
}
