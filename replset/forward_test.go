package replset_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/assaylab/assay/replset"
)

// aggregate runs a pipeline on c of a database, on the member of that URI whatever it is.
func aggregate(t *testing.T, uri, db string, stages []bson.D, more ...bson.E) bson.M {
	t.Helper()
	cmd := append(bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: stages}, {Key: "cursor", Value: bson.M{}}}, more...)
	return raw(t, uri, append(cmd, bson.E{Key: "$readPreference", Value: bson.M{"mode": "secondaryPreferred"}}, bson.E{Key: "$db", Value: db}))
}

func stage(name string, spec any) bson.D { return bson.D{{Key: name, Value: spec}} }

// secondaryOf is a member that is not the primary, and that has everything the client
// has written.
func secondaryOf(t *testing.T, s *replset.Set, c *mongo.Client) int {
	t.Helper()
	ctx := within(t)
	marks := c.Database("marks").Collection("c")
	id := bson.NewObjectID()
	_, err := marks.InsertOne(ctx, bson.M{"_id": id})
	must(t, err)
	i := (s.Primary() + 1) % 3
	on := connect(t, s.MemberURI(i), options.Client().SetReadPreference(readpref.SecondaryPreferred())).Database("marks").Collection("c")
	waitFor(t, "a secondary to catch up", func() bool { return on.FindOne(ctx, bson.M{"_id": id}).Err() == nil })
	return i
}

// What a pipeline writes, and what its client is told, does not depend on the member
// that runs it.
func TestAPipelineWritesTheSameFromEveryMember(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	merge := func(spec bson.M) []bson.D {
		spec["into"] = "out"
		return []bson.D{stage("$merge", spec)}
	}
	cases := []struct {
		name string
		code int32 // 0: it succeeds
		run  []bson.D
		more []bson.E
	}{
		{"out, new", 0, []bson.D{stage("$match", bson.M{"x": bson.M{"$gt": 2}}), stage("$out", "fresh")}, nil},
		{"out, replaced with its indexes", 0, []bson.D{stage("$out", "out")}, nil},
		{"out, nothing", 0, []bson.D{stage("$match", bson.M{"x": -1}), stage("$out", "out")}, nil},
		{"out, a duplicate", 11000, []bson.D{stage("$set", bson.M{"u": 1}), stage("$out", "out")}, nil},
		{"out, over a view", 166, []bson.D{stage("$out", "v")}, nil},
		{"out, no name", 73, []bson.D{stage("$out", "a$b")}, nil},
		{"merge", 0, []bson.D{stage("$merge", "out")}, nil},
		{"merge, nothing", 0, []bson.D{stage("$match", bson.M{"x": -1}), stage("$merge", "out")}, nil},
		{"merge, replace", 0, merge(bson.M{"whenMatched": "replace"}), nil},
		{"merge, keep and discard", 0, merge(bson.M{"whenMatched": "keepExisting", "whenNotMatched": "discard"}), nil},
		{"merge, fail when matched", 11000, merge(bson.M{"whenMatched": "fail"}), nil},
		{"merge, fail when not", 13113, merge(bson.M{"whenNotMatched": "fail"}), nil},
		{"merge, on a unique field", 0, append([]bson.D{stage("$set", bson.M{"u": "$_id"}), stage("$unset", "_id")}, merge(bson.M{"on": "u"})...), nil},
		{"merge, on another field", 51183, merge(bson.M{"on": "x"}), nil},
		{"merge, on a missing field", 51132, append([]bson.D{stage("$unset", "x")}, merge(bson.M{"on": []string{"_id", "x"}})...), nil},
		{"merge, a pipeline", 0, merge(bson.M{
			"let":         bson.M{"came": "$x"},
			"whenMatched": []bson.D{stage("$set", bson.M{"sum": bson.M{"$add": []string{"$x", "$$came", "$$five"}}, "text": "$$text", "none": "$$none"})},
		}), []bson.E{{Key: "let", Value: bson.D{{Key: "five", Value: bson.M{"$add": []int{2, 3}}}, {Key: "text", Value: bson.M{"$literal": "$x"}}, {Key: "none", Value: "$$REMOVE"}}}}},
		{"merge, refused by the validator", 121, []bson.D{stage("$merge", "strict")}, nil},
		{"merge, past the validator", 0, []bson.D{stage("$merge", "strict")}, []bson.E{{Key: "bypassDocumentValidation", Value: true}}},
		{"merge, w: 3", 0, merge(bson.M{}), []bson.E{{Key: "writeConcern", Value: bson.M{"w": 3}}}},
		{"merge, w: 4", 0, merge(bson.M{}), []bson.E{{Key: "writeConcern", Value: bson.M{"w": 4}}}},
		{"merge, an unknown mode", 0, merge(bson.M{}), []bson.E{{Key: "writeConcern", Value: bson.M{"w": "elsewhere"}}}},
		{"merge with a collation", 238, merge(bson.M{}), []bson.E{{Key: "collation", Value: bson.M{"locale": "de"}}}},
		{"merge read linearizably", 72, merge(bson.M{}), []bson.E{{Key: "readConcern", Value: bson.M{"level": "linearizable"}}}},
		{"merge, unknown option", 40415, merge(bson.M{"how": 1}), nil},
	}
	prepare := func(name string) {
		db := c.Database(name)
		for i := range 5 {
			_, err := db.Collection("c").InsertOne(ctx, bson.M{"_id": i, "x": i, "s": bson.M{"deep": bson.A{i}}})
			must(t, err)
		}
		_, err := db.Collection("out").Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"u": 1}, Options: options.Index().SetUnique(true).SetSparse(true)})
		must(t, err)
		for _, i := range []int{1, 3, 9} {
			_, err := db.Collection("out").InsertOne(ctx, bson.M{"_id": i, "x": 10 * i, "old": true, "u": i})
			must(t, err)
		}
		must(t, db.CreateView(ctx, "v", "c", bson.A{}))
		must(t, db.CreateCollection(ctx, "strict", options.CreateCollection().SetValidator(bson.M{"no": 1})))
	}
	// told is what a client can see of what was done.
	told := func(db string, answer map[string]any) string {
		for _, volatile := range []string{"$clusterTime", "operationTime", "topologyVersion"} {
			delete(answer, volatile)
		}
		state := map[string]any{"answer": answer}
		for _, name := range []string{"out", "fresh", "strict"} {
			var docs, indexes []map[string]any
			cur, err := c.Database(db).Collection(name).Aggregate(ctx, mongo.Pipeline{
				stage("$set", bson.M{"_id": bson.M{"$cond": bson.A{bson.M{"$eq": bson.A{bson.M{"$type": "$_id"}, "objectId"}}, "made", "$_id"}}}),
				stage("$sort", bson.D{{Key: "x", Value: 1}, {Key: "_id", Value: 1}}),
			})
			must(t, err)
			must(t, cur.All(ctx, &docs))
			cur, err = c.Database(db).Collection(name).Indexes().List(ctx)
			must(t, err)
			must(t, cur.All(ctx, &indexes))
			state[name] = []any{docs, indexes}
		}
		return strings.ReplaceAll(fmt.Sprint(state), db+".", "db.")
	}
	for i := range cases {
		prepare(fmt.Sprint("p", i))
		prepare(fmt.Sprint("s", i))
	}
	secondary := s.MemberURI(secondaryOf(t, s, c))
	primary := s.MemberURI(s.Primary())
	for i, x := range cases {
		p, q := fmt.Sprint("p", i), fmt.Sprint("s", i)
		onPrimary, onSecondary := aggregate(t, primary, p, x.run, x.more...), aggregate(t, secondary, q, x.run, x.more...)
		if got, _ := onSecondary["code"].(int32); got != x.code {
			t.Errorf("%s: on a secondary it gave %v, want code %d", x.name, onSecondary, x.code)
		}
		if a, b := told(p, onPrimary), told(q, onSecondary); a != b {
			t.Errorf("%s:\non the primary  %v\non a secondary  %v", x.name, a, b)
		}
	}
}

// The secondary reads, and what the pipeline was told once it is told in all its parts:
// the sessions are those that the secondary knows, and the time is one.
func TestTheSecondaryReadsAndThePrimaryWrites(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	const many = 12_000 // more than two entries
	docs := make([]any, many)
	for i := range docs {
		docs[i] = bson.M{"_id": i}
	}
	db := c.Database("db")
	_, err := db.Collection("c").InsertMany(ctx, docs)
	must(t, err)
	_, err = db.Collection("out").InsertMany(ctx, docs)
	must(t, err)
	sess, in := begin(t, c)
	must(t, db.Collection("c").FindOne(in, bson.M{"_id": 1}).Err())
	i := secondaryOf(t, s, c)
	uri := s.MemberURI(i)

	ids := func(of string) (out []bson.RawValue) {
		cur, err := db.Collection(of).Find(ctx, bson.M{})
		must(t, err)
		var list []bson.Raw
		must(t, cur.All(ctx, &list))
		for _, d := range list {
			out = append(out, d.Lookup("_id", "id"))
		}
		return out
	}
	mine := func(v bson.RawValue) bool { return v.Equal(sess.ID().Lookup("id")) }
	local := func(to string) []bson.D { return []bson.D{stage("$listLocalSessions", bson.M{}), stage("$merge", to)} }
	for to, member := range map[string]int{"of_primary": s.Primary(), "of_secondary": i} {
		id := bson.E{Key: "lsid", Value: bson.M{"id": bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}}
		if got := aggregate(t, s.MemberURI(member), "db", local(to), id); got["ok"] != 1.0 {
			t.Fatalf("%v", got)
		}
		if seen := slices.ContainsFunc(ids(to), mine); seen != (to == "of_primary") {
			t.Errorf("%s: the session with a transaction on the primary is among those listed: %v", to, seen)
		}
	}
	must(t, sess.AbortTransaction(in))

	got := aggregate(t, uri, "db", []bson.D{stage("$set", bson.M{"read": "$$NOW"}), stage("$merge", bson.M{
		"into": "out", "whenMatched": []bson.D{stage("$set", bson.M{"read": "$$new.read", "written": "$$NOW", "cluster": "$$CLUSTER_TIME"})},
	})})
	if got["ok"] != 1.0 {
		t.Fatalf("%v", got)
	}
	for _, field := range []string{"read", "written", "cluster"} {
		var values []any
		must(t, db.Collection("out").Distinct(ctx, field, bson.M{}).Decode(&values))
		if len(values) != 1 {
			t.Errorf("%s has %d values in one pipeline", field, len(values))
		}
	}
	if n, err := db.Collection("out").CountDocuments(ctx, bson.M{"$expr": bson.M{"$eq": bson.A{"$read", "$written"}}}); n != many || err != nil {
		t.Errorf("$$NOW was the same in both parts for %d of %d documents, %v", n, many, err)
	}
	// And a collection that is replaced is one entry, however large.
	cs := watch(t, db, options.ChangeStream().SetShowExpandedEvents(true))
	if got := aggregate(t, uri, "db", []bson.D{stage("$out", "copy")}); got["ok"] != 1.0 {
		t.Fatalf("%v", got)
	}
	times := map[string]int{}
	for range 1 + many { // the collection and its documents
		if !cs.Next(ctx) {
			t.Fatalf("after %v: %v", times, cs.Err())
		}
		times[cs.Current.Lookup("clusterTime").String()]++
	}
	if len(times) != 1 {
		t.Errorf("one $out shows at %v", times)
	}
}

// A driver that prefers secondaries sends such pipelines to them, and a causally
// consistent session reads what it has written, anywhere.
func TestACausalSessionReadsWhatASecondaryHadWritten(t *testing.T) {
	inEachForm(t, func(t *testing.T, o replset.Options) {
		o.Users = map[string]string{"ada": "secret"}
		s := replset.Start(t, o)
		var mu sync.Mutex
		asked := map[string]bool{}
		c := connect(t, s.URI(), options.Client().SetAuth(options.Credential{Username: "ada", Password: "secret"}).SetMonitor(&event.CommandMonitor{
			Started: func(_ context.Context, e *event.CommandStartedEvent) {
				if e.CommandName == "aggregate" {
					mu.Lock()
					defer mu.Unlock()
					asked[strings.Split(e.ConnectionID, "[")[0]] = true
				}
			},
		}))
		ctx := within(t)
		p := s.Primary()
		must(t, c.Ping(ctx, readpref.Secondary()))
		sess, err := c.StartSession()
		must(t, err)
		defer sess.EndSession(ctx)
		causal := mongo.NewSessionContext(ctx, sess)
		db := c.Database("db")
		from := db.Collection("c", options.Collection().SetReadPreference(readpref.Secondary()))
		for i := range 10 {
			_, err := db.Collection("c").InsertOne(causal, bson.M{"_id": i})
			must(t, err)
			_, err = from.Aggregate(causal, mongo.Pipeline{stage("$merge", "out")})
			must(t, err)
			for _, where := range []*readpref.ReadPref{readpref.Primary(), readpref.Secondary()} {
				if err := db.Collection("out", options.Collection().SetReadPreference(where)).FindOne(causal, bson.M{"_id": i}).Err(); err != nil {
					t.Errorf("document %d on a %v: %v", i, where.Mode(), err)
				}
			}
		}
		if len(asked) == 0 || asked[addrOf(t, s, p)] && s.Primary() == p {
			t.Errorf("the driver asked %v, of which %s is primary", asked, addrOf(t, s, p))
		}
		// What members ask each other is nothing for clients.
		if err := db.RunCommand(ctx, bson.D{{Key: "forwarded", Value: 1}}).Err(); code(err) != 59 {
			t.Errorf("a client's forwarded gave %v", err)
		}
	})
}

func TestASecondaryThatKnowsNoPrimarySaysSo(t *testing.T) {
	s, c := start(t, replset.Options{})
	_, err := c.Database("db").Collection("c").InsertOne(within(t), bson.M{"_id": 1})
	must(t, err)
	uri := s.MemberURI(secondaryOf(t, s, c))
	must(t, s.Partition([]int{0}, []int{1}, []int{2}))
	waitFor(t, "everybody to be alone", func() bool { return s.Primary() < 0 })
	waitFor(t, "the secondary to say so", func() bool {
		got := aggregate(t, uri, "db", []bson.D{stage("$merge", "out")})
		switch got["code"] {
		case int32(189): // and nothing was sent
			return true
		case int32(6), int32(10107): // it takes a while to notice
			return false
		}
		t.Fatalf("it gave %v", got)
		return false
	})
	must(t, s.Heal())
}

// What was asked of a primary ends with its term, with the client's patience, and with
// the wait that the client asked for; and the client is told which it was.
func TestAForwardedWriteEnds(t *testing.T) {
	waiting := func(t *testing.T) (s *replset.Set, c *mongo.Client, run func(more ...bson.E) chan bson.M, free func()) {
		s, c = start(t, replset.Options{})
		ctx := within(t)
		for _, name := range []string{"c", "out"} {
			_, err := c.Database("db").Collection(name).InsertOne(ctx, bson.M{"_id": 1, "from": name})
			must(t, err)
		}
		// A transaction that has written the document holds it.
		sess, in := begin(t, c)
		_, err := c.Database("db").Collection("out").UpdateOne(in, bson.M{"_id": 1}, bson.M{"$set": bson.M{"held": true}})
		must(t, err)
		uri := s.MemberURI(secondaryOf(t, s, c))
		run = func(more ...bson.E) chan bson.M {
			got := make(chan bson.M, 1)
			go func() { got <- aggregate(t, uri, "db", []bson.D{stage("$merge", "out")}, more...) }()
			return got
		}
		return s, c, run, func() { _ = sess.AbortTransaction(in) }
	}
	still := func(t *testing.T, got chan bson.M) {
		t.Helper()
		select {
		case m := <-got:
			t.Fatalf("it did not wait for the document: %v", m)
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Run("when the document is free", func(t *testing.T) {
		_, c, run, free := waiting(t)
		got := run()
		still(t, got)
		free()
		if m := <-got; m["ok"] != 1.0 || m["writeConcernError"] != nil {
			t.Errorf("it gave %v", m)
		}
		must(t, c.Database("db").Collection("out").FindOne(within(t), bson.M{"_id": 1, "from": "c", "held": nil}).Err())
	})
	t.Run("with the client's patience", func(t *testing.T) {
		s, c, run, free := waiting(t)
		if m := <-run(bson.E{Key: "maxTimeMS", Value: 100}); m["code"] != int32(50) {
			t.Errorf("it gave %v", m)
		}
		// Others wait behind it, if it still waits.
		for range 3 {
			got := raw(t, s.MemberURI(s.Primary()), bson.D{{Key: "findAndModify", Value: "out"}, {Key: "query", Value: bson.M{"_id": 1}}, {Key: "remove", Value: true}, {Key: "maxTimeMS", Value: 100}})
			if got["code"] != int32(50) {
				t.Fatalf("the document was not held: %v", got)
			}
		}
		free()
		must(t, c.Database("db").Collection("out").FindOneAndUpdate(within(t), bson.M{"_id": 1, "from": "out"}, bson.M{"$set": bson.M{"after": true}}).Err())
	})
	for what, over := range map[string]func(*replset.Set) error{
		"when the primary steps down": func(s *replset.Set) error { return s.StepDown(context.Background()) },
		"when the primary dies":       func(s *replset.Set) error { return s.Kill(s.Primary()) },
		"when the primary is cut off": func(s *replset.Set) error { return s.Isolate(s.Primary()) },
	} {
		t.Run(what, func(t *testing.T) {
			s, _, run, _ := waiting(t)
			got := run()
			still(t, got)
			must(t, over(s))
			if m := <-got; m["code"] != int32(189) && m["code"] != int32(11602) && m["code"] != int32(10107) {
				t.Errorf("it gave %v", m)
			}
			must(t, s.Heal())
		})
	}
	t.Run("when copies are not to be had", func(t *testing.T) {
		s, c, run, free := waiting(t)
		free()
		p := s.Primary()
		i := secondaryOf(t, s, c)
		must(t, s.Kill(3-p-i))
		m := <-run(bson.E{Key: "writeConcern", Value: bson.M{"w": 3, "wtimeout": 50}})
		wc, _ := m["writeConcernError"].(bson.D)
		if m["ok"] != 1.0 || !strings.Contains(fmt.Sprint(wc), "64") || !strings.Contains(fmt.Sprint(wc), "errInfo") {
			t.Errorf("it gave %v", m)
		}
		must(t, c.Database("db").Collection("out").FindOne(within(t), bson.M{"_id": 1, "from": "c"}).Err())
	})
}

// Large merges from a secondary while leadership moves: each ends as one that succeeded
// or says that it may not have, and one that is repeated until it succeeds is complete.
func TestAMergeIsRepeatedThroughFailovers(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	const many = 6_000
	docs := make([]any, many)
	for i := range docs {
		docs[i] = bson.M{"_id": i}
	}
	db := c.Database("db")
	_, err := db.Collection("c").InsertMany(ctx, docs)
	must(t, err)
	from := connect(t, s.MemberURI(secondaryOf(t, s, c)), options.Client().SetReadPreference(readpref.SecondaryPreferred()), options.Client().SetTimeout(0)).Database("db").Collection("c")
	var group sync.WaitGroup
	moved := make(chan struct{})
	group.Go(func() {
		defer close(moved)
		for i := range 3 {
			if err := s.StepDown(ctx); err != nil {
				t.Errorf("step-down %d: %v", i, err)
			}
		}
	})
	for done, tries := false, 0; ; tries++ {
		_, err := from.Aggregate(ctx, mongo.Pipeline{stage("$set", bson.M{"try": tries}), stage("$merge", "out")})
		switch code(err) {
		case 0, 6, 189, 10107, 11602:
		default:
			t.Fatalf("try %d: %v", tries, err)
		}
		if err == nil && done {
			n, err := db.Collection("out").CountDocuments(ctx, bson.M{"try": tries})
			if n != many || err != nil {
				t.Errorf("a merge of %d documents that succeeded wrote %d, %v", many, n, err)
			}
			t.Logf("%d tries", tries+1)
			break
		}
		must(t, ctx.Err())
		select {
		case <-moved:
			done = true
		default:
		}
	}
	group.Wait()
}
