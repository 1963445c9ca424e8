package authority

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Outcome says what became of a change. The zero Outcome is Unknown.
type Outcome int

const (
	// Unknown: it may take effect, or have taken effect, or never will. Read the record
	// afresh and decide by what it says.
	Unknown Outcome = iota
	// Applied: a majority has it on disk; the revision is the given one plus one.
	Applied
	// Conflict: the record was not at the given revision. Nothing was changed.
	Conflict
)

func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Conflict:
		return "conflict"
	}
	return "unknown"
}

// Writer changes records. It may be used concurrently.
type Writer struct {
	shape
	coll     *mongo.Collection
	deadline time.Duration
}

// NewWriter changes the records of a collection. The write concern of the collection
// is replaced by a journalled majority; it returns an error for options that cannot be.
func NewWriter(coll *mongo.Collection, o Options) (*Writer, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Writer{shape{o.Layout, o.Fields}, coll.Clone(options.Collection().SetWriteConcern(durable())), o.Deadline}, nil
}

// Grant adds a role to the record that is at the given revision. Revision 0 stands for
// a person without a record and makes one, at revision 1.
//
// The error is nil for Applied and Conflict. With any error at all the outcome is
// Unknown: a write concern that was not met, a connection that broke, even arguments
// that cannot be, so that there is one rule for who calls.
func (w *Writer) Grant(ctx context.Context, id ID, role string, revision int64) (Outcome, error) {
	if revision == 0 {
		return w.change(ctx, id, role, revision, bson.D{{Key: "$setOnInsert", Value: bson.D{
			{Key: w.fields.Revision, Value: int64(1)}, {Key: w.fields.Roles, Value: bson.A{role}},
		}}})
	}
	return w.change(ctx, id, role, revision, bson.D{
		{Key: "$addToSet", Value: bson.D{{Key: w.fields.Roles, Value: role}}},
		{Key: "$inc", Value: bson.D{{Key: w.fields.Revision, Value: int64(1)}}},
	})
}

// Revoke removes a role from the record that is at the given revision. The record
// stays when its last role goes, since its revision must not begin again. Errors are
// those of Grant.
func (w *Writer) Revoke(ctx context.Context, id ID, role string, revision int64) (Outcome, error) {
	if revision == 0 {
		return Unknown, errors.New("authority: a revoke needs the revision that was read, 1 or more")
	}
	return w.change(ctx, id, role, revision, bson.D{
		{Key: "$pull", Value: bson.D{{Key: w.fields.Roles, Value: role}}},
		{Key: "$inc", Value: bson.D{{Key: w.fields.Revision, Value: int64(1)}}},
	})
}

func (w *Writer) change(ctx context.Context, id ID, role string, revision int64, update bson.D) (_ Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("authority: the driver panicked: %v", p)
		}
	}()
	if role == "" || revision < 0 || revision == math.MaxInt64 {
		return Unknown, fmt.Errorf("authority: cannot change role %q at revision %d", role, revision)
	}
	ctx, cancel := bound(ctx, w.deadline)
	defer cancel()
	filter := bson.D{{Key: "_id", Value: w.layout.Binary(id)}}
	if revision > 0 {
		filter = append(filter, bson.E{Key: w.fields.Revision, Value: revision})
	}
	res, err := w.coll.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(revision == 0))
	switch {
	case err != nil:
		return Unknown, fmt.Errorf("authority: changing %s: %w", id, err)
	case res == nil || !res.Acknowledged:
		return Unknown, fmt.Errorf("authority: changing %s: the write was not acknowledged", id)
	case revision == 0 && res.UpsertedCount == 1, revision > 0 && res.ModifiedCount == 1:
		return Applied, nil
	case revision == 0 && res.MatchedCount == 1, revision > 0 && res.MatchedCount == 0:
		return Conflict, nil
	}
	return Unknown, fmt.Errorf("authority: changing %s: the server reports %d matched, %d changed", id, res.MatchedCount, res.ModifiedCount)
}
