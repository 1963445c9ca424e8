package replset_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/assaylab/assay/replset"
)

func TestAWriteConcernThatFailsSaysSo(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	db := c.Database("db")
	must(t, db.CreateCollection(ctx, "c"))
	insert := func(wc bson.M) (answer struct {
		N                 int
		WriteConcernError struct {
			Code    int
			ErrInfo struct{ Wtimeout bool }
		}
	}) {
		t.Helper()
		cmd := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"x": 1}}}, {Key: "writeConcern", Value: wc}}
		r := db.RunCommand(ctx, cmd)
		must(t, bson.Unmarshal(mustRaw(t, r), &answer))
		return answer
	}
	if got := insert(bson.M{"w": 3}); got.N != 1 || got.WriteConcernError.Code != 0 {
		t.Errorf("w: 3 of three members gave %+v", got)
	}
	if got := insert(bson.M{"w": 4}); got.N != 1 || got.WriteConcernError.Code != 100 {
		t.Errorf("w: 4 of three members gave %+v", got)
	}
	if got := insert(bson.M{"w": "elsewhere"}); got.WriteConcernError.Code != 79 {
		t.Errorf("an unknown mode gave %+v", got)
	}
	p := s.Primary()
	must(t, s.Kill((p+1)%3))
	if got := insert(bson.M{"w": "majority"}); got.N != 1 || got.WriteConcernError.Code != 0 {
		t.Errorf("a majority of two gave %+v", got)
	}
	if got := insert(bson.M{"w": 3, "wtimeout": 30}); got.N != 1 || got.WriteConcernError.Code != 64 || !got.WriteConcernError.ErrInfo.Wtimeout {
		t.Errorf("w: 3 of two members gave %+v", got)
	}
	must(t, s.Pause((p+2)%3))
	if got := insert(bson.M{"w": "majority", "wtimeout": 30}); got.N != 1 || got.WriteConcernError.Code != 64 {
		t.Errorf("a majority that is not there gave %+v", got)
	}
	must(t, s.Resume((p+2)%3))
	// What timed out is under way and gets there.
	waitFor(t, "all six documents", func() bool {
		n, err := db.Collection("c").CountDocuments(ctx, bson.M{})
		return err == nil && n == 6
	})
}

// mustRaw is the answer to a command, also where the driver makes an error of a
// write concern that failed.
func mustRaw(t *testing.T, r *mongo.SingleResult) bson.Raw {
	t.Helper()
	b, err := r.Raw()
	var e mongo.CommandError
	if errors.As(err, &e) && len(e.Raw) > 0 {
		return e.Raw
	}
	if len(b) == 0 {
		must(t, err)
	}
	return b
}

func TestALinearizableReadNeedsAMajority(t *testing.T) {
	for _, byWrite := range []bool{false, true} {
		t.Run(fmt.Sprint(byWrite), func(t *testing.T) {
			s, c := start(t, replset.Options{LinearizableByWrite: byWrite})
			ctx := within(t)
			_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{"_id": 1})
			must(t, err)
			linear := options.Collection().SetReadConcern(readconcern.Linearizable())
			must(t, c.Database("db").Collection("c", linear).FindOne(ctx, bson.M{"_id": 1}).Err())

			p := s.Primary()
			direct := connect(t, s.MemberURI(p))
			find := bson.D{{Key: "find", Value: "c"}, {Key: "readConcern", Value: bson.M{"level": "linearizable"}}, {Key: "$readPreference", Value: bson.M{"mode": "secondary"}}}
			if got := raw(t, s.MemberURI((p+1)%3), find); got["code"] != int32(10107) {
				t.Errorf("a secondary answered by %v", got)
			}
			must(t, s.Partition([]int{p}))
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := direct.Database("db").Collection("c", linear).FindOne(short, bson.M{"_id": 1}).Err(); err == nil {
				t.Error("a primary without a majority read linearizably")
			}
			must(t, s.Heal())
		})
	}
}

func TestRolesDecideWhoAnswers(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	p := s.Primary()
	uri := s.MemberURI((p + 1) % 3)
	if got := raw(t, uri, bson.D{{Key: "find", Value: "c"}}); got["code"] != int32(13435) || got["topologyVersion"] == nil {
		t.Errorf("a secondary answered a plain find by %v", got)
	}
	if got := raw(t, uri, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{}}}}); got["code"] != int32(10107) {
		t.Errorf("a secondary answered an insert by %v", got)
	}
	secondary := c.Database("db").Collection("c", options.Collection().SetReadPreference(readpref.Secondary()))
	waitFor(t, "the document on a secondary", func() bool { return secondary.FindOne(ctx, bson.M{"_id": 1}).Err() == nil })
	sess, err := c.StartSession() // causally consistent
	must(t, err)
	defer sess.EndSession(ctx)
	causal := mongo.NewSessionContext(ctx, sess)
	for i := range 20 {
		_, err := c.Database("db").Collection("c").InsertOne(causal, bson.M{"_id": 100 + i})
		must(t, err)
		must(t, secondary.FindOne(causal, bson.M{"_id": 100 + i}).Err())
	}
}

func TestNestingHasALimit(t *testing.T) {
	s, c := start(t, replset.Options{Members: 1})
	// Built from the inside: each level is a length, one element, and an end.
	const levels = 50_000
	const size = 8*levels + 5
	b := make([]byte, size)
	for i := range levels {
		at, length := 7*i, size-8*i
		binary.LittleEndian.PutUint32(b[at:], uint32(length))
		b[at+4], b[at+5], b[at+6] = 3, 'a', 0
	}
	binary.LittleEndian.PutUint32(b[7*levels:], 5)
	deep := bson.Raw(b)
	for _, cmd := range []bson.D{
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{deep}}},
		{{Key: "find", Value: "c"}, {Key: "filter", Value: deep}},
	} {
		if got := raw(t, s.MemberURI(0), cmd); got["code"] != int32(15) {
			t.Errorf("a document of %d levels gave %v", levels, got["code"])
		}
	}
	must(t, c.Ping(within(t), nil))
}

func TestAFailPointFires(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	set := func(data bson.M) {
		t.Helper()
		must(t, c.Database("admin").RunCommand(ctx, bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.M{"times": 1}}, {Key: "data", Value: data}}).Err())
	}
	set(bson.M{"failCommands": bson.A{"insert"}, "errorCode": 10107, "errorLabels": bson.A{}})
	if _, err := col.InsertOne(ctx, bson.M{"_id": 1}); code(err) != 10107 {
		t.Errorf("the fail point gave %v", err)
	}
	set(bson.M{"failCommands": bson.A{"insert"}, "closeConnection": true})
	_, err := col.InsertOne(ctx, bson.M{"_id": 1}) // retried by the driver
	must(t, err)
	set(bson.M{"failCommands": bson.A{"find"}, "errorCode": 2})
	must(t, s.Clean(ctx))
	if err := col.FindOne(ctx, bson.M{}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Errorf("after Clean, find gave %v", err)
	}
}

func TestCursorsSurviveAStepDown(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	for i := range 10 {
		_, err := col.InsertOne(ctx, bson.M{"_id": i})
		must(t, err)
	}
	cur, err := col.Find(ctx, bson.M{}, options.Find().SetBatchSize(2))
	must(t, err)
	if !cur.Next(ctx) {
		t.Fatal(cur.Err())
	}
	must(t, s.StepDown(ctx))
	clientKnows(t, c)
	_, err = col.DeleteMany(ctx, bson.M{})
	must(t, err)
	rest := 0
	for cur.Next(ctx) {
		rest++
	}
	must(t, cur.Err())
	if rest != 9 {
		t.Errorf("the cursor gave %d of 9 documents", rest)
	}
}

func TestIndexesAreUsed(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	var docs []any
	for i := range 100 {
		docs = append(docs, bson.M{"_id": i, "a": i % 10, "b": i, "tags": bson.A{i % 3, i % 7}, "n": bson.A{bson.M{"x": i % 5, "y": i % 4}, bson.M{"x": i % 3, "y": i % 2}}})
	}
	_, err := col.InsertMany(ctx, docs)
	must(t, err)
	queries := []struct {
		filter, sort bson.D
		index        string
	}{
		{bson.D{{Key: "a", Value: 3}}, nil, "a_1_b_-1"},
		{bson.D{{Key: "a", Value: 3}, {Key: "b", Value: bson.M{"$gte": 20, "$lt": 60}}}, bson.D{{Key: "b", Value: 1}}, "a_1_b_-1"},
		{bson.D{{Key: "a", Value: bson.M{"$in": bson.A{1, 5, 77}}}}, bson.D{{Key: "a", Value: -1}, {Key: "b", Value: 1}}, "a_1_b_-1"},
		{bson.D{{Key: "tags", Value: 2}}, nil, "tags_1"},
		{bson.D{{Key: "tags", Value: bson.M{"$gt": 1, "$lt": 4}}}, bson.D{{Key: "tags", Value: 1}, {Key: "_id", Value: 1}}, "tags_1"},
		{bson.D{{Key: "n.x", Value: 4}, {Key: "n.y", Value: 1}}, nil, "n.x_1_n.y_1"},
		{bson.D{{Key: "_id", Value: bson.M{"$gt": 90}}}, bson.D{{Key: "_id", Value: -1}}, "_id_"},
		{bson.D{{Key: "q", Value: nil}}, nil, ""},
	}
	run := func(f, s bson.D) string {
		if s == nil {
			s = bson.D{{Key: "_id", Value: 1}}
		}
		cur, err := col.Find(ctx, f, options.Find().SetSort(s).SetProjection(bson.M{"_id": 1}))
		must(t, err)
		var out []struct {
			ID int `bson:"_id"`
		}
		must(t, cur.All(ctx, &out))
		return fmt.Sprint(out)
	}
	var before []string
	for _, q := range queries {
		before = append(before, run(q.filter, q.sort))
	}
	for _, keys := range []bson.D{{{Key: "a", Value: 1}, {Key: "b", Value: -1}}, {{Key: "tags", Value: 1}}, {{Key: "n.x", Value: 1}, {Key: "n.y", Value: 1}}} {
		_, err := col.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: keys})
		must(t, err)
	}
	for i, q := range queries {
		if got := run(q.filter, q.sort); got != before[i] {
			t.Errorf("%v sorted by %v gives %s with indexes, %s without", q.filter, q.sort, got, before[i])
		}
		find := bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: q.filter}}
		var plan struct {
			QueryPlanner struct {
				WinningPlan struct {
					Stage      string
					InputStage struct{ IndexName string }
				}
			}
		}
		must(t, c.Database("db").RunCommand(ctx, bson.D{{Key: "explain", Value: find}}).Decode(&plan))
		if got := plan.QueryPlanner.WinningPlan.InputStage.IndexName; got != q.index {
			t.Errorf("%v uses the index %q, want %q", q.filter, got, q.index)
		}
	}
}
