package authorityreads

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/replset"
)

// run is what the trials of a run have in common: a set that they may use one after the
// other.
type run struct {
	member  []string
	scratch string
	sets    int
	standby *set // that trials without a fault share; nil until one needs it
	there   *set // the one that was there before, if any
	kept    *set // of the last trial with a fault, where sets are kept
}

// set is the replica set of a trial.
type set struct {
	uri      string
	embedded *replset.Set // nil for one that was there before
	timing   replset.Timing
	byWrite  bool
	dir      string
	pids     []int
	seeded   int // people
}

// startTimeout is how long a set may take to be there.
const startTimeout = time.Minute

func (r *run) begin(ctx context.Context, s *flow.Session) (func(context.Context) error, error) {
	p, err := parsePlan(s.Settings)
	if err != nil {
		return nil, err
	}
	r.scratch = s.Scratch
	if p.mongoURI != "" {
		s.Note("on a replica set that was there before; only faults that commands can make are run")
	} else if len(r.member) == 0 {
		s.Note("the members of the replica set are in the harness's own process")
	} else {
		s.Note("each member of the replica set is a process of its own")
	}
	return func(ctx context.Context) error { return r.end(ctx, p) }, nil
}

// end ends what the run has started. A set that is kept is ended by whoever kept it.
func (r *run) end(ctx context.Context, p plan) error {
	last := r.kept
	if last == nil {
		last = r.standby
	}
	if p.keep && last != nil {
		last.hold()
	}
	errs := []error{r.kept.close(), r.standby.close()}
	if r.there != nil {
		errs = append(errs, r.there.clean(ctx))
	}
	r.kept, r.standby, r.there = nil, nil, nil
	return errors.Join(errs...)
}

// clean takes the study's people out of a set that is not ours.
func (s *set) clean(ctx context.Context) error {
	c, err := connect(s.uri, nil)
	if err != nil {
		return err
	}
	defer disconnect(c)
	return c.Database(database).Drop(ctx)
}

// hold keeps a set until somebody ends it.
func (s *set) hold() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	fmt.Fprintf(os.Stderr, "\nkept: %s\nStop it, and get the verdict, with ^C or: kill -INT %d\n", s.uri, os.Getpid())
	<-stop
}

// fresh is a set of the trial's own, which close ends.
func (r *run) fresh(ctx context.Context, p plan, timing replset.Timing) (*set, error) {
	if p.mongoURI != "" {
		if r.there == nil {
			r.there = &set{uri: p.mongoURI}
		}
		return r.there, nil
	}
	r.sets++
	s := &set{timing: timing, byWrite: p.byWrite, dir: filepath.Join(r.scratch, fmt.Sprintf("set-%d", r.sets))}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	s.embedded, err = replset.New(ctx, replset.Options{Dir: s.dir, Command: r.member, Timing: timing, LinearizableByWrite: p.byWrite})
	if err != nil {
		return nil, err
	}
	s.uri, s.pids = s.embedded.URI(), s.embedded.Pids()
	return s, nil
}

// shared is the set that trials without a fault use one after the other.
func (r *run) shared(ctx context.Context, p plan, timing replset.Timing) (*set, error) {
	if p.mongoURI != "" {
		return r.fresh(ctx, p, timing)
	}
	if r.standby != nil && r.standby.timing == timing && r.standby.byWrite == p.byWrite {
		return r.standby, nil
	}
	if err := r.release(); err != nil {
		return nil, err
	}
	s, err := r.fresh(ctx, p, timing)
	r.standby = s
	return s, err
}

// release ends the shared set, so that a trial with a set of its own is alone.
func (r *run) release() error {
	s := r.standby
	r.standby = nil
	return s.close()
}

// close ends the set and says what is left of it. There is nothing to do for none, or
// for one that is not ours.
func (s *set) close() error {
	if s == nil || s.embedded == nil {
		return nil
	}
	addresses := strings.Split(strings.TrimPrefix(strings.SplitN(s.uri, "/?", 2)[0], "mongodb://"), ",")
	pids := append(s.pids, s.embedded.Pids()...)
	errs := []error{s.embedded.Close(), os.RemoveAll(s.dir)}
	for _, pid := range pids {
		if pid > 0 && syscall.Kill(pid, 0) == nil {
			errs = append(errs, fmt.Errorf("process %d of the set is left", pid))
		}
	}
	for _, a := range addresses {
		if c, err := net.DialTimeout("tcp", a, time.Second); err == nil {
			errs = append(errs, fmt.Errorf("the port of %s is still served", a), c.Close())
		}
	}
	if _, err := os.Stat(s.dir); err == nil {
		errs = append(errs, fmt.Errorf("folder %s is left", s.dir))
	}
	return errors.Join(errs...)
}

// connect makes a client of the set, or of one member.
func connect(uri string, more *options.ClientOptions) (*mongo.Client, error) {
	o := options.Client().ApplyURI(uri).SetAppName("authority-reads")
	if more != nil {
		return mongo.Connect(o, more)
	}
	return mongo.Connect(o)
}

// disconnect ends clients; what still runs on them ends with an error.
func disconnect(clients ...*mongo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, c := range clients {
		_ = c.Disconnect(ctx)
	}
}

// The collection of the people. Its database is the study's own.
const (
	database   = "assay_authority_reads"
	collection = "people"
)

func peopleOf(c *mongo.Client) *mongo.Collection { return c.Database(database).Collection(collection) }

// believes says whether a member takes itself for the primary.
func believes(ctx context.Context, c *mongo.Client) (bool, error) {
	var answer struct {
		IsWritablePrimary bool `bson:"isWritablePrimary"`
	}
	err := c.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&answer)
	return answer.IsWritablePrimary, err
}

// stepDown asks the primary to step down, with a command for a set that is not ours.
func (s *set) stepDown(ctx context.Context) error {
	if s.embedded != nil {
		return s.embedded.StepDown(ctx)
	}
	c, err := connect(s.uri, nil)
	if err != nil {
		return err
	}
	defer disconnect(c)
	err = c.Database("admin").RunCommand(ctx, bson.D{{Key: "replSetStepDown", Value: 60}, {Key: "secondaryCatchUpPeriodSecs", Value: 10}}).Err()
	if mongo.IsNetworkError(err) {
		return nil // before 4.2 a step-down closed the connection it was asked on
	}
	return err
}
