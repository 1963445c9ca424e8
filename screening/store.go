package screening

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/assaylab/assay/internal/defect"
)

// Options for Open. The zero value is good.
type Options struct {
	// Eligibility has saves follow the project's eligibility policy. Without it the
	// policy is not looked at.
	Eligibility bool
	// Tracking is the reviewer mode that this store was made for: annotation sessions
	// need a seat. Fold and transactional saves are refused when the durable mode
	// (SetTracking) is another.
	Tracking bool
	// PreWriteDeadline is how long after the mode was read a save may begin its write;
	// 0 is 5 s. All stores of a project must have the same, see SetMode.
	PreWriteDeadline time.Duration
	// WriterGrace is how long a write may take before its outcome counts as unknown;
	// 0 is 10 s. All stores of a project must have the same.
	WriterGrace time.Duration
	Now         func() time.Time // nil is time.Now
	Hooks       Hooks
	// Defect plants a defect; only this module can make one that is not zero.
	Defect defect.Defect
}

// Hooks watch a save. They are called on the goroutine of the save; nil is none.
type Hooks struct {
	Begin func(Attempt)
	// Loaded is called when everything that the attempt reads before its first write
	// has been read. An error ends the save.
	Loaded func(context.Context, Attempt) error
	// End is called with nil when the attempt saved. The cause of a stale attempt is
	// in Outcome.Conflicts.
	End func(Attempt, error)
}

// Attempt is one attempt of a save.
type Attempt struct {
	Operation bson.ObjectID
	Study     string
	Reviewer  string
	Number    int // from 1; free retries count here
	Charged   int // attempts charged before this one
}

const (
	attempts    = 3  // charged ones; more trade exhaustion for load on the same document
	freeRetries = 64 // bound of those that only folds caused
)

// Store is a door to the collections of one database. It keeps nothing between calls,
// so each request can have its own. Its methods may be used concurrently.
type Store struct {
	o  Options
	db *mongo.Database

	projects, studies, memberships, grants             *mongo.Collection
	globals, controls, guards, rows, receipts          *mongo.Collection
	retirements, revisions, slots, quarantine, dropped *mongo.Collection
}

// Open makes a store. It issues no command; Initialise must have been called on the
// database once.
func Open(_ context.Context, db *mongo.Database, o Options) (*Store, error) {
	if db == nil {
		return nil, errors.New("screening: no database")
	}
	if o.PreWriteDeadline < 0 || o.WriterGrace < 0 {
		return nil, errors.New("screening: PreWriteDeadline and WriterGrace cannot be negative")
	}
	if o.PreWriteDeadline == 0 {
		o.PreWriteDeadline = 5 * time.Second
	}
	if o.WriterGrace == 0 {
		o.WriterGrace = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{o: o, db: db}
	for name, c := range s.collections() {
		*c = db.Collection(name)
	}
	return s, nil
}

func (s *Store) collections() map[string]**mongo.Collection {
	return map[string]**mongo.Collection{
		"project": &s.projects, "study": &s.studies, "membership": &s.memberships, "stageGrant": &s.grants,
		"statisticsGlobalControl": &s.globals, "statisticsControl": &s.controls, "statisticsPublicationGuard": &s.guards,
		"statisticsCurrent": &s.rows, "statisticsSourceOperationReceipt": &s.receipts, "statisticsReceiptRetirement": &s.retirements,
		"statisticsRevision": &s.revisions, "statisticsNotificationOutbox": &s.slots, "statisticsQuarantine": &s.quarantine,
		"statisticsDropRange": &s.dropped,
	}
}

// StatisticsPrefix begins the name of every collection that is not source, and of no other.
const StatisticsPrefix = "statistics"

// Initialise makes the collections and indexes that are missing, and the global
// control. It may be called again.
func Initialise(ctx context.Context, db *mongo.Database) error {
	s, err := Open(ctx, db, Options{})
	if err != nil {
		return err
	}
	for name := range s.collections() {
		// Made here, because on some versions a transaction cannot make one.
		var exists mongo.CommandError
		if err := db.CreateCollection(ctx, name); err != nil && !(errors.As(err, &exists) && exists.Code == 48) {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	asc := func(keys ...string) (d bson.D) {
		for _, k := range keys {
			d = append(d, bson.E{Key: k, Value: 1})
		}
		return d
	}
	pending := options.Index().SetName("pending").SetPartialFilterExpression(bson.D{{Key: "pendingCount", Value: bson.D{{Key: "$gt", Value: 0}}}})
	for _, ix := range []struct {
		of    *mongo.Collection
		model mongo.IndexModel
	}{
		{s.studies, mongo.IndexModel{Keys: asc("project")}},
		{s.studies, mongo.IndexModel{Keys: asc("project", "pendingCount"), Options: pending}},
		{s.guards, mongo.IndexModel{Keys: asc("project")}},
		{s.rows, mongo.IndexModel{Keys: asc("project", "family")}},
		{s.receipts, mongo.IndexModel{Keys: asc("project", "op")}},
		{s.revisions, mongo.IndexModel{Keys: asc("project", "revision")}},
		{s.slots, mongo.IndexModel{Keys: asc("project")}},
		{s.quarantine, mongo.IndexModel{Keys: asc("project", "op")}},
		{s.dropped, mongo.IndexModel{Keys: asc("project")}},
	} {
		if _, err := ix.of.Indexes().CreateOne(ctx, ix.model); err != nil {
			return fmt.Errorf("index on %s: %w", ix.of.Name(), err)
		}
	}
	_, err = s.globals.UpdateOne(ctx, byID(globalID), bson.D{{Key: "$setOnInsert", Value: bson.D{
		{Key: "tracking", Value: false}, {Key: "version", Value: int64(1)}}}}, options.UpdateOne().SetUpsert(true))
	return err
}

func byID(id any) bson.D { return bson.D{{Key: "_id", Value: id}} }

// at adds the version filter.
func at(id any, version int64) bson.D {
	return bson.D{{Key: "_id", Value: id}, {Key: "version", Value: version}}
}

func in[T any](key string, values []T) bson.D {
	return bson.D{{Key: key, Value: bson.D{{Key: "$in", Value: values}}}}
}

// get reads one document; found is false if there is none.
func get[T any](ctx context.Context, c *mongo.Collection, filter bson.D) (doc T, found bool, err error) {
	res := c.FindOne(ctx, filter)
	switch err := res.Err(); {
	case errors.Is(err, mongo.ErrNoDocuments):
		return doc, false, nil
	case err != nil:
		return doc, false, err
	}
	if err := res.Decode(&doc); err != nil {
		return doc, false, fmt.Errorf("%s: %w: %w", c.Name(), ErrCorrupt, err)
	}
	return doc, true, nil
}

// list reads all documents that match.
func list[T any](ctx context.Context, c *mongo.Collection, filter bson.D, o ...options.Lister[options.FindOptions]) ([]T, error) {
	cur, err := c.Find(ctx, filter, o...)
	if err != nil {
		return nil, err
	}
	defer cur.Close(context.WithoutCancel(ctx))
	var docs []T
	for cur.Next(ctx) {
		var doc T
		if err := cur.Decode(&doc); err != nil {
			return nil, fmt.Errorf("%s: %v: %w: %w", c.Name(), cur.Current.Lookup("_id"), ErrCorrupt, err)
		}
		docs = append(docs, doc)
	}
	return docs, cur.Err()
}

// together runs all at once and returns the first error by position.
func together(fns ...func() error) error {
	errs := make([]error, len(fns))
	var wg sync.WaitGroup
	for i, fn := range fns[1:] {
		wg.Go(func() { errs[i+1] = fn() })
	}
	errs[0] = fns[0]()
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// majority is c with majority reads and writes.
func majority(c *mongo.Collection) *mongo.Collection {
	return c.Clone(options.Collection().SetReadConcern(readconcern.Majority()).SetWriteConcern(writeconcern.Majority()))
}

// snapshot runs fn with all its reads at one timestamp.
func (s *Store) snapshot(ctx context.Context, fn func(context.Context) error) error {
	sess, err := s.db.Client().StartSession(options.Session().SetSnapshot(true))
	if err != nil {
		return err
	}
	defer sess.EndSession(context.WithoutCancel(ctx))
	return fn(mongo.NewSessionContext(ctx, sess))
}
