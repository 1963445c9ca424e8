package screening

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/assaylab/assay/internal/defect"
	"github.com/assaylab/assay/screening/tally"
)

// batchStudies is how many studies one transaction of the worker folds.
const batchStudies = 64

// Drained is what a worker did.
type Drained struct {
	Entries     int // folded
	Quarantined int
	Batches     int // committed
	Lost        int // batches that lost to a save or another worker and were done again
}

// Drain folds pending entries of a project into the rows until there are none. It may
// run anywhere, any number of times at once, and be killed at any command
// (docs/screening.md section 9).
func (s *Store) Drain(ctx context.Context, project string) (Drained, error) {
	var d Drained
	for wait := time.Millisecond; ; {
		n, err := s.foldBatch(ctx, project, &d)
		var stale *lost
		var doubt *inDoubt
		switch {
		case err == nil && n == 0:
			return d, nil
		case err == nil:
			d.Batches++
			wait = time.Millisecond
			continue
		case errors.As(err, &stale), errors.As(err, &doubt):
			// In doubt or not: the next batch begins by reading what there is.
			d.Lost++
		default:
			return d, fmt.Errorf("drain %q: %w", project, err)
		}
		if pause(ctx, wait) != nil {
			return d, fmt.Errorf("drain %q: %w: %w", project, ctx.Err(), err)
		}
		wait = min(2*wait, 50*time.Millisecond)
	}
}

// Work drains a project again and again, with pauses of every, until the context ends.
// Errors other than that end are told to report, if given, and do not stop it.
func (s *Store) Work(ctx context.Context, project string, every time.Duration, report func(Drained, error)) {
	for {
		d, err := s.Drain(ctx, project)
		if report != nil && (err == nil || ctx.Err() == nil) {
			report(d, err)
		}
		if pause(ctx, every) != nil {
			return
		}
	}
}

// foldBatch folds one batch and returns how many entries it found.
func (s *Store) foldBatch(ctx context.Context, project string, d *Drained) (int, error) {
	// The control row first: every fold raises its version, so that a study read after
	// it either has its entries still or the batch is lost (W2).
	control, err := s.Control(ctx, project)
	if err != nil {
		return 0, err
	}
	sets, err := s.outstanding(ctx, project, batchStudies)
	if err != nil || len(sets) == 0 {
		return 0, err
	}
	var good, bad []pending
	for _, set := range sets {
		for _, raw := range set.Pending {
			if p := judge(set.ID, raw, control); p.reason == "" {
				good = append(good, p)
			} else {
				bad = append(bad, p)
			}
		}
	}
	var moves []tally.Move
	for _, p := range good {
		moves = append(moves, p.entry.Moves...)
	}
	next := control.next()
	b := &batch{project: project, revision: next.Source}
	var slots []slot
	if err := together(func() (err error) {
		b.guards, err = list[guard](ctx, s.guards, in("_id", b.families(control.Families)))
		return err
	}, func() (err error) {
		b.rows, err = list[row](ctx, s.rows, in("_id", b.keys(moves)))
		return err
	}, func() (err error) {
		slots, err = list[slot](ctx, s.slots, in("_id", b.families(control.Families)))
		return err
	}); err != nil {
		return 0, err
	}
	b.post(moves)
	b.count(bad)
	rows := func(ctx context.Context) error { return swap(ctx, s.rows, b.changedRows, rowID) }
	switch s.o.Defect {
	case defect.LostDelta():
		rows = func(context.Context) error { return nil }
	case defect.DoubleApply():
		if d.Lost == 0 {
			if err := rows(ctx); err != nil {
				return 0, err
			}
			return 0, &lost{cause: Interrupted, err: errors.New("the worker died between rows and receipts")}
		}
	}
	now := s.o.Now()
	err = s.transact(ctx, func(ctx context.Context) error {
		if err := s.take(ctx, sets); err != nil {
			return err
		}
		if err := swap(ctx, s.controls, []Control{next}, controlKey); err != nil {
			return err
		}
		if err := rows(ctx); err != nil {
			return err
		}
		if err := swap(ctx, s.guards, b.changedGuards, guardKey); err != nil {
			return err
		}
		var receipts []receipt
		for _, p := range good {
			receipts = append(receipts, b.receipts(p.study, ModeFold, []Entry{p.entry}, now)...)
		}
		if err := insert(ctx, s.receipts, receipts); err != nil {
			return err
		}
		if err := insert(ctx, s.revisions, []revision{b.line(len(good), sum(moves), now)}); err != nil {
			return err
		}
		if err := swap(ctx, s.slots, b.notify(control.Families, slots), slotKey); err != nil {
			return err
		}
		return insert(ctx, s.quarantine, quarantined(project, bad, control.Families, now))
	})
	if err == nil {
		d.Entries += len(good)
		d.Quarantined += len(bad)
	}
	return len(good) + len(bad), err
}

// take removes the entries that were read, where they still are. It does not look at
// the version: a save that came in between takes nothing away (W3).
func (s *Store) take(ctx context.Context, sets []pendingSet) error {
	models := make([]mongo.WriteModel, len(sets))
	for i, set := range sets {
		ids := bson.A{}
		for _, raw := range set.Pending {
			if id, ok := raw.Lookup("id").ObjectIDOK(); ok {
				ids = append(ids, id)
			}
		}
		filter := byID(set.ID)
		if len(ids) > 0 {
			filter = append(filter, bson.E{Key: "pending.id", Value: bson.D{{Key: "$all", Value: ids}}})
		}
		models[i] = mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(bson.D{
			{Key: "$pullAll", Value: bson.D{{Key: "pending", Value: set.Pending}}},
			{Key: "$inc", Value: bson.D{{Key: "version", Value: int64(1)}, {Key: "folds", Value: int64(1)}, {Key: "pendingCount", Value: -len(set.Pending)}}}})
	}
	res, err := s.studies.BulkWrite(ctx, models)
	if err != nil {
		return blame(err, Statistics)
	}
	if res.MatchedCount != int64(len(sets)) {
		return &lost{cause: Statistics, err: errors.New("entries have been folded meanwhile")}
	}
	return nil
}

// sum adds up moves of the same row, so that a ledger line is as long as what changed.
func sum(moves []tally.Move) []tally.Move {
	out := []tally.Move{}
	for _, f := range tally.Families() {
		out = append(out, tally.Sum(f, moves).Moves(f)...)
	}
	return out
}

// count counts entries that go to quarantine in the guards of all families: what
// cannot be folded cannot be trusted to say whose it is.
func (b *batch) count(bad []pending) {
	for _, g := range b.guards {
		if len(bad) == 0 {
			return
		}
		if i := slices.IndexFunc(b.changedGuards, func(o guard) bool { return o.Family == g.Family }); i >= 0 {
			b.changedGuards[i].Quarantined += int64(len(bad))
			continue
		}
		g.Version++
		g.Quarantined += int64(len(bad))
		b.changedGuards = append(b.changedGuards, g)
	}
}

func quarantined(project string, bad []pending, maintained []tally.Family, now time.Time) []Quarantined {
	var out []Quarantined
	for _, p := range bad {
		op, _ := p.raw.Lookup("op").ObjectIDOK() // as far as it can be read
		out = append(out, Quarantined{ID: bson.NewObjectID(), Project: project, Study: p.study, Operation: op,
			Families: maintained, Entry: p.raw, Reason: p.reason, Settled: []tally.Family{}, At: now})
	}
	return out
}

// Quarantine lists the entries of a project that could not be folded, settled ones
// included.
func (s *Store) Quarantine(ctx context.Context, project string) ([]Quarantined, error) {
	return list[Quarantined](ctx, s.quarantine, bson.D{{Key: "project", Value: project}})
}
