package screening

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/screening/tally"
)

// View is a family's statistics at one timestamp.
type View struct {
	Rows        tally.Rows // stored rows + pending overlay
	Stored      tally.Rows
	Pending     int   // entries in the overlay
	Revision    int64 // of the stored rows
	Quarantined int64 // entries that neither a fold nor a rebuild has taken up
	// Exact says that Rows is the recount of the source at this timestamp (S6).
	Exact bool
}

// Read returns stored rows + pending overlay at one timestamp. It returns ErrNotServing
// while the family is off, stale or being rebuilt, and ErrCorrupt for a row that nobody
// can have written.
func (s *Store) Read(ctx context.Context, project string, f tally.Family) (View, error) {
	var v View
	err := s.snapshot(ctx, func(ctx context.Context) error {
		control, err := s.Control(ctx, project)
		if err != nil {
			return err
		}
		g, found, err := get[guard](ctx, s.guards, byID(familyKey{project, f}))
		switch {
		case err != nil:
			return err
		case control.Mode == ModeOff || !found || g.State == Stale || g.State == Rebuilding:
			return fmt.Errorf("%s of %q: %w: mode %s, state %s", f, project, ErrNotServing, control.Mode, g.State)
		case g.State != Serving:
			return fmt.Errorf("%s of %q: %w: state %s", f, project, ErrCorrupt, g.State)
		}
		v.Revision, v.Quarantined = g.Revision, g.Quarantined
		if v.Stored, err = s.storedRows(ctx, project, f); err != nil {
			return err
		}
		sets, err := s.outstanding(ctx, project, 0)
		if err != nil {
			return err
		}
		over := overlay(sets, control)
		v.Rows = tally.Rows{}
		v.Rows.Add(v.Stored, 1)
		v.Rows.Add(over.rows[f], 1)
		v.Pending, v.Exact = over.entries, g.Quarantined == 0 && over.unfoldable == 0
		return nil
	})
	return v, err
}

// storedRows are the rows of one family, all whole.
func (s *Store) storedRows(ctx context.Context, project string, f tally.Family) (tally.Rows, error) {
	docs, err := list[row](ctx, s.rows, bson.D{{Key: "project", Value: project}, {Key: "family", Value: f}})
	if err != nil {
		return nil, err
	}
	rows := tally.Rows{}
	for _, r := range docs {
		if !r.whole() {
			return nil, fmt.Errorf("row %+v: %w: its digest is of something else; rebuild the family", r.ID, ErrCorrupt)
		}
		rows.Add(tally.Rows{r.ID.scope(): r.Counters}, 1)
	}
	return rows, nil
}

// over is the pending overlay of all families.
type over struct {
	rows       map[tally.Family]tally.Rows
	entries    int // foldable
	unfoldable int // that will go to quarantine
}

func overlay(sets []pendingSet, control Control) over {
	o := over{rows: map[tally.Family]tally.Rows{}}
	var moves []tally.Move
	for _, set := range sets {
		for _, raw := range set.Pending {
			if p := judge(set.ID, raw, control); p.reason == "" {
				o.entries++
				moves = append(moves, p.entry.Moves...)
			} else {
				o.unfoldable++
			}
		}
	}
	for _, f := range tally.Families() {
		o.rows[f] = tally.Sum(f, moves)
	}
	return o
}

// Recount counts a family from the studies alone, at one timestamp. It is the
// definition of right.
func (s *Store) Recount(ctx context.Context, project string, f tally.Family) (tally.Rows, error) {
	var rows tally.Rows
	err := s.snapshot(ctx, func(ctx context.Context) error {
		all, err := s.recount(ctx, project)
		rows = all.rows[f]
		return err
	})
	return rows, err
}

// counted is what one pass over the studies of a project tells.
type counted struct {
	rows    map[tally.Family]tally.Rows
	sets    []pendingSet
	entries int // in the sets
	faults  []string
}

func (s *Store) recount(ctx context.Context, project string) (counted, error) {
	n := counted{rows: map[tally.Family]tally.Rows{}}
	for _, f := range tally.Families() {
		n.rows[f] = tally.Rows{}
	}
	cur, err := s.studies.Find(ctx, bson.D{{Key: "project", Value: project}}, options.Find().SetBatchSize(1000))
	if err != nil {
		return n, err
	}
	defer cur.Close(context.WithoutCancel(ctx))
	for cur.Next(ctx) {
		var study Study
		if err := cur.Decode(&study); err != nil {
			return n, fmt.Errorf("study %v: %w: %w", cur.Current.Lookup("_id"), ErrCorrupt, err)
		}
		for _, f := range tally.Families() {
			n.rows[f].Add(tally.Contribution(f, study.Study), 1)
		}
		if len(study.Pending) > 0 {
			n.sets = append(n.sets, pendingSet{study.ID, study.Version, study.Pending})
			n.entries += len(study.Pending)
		}
		if study.PendingCount != len(study.Pending) {
			n.faults = append(n.faults, fmt.Sprintf("study %q counts %d entries and has %d", study.ID, study.PendingCount, len(study.Pending)))
		}
		if study.Folds >= study.Version {
			n.faults = append(n.faults, fmt.Sprintf("study %q has version %d and %d folds", study.ID, study.Version, study.Folds))
		}
	}
	return n, cur.Err()
}

// FamilyParity compares one family's rows with the recount.
type FamilyParity struct {
	State         GuardState
	Authoritative tally.Rows // the recount
	Stored        tally.Rows
	Overlaid      tally.Rows // stored + pending
	Quarantined   int64
}

// Parity is a project's statistics beside what they should be, at one timestamp.
type Parity struct {
	Control    Control
	Families   map[tally.Family]FamilyParity
	Pending    int   // entries in studies
	Receipts   int64 // kept
	Revisions  int64 // lines of the ledger
	Operations int64 // they stand for
	Client     int64 // the highest slot target
	Quarantine int64 // entries there, settled ones included
	// Faults are the invariants that do not hold, in words; none means parity.
	Faults []string
}

// Parity checks S4, S6, S8 and S14 at one timestamp, for all families maintained. An
// error means that it could not be checked.
func (s *Store) Parity(ctx context.Context, project string) (Parity, error) {
	p := Parity{Families: map[tally.Family]FamilyParity{}}
	err := s.snapshot(ctx, func(ctx context.Context) error {
		var err error
		if p.Control, err = s.Control(ctx, project); err != nil {
			return err
		}
		n, err := s.recount(ctx, project)
		if err != nil {
			return err
		}
		p.Pending, p.Faults = n.entries, append(p.Faults, n.faults...)
		for _, f := range p.Control.Families {
			if err := s.compare(ctx, f, n, &p); err != nil {
				return err
			}
		}
		return s.books(ctx, &p)
	})
	return p, err
}

func (p *Parity) fault(format string, args ...any) {
	p.Faults = append(p.Faults, fmt.Sprintf(format, args...))
}

func (s *Store) compare(ctx context.Context, f tally.Family, n counted, p *Parity) error {
	project := p.Control.Project
	g, found, err := get[guard](ctx, s.guards, byID(familyKey{project, f}))
	if err != nil {
		return err
	}
	if !found {
		p.fault("%s has no guard", f)
	}
	fp := FamilyParity{State: g.State, Authoritative: n.rows[f], Quarantined: g.Quarantined, Overlaid: tally.Rows{}}
	if fp.Stored, err = s.storedRows(ctx, project, f); err != nil {
		if !errors.Is(err, ErrCorrupt) {
			return err
		}
		p.fault("%v", err)
	}
	o := overlay(n.sets, p.Control)
	fp.Overlaid.Add(fp.Stored, 1)
	fp.Overlaid.Add(o.rows[f], 1)
	p.Families[f] = fp
	if p.Control.Mode == ModeOff {
		return nil
	}
	if g.State == CorruptRow {
		p.fault("%s is %s", f, g.State)
	}
	if g.State == Serving && !fp.Overlaid.Equal(fp.Authoritative) {
		p.fault("%s: stored + pending is %v, the recount %v", f, fp.Overlaid, fp.Authoritative)
	}
	if g.Quarantined > 0 || o.unfoldable > 0 {
		p.fault("%s is not exact: %d entries in quarantine, %d on their way there", f, g.Quarantined, o.unfoldable)
	}
	return nil
}

// books checks clocks, ledger, receipts and slots against each other (S8).
func (s *Store) books(ctx context.Context, p *Parity) error {
	project := bson.D{{Key: "project", Value: p.Control.Project}}
	total := func(c string, of any) (n int64, err error) {
		cur, err := s.db.Collection(c).Aggregate(ctx, bson.A{
			bson.D{{Key: "$match", Value: project}},
			bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "n", Value: bson.D{{Key: "$sum", Value: of}}}}}}})
		if err != nil {
			return 0, err
		}
		var out []struct{ N int64 }
		if err := cur.All(ctx, &out); err != nil || len(out) == 0 {
			return 0, err
		}
		return out[0].N, nil
	}
	var err error
	for _, q := range []struct {
		into *int64
		of   string
		what any
	}{
		{&p.Receipts, s.receipts.Name(), 1}, {&p.Revisions, s.revisions.Name(), 1},
		{&p.Operations, s.revisions.Name(), "$operations"}, {&p.Quarantine, s.quarantine.Name(), 1},
	} {
		if *q.into, err = total(q.of, q.what); err != nil {
			return err
		}
	}
	slots, err := list[slot](ctx, s.slots, project)
	if err != nil {
		return err
	}
	for _, k := range slots {
		p.Client = max(p.Client, k.Target)
	}
	c := p.Control
	if c.Committed > c.Source || c.Client > c.Source {
		p.fault("clocks: source %d, committed %d, client %d", c.Source, c.Committed, c.Client)
	}
	if p.Client != c.Client {
		p.fault("the slots tell clients of revision %d, the clock is at %d", p.Client, c.Client)
	}
	if p.Revisions != c.Source {
		p.fault("the ledger has %d lines, the clock is at %d", p.Revisions, c.Source)
	}
	return nil
}
