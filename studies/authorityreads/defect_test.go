package authorityreads

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"golang.org/x/sync/singleflight"

	"github.com/assaylab/assay/authority"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
)

// Each planted defect breaks one rule that the study is there to guard. A run with
// it must end in ABORT, by the check that is meant for it, while the linearizable
// reader passes that check in the same run.

type source func(context.Context, authority.ID) (authority.Record, error)

func (s source) Read(ctx context.Context, id authority.ID) (authority.Record, error) {
	return s(ctx, id)
}

func good(c *mongo.Collection, o authority.Options) (authority.Source, error) {
	return authority.NewReader(c, o)
}

// fallback asks with a weaker read concern when the strong one is refused.
func fallback(c *mongo.Collection, o authority.Options) (authority.Source, error) {
	r, err := authority.NewReader(c, o)
	if err != nil {
		return nil, err
	}
	w := newWeak(c, o, readconcern.Majority())
	return source(func(ctx context.Context, id authority.ID) (authority.Record, error) {
		rec, err := r.Read(ctx, id)
		if err != nil {
			return w.Read(ctx, id)
		}
		return rec, nil
	}), nil
}

// serverOnly leaves the deadline to the server: maxTimeMS, and nothing here.
func serverOnly(c *mongo.Collection, o authority.Options) (authority.Source, error) {
	db := c.Database()
	cmd := func(id authority.ID) bson.D {
		return bson.D{
			{Key: "find", Value: c.Name()}, {Key: "filter", Value: bson.D{{Key: "_id", Value: o.Layout.Binary(id)}}}, {Key: "limit", Value: 1}, {Key: "singleBatch", Value: true},
			{Key: "readConcern", Value: bson.D{{Key: "level", Value: "linearizable"}}}, {Key: "maxTimeMS", Value: o.Deadline.Milliseconds()},
		}
	}
	return source(func(ctx context.Context, id authority.ID) (authority.Record, error) {
		var answer struct {
			Cursor struct {
				FirstBatch []struct {
					Revision int64    `bson:"revision"`
					Roles    []string `bson:"roles"`
				} `bson:"firstBatch"`
			} `bson:"cursor"`
		}
		// A context with a deadline would make the driver add the half that is left out.
		endless, cancel := context.WithCancel(context.Background())
		defer context.AfterFunc(ctx, cancel)()
		defer cancel()
		err := db.RunCommand(endless, cmd(id), options.RunCmd().SetReadPreference(readpref.Primary())).Decode(&answer)
		if err != nil {
			return authority.Record{}, err
		}
		if len(answer.Cursor.FirstBatch) == 0 {
			return authority.Record{ID: id}, nil
		}
		d := answer.Cursor.FirstBatch[0]
		return authority.Record{ID: id, Found: true, Revision: d.Revision, Roles: d.Roles}, nil
	}), nil
}

// cached serves what it has read within the last 200 ms.
func cached(c *mongo.Collection, o authority.Options) (authority.Source, error) {
	r, err := authority.NewReader(c, o)
	if err != nil {
		return nil, err
	}
	type entry struct {
		rec authority.Record
		at  time.Time
	}
	var mu sync.Mutex
	known := map[authority.ID]entry{}
	return source(func(ctx context.Context, id authority.ID) (authority.Record, error) {
		mu.Lock()
		e, ok := known[id]
		mu.Unlock()
		if ok && time.Since(e.at) < 200*time.Millisecond {
			<-time.After(time.Millisecond) // readers that never wait leave writers no time
			return e.rec, nil
		}
		rec, err := r.Read(ctx, id)
		if err == nil {
			mu.Lock()
			known[id] = entry{rec, time.Now()}
			mu.Unlock()
		}
		return rec, err
	}), nil
}

// lateRider joins the read that is under way.
func lateRider(c *mongo.Collection, o authority.Options) (authority.Source, error) {
	r, err := authority.NewReader(c, o)
	if err != nil {
		return nil, err
	}
	var group singleflight.Group
	return source(func(ctx context.Context, id authority.ID) (authority.Record, error) {
		v, err, _ := group.Do(string(id[:]), func() (any, error) { return r.Read(context.WithoutCancel(ctx), id) })
		rec, _ := v.(authority.Record)
		return rec, err
	}), nil
}

// wrapped gives the options of a client whose connections go through wrap.
func wrapped(wrap func(net.Conn) net.Conn) func() *options.ClientOptions {
	return func() *options.ClientOptions { return options.Client().SetDialer(dialer(wrap)) }
}

type dialer func(net.Conn) net.Conn

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return d(c), nil
}

// slow is a connection on which answers take up to 20 ms longer.
type slow struct{ net.Conn }

func (s slow) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	<-time.After(rand.N(20 * time.Millisecond))
	return n, err
}

// lying is a connection to a server that answers linearizable reads without its
// quorum: on the way to the server their read concern becomes local.
type lying struct{ net.Conn }

const (
	wireHeader = 16
	opMsg      = 2013
)

func (l lying) Write(b []byte) (int, error) {
	if out, ok := weakened(b); ok {
		if _, err := l.Conn.Write(out); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return l.Conn.Write(b)
}

// weakened is the message with another read concern, if it has a linearizable one.
func weakened(b []byte) ([]byte, bool) {
	const at = wireHeader + 4 + 1 // flags, and the kind of the first section
	if len(b) < at || binary.LittleEndian.Uint32(b[12:]) != opMsg || b[at-1] != 0 {
		return nil, false
	}
	raw := bson.Raw(b[at:])
	if level, ok := raw.Lookup("readConcern", "level").StringValueOK(); !ok || level != "linearizable" {
		return nil, false
	}
	var doc bson.D
	if bson.Unmarshal(raw, &doc) != nil {
		return nil, false
	}
	for i := range doc {
		if doc[i].Key == "readConcern" {
			doc[i].Value = bson.D{{Key: "level", Value: "local"}}
		}
	}
	body, err := bson.Marshal(doc)
	if err != nil {
		return nil, false
	}
	out := append(append([]byte(nil), b[:at]...), body...)
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	return out, true
}

func TestPlantedDefectsShutTheGate(t *testing.T) {
	for _, c := range []struct {
		name string
		arm  arm
		cell string
		by   string
	}{
		{"fallback", arm{source: fallback, strong: true}, "dual-primary", checkDual},
		{"server_only", arm{source: serverOnly, strong: true}, "partition", checkDeadline},
		{"cached", arm{source: cached, strong: true}, "hot-1x8", checkStale},
		{"no_quorum", arm{source: good, strong: true, client: wrapped(func(c net.Conn) net.Conn { return lying{c} })}, "dual-primary", checkDual},
		{"late_rider", arm{source: lateRider, strong: true, client: wrapped(func(c net.Conn) net.Conn { return slow{c} })}, "hot-1x8", checkStale},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting for deadlines
			o := carryOut(t, nil, c.name, c.arm, short(), c.cell)
			if v := o.Verdict; v.Outcome != "ABORT" || v.Class != gate.NoGo {
				t.Errorf("the defect ends in %s (%s): %s", v.Outcome, v.Class, v.Why)
			}
			caught := verdicts(o, c.name)[c.by]
			if caught.Verdict != check.Fail {
				t.Errorf("check %s says %s of the defect: %s", c.by, caught.Verdict, caught.Message)
			}
			if sound := verdicts(o, "linearizable")[c.by]; c.by != checkDeadline && sound.Verdict != check.Pass {
				t.Errorf("check %s says %s of the sound reader: %s", c.by, sound.Verdict, sound.Message)
			}
			t.Logf("caught: %s", caught.Message)
		})
	}
}

func TestTheLieIsTold(t *testing.T) {
	doc, err := bson.Marshal(bson.D{{Key: "find", Value: "people"}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: "linearizable"}}}})
	if err != nil {
		t.Fatal(err)
	}
	msg := make([]byte, wireHeader+5, wireHeader+5+len(doc))
	binary.LittleEndian.PutUint32(msg[12:], opMsg)
	msg = append(msg, doc...)
	binary.LittleEndian.PutUint32(msg, uint32(len(msg)))
	out, ok := weakened(msg)
	if level, _ := bson.Raw(out[wireHeader+5:]).Lookup("readConcern", "level").StringValueOK(); !ok || level != "local" || int(binary.LittleEndian.Uint32(out)) != len(out) {
		t.Fatalf("%v, level %q", ok, level)
	}
	if _, ok := weakened(msg[:10]); ok {
		t.Error("half a header is a message")
	}
}
