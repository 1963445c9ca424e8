package screening

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Resolve finds out what became of a write whose outcome was unknown: saved, or not
// saved and never to be. It answers on proof only (docs/screening.md section 8);
// without one it returns ErrOutcomeUnknown again, with why.
func (s *Store) Resolve(ctx context.Context, t Ticket) (saved bool, err error) {
	return s.resolve(ctx, t, errors.New("asked later"))
}

func (s *Store) resolve(ctx context.Context, t Ticket, cause error) (bool, error) {
	unknown := func(why error) (bool, error) {
		return false, &UnknownError{Ticket: t, Cause: fmt.Errorf("%w; after %w", why, cause)}
	}
	if ctx.Err() != nil {
		return unknown(ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.WriterGrace)
	defer cancel()
	if t.Study == "" {
		return s.resolveClaim(ctx, t, unknown)
	}
	for {
		study, saved, err := s.recorded(ctx, t.Project, t.Study, t.Operation)
		if err != nil {
			return unknown(err)
		}
		if saved {
			return true, nil
		}
		if t.Version > 0 && study.Version == t.Version {
			won, err := s.fence(ctx, t)
			if err != nil {
				return unknown(err)
			}
			if won {
				return false, nil
			}
			continue
		}
		if t.Version == 0 {
			return unknown(errors.New("the write had no version to fence"))
		}
		if since := (study.Version - t.Version) - (study.Folds - t.Folds); since <= recentKept {
			return false, nil // had it landed, it would still be among the recent ones
		}
		if !t.Durable {
			return unknown(fmt.Errorf("the study has been written more than %d times since", recentKept))
		}
		if err := s.forgotten(ctx, t); err != nil {
			return unknown(err)
		}
		return false, nil
	}
}

// recorded looks for an operation wherever the majority may have a record of it.
func (s *Store) recorded(ctx context.Context, project, id string, op bson.ObjectID) (study Study, is bool, err error) {
	study, found, err := get[Study](ctx, majority(s.studies), byID(id))
	switch {
	case err != nil:
		return study, false, err
	case !found:
		return study, false, fmt.Errorf("%w: %q", ErrUnknownStudy, id)
	case slices.Contains(study.Recent, op) || study.carries(op):
		return study, true, nil
	}
	// After the study, because the worker moves entries in this direction only.
	for _, c := range []*mongo.Collection{s.receipts, s.quarantine} {
		_, found, err := get[bson.Raw](ctx, majority(c), bson.D{{Key: "project", Value: project}, {Key: "op", Value: op}})
		if found || err != nil {
			return study, found, err
		}
	}
	return study, false, nil
}

// lasting is duplicate, once the majority has what the attempt found: its reads are
// of the primary, and what the primary alone has may yet be rolled back (F5). If that
// does not come within the grace, the outcome is unknown.
func (s *Store) lasting(ctx context.Context, project, study string, op bson.ObjectID, duplicate error) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.WriterGrace)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		_, saved, err := s.recorded(ctx, project, study, op)
		if saved {
			return duplicate
		}
		if err == nil {
			err = pause(ctx, wait)
		}
		if err != nil {
			return &UnknownError{Ticket: Ticket{Project: project, Study: study, Operation: op}, Cause: fmt.Errorf("it was there before, but not on a majority: %w", err)}
		}
	}
}

// fence raises the version that the write was filtered on, after which it cannot match.
func (s *Store) fence(ctx context.Context, t Ticket) (won bool, err error) {
	res, err := majority(s.studies).UpdateOne(ctx, at(t.Study, t.Version), bson.D{{Key: "$inc", Value: bson.D{{Key: "version", Value: int64(1)}}}})
	return err == nil && res.MatchedCount == 1, err
}

// forgotten says why the absence of a record proves nothing, or nil.
func (s *Store) forgotten(ctx context.Context, t Ticket) error {
	_, found, err := get[dropRange](ctx, majority(s.dropped), bson.D{{Key: "project", Value: t.Project},
		{Key: "fromEpoch", Value: bson.D{{Key: "$lte", Value: t.Epoch}}}, {Key: "throughEpoch", Value: bson.D{{Key: "$gte", Value: t.Epoch}}}})
	if err != nil {
		return err
	}
	if found {
		return fmt.Errorf("entries of epoch %d were dropped without a record each", t.Epoch)
	}
	r, found, err := get[retirement](ctx, majority(s.retirements), byID(t.Project))
	if err == nil && found && t.Operation.Timestamp().Before(r.Horizon) {
		return fmt.Errorf("%w: kept since %v", ErrRetired, r.Horizon)
	}
	return err
}

// resolveClaim looks for a claim of any study. Its absence cannot be proved, since
// there is no version to fence.
func (s *Store) resolveClaim(ctx context.Context, t Ticket, unknown func(error) (bool, error)) (bool, error) {
	_, found, err := get[bson.Raw](ctx, majority(s.studies), bson.D{{Key: "project", Value: t.Project}, {Key: "recent", Value: t.Operation}})
	switch {
	case err != nil:
		return unknown(err)
	case found:
		return true, nil
	}
	return unknown(errors.New("a claim of any study has no version to fence"))
}
