package replset_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
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

// ledger is what writers were told, and what they have asked for.
type ledger struct {
	mu    sync.Mutex
	acked map[string]bool
	asked map[string]bool
}

func newLedger() *ledger { return &ledger{acked: map[string]bool{}, asked: map[string]bool{}} }

// write inserts documents with an index until ctx ends.
func (l *ledger) write(ctx context.Context, c *mongo.Client, name string) {
	coll := c.Database("db").Collection("c")
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		l.mu.Lock()
		l.asked[id] = true
		l.mu.Unlock()
		limit, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := coll.InsertOne(limit, bson.M{"_id": id, "x": "x" + id, "tags": bson.A{i, -i}})
		cancel()
		if err == nil {
			l.mu.Lock()
			l.acked[id] = true
			l.mu.Unlock()
		}
	}
}

// load has four writers at work until stop is called, which may be more than once.
func (l *ledger) load(ctx context.Context, c *mongo.Client) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() { l.write(ctx, c, fmt.Sprintf("w%d", w)) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

var crashIndexes = []mongo.IndexModel{
	{Keys: bson.M{"x": 1}, Options: options.Index().SetUnique(true)}, {Keys: bson.M{"tags": 1}},
}

// verify compares the documents with what was acknowledged, and lets every member
// compare its indexes with its documents.
func (l *ledger) verify(ctx context.Context, c *mongo.Client, uri string) error {
	cur, err := c.Database("db").Collection("c").Find(ctx, bson.M{})
	if err != nil {
		return err
	}
	var docs []struct {
		ID string `bson:"_id"`
		X  string
	}
	if err := cur.All(ctx, &docs); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	have := map[string]bool{}
	for _, d := range docs {
		have[d.ID] = true
		if !l.asked[d.ID] || d.X != "x"+d.ID {
			return fmt.Errorf("the document %+v was not written by anybody", d)
		}
	}
	for id := range l.acked {
		if !have[id] {
			return fmt.Errorf("the acknowledged document %s is gone; %d of %d are there", id, len(have), len(l.acked))
		}
	}
	hosts := strings.TrimPrefix(uri[:strings.Index(uri, "/?")], "mongodb://")
	for _, host := range strings.Split(hosts, ",") {
		m, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + host + "/?directConnection=true"))
		if err != nil {
			return err
		}
		var answer struct {
			Valid  bool
			Errors []string
		}
		err = m.Database("db").RunCommand(ctx, bson.M{"validate": "c"}, options.RunCmd().SetReadPreference(readpref.Nearest())).Decode(&answer)
		_ = m.Disconnect(ctx)
		if err != nil || !answer.Valid {
			return fmt.Errorf("member %s: %v %v", host, err, answer.Errors)
		}
	}
	return nil
}

// survives kills members under load, one at a time and all at once, and looks what
// is left in the end.
func survives(t *testing.T, o replset.Options, kills int) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	s, c := start(t, o.With(replset.Hooks{KeepEntries: 64}))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	_, err := c.Database("db").Collection("c").Indexes().CreateMany(ctx, crashIndexes)
	must(t, err)
	l := newLedger()
	stop := l.load(ctx, c)
	defer stop()
	began, whole := time.Now(), 0
	for kill := range kills {
		before := l.count()
		waitFor(t, "writes", func() bool { return l.count() > before+2 })
		if kill%3 == 0 {
			whole++
			must(t, s.KillAll())
			for _, i := range rng.Perm(3) {
				must(t, s.Restart(i))
			}
			must(t, s.StepUp(within(t), rng.IntN(3)))
			continue
		}
		// Mostly a secondary: to replace a primary takes an election timeout.
		p, err := s.AwaitPrimary(within(t))
		must(t, err)
		i := p
		if rng.IntN(8) > 0 {
			i = (p + 1 + rng.IntN(2)) % 3
		}
		must(t, s.Kill(i))
		must(t, s.Restart(i))
	}
	took := time.Since(began)
	stop()
	_, err = s.AwaitPrimary(within(t))
	must(t, err)
	if err := l.verify(ctx, connect(t, s.URI()), s.URI()); err != nil {
		t.Fatalf("after %d kills: %v (seed %d)", kills, err, seed)
	}
	t.Logf("%d kills, %d of them of the whole set, in %v; %d acknowledged documents are there", kills, whole, took, l.count())
	t.Logf("figure: crash.kills %d kills", kills)
}

// TestNothingIsLostBySIGKILL: members are processes.
func TestNothingIsLostBySIGKILL(t *testing.T) {
	kills := 9
	if long() {
		kills = 150
	}
	survives(t, replset.Options{Command: []string{os.Args[0], memberArg}}, kills)
}

// TestNothingIsLostByPowerFailures: members lose what they had not synced.
func TestNothingIsLostByPowerFailures(t *testing.T) {
	kills := 100
	if long() {
		kills = 2000
	}
	survives(t, replset.Options{LoseUnsynced: true}, kills)
}
