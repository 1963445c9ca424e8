package screeningwrite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/assaylab/assay/lab/stats"
	"github.com/assaylab/assay/screening"
)

// pair measures two ways of doing the same, one after the other and in turns.
type pair struct {
	question   string
	names      [2]string
	do         [2]func(context.Context) error
	ref, treat []float64 // ms
}

// pairings is how often each side of a pair is measured.
const pairings = 60

func (p *pair) measure(ctx context.Context) error {
	for n := -5; n < pairings; n++ { // the first make connections and caches
		order := [2]int{0, 1}
		if n%2 != 0 {
			order = [2]int{1, 0}
		}
		var took [2]float64
		for _, side := range order {
			begun := time.Now()
			if err := p.do[side](ctx); err != nil {
				return fmt.Errorf("%s, %s: %w", p.question, p.names[side], err)
			}
			took[side] = ms(time.Since(begun))
		}
		if n >= 0 {
			p.ref, p.treat = append(p.ref, took[0]), append(p.treat, took[1])
		}
	}
	return nil
}

func (p *pair) String() string {
	s := fmt.Sprintf("%s: %s %.3f ms, %s %.3f ms (medians of %d)", p.question, p.names[0], median(p.ref), p.names[1], median(p.treat), len(p.ref))
	t, err := stats.Paired(p.ref, p.treat, 0.95)
	if err != nil {
		return s + "; no interval: " + err.Error()
	}
	return s + fmt.Sprintf("; mean difference %+.3f ms, 95 %% from %+.3f to %+.3f", t.Diff, t.CI.Lower, t.CI.Upper)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return stats.Quantile(v, 0.5)
}

// pairs answers, on this set and machine, what a save's time is made of. None of it
// relaxes what the protocols need: the concerns are measured on documents of their own.
func (r *run) pairs(ctx context.Context) error {
	scratch := r.desk.Database(r.database).Collection("traceScratch")
	id := bson.D{{Key: "_id", Value: 1}}
	if _, err := scratch.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: int64(0)}}); err != nil {
		return err
	}
	find := func(ctx context.Context) error { return scratch.FindOne(ctx, id).Err() }
	concern := func(w *writeconcern.WriteConcern) func(context.Context) error {
		c := r.desk.Database(r.database).Collection("traceScratch", options.Collection().SetWriteConcern(w))
		return func(ctx context.Context) error {
			_, err := c.UpdateOne(ctx, id, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}})
			return err
		}
	}
	update := concern(writeconcern.Majority())
	within := func(rc *readconcern.ReadConcern, commands ...func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			s, err := r.desk.StartSession()
			if err != nil {
				return err
			}
			defer s.EndSession(ctx)
			if err := s.StartTransaction(options.Transaction().SetReadConcern(rc).SetWriteConcern(writeconcern.Majority())); err != nil {
				return err
			}
			for _, do := range commands {
				if err := do(mongo.NewSessionContext(ctx, s)); err != nil {
					_ = s.AbortTransaction(ctx)
					return err
				}
			}
			return s.CommitTransaction(ctx)
		}
	}
	// In a transaction the collection's own concern may not be set.
	plain := r.desk.Database(r.database).Collection("traceScratch")
	inc := func(ctx context.Context) error {
		_, err := plain.UpdateOne(ctx, id, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}})
		return err
	}
	ping := func(ctx context.Context) error { return r.desk.Ping(ctx, readpref.Primary()) }
	list := []*pair{
		{question: "a round trip", names: [2]string{"ping", "find by _id"}, do: [2]func(context.Context) error{ping, find}},
		{question: "majority write concern", names: [2]string{"w:1", "majority"}, do: [2]func(context.Context) error{concern(writeconcern.W1()), update}},
		{question: "commit", names: [2]string{"update", "update in a transaction with its commit"}, do: [2]func(context.Context) error{update, within(readconcern.Snapshot(), inc)}},
		{question: "snapshot read concern, in a transaction of two finds and an update", names: [2]string{"local", "snapshot"},
			do: [2]func(context.Context) error{within(readconcern.Local(), find, find, inc), within(readconcern.Snapshot(), find, find, inc)}},
	}
	counted, end, err := r.counter(ctx)
	if err != nil {
		return err
	}
	defer end()
	for _, name := range []string{"source_only", "fold", "transactional"} {
		a, ok := r.arms[name]
		if !ok {
			continue
		}
		p, err := r.counterPair(ctx, name, a, counted)
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	lines := []string{fmt.Sprintf("paired measurements, each side %d times, in turns:", pairings)}
	for _, p := range list {
		if err := p.measure(ctx); err != nil {
			return err
		}
		lines = append(lines, p.String())
	}
	r.note(strings.Join(lines, "\n"))
	return nil
}

// counterPair compares saves of an arm on the client of all reviewers with the same on
// a client whose commands are counted.
func (r *run) counterPair(ctx context.Context, name string, a arm, counted *reviewers) (*pair, error) {
	p := &pair{question: "the counter of commands, " + name + " save", names: [2]string{"not counted", "counted"}}
	for side, c := range []*reviewers{r.reviewers[r.plan.rtt], counted} {
		f, err := r.project(ctx, a, cell{target: targetSame, reviewers: 1}, c)
		if err != nil {
			return nil, err
		}
		p.do[side] = func(ctx context.Context) error {
			d := f.work(1)[0][0]
			f.batches++
			c.meter.start()
			defer c.meter.stop()
			s, err := screening.Open(ctx, c.client.Database(r.database), screening.Options{Defect: a.defect})
			if err != nil {
				return err
			}
			_, err = s.Save(ctx, a.path, d)
			return err
		}
	}
	return p, nil
}
