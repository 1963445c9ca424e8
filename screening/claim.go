package screening

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/screening/tally"
)

// Claim reserves a study for a reviewer: Study, or any of the project with a seat left
// where Study is empty. Project may be empty where Study is not, at the cost of a read.
// With Options.Eligibility it is the admission of the reviewer to the study.
type Claim struct {
	Submission
	Reviewer, Stage string
}

// Claim reserves a study. Its moves do not depend on the study, so it is one update
// without a load; Outcome.Study says which it was.
func (s *Store) Claim(ctx context.Context, path SavePath, k Claim) (out Outcome, err error) {
	out.Operation = k.Operation
	if out.Operation.IsZero() {
		out.Operation = bson.NewObjectIDFromTimestamp(s.o.Now())
	}
	switch {
	case path < SourceOnly || path > ByMode:
		return out, fmt.Errorf("screening: no such path: %v", path)
	case k.Reviewer == "":
		return out, fmt.Errorf("screening: %w: no reviewer named", ErrNotEligible)
	case k.Project == "" && k.Study == "":
		return out, fmt.Errorf("screening: %w: neither project nor study named", ErrUnknownProject)
	case k.Project == "":
		var owner struct{ Project string }
		err := s.studies.FindOne(ctx, byID(k.Study), options.FindOne().SetProjection(bson.D{{Key: "project", Value: 1}})).Decode(&owner)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return out, fmt.Errorf("%w: %q", ErrUnknownStudy, k.Study)
		}
		if err != nil {
			return out, err
		}
		k.Project = owner.Project
	}
	if k.Resubmission {
		known, err := s.claimed(ctx, k.Project, out.Operation)
		if err != nil {
			return out, err
		}
		if known {
			return out, fmt.Errorf("operation %s: %w", out.Operation.Hex(), ErrDuplicate)
		}
	}
	for {
		a := Attempt{Operation: out.Operation, Study: k.Study, Reviewer: k.Reviewer, Number: out.Attempts + 1, Charged: out.Attempts}
		if s.o.Hooks.Begin != nil {
			s.o.Hooks.Begin(a)
		}
		err := s.claim(ctx, path, k, a, &out)
		if errors.Is(err, ErrDuplicate) {
			err = s.lasting(ctx, k.Project, out.Study, out.Operation, err)
		}
		if s.o.Hooks.End != nil {
			s.o.Hooks.End(a, err)
		}
		out.Attempts++
		var stale *lost
		if err == nil || !errors.As(err, &stale) {
			return out, err
		}
		out.Conflicts = append(out.Conflicts, Conflict{Cause: s.report(stale.cause), Study: k.Study})
		if out.Attempts >= attempts {
			return out, fmt.Errorf("claim: %w after %d attempts: %w", ErrExhausted, out.Attempts, stale)
		}
	}
}

// claim is one attempt.
func (s *Store) claim(ctx context.Context, path SavePath, k Claim, a Attempt, out *Outcome) error {
	began := s.o.Now()
	mode := ModeOff
	var control Control
	if path.reads() {
		var global globalControl
		if err := together(func() (err error) {
			global, _, err = get[globalControl](ctx, s.globals, byID(globalID))
			return err
		}, func() (err error) {
			control, err = s.Control(ctx, k.Project)
			return err
		}); err != nil {
			return err
		}
		if mode = control.Mode; path == Fold && mode != ModeFold || global.Tracking != s.o.Tracking {
			return fmt.Errorf("%w: project %q is %s, tracking is %v", ErrModeDisagrees, k.Project, mode, global.Tracking)
		}
	}
	if path == Transactional {
		mode = ModeTransactional
	}
	if s.o.Hooks.Loaded != nil {
		if err := s.o.Hooks.Loaded(ctx, a); err != nil {
			return err
		}
	}
	if path.reads() {
		if err := s.inTime(began); err != nil {
			return err
		}
	}
	grace, cancel := context.WithTimeout(ctx, s.o.WriterGrace)
	defer cancel()
	body, cancel := context.WithTimeout(ctx, s.o.WriterGrace/2)
	defer cancel()
	var err error
	if mode == ModeTransactional || s.o.Eligibility {
		err = s.transact(body, func(ctx context.Context) (err error) {
			if mode == ModeTransactional {
				if control, err = s.authority(ctx, path, k.Project); err != nil {
					return err
				}
			}
			if s.o.Eligibility {
				if err := s.admitClaim(ctx, k); err != nil {
					return err
				}
			}
			owed, err := s.reserve(ctx, s.studies, mode, k, control, out)
			if err != nil || mode != ModeTransactional {
				return blame(err, Unattributed)
			}
			return s.record(ctx, control, out.Study, owed)
		})
	} else {
		studies := s.studies
		if mode == ModeFold {
			studies = majority(s.studies)
		}
		if _, err = s.reserve(grace, studies, mode, k, control, out); err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
			err = &inDoubt{err}
		}
	}
	var doubt *inDoubt
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return s.unclaimable(ctx, k)
	case errors.As(err, &doubt):
		saved, err := s.resolve(ctx, Ticket{Project: k.Project, Study: k.Study, Operation: out.Operation, Epoch: control.Epoch}, doubt.err)
		out.Resolved = true
		if err == nil && !saved {
			err = &lost{cause: Interrupted, err: doubt.err}
		}
		return err
	}
	return err
}

// admitClaim is the eligibility policy for a claim. It needs no project read outside:
// the transaction collides with whatever changes the policy meanwhile.
func (s *Store) admitClaim(ctx context.Context, k Claim) error {
	var p Project
	err := s.projects.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: k.Project}},
		bson.D{{Key: "$inc", Value: bson.D{{Key: "admissionToken", Value: int64(1)}}}}).Decode(&p)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return fmt.Errorf("%w: %q", ErrUnknownProject, k.Project)
	case err != nil:
		return blame(err, ProjectToken)
	case p.Lock != k.Lock:
		return fmt.Errorf("project %q: %w %q", k.Project, ErrLocked, p.Lock)
	case !p.Eligibility:
		return nil
	}
	return s.eligible(ctx, k.Project, k.Stage, k.Reviewer)
}

// reserve takes the seat, and leaves an entry in fold mode.
func (s *Store) reserve(ctx context.Context, studies *mongo.Collection, mode Mode, k Claim, control Control, out *Outcome) ([]Entry, error) {
	now := s.o.Now()
	filter := bson.D{{Key: "project", Value: k.Project}, {Key: "lock", Value: k.Lock},
		{Key: "holders", Value: bson.D{{Key: "$ne", Value: k.Reviewer}}}, seatFor(k.Reviewer)}
	if k.Study != "" {
		filter = append(byID(k.Study), filter...)
	}
	r := tally.Reservation{Reviewer: k.Reviewer, Stage: k.Stage, At: now}
	push := bson.D{{Key: "reservations", Value: r}, {Key: "holders", Value: k.Reviewer},
		{Key: "recent", Value: bson.D{{Key: "$each", Value: bson.A{out.Operation}}, {Key: "$slice", Value: -recentKept}}}}
	inc := bson.D{{Key: "version", Value: int64(1)}}
	var owed []Entry
	if mode != ModeOff {
		owed = entries(control.Families, control.Epoch, []half{{ScreeningNamespace, tally.Study{}, tally.Study{Reservations: []tally.Reservation{r}}}}, out.Operation, now)
		if mode == ModeFold && len(owed) > 0 {
			push = append(push, bson.E{Key: "pending", Value: owed[0]})
			inc = append(inc, bson.E{Key: "pendingCount", Value: 1})
		}
	}
	var got seating
	var id struct {
		ID string `bson:"_id"`
	}
	res := studies.FindOneAndUpdate(ctx, filter, bson.D{{Key: "$push", Value: push}, {Key: "$inc", Value: inc}},
		options.FindOneAndUpdate().SetReturnDocument(options.After).SetProjection(bson.D{{Key: "version", Value: 1}}))
	if err := res.Decode(&got); err != nil {
		return nil, err
	}
	if err := res.Decode(&id); err != nil {
		return nil, err
	}
	out.Study, out.Version, out.Entries = id.ID, got.Version, len(owed)
	return owed, nil
}

// claimed looks for an operation everywhere that knows of it, studies first.
func (s *Store) claimed(ctx context.Context, project string, op bson.ObjectID) (bool, error) {
	for _, q := range []struct {
		c   *mongo.Collection
		key string
	}{{s.studies, "recent"}, {s.receipts, "op"}, {s.quarantine, "op"}} {
		if _, found, err := get[bson.Raw](ctx, majority(q.c), bson.D{{Key: "project", Value: project}, {Key: q.key, Value: op}}); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// unclaimable says why nothing matched.
func (s *Store) unclaimable(ctx context.Context, k Claim) error {
	if k.Study == "" {
		if _, found, err := get[Project](ctx, s.projects, byID(k.Project)); err != nil {
			return err
		} else if !found {
			return fmt.Errorf("%w: %q", ErrUnknownProject, k.Project)
		}
		return fmt.Errorf("project %q: %w for %q", k.Project, ErrNothingToClaim, k.Reviewer)
	}
	study, found, err := get[Study](ctx, s.studies, byID(k.Study))
	p := seating{study.Version, study.Folds, study.Capacity, study.Holders}
	switch {
	case err != nil:
		return err
	case !found || study.Project != k.Project:
		return s.unknownStudy(ctx, k.Project, k.Study)
	case study.Lock != k.Lock:
		return fmt.Errorf("study %q: %w %q", k.Study, ErrLocked, study.Lock)
	case p.full(k.Reviewer):
		return fmt.Errorf("study %q: %w: %d of %d seats taken", k.Study, ErrAtCapacity, len(p.Holders), p.Capacity)
	}
	return fmt.Errorf("study %q: %w: %q has a seat already", k.Study, ErrNothingToClaim, k.Reviewer)
}
