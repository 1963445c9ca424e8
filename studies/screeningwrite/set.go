package screeningwrite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/replset"
	"github.com/assaylab/assay/screening"
)

// run is what the trials of a run share: the set, and the clients on it.
type run struct {
	member []string
	arms   map[string]arm

	plan     plan
	set      *replset.Set // nil for one that was there before
	uri      string
	database string
	note     func(string) // only while the run begins
	library  []string     // titles of the large corpus

	// desk is the client of everything that is not a reviewer: fixtures, checks, the
	// worker. It has no added round trip and no monitor.
	desk      *mongo.Client
	mortal    *mongo.Client // of workers that are killed
	reaper    *reaper
	reviewers map[time.Duration]*reviewers
	fixtures  map[fixtureKey]*fixture
	killed    int   // member to restart, or -1
	broken    error // why the set is not at full strength any more
}

// reviewers is the one client that all submissions of a round-trip time share.
type reviewers struct {
	client *mongo.Client
	meter  *meter
}

const (
	startTimeout = time.Minute
	// minPool connections are there before anything is timed.
	minPool = 64
)

func (r *run) begin(ctx context.Context, s *flow.Session) (_ func(context.Context) error, err error) {
	if r.plan, err = parsePlan(s.Settings); err != nil {
		return nil, err
	}
	r.note, r.uri, r.set, r.killed, r.broken = s.Note, r.plan.mongoURI, nil, -1, nil
	r.reviewers, r.fixtures = map[time.Duration]*reviewers{}, map[fixtureKey]*fixture{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.end(context.WithoutCancel(ctx)))
		}
	}()
	var what string
	if r.library, what, err = corpus(r.plan); err != nil {
		return nil, err
	}
	if what != "" {
		s.Note(what)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*startTimeout)
	defer cancel()
	if r.uri == "" {
		if err := r.start(ctx, s.Scratch); err != nil {
			return nil, err
		}
	} else {
		s.Note("on a replica set that was there before; a primary is not killed there")
	}
	if r.desk, err = mongo.Connect(options.Client().ApplyURI(r.uri).SetAppName(Name)); err != nil {
		return nil, err
	}
	r.reaper = &reaper{}
	if r.mortal, err = mongo.Connect(options.Client().ApplyURI(r.uri).SetAppName(Name + " mortal worker").SetMonitor(r.reaper.monitor()).SetRetryReads(false).SetRetryWrites(false)); err != nil {
		return nil, err
	}
	r.database = "assay_screening_write_" + bson.NewObjectID().Hex()
	if err := screening.Initialise(ctx, r.desk.Database(r.database)); err != nil {
		return nil, err
	}
	for _, c := range s.Protocol.Cells() {
		if _, err := r.crowd(ctx, r.plan.rtt+regimes()[c.Level("regime")].rtt); err != nil {
			return nil, err
		}
	}
	if r.plan.trace {
		if err := r.trace(ctx); err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
	}
	return r.end, nil
}

// start starts the run's own set.
func (r *run) start(ctx context.Context, scratch string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	o := replset.Options{Members: r.plan.members, Dir: filepath.Join(scratch, "set-"+bson.NewObjectID().Hex()), NoSync: !r.plan.sync}
	how := "in the harness's own process"
	if r.plan.processes && len(r.member) > 0 {
		o.Command = r.member
		how = "each a process of its own"
	}
	if !r.plan.sync {
		how += "; they answer before a write is on disk, so that no time here is one of durable saves"
	}
	var err error
	if r.set, err = replset.New(ctx, o); err != nil {
		return err
	}
	r.uri = r.set.URI()
	r.note(fmt.Sprintf("%d members of the replica set, %s", r.plan.members, how))
	return nil
}

func (r *run) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var errs []error
	for _, c := range r.reviewers {
		errs = append(errs, c.client.Disconnect(ctx))
	}
	if r.mortal != nil {
		errs = append(errs, r.mortal.Disconnect(ctx))
	}
	if r.desk != nil {
		if r.set == nil {
			errs = append(errs, r.desk.Database(r.database).Drop(ctx))
		}
		errs = append(errs, r.desk.Disconnect(ctx))
	}
	if r.set != nil {
		errs = append(errs, r.set.Close())
	}
	r.reviewers, r.fixtures, r.mortal, r.desk, r.set = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// crowd is the reviewers' client with that much added to each round trip, its
// connections made.
func (r *run) crowd(ctx context.Context, rtt time.Duration) (*reviewers, error) {
	if c := r.reviewers[rtt]; c != nil {
		return c, nil
	}
	c := &reviewers{meter: newMeter()}
	o := options.Client().ApplyURI(r.uri).SetAppName(Name + " reviewers").SetMinPoolSize(minPool).SetPoolMonitor(c.meter.pool())
	if r.plan.counting {
		o.SetMonitor(c.meter.monitor())
	}
	if rtt > 0 {
		o.SetDialer(slowLink(rtt))
	}
	var err error
	if c.client, err = mongo.Connect(o); err != nil {
		return nil, err
	}
	r.reviewers[rtt] = c
	return c, r.warm(ctx, rtt, c)
}

// warm fills the pool and notes what came of it.
func (r *run) warm(ctx context.Context, rtt time.Duration, c *reviewers) error {
	rounds, most, all, err := c.fill(ctx)
	if err == nil {
		r.note(fmt.Sprintf("connection_pool_warmup: round trip +%v, %d connections, %d of them to one member, after %d rounds of %d pings; at least %d wanted there", rtt, all, most, rounds, minPool, minPool))
	}
	return err
}

// fill makes the connections that the pool shall have at least: rounds of as many pings
// at once, until the primary has them and a round opens none.
func (c *reviewers) fill(ctx context.Context) (rounds, most, all int, err error) {
	const limit = 100
	for rounds = 1; ; rounds++ {
		_, before := c.meter.there()
		var wg sync.WaitGroup
		failed := make([]error, minPool)
		for i := range failed {
			wg.Go(func() { failed[i] = c.client.Ping(ctx, readpref.Primary()) })
		}
		wg.Wait()
		if err := errors.Join(failed...); err != nil {
			return rounds, most, all, fmt.Errorf("pool warm-up: %w", err)
		}
		if most, all = c.meter.there(); rounds == limit || most >= minPool && all == before {
			return rounds, most, all, nil
		}
	}
}
