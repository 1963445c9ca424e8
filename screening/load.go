package screening

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// loaded is what an attempt has read before its first write.
type loaded struct {
	began   time.Time // before the first read
	study   Study
	project *Project // with eligibility on
	control *Control // where the path needs it outside a transaction
}

// load is round 1 of an attempt: everything that it needs, read concurrently.
func (s *Store) load(ctx context.Context, path SavePath, c *change, out *Outcome, last *loaded) (*loaded, error) {
	l := &loaded{began: s.o.Now()}
	var study, control, project, global bool
	var mode globalControl
	var known atomic.Bool
	op := out.Operation
	reads := []func() error{func() (err error) {
		l.study, study, err = get[Study](ctx, s.studies, byID(c.Study))
		return err
	}}
	if path.reads() {
		l.control = &Control{}
		reads = append(reads, func() (err error) {
			mode, global, err = get[globalControl](ctx, s.globals, byID(globalID))
			return err
		}, func() (err error) {
			*l.control, control, err = get[Control](ctx, s.controls, byID(c.Project))
			return err
		})
	}
	if s.o.Eligibility && c.eligible {
		l.project = &Project{}
		reads = append(reads, func() (err error) {
			*l.project, project, err = get[Project](ctx, s.projects, byID(c.Project))
			return err
		})
	}
	if path.reads() && last != nil {
		reads = append(reads, s.stored(ctx, c.Project, op, &known)...)
	}
	if err := together(reads...); err != nil {
		return nil, err
	}
	switch {
	case l.control != nil && !control, l.project != nil && !project:
		return nil, fmt.Errorf("%w: %q", ErrUnknownProject, c.Project)
	case !study || l.study.Project != c.Project:
		return nil, s.unknownStudy(ctx, c.Project, c.Study)
	case l.control != nil && (!global || mode.Tracking != s.o.Tracking):
		return nil, fmt.Errorf("%w: tracking is %v, the store was opened with %v", ErrModeDisagrees, mode.Tracking, s.o.Tracking)
	case l.study.Lock != c.Lock, l.project != nil && l.project.Lock != c.Lock:
		return nil, fmt.Errorf("study %q: %w %q", c.Study, ErrLocked, l.study.Lock)
	}
	again := c.Resubmission
	if last != nil {
		s.attribute(out, last, l.study.position())
		again = l.study.Folds > last.study.Folds
	}
	if path.reads() && again && !known.Load() {
		// F4: after the study, or a fold may have moved the operation's entry past the reads.
		if err := together(s.stored(ctx, c.Project, op, &known)...); err != nil {
			return nil, err
		}
	}
	if !known.Load() && path.reads() && c.Resubmission {
		if err := s.kept(ctx, c.Project, op); err != nil {
			return nil, err
		}
	}
	if known.Load() || slices.Contains(l.study.Recent, op) || l.study.carries(op) {
		return nil, fmt.Errorf("operation %s: %w", op.Hex(), ErrDuplicate)
	}
	return l, nil
}

// stored are the reads of the two places that an operation's entries go to.
func (s *Store) stored(ctx context.Context, project string, op bson.ObjectID, known *atomic.Bool) []func() error {
	look := func(c *mongo.Collection) func() error {
		return func() error {
			err := c.FindOne(ctx, bson.D{{Key: "project", Value: project}, {Key: "op", Value: op}},
				options.FindOne().SetProjection(byID(1))).Err()
			if errors.Is(err, mongo.ErrNoDocuments) {
				return nil
			}
			if err == nil {
				known.Store(true)
			}
			return err
		}
	}
	return []func() error{look(s.receipts), look(s.quarantine)}
}

// kept checks that a resubmitted operation is young enough for its receipt to be there,
// had it been saved.
func (s *Store) kept(ctx context.Context, project string, op bson.ObjectID) error {
	r, found, err := get[retirement](ctx, s.retirements, byID(project))
	if err == nil && found && op.Timestamp().Before(r.Horizon) {
		return fmt.Errorf("operation %s: %w: born %v, kept since %v", op.Hex(), ErrRetired, op.Timestamp(), r.Horizon)
	}
	return err
}

// unknownStudy says which of the two is unknown, now that it does not matter what it costs.
func (s *Store) unknownStudy(ctx context.Context, project, study string) error {
	_, found, err := get[Project](ctx, s.projects, byID(project))
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: %q", ErrUnknownProject, project)
	}
	return fmt.Errorf("%w: %q in %q", ErrUnknownStudy, study, project)
}

// seating is the part of a study that a diagnosis needs.
type seating struct {
	Version  int64    `bson:"version"`
	Folds    int64    `bson:"folds"`
	Capacity int      `bson:"capacity"`
	Holders  []string `bson:"holders"`
}

func (p seating) full(reviewer string) bool {
	return p.Capacity > 0 && len(p.Holders) >= p.Capacity && !slices.Contains(p.Holders, reviewer)
}

// seats is the diagnosis read.
func (s *Store) seats(ctx context.Context, study string) (p seating, err error) {
	err = s.studies.FindOne(ctx, byID(study), options.FindOne().SetProjection(bson.D{
		{Key: "version", Value: 1}, {Key: "folds", Value: 1}, {Key: "capacity", Value: 1}, {Key: "holders", Value: 1}})).Decode(&p)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return p, fmt.Errorf("%w: %q", ErrUnknownStudy, study)
	}
	return p, err
}

// peek attributes the last conflict without loading for another attempt.
func (s *Store) peek(ctx context.Context, out *Outcome, last *loaded) error {
	if out.Conflicts[len(out.Conflicts)-1].Cause != Unattributed {
		return nil
	}
	p, err := s.seats(ctx, last.study.ID)
	if err == nil {
		s.attribute(out, last, position{p.Version, p.Folds})
	}
	return err
}
