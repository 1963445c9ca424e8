package replset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
)

// The order of latches, see the package comment of server: whatever runs side by side,
// nobody waits for ever. The commands have no limit of their own, so that a deadlock is
// one until the test's patience ends.

// Statements that fail in the middle of a command keep nothing that the next one could
// wait for while somebody waits for it: two unordered commands that go through the same
// documents in opposite orders and fail at each.
func TestStatementsThatFailDoNotWaitForEachOther(t *testing.T) {
	s, c := start(t, replset.Options{Members: 1})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"u": 1}, Options: options.Index().SetUnique(true)})
	must(t, err)
	const n = 400
	docs := make([]any, n)
	for i := range docs {
		docs[i] = bson.M{"_id": i, "u": i}
	}
	_, err = col.InsertMany(ctx, docs)
	must(t, err)
	// What fails at the document, at its unique key, and after both were found.
	fails := map[string]func(i int) mongo.WriteModel{
		"inserts of an _id that is there": func(i int) mongo.WriteModel {
			return mongo.NewInsertOneModel().SetDocument(bson.M{"_id": i, "u": -1 - i})
		},
		"inserts of a key that is there": func(i int) mongo.WriteModel {
			return mongo.NewInsertOneModel().SetDocument(bson.M{"_id": n + i, "u": i})
		},
		"updates to a key that is there": func(i int) mongo.WriteModel {
			return mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": i}).SetUpdate(bson.M{"$set": bson.M{"u": (i + 1) % n}})
		},
		"updates of many that fail": func(i int) mongo.WriteModel {
			return mongo.NewUpdateManyModel().SetFilter(bson.M{"_id": i}).SetUpdate(bson.M{"$inc": bson.M{"u.no": 1}})
		},
		"upserts of a key that is there": func(i int) mongo.WriteModel {
			return mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": 2*n + i}).SetUpdate(bson.M{"$set": bson.M{"u": i}}).SetUpsert(true)
		},
	}
	for name, fail := range fails {
		up, down := make([]mongo.WriteModel, n), make([]mongo.WriteModel, n)
		for i := range n {
			up[i], down[n-1-i] = fail(i), fail(i)
		}
		var group sync.WaitGroup
		for range 5 {
			for _, models := range [][]mongo.WriteModel{up, down} {
				group.Go(func() {
					_, err := col.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
					var failed mongo.BulkWriteException
					if !errors.As(err, &failed) || len(failed.WriteErrors) != n {
						t.Errorf("%s: %d of %d failed: %.200v", name, len(failed.WriteErrors), n, err)
					}
				})
			}
		}
		group.Wait()
		must(t, ctx.Err())
	}
	must(t, s.Check())
}

// Bulk writes on two namespaces, transactions that touch both in either order, and
// everything that changes the catalogue: renames both ways, drops, creations, indexes,
// $out and $merge from one to the other.
func TestWritesAndChangesOfTheCatalogueDoNotWaitForEachOther(t *testing.T) {
	// A transaction that waits for a collection while it holds another ends a cycle.
	s, c := start(t, replset.Options{Members: 1}.With(replset.Hooks{LockTimeout: 50 * time.Millisecond}))
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	db, admin := c.Database("db"), c.Database("admin")
	names := []string{"a", "b"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var done atomic.Int64 // that succeeded
	const rounds = 60
	work := map[string]func(r *rand.Rand) error{
		"bulk": func(r *rand.Rand) error {
			for _, i := range r.Perm(2) {
				var models []mongo.WriteModel
				for range 20 {
					id := r.IntN(10)
					models = append(models,
						mongo.NewInsertOneModel().SetDocument(bson.M{"_id": id}),
						mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": id}).SetUpdate(bson.M{"$inc": bson.M{"n": 1}}).SetUpsert(true),
						mongo.NewUpdateManyModel().SetFilter(bson.M{"_id": bson.M{"$gte": id}}).SetUpdate(bson.M{"$inc": bson.M{"m": 1}}),
						mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": r.IntN(10)}))
				}
				if _, err := db.Collection(names[i]).BulkWrite(ctx, models, options.BulkWrite().SetOrdered(r.IntN(2) == 0)); err != nil {
					return err
				}
			}
			return nil
		},
		"transaction": func(r *rand.Rand) error {
			sess, err := c.StartSession()
			if err != nil {
				return err
			}
			defer sess.EndSession(ctx)
			if err := sess.StartTransaction(); err != nil {
				return err
			}
			in := mongo.NewSessionContext(ctx, sess)
			for _, i := range r.Perm(2) {
				if _, err := db.Collection(names[i]).UpdateOne(in, bson.M{"_id": r.IntN(10)}, bson.M{"$inc": bson.M{"t": 1}}, options.UpdateOne().SetUpsert(true)); err != nil {
					return errors.Join(err, sess.AbortTransaction(in))
				}
			}
			return sess.CommitTransaction(in)
		},
		"rename": func(r *rand.Rand) error {
			i := r.IntN(2)
			return admin.RunCommand(ctx, bson.D{{Key: "renameCollection", Value: "db." + names[i]}, {Key: "to", Value: "db." + names[1-i]}, {Key: "dropTarget", Value: true}}).Err()
		},
		"drop": func(r *rand.Rand) error { return db.Collection(names[r.IntN(2)]).Drop(ctx) },
		"create": func(r *rand.Rand) error {
			return db.RunCommand(ctx, bson.D{{Key: "create", Value: names[r.IntN(2)]}}).Err()
		},
		"index": func(r *rand.Rand) error {
			_, err := db.Collection(names[r.IntN(2)]).Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"n": 1}})
			return err
		},
		"pipeline": func(r *rand.Rand) error {
			i := r.IntN(2)
			_, err := db.Collection(names[i]).Aggregate(ctx, mongo.Pipeline{stage([]string{"$out", "$merge"}[r.IntN(2)], names[1-i])})
			return err
		},
		"drop database": func(r *rand.Rand) error {
			if r.IntN(10) > 0 {
				return nil
			}
			return db.Drop(ctx)
		},
	}
	var group sync.WaitGroup
	for name, once := range work {
		for w := range 2 {
			group.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(w)+uint64(len(name))<<8))
				for round := range rounds {
					// Names come and go, so that most errors mean nothing. A time limit does.
					switch err := once(r); {
					case err == nil:
						done.Add(1)
					case ctx.Err() != nil:
						t.Errorf("%s, round %d: %v", name, round, err)
						return
					}
				}
			})
		}
	}
	group.Wait()
	if n := done.Load(); n < rounds*int64(len(work))/2 {
		t.Errorf("only %d of %d succeeded", n, 2*rounds*len(work))
	}
	for _, name := range names {
		_, err := db.Collection(name).UpdateOne(ctx, bson.M{"_id": "last"}, bson.M{"$set": bson.M{"n": fmt.Sprint(seed)}}, options.UpdateOne().SetUpsert(true))
		must(t, err)
	}
	must(t, s.Check())
}
