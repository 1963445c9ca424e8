package replset_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/assaylab/assay/replset"
)

func code(err error) int {
	var e mongo.CommandError
	if errors.As(err, &e) {
		return int(e.Code)
	}
	return 0
}

func begin(t *testing.T, c *mongo.Client) (*mongo.Session, context.Context) {
	t.Helper()
	s, err := c.StartSession()
	must(t, err)
	t.Cleanup(func() { s.EndSession(context.Background()) })
	must(t, s.StartTransaction())
	return s, mongo.NewSessionContext(within(t), s)
}

func TestATransactionIsAllOrNothing(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertMany(ctx, []any{bson.M{"_id": 1, "n": 0}, bson.M{"_id": 2, "n": 0}})
	must(t, err)
	for _, commit := range []bool{false, true} {
		s, tx := begin(t, c)
		_, err = col.UpdateOne(tx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 1}})
		must(t, err)
		_, err = col.InsertOne(tx, bson.M{"_id": 3})
		must(t, err)
		_, err = col.DeleteOne(tx, bson.M{"_id": 2})
		must(t, err)
		inside, err := col.Find(tx, bson.M{}, options.Find().SetSort(bson.M{"_id": 1}))
		must(t, err)
		var seen []bson.M
		must(t, inside.All(tx, &seen))
		if len(seen) != 2 || seen[0]["n"] != int32(1) || seen[1]["_id"] != int32(3) {
			t.Errorf("the transaction sees %v of its own", seen)
		}
		n, err := col.CountDocuments(ctx, bson.M{"n": 0})
		must(t, err)
		if n != 2 {
			t.Errorf("others see a transaction that is open: %d", n)
		}
		want := int64(2)
		if commit {
			must(t, s.CommitTransaction(tx))
			want = 0
		} else {
			must(t, s.AbortTransaction(tx))
		}
		n, err = col.CountDocuments(ctx, bson.M{"n": 0})
		must(t, err)
		if n != want {
			t.Errorf("commit %v: %d documents are as before", commit, n)
		}
	}
}

func TestTheFirstUpdaterWins(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1, "n": 0})
	must(t, err)
	inc := bson.M{"$inc": bson.M{"n": 1}}

	a, ta := begin(t, c)
	_, tb := begin(t, c)
	_, err = col.UpdateOne(ta, bson.M{"_id": 1}, inc)
	must(t, err)
	_, err = col.UpdateOne(tb, bson.M{"_id": 1}, inc)
	var e mongo.CommandError
	if !errors.As(err, &e) || e.Code != 112 || !e.HasErrorLabel("TransientTransactionError") {
		t.Errorf("the second updater got %v", err)
	}

	// A plain write waits until the transaction ends.
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := col.UpdateOne(ctx, bson.M{"_id": 1}, inc); err != nil {
			t.Error(err)
		}
	})
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	// Whether the server gave up too before the latch came free is open.
	if _, err = col.UpdateOne(short, bson.M{"_id": 1}, bson.M{"$set": bson.M{"maybe": 1}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a plain write did not wait for an open transaction: %v", err)
	}
	must(t, a.CommitTransaction(ta))
	group.Wait()
	var d struct{ N int }
	must(t, col.FindOne(ctx, bson.M{"_id": 1}).Decode(&d))
	if d.N != 2 {
		t.Errorf("the document counts %d, want 2", d.N)
	}

	// So it is with a document that changed after the snapshot.
	_, tc := begin(t, c)
	must(t, col.FindOne(tc, bson.M{"_id": 1}).Err())
	_, err = col.UpdateOne(ctx, bson.M{"_id": 1}, inc)
	must(t, err)
	var old struct{ N int }
	must(t, col.FindOne(tc, bson.M{"_id": 1}).Decode(&old))
	if old.N != 2 {
		t.Errorf("a snapshot moved: %d", old.N)
	}
	if _, err = col.UpdateOne(tc, bson.M{"_id": 1}, inc); code(err) != 112 {
		t.Errorf("writing over what changed since the snapshot gave %v", err)
	}
}

func TestTransfersKeepTheSum(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	const accounts, workers, rounds = 5, 4, 10
	for i := range accounts {
		_, err := col.InsertOne(ctx, bson.M{"_id": i, "n": 100})
		must(t, err)
	}
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			sess, err := c.StartSession()
			if err != nil {
				t.Error(err)
				return
			}
			defer sess.EndSession(ctx)
			for r := range rounds {
				from, to := (w+r)%accounts, (w+3*r+1)%accounts
				if from == to {
					continue
				}
				_, err := sess.WithTransaction(ctx, func(tx context.Context) (any, error) {
					for id, by := range map[int]int{from: -1, to: 1} {
						if _, err := col.UpdateOne(tx, bson.M{"_id": id}, bson.M{"$inc": bson.M{"n": by}}); err != nil {
							return nil, err
						}
					}
					return nil, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	must(t, s.StepDown(ctx))
	group.Wait()
	cur, err := col.Aggregate(ctx, bson.A{bson.M{"$group": bson.M{"_id": nil, "n": bson.M{"$sum": "$n"}}}})
	must(t, err)
	var sum []struct{ N int }
	must(t, cur.All(ctx, &sum))
	if len(sum) != 1 || sum[0].N != 100*accounts {
		t.Errorf("the sum is %v", sum)
	}
}

func TestAFailoverEndsTransactions(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	_, tx := begin(t, c)
	_, err = col.InsertOne(tx, bson.M{"_id": 2})
	must(t, err)
	must(t, s.StepDown(ctx))
	waitFor(t, "the end of the transaction", func() bool {
		_, err = col.InsertOne(tx, bson.M{"_id": 3})
		return code(err) == 251
	})
	var e mongo.CommandError
	if !errors.As(err, &e) || !e.HasErrorLabel("TransientTransactionError") {
		t.Errorf("it ended with %v", err)
	}
	n, err := col.CountDocuments(ctx, bson.M{})
	must(t, err)
	if n != 1 {
		t.Errorf("%d documents are left of an open transaction", n-1)
	}
}

func TestATransactionThatTakesTooLongEnds(t *testing.T) {
	_, c := start(t, replset.Options{TransactionLifetime: 50 * time.Millisecond})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	_, tx := begin(t, c)
	_, err = col.UpdateOne(tx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"n": 1}})
	must(t, err)
	// This one waits for the latch, which comes free when the transaction is ended.
	_, err = col.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"n": 2}})
	must(t, err)
	if err = col.FindOne(tx, bson.M{"_id": 1}).Err(); code(err) != 251 {
		t.Errorf("afterwards it answers %v", err)
	}
}

// TestAnAbortThatOvertakesTheStartEndsIt is a client that gives up while its first
// statement is on the way: the abort takes another connection and may be faster. The
// transaction would keep its documents from others for its whole lifetime.
func TestAnAbortThatOvertakesTheStartEndsIt(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	session := bson.E{Key: "lsid", Value: bson.M{"id": bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}}
	of := func(number int64) []bson.E {
		return []bson.E{session, {Key: "txnNumber", Value: number}, {Key: "autocommit", Value: false}}
	}
	update := func(number int64) bson.D {
		cmd := bson.D{
			{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.M{"q": bson.M{"_id": 1}, "u": bson.M{"$set": bson.M{"n": number}}}}},
			{Key: "startTransaction", Value: true},
		}
		return append(cmd, of(number)...)
	}
	end := func(name string, number int64) bson.D {
		return append(append(bson.D{{Key: name, Value: 1}}, of(number)...), bson.E{Key: "$db", Value: "admin"})
	}
	uri := s.MemberURI(s.Primary())
	if got := raw(t, uri, end("abortTransaction", 5)); got["code"] != int32(251) {
		t.Errorf("the abort gave %v", got)
	}
	if got := raw(t, uri, update(5)); got["ok"] != 0.0 {
		t.Errorf("the start gave %v", got)
	}
	// It would wait for the transaction.
	_, err = col.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"n": 0}})
	must(t, err)
	// The session is as good as before.
	if got := raw(t, uri, update(6)); got["ok"] != 1.0 {
		t.Fatalf("the next start gave %v", got)
	}
	if got := raw(t, uri, end("commitTransaction", 6)); got["ok"] != 1.0 {
		t.Errorf("its commit gave %v", got)
	}
}

// raw sends a command as it is, without what the driver would add.
func raw(t *testing.T, uri string, cmd bson.D) bson.M {
	t.Helper()
	addr := strings.TrimSuffix(strings.TrimPrefix(uri, "mongodb://"), "/?directConnection=true")
	nc, err := net.Dial("tcp", addr)
	must(t, err)
	defer nc.Close()
	must(t, nc.SetDeadline(time.Now().Add(patience)))
	if cmd[len(cmd)-1].Key != "$db" {
		cmd = append(cmd, bson.E{Key: "$db", Value: "db"})
	}
	body, err := bson.Marshal(cmd)
	must(t, err)
	at, msg := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpMsg)
	msg = wiremessage.AppendMsgFlags(msg, 0)
	msg = wiremessage.AppendMsgSectionType(msg, wiremessage.SingleDocument)
	msg = append(msg, body...)
	_, err = nc.Write(bsoncore.UpdateLength(msg, at, int32(len(msg))))
	must(t, err)
	head := make([]byte, 16)
	_, err = io.ReadFull(nc, head)
	must(t, err)
	rest := make([]byte, binary.LittleEndian.Uint32(head)-16)
	_, err = io.ReadFull(nc, rest)
	must(t, err)
	var out bson.M
	must(t, bson.Unmarshal(rest[5:], &out))
	return out
}

func TestARepeatedStatementIsExecutedOnce(t *testing.T) {
	s := replset.Start(t, replset.Options{})
	ctx := within(t)
	inc := func(number int64) bson.D {
		return bson.D{
			{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.M{"_id": 1}}, {Key: "update", Value: bson.M{"$inc": bson.M{"n": 1}}},
			{Key: "upsert", Value: true}, {Key: "new", Value: true}, {Key: "txnNumber", Value: number},
			{Key: "lsid", Value: bson.M{"id": bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}},
		}
	}
	value := func(answer bson.M) any {
		d, _ := answer["value"].(bson.D)
		if len(d) < 2 {
			return nil
		}
		return d[1].Value
	}
	for attempt := range 3 {
		// Each attempt asks another primary.
		uri := s.MemberURI(s.Primary())
		got := raw(t, uri, inc(5))
		if value(got) != int32(1) || attempt > 0 && got["retriedStmtIds"] == nil {
			t.Errorf("attempt %d gave %v", attempt, got)
		}
		if attempt == 2 {
			if got := raw(t, uri, inc(4)); got["code"] != int32(225) {
				t.Errorf("an older number gave %v", got)
			}
			if got := raw(t, uri, inc(6)); value(got) != int32(2) {
				t.Errorf("a newer number gave %v", got)
			}
		}
		must(t, s.StepDown(ctx))
	}
}

// Whoever kills all sessions may meet those that wait for a transaction of another
// before that one.
func TestAllSessionsAreKilledThoughSomeWaitForOthers(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1, "n": 0})
	must(t, err)
	const waiting = 6
	sessions := make([]context.Context, waiting)
	for i := range sessions {
		s, tx := begin(t, c)
		_, err = col.InsertOne(tx, bson.M{"_id": 10 + i})
		must(t, err)
		must(t, s.CommitTransaction(tx))
		sessions[i] = mongo.NewSessionContext(ctx, s)
	}
	_, tx := begin(t, c)
	_, err = col.UpdateOne(tx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 1}})
	must(t, err)
	written := make(chan error, waiting)
	for _, s := range sessions {
		go func() {
			_, err := col.UpdateOne(s, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 1}})
			written <- err
		}()
	}
	must(t, c.Database("admin").RunCommand(ctx, bson.D{{Key: "killAllSessions", Value: bson.A{}}}).Err())
	for range sessions {
		must(t, <-written)
	}
	var d bson.M
	must(t, col.FindOne(ctx, bson.M{"_id": 1}).Decode(&d))
	if d["n"] != int32(waiting) {
		t.Errorf("after the transaction was killed n is %v, want %d", d["n"], waiting)
	}
}
