package replset_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
)

func TestAKilledPrimaryIsReplaced(t *testing.T) { inEachForm(t, aKilledPrimaryIsReplaced) }

func aKilledPrimaryIsReplaced(t *testing.T, o replset.Options) {
	s, c := start(t, o)
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	p := s.Primary()
	began := time.Now()
	must(t, s.Kill(p))
	next, err := s.AwaitPrimary(ctx)
	must(t, err)
	took := time.Since(began)
	t.Logf("a new primary after %v", took)
	if next == p {
		t.Errorf("after the death of %d, %d is primary, %v later", p, next, took)
	}
	must(t, col.FindOne(ctx, bson.M{"_id": 1}).Err())
	_, err = col.InsertOne(ctx, bson.M{"_id": 2})
	must(t, err)
	must(t, s.Restart(p))
	direct := connect(t, s.MemberURI(p))
	awaitDocument(t, direct, bson.M{"_id": 2})
}

// awaitDocument waits until a member has a document in db.c.
func awaitDocument(t *testing.T, direct *mongo.Client, filter any) {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := direct.Database("db").Collection("c").FindOne(ctx, filter).Err()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the document %v did not arrive: %v", filter, err)
		}
	}
}

func TestARestartKeepsData(t *testing.T) {
	for _, o := range []replset.Options{{}, {LoseUnsynced: true}, {Dir: t.TempDir()}, forms()["as processes"]} {
		s, c := start(t, o)
		ctx := within(t)
		col := c.Database("db").Collection("c")
		_, err := col.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"x": 1}, Options: options.Index().SetUnique(true)})
		must(t, err)
		for i := range 20 {
			_, err := col.InsertOne(ctx, bson.M{"_id": i, "x": i})
			must(t, err)
		}
		for i := range 3 {
			must(t, s.Kill(i))
		}
		for i := range 3 {
			must(t, s.Restart(i))
		}
		_, err = s.AwaitPrimary(ctx)
		must(t, err)
		n, err := col.CountDocuments(ctx, bson.M{})
		must(t, err)
		if n != 20 {
			t.Errorf("after all members were killed there are %d of 20 documents", n)
		}
		if _, err = col.InsertOne(ctx, bson.M{"_id": 99, "x": 3}); !mongo.IsDuplicateKeyError(err) {
			t.Errorf("a unique index forgot its keys: %v", err)
		}
	}
}

func TestAMemberThatWasAwayForLongCatchesUp(t *testing.T) {
	if testing.Short() {
		t.Skip("writes ten thousand entries")
	}
	s, c := start(t, replset.Options{NoSync: true})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"n": 1}})
	must(t, err)
	away := (s.Primary() + 1) % 3
	must(t, s.Kill(away))
	// More entries than the log keeps, so that only a snapshot helps.
	const workers, each = 32, 320
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range each {
				if _, err := col.UpdateOne(ctx, bson.M{"_id": w}, bson.M{"$set": bson.M{"n": i}}, options.UpdateOne().SetUpsert(true)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	_, err = col.InsertOne(ctx, bson.M{"_id": "last"})
	must(t, err)
	must(t, s.Restart(away))
	direct := connect(t, s.MemberURI(away))
	awaitDocument(t, direct, bson.M{"_id": "last"})
	n, err := direct.Database("db").Collection("c").CountDocuments(ctx, bson.M{"n": each - 1})
	must(t, err)
	if n != workers {
		t.Errorf("after catching up it has %d of %d documents", n, workers)
	}
	// It goes on from there as any other.
	_, err = col.InsertOne(ctx, bson.M{"_id": "after"})
	must(t, err)
	awaitDocument(t, direct, bson.M{"_id": "after"})
}

func TestAUniqueKeyIsTakenOnce(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"x": 1}, Options: options.Index().SetUnique(true)})
	must(t, err)
	for round := range 20 {
		var ok atomic.Int64
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				_, err := col.InsertOne(ctx, bson.M{"x": round})
				switch {
				case err == nil:
					ok.Add(1)
				case !mongo.IsDuplicateKeyError(err):
					t.Error(err)
				}
			})
		}
		group.Wait()
		if ok.Load() != 1 {
			t.Fatalf("%d documents have the key", ok.Load())
		}
	}
	// Upserts on the key all succeed, and there is one document.
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 10 {
				_, err := col.UpdateOne(ctx, bson.M{"x": 1000}, bson.M{"$inc": bson.M{"n": 1}}, options.UpdateOne().SetUpsert(true))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	var d struct{ N int }
	must(t, col.FindOne(ctx, bson.M{"x": 1000}).Decode(&d))
	if d.N != 80 {
		t.Errorf("80 upserts counted to %d", d.N)
	}
}

func TestAStepDownIsStreamed(t *testing.T) {
	s, _ := start(t, replset.Options{})
	ctx := within(t)
	found := make(chan string, 100)
	watch := &event.ServerMonitor{ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
		if e.NewDescription.Kind == "RSPrimary" {
			found <- string(e.Address)
		}
	}}
	c := connect(t, s.URI(), options.Client().SetServerMonitor(watch))
	_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{"_id": 0})
	must(t, err)
	first := <-found
	began := time.Now()
	must(t, s.StepDown(ctx))
	_, err = c.Database("db").Collection("c").InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	t.Logf("stepping down and writing took %v", time.Since(began))
	if took := time.Since(began); took > time.Second {
		t.Errorf("the client found the new primary after %v", took)
	}
	select {
	case second := <-found:
		if second == first {
			t.Errorf("the new primary is the old one, %s", first)
		}
	case <-ctx.Done():
		t.Error("the client was told of no new primary")
	}
}

func TestAPartitionedPrimaryCannotWrite(t *testing.T) { inEachForm(t, aPartitionedPrimaryCannotWrite) }

func aPartitionedPrimaryCannotWrite(t *testing.T, o replset.Options) {
	s, c := start(t, o)
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 0})
	must(t, err)
	old := s.Primary()
	others := []int{(old + 1) % 3, (old + 2) % 3}
	must(t, s.Partition([]int{old}, others))
	_, err = col.InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	must(t, s.Heal())
	direct := connect(t, s.MemberURI(old))
	awaitDocument(t, direct, bson.M{"_id": 1})
}

func TestAPausedPrimaryComesBackAsASecondary(t *testing.T) {
	inEachForm(t, aPausedPrimaryComesBackAsASecondary)
}

func aPausedPrimaryComesBackAsASecondary(t *testing.T, o replset.Options) {
	s, c := start(t, o)
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 0})
	must(t, err)
	old := s.Primary()
	must(t, s.Pause(old))
	next := connect(t, s.MemberURI((old+1)%3))
	waitFor(t, "another primary", func() bool {
		var h struct {
			Primary string
			Me      string
		}
		must(t, next.Database("admin").RunCommand(ctx, bson.M{"hello": 1}).Decode(&h))
		return h.Primary != "" && "mongodb://"+h.Primary+"/?directConnection=true" != s.MemberURI(old)
	})
	must(t, s.Resume(old))
	_, err = col.InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	awaitDocument(t, connect(t, s.MemberURI(old)), bson.M{"_id": 1})
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// clientKnows waits until a client has heard of the set's primary, which the set knows
// first: what a driver does not try again would go to the old one.
func clientKnows(t *testing.T, c *mongo.Client) {
	t.Helper()
	waitFor(t, "the client to know the primary", func() bool {
		var hello struct {
			IsWritablePrimary bool `bson:"isWritablePrimary"`
		}
		err := c.Database("admin").RunCommand(within(t), bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
		return err == nil && hello.IsWritablePrimary
	})
}

// TestStepUpBesideAnOldPrimary: a primary that was cut off a moment ago still believes
// that it is one, for ten seconds here. Another member need not wait for that.
func TestStepUpBesideAnOldPrimary(t *testing.T) {
	s, _ := start(t, replset.Options{Timing: replset.MongoDB})
	old, err := s.AwaitPrimary(within(t))
	must(t, err)
	heir := (old + 1) % 3
	must(t, s.Partition([]int{old}, []int{heir, (old + 2) % 3}))
	must(t, s.StepUp(within(t), heir))
	var hello struct {
		IsWritablePrimary bool `bson:"isWritablePrimary"`
	}
	c := connect(t, s.MemberURI(old))
	must(t, c.Database("admin").RunCommand(within(t), bson.D{{Key: "hello", Value: 1}}).Decode(&hello))
	if !hello.IsWritablePrimary {
		t.Error("the old primary stepped down first: StepUp waited for it")
	}
	w := connect(t, s.MemberURI(heir))
	_, err = w.Database("d").Collection("c").InsertOne(within(t), bson.D{{Key: "x", Value: 1}})
	must(t, err)
	must(t, s.Heal())
}
