package authority

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/assaylab/assay/replset"
)

func TestReadsWhatWasWritten(t *testing.T) {
	set := startSet(t, replset.Options{})
	for _, layout := range []Layout{Standard, CSharpLegacy} {
		o := Options{Layout: layout}
		coll := people(t, set.URI())
		r, w, id := readerOf(t, coll, o), writerOf(t, coll, o), newID()
		rec, err := r.Read(within(t, generous), id)
		if err != nil || rec.Found || rec.Has("admin") || rec.ID != id {
			t.Fatalf("layout %d: nobody there: %+v, %v", layout, rec, err)
		}
		rev := grant(t, w, id, "admin", "reviewer")
		if rec, err = r.Read(within(t, generous), id); err != nil || rec.Revision != rev || !rec.Has("admin") || !rec.Has("reviewer") {
			t.Fatalf("layout %d: after two grants: %+v, %v", layout, rec, err)
		}
		if o, err := w.Revoke(within(t, generous), id, "admin", rev); o != Applied {
			t.Fatalf("revoke: %v, %v", o, err)
		}
		if rec, err = r.Read(within(t, generous), id); err != nil || rec.Revision != rev+1 || rec.Has("admin") || !rec.Has("reviewer") {
			t.Fatalf("layout %d: after the revoke: %+v, %v", layout, rec, err)
		}
		other := readerOf(t, coll, Options{Layout: 1 - layout})
		if rec, err := other.Read(within(t, generous), id); err != nil || rec.Found {
			t.Fatalf("the other layout finds somebody: %+v, %v", rec, err)
		}
	}
}

// TestTheCommandOnTheWire looks at what is really sent, whatever the collection, the
// client and the context say.
func TestTheCommandOnTheWire(t *testing.T) {
	set := startSet(t, replset.Options{})
	var sent wire
	weak := options.Client().SetReadConcern(readconcern.Local()).SetReadPreference(readpref.SecondaryPreferred())
	coll := people(t, set.URI(), sent.monitor(), weak).Clone(options.Collection().SetReadConcern(readconcern.Available()).SetReadPreference(readpref.Nearest()))
	sess, err := coll.Database().Client().StartSession()
	must(t, err)
	defer sess.EndSession(context.Background())
	must(t, sess.StartTransaction())
	causal := mongo.NewSessionContext(within(t, generous), sess)

	contexts := map[string]context.Context{"plain": context.Background(), "with a transaction": causal, "short": within(t, 2*time.Second)}
	for name, ctx := range contexts {
		before := len(sent.commands("find"))
		_, err := readerOf(t, coll, Options{}).Read(ctx, newID())
		must(t, err)
		finds := sent.commands("find")[before:]
		if len(finds) != 1 {
			t.Fatalf("%s: %d commands for one read", name, len(finds))
		}
		c := finds[0]
		if level, _ := c.Lookup("readConcern", "level").StringValueOK(); level != "linearizable" {
			t.Errorf("%s: read concern %q", name, level)
		}
		if mode, ok := c.Lookup("$readPreference", "mode").StringValueOK(); ok && mode != "primary" {
			t.Errorf("%s: read preference %q", name, mode)
		}
		ms, ok := c.Lookup("maxTimeMS").AsInt64OK()
		if !ok || ms < 1 || ms > DefaultDeadline.Milliseconds() {
			t.Errorf("%s: maxTimeMS %d, %v", name, ms, ok)
		}
		if name == "short" && ms > 2000 {
			t.Errorf("maxTimeMS %d is beyond the caller's own deadline", ms)
		}
		for _, key := range []string{"txnNumber", "startTransaction", "autocommit"} {
			if _, err := c.LookupErr(key); err == nil {
				t.Errorf("%s: the read is part of a transaction", name)
			}
		}
		if _, err := c.LookupErr("readConcern", "afterClusterTime"); err == nil {
			t.Errorf("%s: the read is causal", name)
		}
		if n, _ := c.Lookup("limit").AsInt64OK(); n != 1 {
			t.Errorf("%s: limit %d", name, n)
		}
	}
}

func TestAWrongDocumentInTheSetIsRefused(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI())
	r := readerOf(t, coll, Options{})
	for name, rest := range map[string]bson.D{
		"no fields":       {},
		"roles as text":   {{Key: "revision", Value: int64(1)}, {Key: "roles", Value: "admin"}},
		"double revision": {{Key: "revision", Value: 1.5}, {Key: "roles", Value: bson.A{"admin"}}},
		"a number":        {{Key: "revision", Value: int64(1)}, {Key: "roles", Value: bson.A{"admin", 7}}},
	} {
		id := newID()
		_, err := coll.InsertOne(within(t, generous), append(bson.D{{Key: "_id", Value: Standard.Binary(id)}}, rest...))
		must(t, err)
		rec, err := r.Read(within(t, generous), id)
		refused(t, err, Malformed)
		if rec.Found || rec.Has("admin") {
			t.Errorf("%s: a refusal came with a record: %+v", name, rec)
		}
	}
}

func TestServerErrorsAreRefusals(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI(), options.Client().SetRetryReads(false))
	r, w, id := readerOf(t, coll, Options{}), writerOf(t, coll, Options{}), newID()
	grant(t, w, id, "admin")
	p, err := set.AwaitPrimary(within(t, generous))
	must(t, err)
	for code, want := range map[int32]Reason{
		50: Deadline, 10107: NotPrimary, 13435: NotPrimary, 11602: NotPrimary, 189: NotPrimary, 91: NotPrimary,
		64: NoMajority, 134: NoMajority, 187: NoMajority, 13: ServerError, 2: ServerError, 59: ServerError,
	} {
		failPoint(t, set.MemberURI(p), bson.D{{Key: "times", Value: 1}}, bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: code}})
		rec, err := r.Read(within(t, generous), id)
		refused(t, err, want)
		if rec.Has("admin") {
			t.Errorf("code %d: a refusal came with a role", code)
		}
	}
	failPoint(t, set.MemberURI(p), bson.D{{Key: "times", Value: 1}}, bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: true}})
	_, err = r.Read(within(t, generous), id)
	refused(t, err, Unreachable)
}

// TestEveryWaitIsBounded: a server that never answers, a server that is not there, and
// a pool without a free connection all end with the client's own deadline. None of
// them is bounded by maxTimeMS.
func TestEveryWaitIsBounded(t *testing.T) {
	const short = 300 * time.Millisecond
	t.Run("server selection", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		var open sync.WaitGroup
		open.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close() // held, and never answered
			}
		})
		coll := people(t, "mongodb://"+l.Addr().String()+"/?replicaSet=rs0")
		_, err = readerOf(t, coll, Options{Deadline: short}).Read(within(t, generous), newID())
		refused(t, err, Deadline)
		must(t, l.Close())
		open.Wait()
	})
	t.Run("nobody there", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		must(t, l.Close())
		coll := people(t, "mongodb://"+l.Addr().String()+"/?replicaSet=rs0")
		_, err = readerOf(t, coll, Options{Deadline: short}).Read(within(t, generous), newID())
		refused(t, err, Deadline, Unreachable)
	})
	set := startSet(t, replset.Options{})
	t.Run("pool", func(t *testing.T) {
		coll := people(t, set.URI(), options.Client().SetMaxPoolSize(1))
		always(t, set, bson.D{{Key: "failCommands", Value: bson.A{"count"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 5000}})
		ctx, cancel := context.WithCancel(within(t, generous))
		var busy sync.WaitGroup
		taken := make(chan struct{})
		var once sync.Once
		holder := people(t, set.URI(), options.Client().SetMaxPoolSize(1).SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
			if e.Type == event.ConnectionCheckedOut {
				once.Do(func() { close(taken) })
			}
		}}))
		_ = coll
		busy.Go(func() { _ = holder.Database().RunCommand(ctx, bson.D{{Key: "count", Value: "people"}}).Err() })
		<-taken
		_, err := readerOf(t, holder, Options{Deadline: short}).Read(within(t, generous), newID())
		refused(t, err, Deadline)
		cancel()
		busy.Wait()
	})
	t.Run("a slow answer", func(t *testing.T) {
		always(t, set, bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 5000}})
		_, err := readerOf(t, people(t, set.URI()), Options{Deadline: short}).Read(within(t, generous), newID())
		refused(t, err, Deadline)
	})
}

func TestACallerWhoLeavesIsToldSo(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI())
	for name, source := range map[string]Source{"alone": readerOf(t, coll, Options{}), "shared": readerOf(t, coll, Options{}).Shared()} {
		gone, leave := context.WithCancel(context.Background())
		leave()
		_, err := source.Read(gone, newID())
		refused(t, err, Canceled)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the error does not wrap context.Canceled: %v", name, err)
		}
		past, stop := context.WithDeadline(context.Background(), time.Unix(1, 0))
		_, err = source.Read(past, newID())
		stop()
		refused(t, err, Deadline)
	}
}

func TestAPanicOfTheDriverIsARefusal(t *testing.T) {
	set := startSet(t, replset.Options{})
	boom := options.Client().SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if e.CommandName == "find" || e.CommandName == "update" {
			panic("monitor")
		}
	}})
	coll := people(t, set.URI(), boom)
	_, err := readerOf(t, coll, Options{}).Read(within(t, generous), newID())
	refused(t, err, Fault)
	_, err = readerOf(t, coll, Options{}).Shared().Read(within(t, generous), newID())
	refused(t, err, Fault)
	if o, err := writerOf(t, coll, Options{}).Grant(within(t, generous), newID(), "admin", 0); o != Unknown || err == nil {
		t.Fatalf("a panic became %v, %v", o, err)
	}
}

func TestADisconnectedClientIsARefusal(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI())
	r := readerOf(t, coll, Options{})
	must(t, coll.Database().Client().Disconnect(within(t, generous)))
	_, err := r.Read(within(t, generous), newID())
	refused(t, err, Unreachable)
}
