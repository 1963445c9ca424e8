package authority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// DefaultDeadline bounds a read or a write for which the options name no deadline.
const DefaultDeadline = 5 * time.Second

// maxDeadline is far below 24.8 days, above which the driver leaves maxTimeMS out.
const maxDeadline = 10 * time.Minute

// Options are what readers and writers need to know of the collection. How safe a
// read is cannot be chosen.
type Options struct {
	Layout Layout // of the UUIDs in _id
	Fields Fields

	// Deadline is the longest that one read or write may take, 1 ms to 10 min; 0 is 5 s. A
	// caller's own context may shorten it.
	Deadline time.Duration
}

func (o *Options) check() error {
	if o.Deadline == 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Deadline < time.Millisecond || o.Deadline > maxDeadline {
		return fmt.Errorf("authority: a deadline of %s; it is 1ms to %s", o.Deadline, maxDeadline)
	}
	return errors.Join(o.Layout.check(), o.Fields.check())
}

// Source answers what a person's record is.
type Source interface {
	Read(ctx context.Context, id ID) (Record, error)
}

// Reader reads records, each with a read of its own. It may be used concurrently.
type Reader struct {
	shape
	coll     *mongo.Collection
	project  bson.D
	deadline time.Duration
}

// NewReader reads the records of a collection. Read concern and read preference of the
// collection are replaced; it returns an error for options that cannot be.
func NewReader(coll *mongo.Collection, o Options) (*Reader, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Reader{
		shape:    shape{o.Layout, o.Fields},
		coll:     coll.Clone(options.Collection().SetReadConcern(readconcern.Linearizable()).SetReadPreference(readpref.Primary())),
		project:  bson.D{{Key: o.Fields.Revision, Value: 1}, {Key: o.Fields.Roles, Value: 1}},
		deadline: o.Deadline,
	}, nil
}

// Read gives the record of a person as it was at some moment between the call and the
// return. That there is no such person is an answer, not an error. Every error is a
// *Refusal: nothing is known, and nothing may be allowed.
//
// A session in ctx is not used. Within a transaction the driver would leave the read
// concern out.
func (r *Reader) Read(ctx context.Context, id ID) (rec Record, err error) {
	defer func() {
		if p := recover(); p != nil {
			rec, err = Record{}, &Refusal{Fault, fmt.Errorf("the driver panicked: %v", p)}
		}
	}()
	bounded, cancel := bound(ctx, r.deadline)
	defer cancel()
	raw, err := r.coll.FindOne(bounded, bson.D{{Key: "_id", Value: r.layout.Binary(id)}}, options.FindOne().SetProjection(r.project)).Raw()
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return Record{ID: id}, nil
	case err != nil:
		return Record{}, refuse(ctx, err)
	}
	rec, err = r.parse(raw, id)
	if err != nil {
		return Record{}, &Refusal{Malformed, fmt.Errorf("record of %s: %w", id, err)}
	}
	return rec, nil
}

// bound gives the context of one operation: it ends at the deadline, from which the
// driver also takes the maxTimeMS that it sends, and carries no session.
func bound(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	if mongo.SessionFromContext(ctx) != nil {
		ctx = mongo.NewSessionContext(ctx, nil)
	}
	return ctx, cancel
}

// durable acknowledges a write when a majority has it on disk.
func durable() *writeconcern.WriteConcern {
	journal := true
	return &writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journal}
}
