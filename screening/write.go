package screening

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/internal/defect"
)

// written is what an attempt wrote.
type written struct {
	version  int64
	entries  int
	resolved bool
}

// write is the rest of an attempt, after its loads: it decides, and writes.
func (s *Store) write(ctx context.Context, path SavePath, c *change, l *loaded, op bson.ObjectID) (written, error) {
	mode := ModeOff
	switch {
	case path == Transactional:
		mode = ModeTransactional
	case path == Fold && l.control.Mode != ModeFold:
		return written{}, fmt.Errorf("%w: project %q is %s, not fold", ErrModeDisagrees, c.Project, l.control.Mode)
	case path.reads():
		mode = l.control.Mode
	}
	var w written
	var err error
	if mode == ModeTransactional {
		w, err = s.transactional(ctx, path, c, l, op)
	} else {
		w, err = s.plain(ctx, path, mode, c, l, op)
	}
	var doubt *inDoubt
	if errors.As(err, &doubt) {
		saved, err := s.resolve(ctx, ticket(c, l, op, w, mode), doubt.err)
		w.resolved = true
		if err == nil && !saved {
			err = &lost{cause: Interrupted, err: doubt.err}
		}
		return w, err
	}
	return w, err
}

func ticket(c *change, l *loaded, op bson.ObjectID, w written, mode Mode) Ticket {
	t := Ticket{Project: c.Project, Study: c.Study, Operation: op, Version: l.study.Version, Folds: l.study.Folds, Durable: w.entries > 0}
	if l.control != nil && mode == ModeFold {
		t.Epoch = l.control.Epoch
	}
	return t
}

// plain writes the study alone, with its pending entries in fold mode; with the
// eligibility policy or a presence, in a transaction that writes no statistics either.
func (s *Store) plain(ctx context.Context, path SavePath, mode Mode, c *change, l *loaded, op bson.ObjectID) (w written, err error) {
	next, halves, err := c.evolve(l.study, op, s.o.Now())
	if err != nil {
		return w, err
	}
	w.version = next.Version
	studies := s.studies
	if mode == ModeFold {
		owed := entries(l.control.Families, l.control.Epoch, halves, op, s.o.Now())
		if w.entries = len(owed); w.entries > 0 {
			if err := next.carry(owed); err != nil {
				return w, err
			}
		}
		studies = majority(s.studies)
		if s.o.Defect == defect.ExtraCommand() {
			if _, _, err := get[Study](ctx, s.studies, byID(c.Study)); err != nil {
				return w, err
			}
		}
	}
	if path.reads() {
		if err := s.inTime(l.began); err != nil {
			return w, err
		}
	}
	grace, cancel := context.WithTimeout(ctx, s.o.WriterGrace)
	defer cancel()
	body, cancel := context.WithTimeout(ctx, s.o.WriterGrace/2)
	defer cancel()
	switch {
	case l.project != nil:
		err = s.transact(body, func(ctx context.Context) error {
			if err := s.admit(ctx, c, l.project); err != nil {
				return err
			}
			res, err := s.studies.ReplaceOne(ctx, s.filter(c, l), next)
			if err == nil && res.MatchedCount == 0 {
				return &lost{cause: Unattributed}
			}
			return blame(err, Unattributed)
		})
	case c.presence && s.o.Tracking:
		err = s.transact(body, func(ctx context.Context) error {
			if err := s.agree(ctx); err != nil {
				return err
			}
			return s.replace(ctx, s.studies, c, l, next)
		})
	default:
		err = s.replace(grace, studies, c, l, next)
		var stale *lost
		if err != nil && !errors.As(err, &stale) {
			err = &inDoubt{err}
		}
	}
	return w, s.diagnose(ctx, c, l, err)
}

// inTime is the deadline before the write (S16). A clock that ran backwards cannot tell.
func (s *Store) inTime(began time.Time) error {
	if took := s.o.Now().Sub(began); took < 0 || took > s.o.PreWriteDeadline {
		return fmt.Errorf("%w: %v since the mode was read, %v allowed", ErrDeadline, took, s.o.PreWriteDeadline)
	}
	return nil
}

// filter is what a study must still be for the write to match (S1).
func (s *Store) filter(c *change, l *loaded) bson.D {
	f := at(c.Study, l.study.Version)
	if s.o.Defect == defect.IgnoredVersion() {
		f = byID(c.Study)
	}
	if c.Guarded {
		f = append(f, seatFor(c.reviewer))
	}
	return f
}

// seatFor is the condition that a reviewer has, or can have, a seat.
func seatFor(reviewer string) bson.E {
	return bson.E{Key: "$or", Value: bson.A{
		bson.D{{Key: "capacity", Value: 0}},
		bson.D{{Key: "holders", Value: reviewer}},
		bson.D{{Key: "$expr", Value: bson.D{{Key: "$lt", Value: bson.A{bson.D{{Key: "$size", Value: bson.D{{Key: "$ifNull", Value: bson.A{"$holders", bson.A{}}}}}}, "$capacity"}}}}},
	}}
}

// replace is the findAndModify of the study.
func (s *Store) replace(ctx context.Context, studies *mongo.Collection, c *change, l *loaded, next Study) error {
	err := studies.FindOneAndReplace(ctx, s.filter(c, l), next, options.FindOneAndReplace().SetProjection(byID(1))).Err()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return &lost{cause: Unattributed}
	}
	return blame(err, Unattributed)
}

// diagnose reads what a guarded write that matched nothing met: no seat, or a study
// that has moved.
func (s *Store) diagnose(ctx context.Context, c *change, l *loaded, err error) error {
	var stale *lost
	if !c.Guarded || !errors.As(err, &stale) || stale.cause != Unattributed {
		return err
	}
	p, err := s.seats(ctx, c.Study)
	switch {
	case err != nil:
		return err
	case p.full(c.reviewer):
		return fmt.Errorf("study %q: %w: %d of %d seats taken", c.Study, ErrAtCapacity, len(p.Holders), p.Capacity)
	}
	stale.now = &position{p.Version, p.Folds}
	return stale
}

// agree is the durable mode check inside a transaction.
func (s *Store) agree(ctx context.Context) error {
	mode, found, err := seek[globalControl](ctx, s.globals, byID(globalID))
	if err == nil && (!found || mode.Tracking != s.o.Tracking) {
		return fmt.Errorf("%w: tracking is %v, the store was opened with %v", ErrModeDisagrees, mode.Tracking, s.o.Tracking)
	}
	return err
}

// admit is the eligibility policy inside a transaction: the project's admission token
// is raised, so that the transaction collides with every change of the policy (S13).
func (s *Store) admit(ctx context.Context, c *change, p *Project) error {
	filter := bson.D{{Key: "_id", Value: p.ID}, {Key: "policyVersion", Value: p.PolicyVersion}, {Key: "lock", Value: c.Lock}}
	res, err := s.projects.UpdateOne(ctx, filter, bson.D{{Key: "$inc", Value: bson.D{{Key: "admissionToken", Value: int64(1)}}}})
	if err != nil {
		return blame(err, ProjectToken)
	}
	if res.MatchedCount == 0 {
		return &lost{cause: ProjectToken}
	}
	if !p.Eligibility {
		return nil
	}
	return s.eligible(ctx, c.Project, c.stage, c.reviewer)
}

// eligible checks active membership and the stage's grant inside a transaction.
func (s *Store) eligible(ctx context.Context, project, stage, reviewer string) error {
	m, _, err := seek[membership](ctx, s.memberships, byID(member{project, reviewer}))
	if err != nil {
		return err
	}
	g, _, err := seek[stageGrant](ctx, s.grants, byID(grant{project, stage, reviewer}))
	if err != nil {
		return err
	}
	if !m.Active || !g.Review {
		return fmt.Errorf("%w: %q at %q: active member %v, granted %v", ErrNotEligible, reviewer, stage, m.Active, g.Review)
	}
	return nil
}
