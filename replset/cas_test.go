package replset_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/assaylab/assay/replset"
)

// casProbe lets workers replace one document by {_id, v} until stop is closed, and
// fails if a version was won twice or lost.
func casProbe(t *testing.T, c *mongo.Client, rc *readconcern.ReadConcern, disturb func()) {
	t.Helper()
	least := 300 * time.Millisecond
	if long() {
		least = 6 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), least+2*patience)
	defer cancel()
	col := c.Database("cas").Collection("c", options.Collection().SetReadConcern(rc))
	_, err := col.InsertOne(ctx, bson.M{"_id": "x", "v": int64(0)})
	must(t, err)
	stop := make(chan struct{})
	var wins, losses, open, double atomic.Int64
	var won sync.Map
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var d struct{ V int64 }
				if col.FindOne(ctx, bson.M{"_id": "x"}).Decode(&d) != nil {
					continue
				}
				err := col.FindOneAndReplace(ctx, bson.M{"_id": "x", "v": d.V}, bson.M{"v": d.V + 1, "by": w}).Err()
				switch {
				case err == nil:
					wins.Add(1)
					if by, twice := won.LoadOrStore(d.V, w); twice {
						double.Add(1)
						t.Errorf("version %d was won by %v and by %d", d.V, by, w)
					}
				case errors.Is(err, mongo.ErrNoDocuments):
					losses.Add(1)
				default:
					open.Add(1) // may have won
				}
			}
		})
	}
	began := time.Now()
	if disturb != nil {
		disturb()
	}
	// At least this long, and until enough has happened to mean something.
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if time.Since(began) >= least && wins.Load() > 20 && losses.Load() > 0 || ctx.Err() != nil {
			break
		}
	}
	close(stop)
	group.Wait()
	took := time.Since(began)
	var d struct{ V int64 }
	must(t, col.FindOne(ctx, bson.M{"_id": "x"}).Decode(&d))
	t.Logf("%d wins, %d losses, %d open, version %d, %.0f wins/s", wins.Load(), losses.Load(), open.Load(), d.V, float64(wins.Load())/took.Seconds())
	t.Logf("figure: cas.double-wins %d", double.Load())
	if wins.Load() < 20 || losses.Load() == 0 {
		t.Errorf("only %d wins and %d losses; this shows nothing", wins.Load(), losses.Load())
	}
	if d.V < wins.Load() || d.V > wins.Load()+open.Load() {
		t.Errorf("version %d after %d wins and %d open ends", d.V, wins.Load(), open.Load())
	}
}

func casPresets(t *testing.T) map[string]replset.Options {
	return map[string]replset.Options{
		"fast": {}, "MongoDB timing": {Timing: replset.MongoDB}, "not synced": {NoSync: true}, "one member": {Members: 1},
		"linearizable by write": {LinearizableByWrite: true}, "on disk": {Dir: t.TempDir()},
		"on disk and not synced": {Dir: t.TempDir(), NoSync: true}, "as processes": {Command: []string{os.Args[0], memberArg}},
	}
}

func readConcernOf(o replset.Options) *readconcern.ReadConcern {
	if o.LinearizableByWrite {
		return readconcern.Linearizable()
	}
	return readconcern.Local()
}

func TestNoVersionIsWonTwice(t *testing.T) {
	for name, o := range casPresets(t) {
		t.Run(name, func(t *testing.T) {
			_, c := start(t, o)
			casProbe(t, c, readConcernOf(o), nil)
		})
	}
}

func TestNoVersionIsWonTwiceThroughStepDowns(t *testing.T) {
	for name, o := range casPresets(t) {
		if o.Members == 1 || !long() && name != "fast" && name != "MongoDB timing" && name != "as processes" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s, c := start(t, o)
			casProbe(t, c, readConcernOf(o), func() {
				for range 5 {
					must(t, s.StepDown(within(t)))
				}
			})
		})
	}
}

func TestNoVersionIsWonTwiceThroughKills(t *testing.T) {
	for name, o := range map[string]replset.Options{
		"what is not synced is lost": {LoseUnsynced: true}, "linearizable by write": {LinearizableByWrite: true, LoseUnsynced: true},
		"as processes": {Command: []string{os.Args[0], memberArg}}, "on disk": {Dir: t.TempDir()},
	} {
		if !long() && (name == "linearizable by write" || name == "on disk") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s, c := start(t, o)
			casProbe(t, c, readConcernOf(o), func() {
				for range 3 {
					p, err := s.AwaitPrimary(within(t))
					must(t, err)
					must(t, s.Kill(p))
					_, err = s.AwaitPrimary(within(t))
					must(t, err)
					must(t, s.Restart(p))
				}
			})
		})
	}
}
