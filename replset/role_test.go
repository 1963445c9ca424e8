package replset_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
)

func TestAWriteThatWaitsWhenItsPrimaryStepsDownIsInterrupted(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1, "by": "nobody"})
	must(t, err)
	// An open transaction holds the document.
	ss, err := c.StartSession()
	must(t, err)
	defer ss.EndSession(ctx)
	must(t, ss.StartTransaction())
	_, err = col.UpdateOne(mongo.NewSessionContext(ctx, ss), bson.M{"_id": 1}, bson.M{"$set": bson.M{"by": "transaction"}})
	must(t, err)

	p := s.Primary()
	once := connect(t, s.URI(), options.Client().SetRetryWrites(false))
	updates := func() int64 {
		var status struct{ Opcounters struct{ Update int64 } }
		must(t, connect(t, s.MemberURI(p)).Database("admin").RunCommand(ctx, bson.M{"serverStatus": 1}).Decode(&status))
		return status.Opcounters.Update
	}
	before := updates()
	told := make(chan error, 1)
	go func() {
		_, err := once.Database("db").Collection("c").UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"by": "waiting"}})
		told <- err
	}()
	waitFor(t, "the update to begin", func() bool { return updates() > before })
	must(t, s.StepDown(ctx))
	var ce mongo.CommandError
	if err := <-told; !errors.As(err, &ce) || ce.Code != 11602 {
		t.Errorf("a write that waited was told %v, want 11602", err)
	}
	var doc struct{ By string }
	must(t, col.FindOne(ctx, bson.M{"_id": 1}).Decode(&doc))
	if doc.By != "nobody" {
		t.Errorf("the document was written by %s", doc.By)
	}
}

func TestRetryableWritesDoNotNoticeAStepDown(t *testing.T) {
	s, c := start(t, replset.Options{})
	col := c.Database("db").Collection("c")
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	const workers = 8
	for w := range workers {
		_, err := col.InsertOne(ctx, bson.M{"_id": w, "n": 0})
		must(t, err)
	}
	stop := make(chan struct{})
	var done [workers]atomic.Int64
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := col.UpdateOne(ctx, bson.M{"_id": w}, bson.M{"$inc": bson.M{"n": 1}}); err != nil {
					t.Errorf("worker %d: %v", w, err)
					return
				}
				done[w].Add(1)
			}
		})
	}
	for range 5 {
		var was [workers]int64
		for w := range workers {
			was[w] = done[w].Load()
		}
		must(t, s.StepDown(within(t)))
		waitFor(t, "every worker to go on", func() bool {
			for w := range workers {
				if done[w].Load() < was[w]+3 && !t.Failed() {
					return false
				}
			}
			return true
		})
	}
	close(stop)
	group.Wait()
	for w := range workers {
		var doc struct{ N int64 }
		must(t, col.FindOne(ctx, bson.M{"_id": w}).Decode(&doc))
		if doc.N != done[w].Load() {
			t.Errorf("%d increments counted to %d", done[w].Load(), doc.N)
		}
	}
}

func TestASecondaryCanBeMadePrimary(t *testing.T) {
	s, _ := start(t, replset.Options{})
	ctx := within(t)
	next := (s.Primary() + 1) % 3
	must(t, connect(t, s.MemberURI(next)).Database("admin").RunCommand(ctx, bson.M{"replSetStepUp": 1}).Err())
	if p := s.Primary(); p != next {
		t.Errorf("after stepping up member %d, %d is primary", next, p)
	}
}

// A repeated statement is recognised by its session's record, and carried out again
// when that has gone.
func TestSessionRecordsArePruned(t *testing.T) {
	s, c := start(t, replset.Options{}.With(replset.Hooks{SessionTimeout: 4 * time.Second}))
	ctx := within(t)
	ss, err := c.StartSession()
	must(t, err)
	defer ss.EndSession(ctx)
	insert := func() (again bool) {
		t.Helper()
		var answer struct {
			WriteErrors []struct{ Code int }
		}
		raw, err := bson.Marshal(bson.D{
			{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"_id": 1}}},
			{Key: "txnNumber", Value: int64(1)},
		})
		must(t, err)
		r, err := c.Database("db").RunCommand(mongo.NewSessionContext(ctx, ss), bson.Raw(raw)).Raw()
		if err != nil {
			var we mongo.WriteException
			if !mongo.IsDuplicateKeyError(err) && !errors.As(err, &we) {
				t.Fatal(err)
			}
			return true
		}
		must(t, bson.Unmarshal(r, &answer))
		return len(answer.WriteErrors) > 0
	}
	if insert() || insert() {
		t.Fatal("a repeated insert was carried out again at once")
	}
	waitFor(t, "the record to go", func() bool { return insert() })
	must(t, s.StepDown(ctx))
	clientKnows(t, c)
	if !insert() {
		t.Error("another member remembers what the first has forgotten")
	}
}
