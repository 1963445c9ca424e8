package replset_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
)

func TestAViewIsReadLikeACollection(t *testing.T) {
	s, c := start(t, replset.Options{Members: 1})
	ctx := within(t)
	db := c.Database("db")
	_, err := db.Collection("c").InsertMany(ctx, []any{bson.M{"_id": 1, "x": 1}, bson.M{"_id": 2, "x": 2}, bson.M{"_id": 3, "x": 3}})
	must(t, err)
	must(t, db.CreateView(ctx, "v", "c", bson.A{bson.M{"$match": bson.M{"x": bson.M{"$gt": 1}}}, bson.M{"$set": bson.M{"y": bson.M{"$multiply": bson.A{"$x", 10}}}}}))
	must(t, db.CreateView(ctx, "w", "v", bson.A{bson.M{"$project": bson.M{"y": 1}}}))
	var docs []bson.M
	cur, err := db.Collection("w").Find(ctx, bson.M{"y": bson.M{"$lt": 40}}, options.Find().SetSort(bson.M{"y": -1}).SetLimit(1))
	must(t, err)
	must(t, cur.All(ctx, &docs))
	if len(docs) != 1 || docs[0]["_id"] != int32(3) || docs[0]["y"] != int32(30) || docs[0]["x"] != nil {
		t.Errorf("a view on a view gave %v", docs)
	}
	if n, err := db.Collection("v").CountDocuments(ctx, bson.M{}); n != 2 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
	if n, err := db.Collection("v").EstimatedDocumentCount(ctx); n != 2 || err != nil {
		t.Errorf("estimated %d, %v", n, err)
	}
	cur, err = db.Collection("c").Aggregate(ctx, bson.A{bson.M{"$match": bson.M{"_id": 2}}, bson.M{"$lookup": bson.M{"from": "v", "localField": "x", "foreignField": "x", "as": "l"}}})
	must(t, err)
	docs = nil
	must(t, cur.All(ctx, &docs))
	if l := docs[0]["l"].(bson.A); len(l) != 1 {
		t.Errorf("looked up %v", docs)
	}
	specs, err := db.ListCollectionSpecifications(ctx, bson.M{"type": "view"})
	must(t, err)
	if len(specs) != 2 {
		t.Errorf("listed %v", specs)
	}
	uri := s.MemberURI(0)
	for _, x := range []refusal{
		{166, bson.D{{Key: "insert", Value: "v"}, field("documents", bson.A{bson.M{}})}},
		{166, bson.D{{Key: "update", Value: "v"}, field("updates", bson.A{bson.M{"q": bson.M{}, "u": bson.M{"$set": bson.M{"x": 1}}}})}},
		{166, bson.D{{Key: "delete", Value: "v"}, field("deletes", bson.A{bson.M{"q": bson.M{}, "limit": 0}})}},
		{166, bson.D{{Key: "findAndModify", Value: "v"}, field("remove", true)}},
		{166, bson.D{{Key: "createIndexes", Value: "v"}, field("indexes", bson.A{bson.M{"key": bson.M{"x": 1}, "name": "i"}})}},
		{166, bson.D{{Key: "listIndexes", Value: "v"}}},
		{5, bson.D{{Key: "create", Value: "loop"}, field("viewOn", "loop")}},
		{167, bson.D{{Key: "create", Value: "out"}, field("viewOn", "c"), field("pipeline", bson.A{bson.M{"$out": "x"}})}},
		{40324, bson.D{{Key: "create", Value: "no"}, field("viewOn", "c"), field("pipeline", bson.A{bson.M{"$no": 1}})}},
		{167, bson.D{{Key: "find", Value: "v"}, field("collation", bson.M{"locale": "de"})}},
	} {
		got := raw(t, uri, x.cmd)
		if list, ok := got["writeErrors"].(bson.A); ok {
			got["code"] = firstCode(list)
		}
		if got["code"] != x.want {
			t.Errorf("%v gave %s, want %d", x.cmd, brief(got), x.want)
		}
	}
	// A view that looks itself up is found out when it is read.
	must(t, db.CreateView(ctx, "a", "c", bson.A{bson.M{"$lookup": bson.M{"from": "b", "pipeline": bson.A{}, "as": "x"}}}))
	must(t, db.CreateView(ctx, "b", "a", bson.A{}))
	if err := db.Collection("b").FindOne(ctx, bson.M{}).Err(); code(err) != 165 {
		t.Errorf("a view on itself gave %v", err)
	}
}

func TestAValidatorKeepsOutWhatDoesNotFit(t *testing.T) {
	_, c := start(t, replset.Options{Members: 1})
	ctx := within(t)
	db := c.Database("db")
	must(t, db.CreateCollection(ctx, "c", options.CreateCollection().SetValidator(bson.M{"$jsonSchema": bson.M{
		"required": bson.A{"n"}, "properties": bson.M{"n": bson.M{"bsonType": "int", "minimum": 0}},
	}})))
	col := db.Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1, "n": 1})
	must(t, err)
	refused := func(what string, err error) {
		t.Helper()
		var w mongo.WriteException
		if !errors.As(err, &w) || len(w.WriteErrors) != 1 || w.WriteErrors[0].Code != 121 || w.WriteErrors[0].Details == nil {
			t.Errorf("%s gave %v", what, err)
		}
	}
	_, err = col.InsertOne(ctx, bson.M{"_id": 2})
	refused("a document without the field", err)
	_, err = col.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"n": -1}})
	refused("an update out of bounds", err)
	_, err = col.ReplaceOne(ctx, bson.M{"_id": 3}, bson.M{"n": "x"}, options.Replace().SetUpsert(true))
	refused("an upsert of the wrong type", err)
	_, err = col.InsertOne(ctx, bson.M{"_id": 4}, options.InsertOne().SetBypassDocumentValidation(true))
	must(t, err)
	must(t, db.RunCommand(ctx, bson.D{{Key: "collMod", Value: "c"}, {Key: "validationLevel", Value: "moderate"}}).Err())
	_, err = col.UpdateOne(ctx, bson.M{"_id": 4}, bson.M{"$set": bson.M{"y": 1}}) // did not fit before
	must(t, err)
	_, err = col.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$unset": bson.M{"n": 1}})
	refused("an update of one that did fit", err)
	must(t, db.RunCommand(ctx, bson.D{{Key: "collMod", Value: "c"}, {Key: "validator", Value: bson.M{}}}).Err())
	_, err = col.InsertOne(ctx, bson.M{"_id": 5})
	must(t, err)
}

// Dropping a collection takes away what an older snapshot would read: that is an error
// and never an empty result.
func TestASnapshotOfADroppedCollectionIsRefused(t *testing.T) {
	_, c := start(t, replset.Options{Members: 1})
	ctx := within(t)
	db := c.Database("db")
	for _, name := range []string{"c", "other"} {
		_, err := db.Collection(name).InsertMany(ctx, []any{bson.M{"_id": 1}, bson.M{"_id": 2}, bson.M{"_id": 3}})
		must(t, err)
	}
	snapshot, err := c.StartSession(options.Session().SetSnapshot(true))
	must(t, err)
	defer snapshot.EndSession(ctx)
	in := mongo.NewSessionContext(ctx, snapshot)
	must(t, db.Collection("other").FindOne(in, bson.M{}).Err())
	_, txn := begin(t, c)
	must(t, db.Collection("other").FindOne(txn, bson.M{}).Err())
	cur, err := db.Collection("c").Find(ctx, bson.M{}, options.Find().SetBatchSize(1))
	must(t, err)
	must(t, db.Collection("c").Drop(ctx))
	_, err = db.Collection("c").InsertOne(ctx, bson.M{"_id": 9})
	must(t, err)
	if err := db.Collection("c").FindOne(in, bson.M{}).Err(); code(err) != 246 {
		t.Errorf("a snapshot session read %v", err)
	}
	if err := db.Collection("c").FindOne(txn, bson.M{}).Err(); code(err) != 246 {
		t.Errorf("a transaction read %v", err)
	}
	n := 0
	for cur.Next(ctx) {
		n++
	}
	if err := cur.Err(); err == nil && n < 3 || err != nil && code(err) != 175 {
		t.Errorf("a cursor gave %d documents and %v", n, err)
	}
	must(t, db.Collection("other").FindOne(in, bson.M{}).Err())
}

// A driver names the snapshot read concern in getMore too; the cursor goes on at the
// timestamp at which it was opened, whatever is written meanwhile.
func TestACursorOfASnapshotSessionGoesOn(t *testing.T) {
	_, c := start(t, replset.Options{Members: 1})
	ctx := within(t)
	coll := c.Database("db").Collection("c")
	for i := range 5 {
		_, err := coll.InsertOne(ctx, bson.M{"_id": i, "n": 0})
		must(t, err)
	}
	snapshot, err := c.StartSession(options.Session().SetSnapshot(true))
	must(t, err)
	defer snapshot.EndSession(ctx)
	in := mongo.NewSessionContext(ctx, snapshot)
	cur, err := coll.Find(in, bson.M{}, options.Find().SetBatchSize(2))
	must(t, err)
	_, err = coll.UpdateMany(ctx, bson.M{}, bson.M{"$set": bson.M{"n": 1}})
	must(t, err)
	var docs []struct{ N int }
	must(t, cur.All(in, &docs))
	if len(docs) != 5 {
		t.Fatalf("%d documents", len(docs))
	}
	for _, d := range docs {
		if d.N != 0 {
			t.Errorf("the cursor saw what was written after its snapshot: %v", docs)
		}
	}
}
