package screening

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/screening/tally"
)

// Rebuild makes a family's rows from the source, while saves go on (docs/screening.md
// section 10), and settles its quarantined entries, whose effect the source has. It
// may be called in any mode but off, and again after it was interrupted. While a project is on its
// way from off it is ErrModeDisagrees: a save that has read off may still come, and
// SetMode rebuilds when none can.
func (s *Store) Rebuild(ctx context.Context, project string, f tally.Family) error {
	return s.rebuild(ctx, project, f, nil)
}

// rebuild is Rebuild for the owner of a transition; nil is anybody.
func (s *Store) rebuild(ctx context.Context, project string, f tally.Family, own *Transition) error {
	return s.retry(ctx, func(ctx context.Context) error {
		g, err := s.darken(ctx, project, f, own)
		if err != nil {
			return err
		}
		base, err := s.foundation(ctx, project, f)
		if err != nil {
			return err
		}
		return s.publish(ctx, g, base)
	})
}

// darken takes the family out of service: from here its moves go to the ledger only,
// because a transaction that saw it serving writes the guard and collides.
func (s *Store) darken(ctx context.Context, project string, f tally.Family, own *Transition) (guard, error) {
	// The guard first: a transition that begins after the control row was read raises its version.
	g, found, err := get[guard](ctx, s.guards, byID(familyKey{project, f}))
	if err != nil {
		return g, err
	}
	control, err := s.Control(ctx, project)
	switch {
	case err != nil:
		return g, err
	case !found:
		return g, fmt.Errorf("%w: %q does not maintain %s", ErrNotServing, project, f)
	case control.Mode == ModeOff:
		return g, fmt.Errorf("%w: %q is off; its rows would be wrong after the next save", ErrModeDisagrees, project)
	case own != nil && !own.same(control.Transition):
		return g, fmt.Errorf("%w: %q is no longer on its way to %s by this call", ErrModeDisagrees, project, own.To)
	case own == nil && control.Transition != nil && control.Transition.From == ModeOff:
		return g, fmt.Errorf("%w: %q is on its way from off, which rebuilds it; set the mode again if that was interrupted", ErrModeDisagrees, project)
	}
	g.State, g.Version = Rebuilding, g.Version+1
	return g, s.transact(ctx, func(ctx context.Context) error { return swap(ctx, s.guards, []guard{g}, guardKey) })
}

// foundation is the folded part of all studies at one timestamp, which is what the
// ledger contains up to revision.
type foundation struct {
	rows     tally.Rows
	revision int64
	settles  []bson.ObjectID // quarantined by then, so that the source had their effect
}

func (s *Store) foundation(ctx context.Context, project string, f tally.Family) (foundation, error) {
	var b foundation
	err := s.snapshot(ctx, func(ctx context.Context) error {
		control, err := s.Control(ctx, project)
		if err != nil {
			return err
		}
		n, err := s.recount(ctx, project)
		if err != nil {
			return err
		}
		b.rows, b.revision = n.rows[f], control.Source
		b.rows.Add(overlay(n.sets, control).rows[f], -1)
		kept, err := list[Quarantined](ctx, s.quarantine, bson.D{{Key: "project", Value: project}, {Key: "families", Value: f}, {Key: "settled", Value: bson.D{{Key: "$ne", Value: f}}}})
		for _, q := range kept {
			b.settles = append(b.settles, q.ID)
		}
		return err
	})
	return b, err
}

// publish catches up with the ledger and puts the family into service. The lines up to
// now are added before the transaction, so that it is short however long the ledger is.
func (s *Store) publish(ctx context.Context, g guard, b foundation) error {
	for {
		control, err := s.Control(ctx, g.Project)
		if err != nil {
			return err
		}
		if err := s.catchUp(ctx, g, &b, control.Source); err != nil {
			return err
		}
		docs, err := s.changedRows(ctx, g, b.rows, control.Source+1)
		if err != nil {
			return err
		}
		slots, err := list[slot](ctx, s.slots, bson.D{{Key: "project", Value: g.Project}})
		if err != nil {
			return err
		}
		err = s.transact(ctx, func(ctx context.Context) error {
			next := control.next()
			if err := swap(ctx, s.controls, []Control{next}, controlKey); err != nil {
				var stale *lost
				if errors.As(err, &stale) {
					return &moving{err}
				}
				return err
			}
			now, found, err := seek[guard](ctx, s.guards, byID(g.ID))
			if err != nil {
				return err
			}
			if !found || now.State != Rebuilding || now.Epoch != g.Epoch {
				return &lost{cause: Statistics, err: fmt.Errorf("%s of %q was taken by somebody else", g.Family, g.Project)}
			}
			line := &batch{project: g.Project, revision: next.Source}
			if err := insert(ctx, s.revisions, []revision{line.line(0, nil, s.o.Now())}); err != nil {
				return err
			}
			if err := swap(ctx, s.rows, docs, rowID); err != nil {
				return err
			}
			now.State, now.Revision, now.Version = Serving, next.Source, now.Version+1
			if len(b.settles) > 0 {
				res, err := s.quarantine.UpdateMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: b.settles}}}, {Key: "settled", Value: bson.D{{Key: "$ne", Value: g.Family}}}},
					bson.D{{Key: "$push", Value: bson.D{{Key: "settled", Value: g.Family}}}})
				if err != nil {
					return blame(err, Statistics)
				}
				now.Quarantined -= res.ModifiedCount
			}
			if err := swap(ctx, s.guards, []guard{now}, guardKey); err != nil {
				return err
			}
			return swap(ctx, s.slots, line.notify(control.Families, slots), slotKey)
		})
		var again *moving
		if !errors.As(err, &again) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// moving is a control row that moved on: there are more lines to catch up with.
type moving struct{ error }

func (e *moving) Unwrap() error { return e.error }

// catchUp adds the ledger's lines up to through.
func (s *Store) catchUp(ctx context.Context, g guard, b *foundation, through int64) error {
	lines, err := list[revision](ctx, s.revisions, bson.D{{Key: "project", Value: g.Project},
		{Key: "revision", Value: bson.D{{Key: "$gt", Value: b.revision}, {Key: "$lte", Value: through}}}},
		options.Find().SetSort(bson.D{{Key: "project", Value: 1}, {Key: "revision", Value: 1}}))
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.Revision != b.revision+1 {
			return fmt.Errorf("ledger of %q: %w: revision %d follows %d", g.Project, ErrCorrupt, l.Revision, b.revision)
		}
		b.rows.Add(tally.Sum(g.Family, l.Moves), 1)
		b.revision = l.Revision
	}
	if b.revision != through {
		return fmt.Errorf("ledger of %q: %w: it ends at revision %d, the clock is at %d", g.Project, ErrCorrupt, b.revision, through)
	}
	return nil
}

// changedRows are the rows to write so that the stored ones become those given. Rows
// without counts stay as documents: their versions must not begin again.
func (s *Store) changedRows(ctx context.Context, g guard, want tally.Rows, revision int64) ([]row, error) {
	stored, err := list[row](ctx, s.rows, bson.D{{Key: "project", Value: g.Project}, {Key: "family", Value: g.Family}})
	if err != nil {
		return nil, err
	}
	var out []row
	put := func(r row, c tally.Counters) {
		r.Counters, r.Revision, r.Version = tally.Counters{}, revision, r.Version+1
		r.Counters.Add(c, 1)
		r.Digest = r.seal()
		out = append(out, r)
	}
	for _, r := range stored {
		put(r, want[r.ID.scope()])
	}
	for _, m := range want.Moves(g.Family) {
		key := keyOf(g.Project, m)
		if !slices.ContainsFunc(stored, func(r row) bool { return r.ID == key }) {
			put(row{ID: key, Project: g.Project, Family: g.Family}, m.Counters)
		}
	}
	return out, nil
}
