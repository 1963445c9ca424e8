package authorityreads

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/assaylab/assay/authority"
)

// role is the one that is granted at odd revisions and revoked at even ones.
const role = "investigator"

// shape is how the people lie in their documents: as systems whose first driver was
// that of C# have them.
func (p plan) shape() authority.Options {
	return authority.Options{Layout: authority.CSharpLegacy, Deadline: p.deadline}
}

// cold is the id of a person whom nobody changes.
func cold(i int) (id authority.ID) {
	binary.BigEndian.PutUint64(id[:], 0x9e3779b97f4a7c15*uint64(i+1))
	binary.BigEndian.PutUint64(id[8:], uint64(i)|0x8000<<48)
	return id
}

func document(id authority.ID) bson.D {
	return bson.D{
		{Key: "_id", Value: authority.CSharpLegacy.Binary(id)}, {Key: "revision", Value: int64(1)}, {Key: "roles", Value: bson.A{"reader", role}},
		{Key: "name", Value: "Investigator " + id.String()[:8]}, {Key: "email", Value: id.String() + "@example.org"},
		{Key: "memberships", Value: bson.A{"systematic-review", "living-review"}}, {Key: "created", Value: time.Unix(1_700_000_000, 0)},
	}
}

// seed makes the people that are missing, and new hot ones, at revision 1.
func (s *set) seed(ctx context.Context, coll *mongo.Collection, p plan) (hot []authority.ID, err error) {
	coll = coll.Clone(options.Collection().SetWriteConcern(writeconcern.Majority()))
	if s.seeded == 0 {
		if err := coll.Drop(ctx); err != nil {
			return nil, fmt.Errorf("dropping the people of an earlier run: %w", err)
		}
	}
	const batch = 1000
	for s.seeded < p.people {
		docs := make([]any, 0, batch)
		for i := s.seeded; i < min(s.seeded+batch, p.people); i++ {
			docs = append(docs, document(cold(i)))
		}
		if _, err := coll.InsertMany(ctx, docs); err != nil {
			return nil, fmt.Errorf("seeding: %w", err)
		}
		s.seeded += len(docs)
	}
	docs := make([]any, p.hot)
	hot = make([]authority.ID, p.hot)
	for i := range hot {
		_, _ = rand.Read(hot[i][:])
		docs[i] = document(hot[i])
	}
	if _, err := coll.InsertMany(ctx, docs); err != nil {
		return nil, fmt.Errorf("seeding: %w", err)
	}
	raw, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: authority.CSharpLegacy.Binary(hot[0])}}).Raw()
	if err != nil {
		return nil, fmt.Errorf("looking at what was seeded: %w", err)
	}
	if subtype, _, ok := raw.Lookup("_id").BinaryOK(); !ok || subtype != bson.TypeBinaryUUIDOld {
		return nil, errors.New("seeded people do not have an _id of BinData subtype 3")
	}
	return hot, nil
}

// weak is a read of the control: the same document, bounded in the same way, with
// another read concern. A primary that was cut off answers it with what it last knew.
type weak struct {
	coll     *mongo.Collection
	deadline time.Duration
}

func newMajority(c *mongo.Collection, o authority.Options) (authority.Source, error) {
	return newWeak(c, o, readconcern.Majority()), nil
}

func newWeak(c *mongo.Collection, o authority.Options, rc *readconcern.ReadConcern) *weak {
	return &weak{c.Clone(options.Collection().SetReadConcern(rc).SetReadPreference(readpref.Primary())), o.Deadline}
}

func (w *weak) Read(ctx context.Context, id authority.ID) (authority.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, w.deadline)
	defer cancel()
	var doc struct {
		Revision int64    `bson:"revision"`
		Roles    []string `bson:"roles"`
	}
	err := w.coll.FindOne(ctx, bson.D{{Key: "_id", Value: authority.CSharpLegacy.Binary(id)}}, options.FindOne().SetProjection(bson.D{{Key: "revision", Value: 1}, {Key: "roles", Value: 1}})).Decode(&doc)
	reason := authority.ServerError
	switch {
	case err == nil:
		return authority.Record{ID: id, Found: true, Revision: doc.Revision, Roles: doc.Roles}, nil
	case errors.Is(err, mongo.ErrNoDocuments):
		return authority.Record{ID: id}, nil
	case mongo.IsTimeout(err):
		reason = authority.Deadline
	case mongo.IsNetworkError(err):
		reason = authority.Unreachable
	}
	return authority.Record{}, &authority.Refusal{Reason: reason, Err: err}
}
