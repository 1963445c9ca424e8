package screening_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

// uri is of the set that the tests share, each with a database of its own.
var uri string

func TestMain(m *testing.M) {
	if flag.Parse(); !long() {
		_ = flag.Set("rapid.checks", "15") // each is many commands
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if uri = os.Getenv("ASSAY_MONGO_URI"); uri == "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		set, err := replset.New(ctx, replset.Options{Members: 1, NoSync: true})
		if err != nil {
			fmt.Fprintln(os.Stderr, "no replica set to test on:", err)
			return 1
		}
		defer set.Close()
		uri = set.URI()
	}
	return m.Run()
}

const (
	project = "p"
	title   = "title"
)

// fixture is a project of its own with a recorded client.
type fixture struct {
	t     *testing.T
	db    *mongo.Database
	seen  *recorder
	admin *screening.Store
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, uri string, o ...*options.ClientOptions) (*mongo.Client, *recorder) {
	t.Helper()
	seen := &recorder{}
	c, err := mongo.Connect(append([]*options.ClientOptions{options.Client().ApplyURI(uri).SetMonitor(seen.monitor())}, o...)...)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Disconnect(ctx)
	})
	return c, seen
}

// begin makes a project with studies s0 to s9.
func begin(t *testing.T, families ...tally.Family) *fixture {
	t.Helper()
	return beginOn(t, uri, families...)
}

func beginOn(t *testing.T, uri string, families ...tally.Family) *fixture {
	t.Helper()
	c, seen := dial(t, uri)
	f := &fixture{t: t, db: c.Database("t" + bson.NewObjectID().Hex()), seen: seen}
	must(t, screening.Initialise(within(t), f.db))
	f.admin = f.open(screening.Options{})
	must(t, f.admin.AddProject(within(t), screening.NewProject{ID: project, Families: families}))
	var list []screening.NewStudy
	for i := range 10 {
		list = append(list, screening.NewStudy{ID: fmt.Sprint("s", i)})
	}
	must(t, f.admin.AddStudies(within(t), project, list...))
	t.Cleanup(func() {
		if os.Getenv("ASSAY_MONGO_URI") != "" {
			_ = f.db.Drop(context.Background())
		}
	})
	return f
}

func (f *fixture) open(o screening.Options) *screening.Store {
	f.t.Helper()
	s, err := screening.Open(f.t.Context(), f.db, o)
	must(f.t, err)
	return s
}

// mode sets the mode without waiting for a fleet that is not there.
func (f *fixture) mode(m screening.Mode) {
	f.t.Helper()
	s := f.open(screening.Options{PreWriteDeadline: time.Nanosecond, WriterGrace: 20 * time.Second})
	ctx := within(f.t)
	_, err := f.db.Collection("statisticsControl").UpdateOne(ctx, bson.M{"_id": project}, bson.M{"$set": bson.M{"mode": m}, "$inc": bson.M{"version": 1, "epoch": 1}})
	must(f.t, err)
	control, err := s.Control(ctx, project)
	must(f.t, err)
	if m != screening.ModeOff {
		for _, fam := range control.Families {
			must(f.t, s.Rebuild(ctx, project, fam))
		}
	}
}

func decision(study, reviewer string, include bool) screening.Decision {
	return screening.Decision{Submission: screening.Submission{Project: project, Study: study}, Reviewer: reviewer, Stage: title, Include: include}
}

func (f *fixture) drain() screening.Drained {
	f.t.Helper()
	d, err := f.admin.Drain(within(f.t), project)
	must(f.t, err)
	return d
}

// parity fails the test unless everything that Parity checks holds.
func (f *fixture) parity() screening.Parity {
	f.t.Helper()
	p, err := f.admin.Parity(within(f.t), project)
	must(f.t, err)
	if len(p.Faults) > 0 {
		f.t.Fatalf("no parity:\n%s", strings.Join(p.Faults, "\n"))
	}
	return p
}

func (f *fixture) study(id string) screening.Study {
	f.t.Helper()
	s, err := f.admin.Study(within(f.t), id)
	must(f.t, err)
	return s
}

// recorder keeps the commands of a client.
type recorder struct {
	mu       sync.Mutex
	commands []string // "find study"
	on       func(command string)
	after    func(command string) // by name alone
	sessions []bson.Raw           // of transactions
}

func (r *recorder) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		line := e.CommandName
		if c, ok := e.Command.Lookup(e.CommandName).StringValueOK(); ok {
			line += " " + c
		}
		r.mu.Lock()
		r.commands = append(r.commands, line)
		if _, err := e.Command.LookupErr("startTransaction"); err == nil {
			r.sessions = append(r.sessions, slices.Clone(e.Command.Lookup("lsid").Document()))
		}
		on := r.on
		r.mu.Unlock()
		if on != nil {
			on(line)
		}
	}, Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
		r.mu.Lock()
		after := r.after
		r.mu.Unlock()
		if after != nil {
			after(e.CommandName)
		}
	}}
}

// during are the commands of one call.
func (r *recorder) during(fn func()) []string {
	r.mu.Lock()
	r.commands = nil
	r.mu.Unlock()
	fn()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.commands)
}

// answered calls after for each command that has been answered.
func (r *recorder) answered(after func(string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = after
}

// watch calls on for each command, on the goroutine that is about to send it.
func (r *recorder) watch(on func(string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = on
}
