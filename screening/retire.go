package screening

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Lock takes the bulk-update lock of a project and its studies under the name given.
// From then on only submissions that present it are saved. It may be called again with
// the same name after it was interrupted; a lock of another name is ErrLocked.
func (s *Store) Lock(ctx context.Context, project, name string) error {
	if name == "" {
		return fmt.Errorf("screening: a lock without a name")
	}
	if err := s.lockProject(ctx, project, "", name); err != nil {
		return err
	}
	return s.lockStudies(ctx, project, "", name)
}

// Unlock gives it back.
func (s *Store) Unlock(ctx context.Context, project, name string) error {
	if name == "" {
		return fmt.Errorf("screening: a lock without a name")
	}
	if err := s.lockStudies(ctx, project, name, ""); err != nil {
		return err
	}
	return s.lockProject(ctx, project, name, "")
}

func (s *Store) lockProject(ctx context.Context, project, from, to string) error {
	res, err := majority(s.projects).UpdateOne(ctx, bson.D{{Key: "_id", Value: project}, {Key: "lock", Value: bson.D{{Key: "$in", Value: bson.A{from, to}}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "lock", Value: to}}}, {Key: "$inc", Value: bson.D{{Key: "policyVersion", Value: int64(1)}, {Key: "admissionToken", Value: int64(1)}}}})
	if err != nil || res.MatchedCount == 1 {
		return err
	}
	p, found, err := get[Project](ctx, s.projects, byID(project))
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: %q", ErrUnknownProject, project)
	}
	return fmt.Errorf("project %q: %w %q", project, ErrLocked, p.Lock)
}

// lockStudies raises versions, so that a save that loaded before loses.
func (s *Store) lockStudies(ctx context.Context, project, from, to string) error {
	_, err := majority(s.studies).UpdateMany(ctx, bson.D{{Key: "project", Value: project}, {Key: "lock", Value: from}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "lock", Value: to}}}, {Key: "$inc", Value: bson.D{{Key: "version", Value: int64(1)}}}})
	return err
}

// Drop throws away the pending entries of a project with all its statistics: its
// families are stale until they are rebuilt. What was dropped is known as a range of
// epochs and not one by one, so the outcome of a save that carried one of them and
// whose answer was lost may stay unknown. It returns how many entries went.
func (s *Store) Drop(ctx context.Context, project, reason string) (dropped int, err error) {
	var through int64
	err = s.retry(ctx, func(ctx context.Context) error {
		control, err := s.Control(ctx, project)
		if err != nil {
			return err
		}
		through = control.Epoch
		// The range first: who finds an entry gone must find the range.
		_, err = majority(s.dropped).InsertOne(ctx, dropRange{ID: bson.NewObjectID(), Project: project, From: control.OldestEpoch, Through: through, Reason: reason, At: s.o.Now()})
		if err != nil {
			return err
		}
		control.Epoch++
		control.OldestEpoch = control.Epoch
		control.Version++
		return s.transact(ctx, func(ctx context.Context) error {
			if err := swap(ctx, s.controls, []Control{control}, controlKey); err != nil {
				return err
			}
			return s.restate(ctx, control, func(g *guard) { g.State, g.Epoch = Stale, control.Epoch })
		})
	})
	if err != nil {
		return 0, err
	}
	for {
		sets, err := s.outstanding(ctx, project, 0)
		if err != nil {
			return dropped, err
		}
		again := false
		for _, set := range sets {
			kept := slices.DeleteFunc(slices.Clone(set.Pending), func(raw bson.Raw) bool {
				p := judge(set.ID, raw, Control{OldestEpoch: 0, Epoch: through})
				return p.reason == ""
			})
			if len(kept) == len(set.Pending) {
				continue
			}
			res, err := majority(s.studies).UpdateOne(ctx, at(set.ID, set.Version), bson.D{
				{Key: "$set", Value: bson.D{{Key: "pending", Value: kept}, {Key: "pendingCount", Value: len(kept)}}},
				{Key: "$inc", Value: bson.D{{Key: "version", Value: int64(1)}, {Key: "folds", Value: int64(1)}}}})
			if err != nil {
				return dropped, err
			}
			if res.MatchedCount == 0 {
				again = true
				continue
			}
			dropped += len(set.Pending) - len(kept)
		}
		if !again {
			return dropped, nil
		}
	}
}

// RetireReceipts deletes the receipts of operations born before a time, which is
// rounded down to seconds. Their resubmission is refused from then on (ErrRetired).
func (s *Store) RetireReceipts(ctx context.Context, project string, before time.Time) (deleted int64, err error) {
	before = before.Truncate(time.Second).UTC()
	// The horizon first: who finds a receipt gone must find the horizon.
	_, err = majority(s.retirements).UpdateOne(ctx, byID(project), bson.D{{Key: "$max", Value: bson.D{{Key: "horizon", Value: before}}}}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return 0, err
	}
	var oldest bson.ObjectID
	first := bson.NewObjectIDFromTimestamp(before)
	copy(oldest[:4], first[:4])
	res, err := majority(s.receipts).DeleteMany(ctx, bson.D{{Key: "project", Value: project}, {Key: "op", Value: bson.D{{Key: "$lt", Value: oldest}}}})
	if err != nil {
		return 0, err
	}
	return res.DeletedCount, nil
}
