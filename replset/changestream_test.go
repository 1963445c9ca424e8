package replset_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/assaylab/assay/replset"
)

type watcher interface {
	Watch(context.Context, any, ...options.Lister[options.ChangeStreamOptions]) (*mongo.ChangeStream, error)
}

func watch(t *testing.T, w watcher, o *options.ChangeStreamOptionsBuilder, stages ...bson.D) *mongo.ChangeStream {
	t.Helper()
	if o == nil {
		o = options.ChangeStream()
	}
	if stages == nil {
		stages = mongo.Pipeline{}
	}
	cs, err := w.Watch(within(t), stages, o.SetMaxAwaitTime(100*time.Millisecond))
	must(t, err)
	t.Cleanup(func() { _ = cs.Close(context.Background()) })
	return cs
}

func nextEvent(t *testing.T, cs *mongo.ChangeStream) bson.M {
	t.Helper()
	if !cs.Next(within(t)) {
		t.Fatalf("no further event: %v", cs.Err())
	}
	var m bson.M
	must(t, cs.Decode(&m))
	return m
}

// told are the kinds of the next n events.
func told(t *testing.T, cs *mongo.ChangeStream, n int) []string {
	t.Helper()
	var out []string
	for range n {
		out = append(out, nextEvent(t, cs)["operationType"].(string))
	}
	return out
}

func TestAChangeStreamTellsEveryKindOfChange(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	db := c.Database("db")
	col := db.Collection("c")
	of, in, all := watch(t, col, nil), watch(t, db, nil), watch(t, c, nil)
	expanded := watch(t, col, options.ChangeStream().SetShowExpandedEvents(true))
	_, err := col.InsertMany(ctx, []any{bson.M{"_id": 3}, bson.M{"_id": 1, "x": 1, "a": bson.A{1, 2, 3}}, bson.M{"_id": 2}})
	must(t, err)
	_, err = col.UpdateOne(ctx, bson.M{"_id": 1}, bson.A{bson.M{"$set": bson.M{"y.z": 1, "a": bson.A{1}}}, bson.M{"$unset": "x"}})
	must(t, err)
	_, err = col.ReplaceOne(ctx, bson.M{"_id": 1}, bson.M{"r": true})
	must(t, err)
	_, err = col.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"r": true}}) // changes nothing
	must(t, err)
	_, err = col.DeleteOne(ctx, bson.M{"_id": 1})
	must(t, err)
	_, err = col.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"x": 1}})
	must(t, err)
	must(t, col.Indexes().DropOne(ctx, "x_1"))
	must(t, c.Database("admin").RunCommand(ctx, bson.D{{Key: "renameCollection", Value: "db.c"}, {Key: "to", Value: "db.d"}}).Err())
	must(t, db.Collection("d").Drop(ctx))

	for i, id := range []int32{3, 1, 2} { // in the order in which they were inserted
		if e := nextEvent(t, of); e["documentKey"].(bson.D)[0].Value != id || e["fullDocument"] == nil {
			t.Errorf("event %d is %v", i, e)
		}
	}
	update := nextEvent(t, of)
	got, err := bson.MarshalExtJSON(update["updateDescription"], false, false)
	must(t, err)
	if want := `{"updatedFields":{"y":{"z":1}},"removedFields":["x"],"truncatedArrays":[{"field":"a","newSize":1}]}`; string(got) != want {
		t.Errorf("the update is told as %s, want %s", got, want)
	}
	if kinds := told(t, of, 4); !slices.Equal(kinds, []string{"replace", "delete", "rename", "invalidate"}) {
		t.Errorf("then came %v", kinds)
	}
	if of.Next(ctx) || of.ID() != 0 {
		t.Errorf("a stream went on after its invalidation: %v", of.Current)
	}
	kinds := told(t, in, 8)
	if !slices.Equal(kinds[5:], []string{"delete", "rename", "drop"}) {
		t.Errorf("the database's stream told %v", kinds)
	}
	must(t, db.Drop(ctx))
	if kinds := told(t, all, 8); kinds[7] != "drop" {
		t.Errorf("the cluster's stream told %v", kinds)
	}
	if kinds := told(t, expanded, 9); kinds[0] != "create" || !slices.Contains(kinds, "createIndexes") || !slices.Contains(kinds, "dropIndexes") {
		t.Errorf("the expanded stream told %v", kinds)
	}
}

func TestATransactionIsToldWhenItCommits(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	must(t, c.Database("db").CreateCollection(ctx, "c"))
	cs := watch(t, col, nil)
	commit := func(id int, end func(context.Context, *mongo.Session) error) {
		sess, err := c.StartSession()
		must(t, err)
		defer sess.EndSession(ctx)
		must(t, sess.StartTransaction())
		in := mongo.NewSessionContext(ctx, sess)
		_, err = col.InsertMany(in, []any{bson.M{"_id": id + 1}, bson.M{"_id": id}})
		must(t, err)
		must(t, end(in, sess))
	}
	commit(10, func(ctx context.Context, s *mongo.Session) error { return s.AbortTransaction(ctx) })
	commit(20, func(ctx context.Context, s *mongo.Session) error { return s.CommitTransaction(ctx) })
	one, two := nextEvent(t, cs), nextEvent(t, cs)
	if one["documentKey"].(bson.D)[0].Value != int32(21) || two["documentKey"].(bson.D)[0].Value != int32(20) || one["clusterTime"] != two["clusterTime"] {
		t.Errorf("told %v and %v", one, two)
	}
}

func TestAStreamGoesOnWhereItWasToldTo(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	first := watch(t, col, nil)
	var tokens []bson.Raw
	for i := range 5 {
		_, err := col.InsertOne(ctx, bson.M{"_id": i})
		must(t, err)
		nextEvent(t, first)
		tokens = append(tokens, slices.Clone(first.ResumeToken()))
	}
	clusterTime := func(raw bson.Raw) bson.Timestamp {
		ti, i := raw.Lookup("clusterTime").Timestamp()
		return bson.Timestamp{T: ti, I: i}
	}
	at := clusterTime(first.Current)
	must(t, s.StepDown(ctx))
	for i, token := range tokens[:4] {
		for _, o := range []*options.ChangeStreamOptionsBuilder{options.ChangeStream().SetResumeAfter(token), options.ChangeStream().SetStartAfter(token)} {
			if e := nextEvent(t, watch(t, col, o)); e["documentKey"].(bson.D)[0].Value != int32(i+1) {
				t.Errorf("after event %d came %v", i, e)
			}
		}
	}
	if e := nextEvent(t, watch(t, col, options.ChangeStream().SetStartAtOperationTime(&at))); e["documentKey"].(bson.D)[0].Value != int32(4) {
		t.Errorf("at the time of the last event came %v", e)
	}
	// On a secondary a token means the same.
	secondary := c.Database("db").Collection("c", options.Collection().SetReadPreference(readpref.Secondary()))
	if e := nextEvent(t, watch(t, secondary, options.ChangeStream().SetResumeAfter(tokens[1]))); e["documentKey"].(bson.D)[0].Value != int32(2) {
		t.Errorf("on a secondary came %v", e)
	}
	must(t, col.Drop(ctx))
	if kinds := told(t, first, 2); !slices.Equal(kinds, []string{"drop", "invalidate"}) {
		t.Fatalf("the drop was told as %v", kinds)
	}
	end := slices.Clone(first.ResumeToken())
	_, err := col.InsertOne(ctx, bson.M{"_id": 9})
	must(t, err)
	if _, err := col.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(end)); code(err) != 260 {
		t.Errorf("resuming after an invalidation gave %v", err)
	}
	if e := nextEvent(t, watch(t, col, options.ChangeStream().SetStartAfter(end))); e["documentKey"].(bson.D)[0].Value != int32(9) {
		t.Errorf("after the invalidation came %v", e)
	}
}

// Writers, a stream, and step-downs and kills in the middle: every acknowledged write is
// told exactly once, in the order of one writer, whichever member tells it.
func TestNoEventIsLostOrDoubledThroughFailovers(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	col := c.Database("db").Collection("c")
	must(t, c.Database("db").CreateCollection(ctx, "c"))
	cs := watch(t, col, nil)
	const writers, each = 3, 60
	var group sync.WaitGroup
	var mu sync.Mutex
	acked := map[[2]int32]bool{}
	for w := range int32(writers) {
		group.Go(func() {
			for n := range int32(each) {
				for { // the same document until it is there
					_, err := col.InsertOne(ctx, bson.M{"_id": bson.D{{Key: "w", Value: w}, {Key: "n", Value: n}}})
					if err == nil || mongo.IsDuplicateKeyError(err) {
						break
					}
					if ctx.Err() != nil {
						t.Errorf("writer %d at %d: %v", w, n, err)
						return
					}
				}
				mu.Lock()
				acked[[2]int32{w, n}] = true
				mu.Unlock()
			}
		})
	}
	group.Go(func() {
		for i := range 3 {
			if err := s.StepDown(ctx); err != nil {
				t.Errorf("step-down %d: %v", i, err)
			}
		}
		p, err := s.AwaitPrimary(ctx)
		if err == nil {
			err = errors.Join(s.Kill(p), s.Restart(p))
		}
		if err != nil {
			t.Error(err)
		}
	})
	last := [writers]int32{-1, -1, -1}
	for seen := 0; seen < writers*each; seen++ {
		if !cs.Next(ctx) {
			t.Fatalf("after %d events: %v", seen, cs.Err())
		}
		id := cs.Current.Lookup("documentKey", "_id").Document()
		w, n := id.Lookup("w").Int32(), id.Lookup("n").Int32()
		if n != last[w]+1 {
			t.Fatalf("writer %d's event %d came after %d", w, n, last[w])
		}
		last[w] = n
	}
	group.Wait()
	if len(acked) != writers*each {
		t.Errorf("%d writes were acknowledged", len(acked))
	}
	if cs.TryNext(ctx) {
		t.Errorf("an event too many: %v", cs.Current)
	}
}

func TestAMemberThatWasAwayKnowsTheHistory(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	must(t, c.Database("db").CreateCollection(ctx, "c"))
	cs := watch(t, col, nil)
	_, err := col.InsertOne(ctx, bson.M{"_id": -1})
	must(t, err)
	nextEvent(t, cs)
	token := slices.Clone(cs.ResumeToken())
	away := (s.Primary() + 1) % 3
	must(t, s.Kill(away))
	const events = 50
	for i := range events {
		_, err := col.InsertOne(ctx, bson.M{"_id": i})
		must(t, err)
	}
	must(t, s.Restart(away))
	direct := connect(t, s.MemberURI(away), options.Client().SetReadPreference(readpref.SecondaryPreferred()))
	back := direct.Database("db").Collection("c")
	waitFor(t, "the member to catch up", func() bool {
		return back.FindOne(ctx, bson.M{"_id": events - 1}).Err() == nil
	})
	again := watch(t, back, options.ChangeStream().SetResumeAfter(token))
	for i := range int32(events) {
		if e := nextEvent(t, again); e["documentKey"].(bson.D)[0].Value != i {
			t.Fatalf("event %d is about %v", i, e["documentKey"])
		}
	}
}

// A stream that comes back behind the history's beginning is told so, on every member;
// one that comes back to what is left goes on. The history is as long as it was asked
// for, also after a restart.
func TestALostHistoryIsAnError(t *testing.T) {
	const limit, events, pad = 64 << 10, 100, 1 << 10
	inEachForm(t, func(t *testing.T, o replset.Options) {
		o.ChangeHistory = limit
		s, c := start(t, o)
		ctx := within(t)
		col := c.Database("db").Collection("c")
		cs := watch(t, col, nil)
		var tokens []bson.Raw
		for i := range events {
			_, err := col.InsertOne(ctx, bson.M{"_id": i, "pad": strings.Repeat("x", pad)})
			must(t, err)
			nextEvent(t, cs)
			tokens = append(tokens, slices.Clone(cs.ResumeToken()))
		}
		away := (s.Primary() + 1) % 3
		must(t, s.Kill(away))
		must(t, s.Restart(away))
		for i := range 3 {
			direct := connect(t, s.MemberURI(i), options.Client().SetReadPreference(readpref.SecondaryPreferred()))
			on := direct.Database("db").Collection("c")
			resume := func(after bson.Raw) (*mongo.ChangeStream, error) {
				return on.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(after).SetMaxAwaitTime(100*time.Millisecond))
			}
			waitFor(t, "the history to be given up", func() bool {
				cs, err := resume(tokens[events-1-limit/pad])
				if err == nil {
					return cs.Close(ctx) != nil
				}
				var e mongo.CommandError
				if !errors.As(err, &e) || e.Code != 286 || e.Name != "ChangeStreamHistoryLost" || !e.HasErrorLabel("NonResumableChangeStreamError") {
					t.Fatalf("resuming gave %v", err)
				}
				return true
			})
			kept := 0
			for from := range events - 1 {
				cs, err := resume(tokens[from])
				if code(err) == 286 {
					continue
				}
				must(t, err)
				if kept == 0 {
					kept = events - 1 - from
					for want := from + 1; want < events; want++ {
						if e := nextEvent(t, cs); e["documentKey"].(bson.D)[0].Value != int32(want) {
							t.Fatalf("member %d: after event %d came %v", i, want-1, e["documentKey"])
						}
					}
				}
				must(t, cs.Close(ctx))
			}
			if kept < limit/pad/2 || kept > limit/pad {
				t.Errorf("member %d keeps %d events of a little over %d bytes in %d bytes", i, kept, pad, limit)
			}
		}
	})
	if _, err := replset.New(within(t), replset.Options{ChangeHistory: -1}); err == nil {
		t.Error("a negative size was accepted")
	}
}

func TestAStreamWaitsAndWakes(t *testing.T) {
	_, c := start(t, replset.Options{Members: 1})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	cs, err := col.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetMaxAwaitTime(15*time.Second))
	must(t, err)
	got := make(chan bool, 1)
	go func() { got <- cs.Next(ctx) }()
	_, err = col.InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	if !<-got {
		t.Fatalf("a stream that waited did not wake: %v", cs.Err())
	}
	must(t, cs.Close(ctx))
	// Killing a cursor does not wait for whoever waits on it.
	db := c.Database("db")
	var opened struct{ Cursor struct{ ID int64 } }
	sess, err := c.StartSession()
	must(t, err)
	defer sess.EndSession(ctx)
	in := mongo.NewSessionContext(context.Background(), sess)
	must(t, db.RunCommand(in, bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.M{"$changeStream": bson.M{}}}}, {Key: "cursor", Value: bson.M{}}}).Decode(&opened))
	ended := make(chan error, 1)
	go func() {
		ended <- db.RunCommand(in, bson.D{{Key: "getMore", Value: opened.Cursor.ID}, {Key: "collection", Value: "c"}, {Key: "maxTimeMS", Value: 3_600_000}}).Err()
	}()
	other := connect(t, "mongodb://"+strings.TrimPrefix(serverOf(t, c), "mongodb://"))
	must(t, other.Database("db").RunCommand(ctx, bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{opened.Cursor.ID}}}).Err())
	if err := <-ended; code(err) != 237 && code(err) != 43 {
		t.Errorf("the getMore of a killed cursor gave %v", err)
	}
}

// serverOf is the address and the options that a client was connected with.
func serverOf(t *testing.T, c *mongo.Client) string {
	t.Helper()
	var hello struct{ Me string }
	must(t, c.Database("admin").RunCommand(within(t), bson.D{{Key: "hello", Value: 1}}).Decode(&hello))
	return hello.Me + "/?directConnection=true"
}

func TestImagesAreKeptWhereTheyAreAskedFor(t *testing.T) {
	_, c := start(t, replset.Options{Members: 1})
	ctx := within(t)
	db := c.Database("db")
	must(t, db.CreateCollection(ctx, "with", options.CreateCollection().SetChangeStreamPreAndPostImages(bson.M{"enabled": true})))
	for name, images := range map[string]bool{"with": true, "without": false} {
		col := db.Collection(name)
		_, err := col.InsertOne(ctx, bson.M{"_id": 1, "x": 1})
		must(t, err)
		maybe := watch(t, col, options.ChangeStream().SetFullDocument(options.WhenAvailable).SetFullDocumentBeforeChange(options.WhenAvailable))
		lookup := watch(t, col, options.ChangeStream().SetFullDocument(options.UpdateLookup))
		required := watch(t, col, options.ChangeStream().SetFullDocument(options.Required))
		for x := 2; x <= 3; x++ {
			_, err := col.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"x": x}})
			must(t, err)
		}
		e := nextEvent(t, maybe)
		if images != (e["fullDocument"] != nil) || images != (e["fullDocumentBeforeChange"] != nil) {
			t.Errorf("%s: %v", name, e)
		}
		if images {
			if after, before := e["fullDocument"].(bson.D), e["fullDocumentBeforeChange"].(bson.D); after[1].Value != int32(2) || before[1].Value != int32(1) {
				t.Errorf("the images are %v and %v", before, after)
			}
		}
		// The lookup is made when the event is read, which is after both updates.
		if e := nextEvent(t, lookup); e["fullDocument"].(bson.D)[1].Value != int32(3) {
			t.Errorf("%s: looked up %v", name, e["fullDocument"])
		}
		if ok := required.Next(ctx); ok != images {
			t.Errorf("%s: an image that is required: %v, %v", name, ok, required.Err())
		}
	}
}

func TestWhatIsRefusedOfAChangeStream(t *testing.T) {
	s, c := start(t, replset.Options{Members: 1})
	must(t, c.Database("db").CreateView(within(t), "v", "c", bson.A{}))
	stream := func(coll any, db string, spec bson.M, more ...bson.M) bson.D {
		stages := bson.A{bson.M{"$changeStream": spec}}
		for _, m := range more {
			stages = append(stages, m)
		}
		return bson.D{{Key: "aggregate", Value: coll}, {Key: "pipeline", Value: stages}, {Key: "cursor", Value: bson.M{}}, {Key: "$db", Value: db}}
	}
	for _, x := range []struct {
		want int32
		cmd  bson.D
	}{
		{40415, stream("c", "db", bson.M{"fullDocumnet": "default"})},
		{2, stream("c", "db", bson.M{"fullDocument": "all"})},
		{2, stream("c", "db", bson.M{"fullDocumentBeforeChange": "all"})},
		{260, stream("c", "db", bson.M{"resumeAfter": bson.M{"_data": "00"}})},
		{260, stream("c", "db", bson.M{"resumeAfter": bson.M{"x": 1}})},
		{14, stream("c", "db", bson.M{"startAtOperationTime": 1})},
		{72, stream("c", "db", bson.M{"allChangesForCluster": true})},
		{73, stream(1, "admin", bson.M{})},
		{20, stream("c", "db", bson.M{}, bson.M{"$group": bson.M{"_id": 1}})},
		{20, stream("c", "db", bson.M{}, bson.M{"$sort": bson.M{"x": 1}})},
		{40324, stream("c", "db", bson.M{}, bson.M{"$no": 1})},
		{166, stream("v", "db", bson.M{})},
	} {
		if got := raw(t, s.MemberURI(0), x.cmd); got["code"] != x.want {
			t.Errorf("%v gave %v, want code %d", x.cmd, got, x.want)
		}
	}
}
