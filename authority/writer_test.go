package authority

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/assaylab/assay/replset"
)

func TestAChangeAtAnotherRevisionIsAConflict(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI())
	w, r, id := writerOf(t, coll, Options{}), readerOf(t, coll, Options{}), newID()
	type change func(context.Context, ID, string, int64) (Outcome, error)
	expect := func(what string, f change, role string, rev int64, want Outcome) {
		t.Helper()
		if o, err := f(within(t, generous), id, role, rev); o != want || (err == nil) != (want != Unknown) {
			t.Fatalf("%s at %d: %v, %v; want %v", what, rev, o, err, want)
		}
	}
	expect("revoke of nobody", w.Revoke, "admin", 1, Conflict)
	expect("grant of nobody", w.Grant, "admin", 1, Conflict)
	expect("first grant", w.Grant, "admin", 0, Applied)
	expect("first grant again", w.Grant, "admin", 0, Conflict)
	expect("revoke", w.Revoke, "admin", 1, Applied)
	expect("revoke again", w.Revoke, "admin", 1, Conflict)
	expect("late grant", w.Grant, "admin", 1, Conflict)
	expect("revoke of the future", w.Revoke, "admin", 3, Conflict)
	expect("no role", w.Grant, "", 2, Unknown)
	expect("negative revision", w.Grant, "admin", -1, Unknown)
	expect("revision of nobody", w.Revoke, "admin", 0, Unknown)
	rec, err := r.Read(within(t, generous), id)
	if err != nil || rec.Revision != 2 || len(rec.Roles) != 0 || !rec.Found {
		t.Fatalf("%+v, %v", rec, err)
	}
}

func TestOneOfManyChangesWins(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI())
	w, id := writerOf(t, coll, Options{}), newID()
	rev := grant(t, w, id, "admin")
	for range 5 {
		outcomes := make([]Outcome, 8)
		var all sync.WaitGroup
		for i := range outcomes {
			all.Go(func() {
				f := w.Grant
				if i%2 == 0 {
					f = w.Revoke
				}
				outcomes[i], _ = f(within(t, generous), id, "admin", rev)
			})
		}
		all.Wait()
		won := 0
		for _, o := range outcomes {
			switch o {
			case Applied:
				won++
			case Unknown:
				t.Fatalf("an unknown outcome without a fault: %v", outcomes)
			}
		}
		if won != 1 {
			t.Fatalf("%d of the changes at revision %d were applied: %v", won, rev, outcomes)
		}
		rev++
	}
}

// TestAnyErrorIsUnknown: whatever goes wrong, no certainty is claimed.
func TestAnyErrorIsUnknown(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI(), options.Client().SetRetryWrites(false))
	w, r, id := writerOf(t, coll, Options{Deadline: 2 * time.Second}), readerOf(t, coll, Options{}), newID()
	rev := grant(t, w, id, "admin")
	p, err := set.AwaitPrimary(within(t, generous))
	must(t, err)
	for name, data := range map[string]bson.D{
		"not primary":          {{Key: "errorCode", Value: 10107}},
		"interrupted":          {{Key: "errorCode", Value: 11602}},
		"not authorised":       {{Key: "errorCode", Value: 13}},
		"duplicate key":        {{Key: "errorCode", Value: 11000}},
		"connection lost":      {{Key: "closeConnection", Value: true}},
		"write concern failed": {{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}}},
		"stepped down":         {{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 189}, {Key: "errmsg", Value: "primary stepped down"}}}},
	} {
		failPoint(t, set.MemberURI(p), bson.D{{Key: "times", Value: 1}}, append(bson.D{{Key: "failCommands", Value: bson.A{"update"}}}, data...))
		o, err := w.Revoke(within(t, generous), id, "admin", rev)
		if o != Unknown || err == nil {
			t.Errorf("%s: %v, %v", name, o, err)
		}
		// The fresh read is what decides: some of these did change the record.
		rec, err := r.Read(within(t, generous), id)
		must(t, err)
		if rec.Revision > rev {
			if o, err := w.Grant(within(t, generous), id, "admin", rec.Revision); o != Applied {
				t.Fatalf("%s: cannot restore: %v, %v", name, o, err)
			}
			rec.Revision++
		}
		rev = rec.Revision
	}
}

func TestARepeatedStatementCountsOnce(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI())
	w, r, id := writerOf(t, coll, Options{}), readerOf(t, coll, Options{}), newID()
	rev := grant(t, w, id, "admin")
	p, err := set.AwaitPrimary(within(t, generous))
	must(t, err)
	// The write happens, and the answer asks the driver to send it again.
	failPoint(t, set.MemberURI(p), bson.D{{Key: "times", Value: 1}}, bson.D{
		{Key: "failCommands", Value: bson.A{"update"}},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "going down"}}},
		{Key: "errorLabels", Value: bson.A{"RetryableWriteError"}},
	})
	if o, err := w.Revoke(within(t, generous), id, "admin", rev); o != Applied {
		t.Fatalf("%v, %v", o, err)
	}
	if rec, err := r.Read(within(t, generous), id); err != nil || rec.Revision != rev+1 {
		t.Fatalf("applied %d times: %+v, %v", rec.Revision-rev, rec, err)
	}
}

func TestWithoutAMajorityAChangeIsUnknown(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI())
	w, id := writerOf(t, coll, Options{}), newID()
	rev := grant(t, w, id, "admin")
	p, err := set.AwaitPrimary(within(t, generous))
	must(t, err)
	must(t, set.Pause((p+1)%3))
	must(t, set.Pause((p+2)%3))
	hasty := writerOf(t, coll, Options{Deadline: after})
	if o, err := hasty.Revoke(within(t, generous), id, "admin", rev); o != Unknown || err == nil {
		t.Fatalf("%v, %v", o, err)
	}
	must(t, set.Resume((p+1)%3))
	must(t, set.Resume((p+2)%3))
	if rec := recovers(t, readerOf(t, coll, Options{}), id); rec.Revision != rev && rec.Revision != rev+1 {
		t.Fatalf("%+v", rec)
	}
}

func TestTheWriteOnTheWire(t *testing.T) {
	set := startSet(t, replset.Options{})
	var sent wire
	coll := people(t, set.URI(), sent.monitor()).Clone(options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	sess, err := coll.Database().Client().StartSession()
	must(t, err)
	defer sess.EndSession(context.Background())
	must(t, sess.StartTransaction())
	id := newID()
	o, err := writerOf(t, coll, Options{}).Grant(mongo.NewSessionContext(within(t, generous), sess), id, "admin", 0)
	if o != Applied {
		t.Fatalf("%v, %v", o, err)
	}
	c := sent.commands("update")[0]
	if w, _ := c.Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
		t.Errorf("write concern %s", c.Lookup("writeConcern"))
	}
	if j, _ := c.Lookup("writeConcern", "j").BooleanOK(); !j {
		t.Errorf("not journalled: %s", c.Lookup("writeConcern"))
	}
	if ms, ok := c.Lookup("maxTimeMS").AsInt64OK(); !ok || ms < 1 || ms > DefaultDeadline.Milliseconds() {
		t.Errorf("maxTimeMS %d, %v", ms, ok)
	}
	if _, err := c.LookupErr("startTransaction"); err == nil {
		t.Error("the write is part of a transaction")
	}
}
