package replset_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset"
)

// TestAMemberThatLacksALargeStateIsSteppedUp under load: its log has nothing to go on from, so that all it
// lacks comes as a state, while the others go on.
func TestAMemberThatLacksALargeStateIsSteppedUp(t *testing.T) {
	docs := 10_000
	if long() {
		docs = 300_000
	}
	s, c := start(t, replset.Options{LoseUnsynced: true}.With(replset.Hooks{KeepEntries: 64}))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	_, err := c.Database("db").Collection("c").Indexes().CreateMany(ctx, crashIndexes)
	must(t, err)
	l := newLedger()
	for from := 0; from < docs; from += 1000 {
		var batch []any
		for i := from; i < from+1000; i++ {
			id := fmt.Sprintf("first-%d", i)
			batch = append(batch, bson.M{"_id": id, "x": "x" + id, "tags": bson.A{i, -i}, "pad": strings.Repeat("p", 100)})
			l.asked[id], l.acked[id] = true, true
		}
		_, err := c.Database("db").Collection("c").InsertMany(ctx, batch)
		must(t, err)
	}
	stop := l.load(ctx, c)
	defer stop()
	for round := range 4 {
		p, err := s.AwaitPrimary(within(t))
		must(t, err)
		away := (p + 1) % 3
		must(t, s.Kill(away))
		before := l.count()
		waitFor(t, "writes", func() bool { return l.count() > before+200 })
		if round%2 > 0 { // nobody leads when it comes back
			must(t, s.KillAll())
			must(t, s.Restart(p))
			must(t, s.Restart((p+2)%3))
		}
		must(t, s.Restart(away))
		began := time.Now()
		must(t, s.StepUp(within(t), away))
		t.Logf("round %d: primary after %v, %d documents", round, time.Since(began), l.count())
	}
	stop()
	if err := l.verify(ctx, connect(t, s.URI()), s.URI()); err != nil {
		t.Fatal(err)
	}
}
