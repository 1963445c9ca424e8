package replset_test

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
)

func TestPartialAndSparseIndexesHoldWhatTheySay(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.M{"mail": 1}, Options: options.Index().SetUnique(true).SetSparse(true)},
		{Keys: bson.M{"slot": 1}, Options: options.Index().SetUnique(true).SetPartialFilterExpression(bson.M{"active": true})},
	})
	must(t, err)
	for i := range 3 {
		_, err := col.InsertOne(ctx, bson.M{"_id": i, "slot": 1, "active": i == 0})
		must(t, err)
	}
	if _, err := col.InsertOne(ctx, bson.M{"_id": 3, "slot": 1, "active": true}); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("a second active document in a slot gave %v", err)
	}
	_, err = col.UpdateOne(ctx, bson.M{"_id": 0}, bson.M{"$set": bson.M{"active": false}})
	must(t, err)
	_, err = col.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"active": true}})
	must(t, err)
	for filter, want := range map[*bson.M]int64{
		{"slot": 1}: 3, {"slot": 1, "active": true}: 1, {"mail": nil}: 3, {"mail": bson.M{"$exists": false}}: 3,
	} {
		n, err := col.CountDocuments(ctx, *filter)
		must(t, err)
		if n != want {
			t.Errorf("%v finds %d documents, want %d", *filter, n, want)
		}
	}
	_, err = col.InsertOne(ctx, bson.M{"_id": 4, "mail": "a"})
	must(t, err)
	if _, err := col.InsertOne(ctx, bson.M{"_id": 5, "mail": "a"}); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("a second document with a mail gave %v", err)
	}
	if _, err := col.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"slot": 1}, Options: options.Index().SetUnique(true).SetName("all")}); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("a unique index over what is not unique gave %v", err)
	}
	must(t, col.Indexes().DropOne(ctx, "mail_1"))
	_, err = col.InsertOne(ctx, bson.M{"_id": 5, "mail": "a"})
	must(t, err)
}

func TestDocumentsExpire(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"at": 1}, Options: options.Index().SetExpireAfterSeconds(60)})
	must(t, err)
	_, err = col.InsertMany(ctx, []any{
		bson.M{"_id": 1, "at": time.Now().Add(-time.Hour)}, bson.M{"_id": 2, "at": time.Now()}, bson.M{"_id": 3, "at": "no date"}, bson.M{"_id": 4},
	})
	must(t, err)
	waitFor(t, "the old document to go", func() bool {
		n, err := col.CountDocuments(ctx, bson.M{})
		return err == nil && n == 3
	})
	must(t, col.FindOne(ctx, bson.M{"_id": 2}).Err())
}

func TestACollectionCanBeReplacedAndRenamed(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	db := c.Database("db")
	for i := range 5 {
		_, err := db.Collection("a").InsertOne(ctx, bson.M{"_id": i, "n": i})
		must(t, err)
	}
	_, err := db.Collection("b").InsertOne(ctx, bson.M{"_id": "old"})
	must(t, err)
	count := func(name string, want int64) {
		t.Helper()
		n, err := db.Collection(name).CountDocuments(ctx, bson.M{})
		must(t, err)
		if n != want {
			t.Errorf("%s has %d documents, want %d", name, n, want)
		}
	}
	_, err = db.Collection("a").Aggregate(ctx, bson.A{bson.M{"$match": bson.M{"n": bson.M{"$gt": 1}}}, bson.M{"$out": "b"}})
	must(t, err)
	count("b", 3)
	_, err = db.Collection("a").Aggregate(ctx, bson.A{bson.M{"$merge": bson.M{"into": "b"}}})
	must(t, err)
	count("b", 5)
	must(t, c.Database("admin").RunCommand(ctx, bson.D{{Key: "renameCollection", Value: "db.b"}, {Key: "to", Value: "db.a"}, {Key: "dropTarget", Value: true}}).Err())
	count("a", 5)
	count("b", 0)
	must(t, db.Drop(ctx))
	names, err := db.ListCollectionNames(ctx, bson.M{})
	must(t, err)
	if len(names) != 0 {
		t.Errorf("a dropped database has %v", names)
	}
}
