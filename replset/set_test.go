package replset_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/assaylab/assay/replset"
)

// The test program is also what it needs other processes for: a member of a set, and
// a program that owns a set.
const (
	memberArg = "replset-member"
	parentArg = "replset-parent"
)

func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != memberArg && os.Args[1] != parentArg {
		goleak.VerifyTestMain(m)
	}
	var err error
	if os.Args[1] == memberArg {
		err = replset.RunMember(context.Background(), os.Stdin, os.Stdout)
	} else {
		err = ownSet()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// forms are the ways to run members; what a test says of one must hold in each.
func forms() map[string]replset.Options {
	return map[string]replset.Options{
		"in this process": {},
		"as processes":    {Command: []string{os.Args[0], memberArg}},
	}
}

func inEachForm(t *testing.T, f func(*testing.T, replset.Options)) {
	for name, o := range forms() {
		t.Run(name, func(t *testing.T) { f(t, o) })
	}
}

const patience = 20 * time.Second

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func connect(t testing.TB, uri string, more ...*options.ClientOptions) *mongo.Client {
	t.Helper()
	all := append([]*options.ClientOptions{options.Client().ApplyURI(uri).SetServerSelectionTimeout(10 * time.Second)}, more...)
	c, err := mongo.Connect(all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = c.Disconnect(ctx)
	})
	return c
}

func start(t testing.TB, o replset.Options) (*replset.Set, *mongo.Client) {
	t.Helper()
	s := replset.Start(t, o)
	return s, connect(t, s.URI())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestASetIsWritableWhenItHasStarted(t *testing.T) {
	for _, members := range []int{1, 3, 7} {
		began := time.Now()
		s := replset.Start(t, replset.Options{Members: members})
		t.Logf("%d members in %v", members, time.Since(began))
		c := connect(t, s.URI())
		ctx := within(t)
		_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
		must(t, err)
		began = time.Now()
		must(t, c.Disconnect(ctx))
		t.Logf("disconnected in %v", time.Since(began))
		must(t, s.Close())
		t.Logf("closed in %v", time.Since(began))
	}
}

func TestDocumentsCanBeWrittenAndFound(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertMany(ctx, []any{bson.M{"_id": 1, "x": 3}, bson.M{"_id": 2, "x": 2}, bson.M{"_id": 3, "x": 1}})
	must(t, err)
	_, err = col.InsertOne(ctx, bson.M{"_id": 2})
	if !mongo.IsDuplicateKeyError(err) {
		t.Errorf("the second document with an _id gave %v", err)
	}
	up, err := col.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"x": 10}})
	must(t, err)
	if up.MatchedCount != 1 || up.ModifiedCount != 1 {
		t.Errorf("an update of one document gave %+v", up)
	}
	up, err = col.UpdateMany(ctx, bson.M{"x": bson.M{"$lt": 3}}, bson.M{"$set": bson.M{"y": 1}})
	must(t, err)
	if up.MatchedCount != 2 {
		t.Errorf("an update of two documents gave %+v", up)
	}
	up, err = col.UpdateOne(ctx, bson.M{"_id": 9}, bson.M{"$set": bson.M{"x": 9}}, options.UpdateOne().SetUpsert(true))
	must(t, err)
	if up.UpsertedID != int32(9) {
		t.Errorf("an upsert gave %+v", up)
	}
	cur, err := col.Find(ctx, bson.M{}, options.Find().SetSort(bson.M{"x": 1}).SetProjection(bson.M{"x": 1, "_id": 0}).SetSkip(1).SetLimit(2).SetBatchSize(1))
	must(t, err)
	var got []bson.M
	must(t, cur.All(ctx, &got))
	if len(got) != 2 || got[0]["x"] != int32(2) || got[1]["x"] != int32(9) || len(got[0]) != 1 {
		t.Errorf("find gave %v", got)
	}
	n, err := col.CountDocuments(ctx, bson.M{"y": 1})
	must(t, err)
	if n != 2 {
		t.Errorf("count gave %d", n)
	}
	var values []int32
	must(t, col.Distinct(ctx, "x", bson.M{}).Decode(&values))
	if len(values) != 4 {
		t.Errorf("distinct gave %v", values)
	}
	var was bson.M
	must(t, col.FindOneAndUpdate(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"z": 1}}).Decode(&was))
	if _, has := was["z"]; has {
		t.Errorf("findOneAndUpdate gave the new document %v", was)
	}
	must(t, col.FindOneAndDelete(ctx, bson.M{"_id": 1}).Decode(&was))
	if was["z"] != int32(1) {
		t.Errorf("findOneAndDelete gave %v", was)
	}
	if err := col.FindOneAndDelete(ctx, bson.M{"_id": 1}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Errorf("deleting again gave %v", err)
	}
	del, err := col.DeleteMany(ctx, bson.M{})
	must(t, err)
	if del.DeletedCount != 3 {
		t.Errorf("deleting the rest gave %+v", del)
	}
}
