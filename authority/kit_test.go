package authority

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/assaylab/assay/replset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generous is how long a test waits for what must come.
const generous = 30 * time.Second

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newID() (id ID) {
	_, _ = rand.Read(id[:])
	return id
}

// people connects to a set and gives the collection of its records.
func people(t testing.TB, uri string, more ...*options.ClientOptions) *mongo.Collection {
	t.Helper()
	c, err := mongo.Connect(append([]*options.ClientOptions{options.Client().ApplyURI(uri)}, more...)...)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), generous)
		defer cancel()
		_ = c.Disconnect(ctx)
	})
	return c.Database("app").Collection("people")
}

func readerOf(t testing.TB, coll *mongo.Collection, o Options) *Reader {
	t.Helper()
	r, err := NewReader(coll, o)
	must(t, err)
	return r
}

func writerOf(t testing.TB, coll *mongo.Collection, o Options) *Writer {
	t.Helper()
	w, err := NewWriter(coll, o)
	must(t, err)
	return w
}

func startSet(t testing.TB, o replset.Options) *replset.Set {
	t.Helper()
	return replset.Start(t, o)
}

// refused fails the test unless err is a refusal for one of the reasons.
func refused(t testing.TB, err error, reasons ...Reason) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) {
		t.Fatalf("want a refusal, have %v", err)
	}
	for _, want := range reasons {
		if r.Reason == want {
			return
		}
	}
	t.Fatalf("refused as %q (%v), want one of %v", r.Reason, r.Err, reasons)
}

// grant makes a record with the roles and gives its revision.
func grant(t testing.TB, w *Writer, id ID, roles ...string) int64 {
	t.Helper()
	for i, role := range roles {
		if o, err := w.Grant(within(t, generous), id, role, int64(i)); o != Applied {
			t.Fatalf("granting %s: %v, %v", role, o, err)
		}
	}
	return int64(len(roles))
}

// wire records the commands that a client sends.
type wire struct {
	mu   sync.Mutex
	sent []bson.Raw
}

func (w *wire) monitor() *options.ClientOptions {
	return options.Client().SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent = append(w.sent, append(bson.Raw(nil), e.Command...))
	}})
}

func (w *wire) commands(name string) (out []bson.Raw) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.sent {
		if e, err := c.IndexErr(0); err == nil && e.Key() == name {
			out = append(out, c)
		}
	}
	return out
}

// failPoint makes commands of one member fail as data says.
func failPoint(t testing.TB, uri string, mode, data any) {
	t.Helper()
	admin := people(t, uri).Database().Client().Database("admin")
	must(t, admin.RunCommand(within(t, generous), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}, {Key: "data", Value: data}}).Err())
}

func always(t testing.TB, set *replset.Set, data bson.D) {
	t.Helper()
	p, err := set.AwaitPrimary(within(t, generous))
	must(t, err)
	failPoint(t, set.MemberURI(p), "alwaysOn", data)
	t.Cleanup(func() { failPoint(t, set.MemberURI(p), "off", bson.D{}) })
}
