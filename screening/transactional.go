package screening

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/screening/tally"
)

// transactional saves study and statistics in one transaction (docs/screening.md
// section 6). Everything is stamped from what this transaction reads.
func (s *Store) transactional(ctx context.Context, path SavePath, c *change, l *loaded, op bson.ObjectID) (w written, err error) {
	w.entries = 1 // until it is known: the commit may be in doubt before it is
	err = s.transact(ctx, func(ctx context.Context) error {
		control, err := s.authority(ctx, path, c.Project)
		if err != nil {
			return err
		}
		if l.project != nil {
			if err := s.admit(ctx, c, l.project); err != nil {
				return err
			}
		}
		next, halves, err := c.evolve(l.study, op, s.o.Now())
		if err != nil {
			return err
		}
		if err := s.replace(ctx, s.studies, c, l, next); err != nil {
			return err
		}
		owed := entries(control.Families, control.Epoch, halves, op, s.o.Now())
		w.version, w.entries = next.Version, len(owed)
		return s.record(ctx, control, c.Study, owed)
	})
	return w, s.diagnose(ctx, c, l, err)
}

// authority reads mode and clocks inside a transaction of the transactional mode.
func (s *Store) authority(ctx context.Context, path SavePath, project string) (Control, error) {
	if err := s.agree(ctx); err != nil {
		return Control{}, err
	}
	control, found, err := seek[Control](ctx, s.controls, byID(project))
	switch {
	case err != nil:
		return control, err
	case !found:
		return control, fmt.Errorf("%w: %q", ErrUnknownProject, project)
	case control.Mode != ModeTransactional && path == ByMode:
		return control, &lost{cause: ModeMoved}
	case control.Mode != ModeTransactional:
		return control, fmt.Errorf("%w: project %q is %s, not transactional", ErrModeDisagrees, project, control.Mode)
	}
	return control, nil
}

// record writes what entries imply, inside the transaction that wrote their study.
func (s *Store) record(ctx context.Context, control Control, study string, owed []Entry) error {
	if len(owed) == 0 {
		return nil
	}
	moves, op, now := movesOf(owed), owed[0].Operation, s.o.Now()
	next := control.next()
	if err := swap(ctx, s.controls, []Control{next}, controlKey); err != nil {
		return err
	}
	b := &batch{project: control.Project, revision: next.Source}
	var err error
	if b.guards, err = list[guard](ctx, s.guards, in("_id", b.families(control.Families))); err != nil {
		return blame(err, Interrupted)
	}
	if b.rows, err = list[row](ctx, s.rows, in("_id", b.keys(moves))); err != nil {
		return blame(err, Interrupted)
	}
	b.post(moves)
	if err := swap(ctx, s.rows, b.changedRows, rowID); err != nil {
		return err
	}
	if err := swap(ctx, s.guards, b.changedGuards, guardKey); err != nil {
		return err
	}
	if err := s.unheard(ctx, control.Project, op); err != nil {
		return err
	}
	if err := insert(ctx, s.receipts, b.receipts(study, ModeTransactional, owed, now)); err != nil {
		return err
	}
	if err := insert(ctx, s.revisions, []revision{b.line(1, moves, now)}); err != nil {
		return err
	}
	slots, err := list[slot](ctx, s.slots, in("_id", b.families(control.Families)))
	if err != nil {
		return blame(err, Interrupted)
	}
	return swap(ctx, s.slots, b.notify(control.Families, slots), slotKey)
}

// unheard checks that the operation has no receipt, and is young enough to have one.
func (s *Store) unheard(ctx context.Context, project string, op bson.ObjectID) error {
	_, found, err := seek[receipt](ctx, s.receipts, bson.D{{Key: "project", Value: project}, {Key: "op", Value: op}})
	if err != nil {
		return err
	}
	if found {
		return fmt.Errorf("operation %s: %w", op.Hex(), ErrDuplicate)
	}
	return blame(s.kept(ctx, project, op), Interrupted)
}

func controlKey(c Control) (any, int64) { return c.Project, c.Version }

// batch computes, from what was read, the statistics documents that moves change. It
// is the same for a transactional save and for the worker.
type batch struct {
	project  string
	revision int64
	guards   []guard
	rows     []row

	changedGuards []guard
	changedRows   []row
}

func (b *batch) families(list []tally.Family) []familyKey {
	keys := make([]familyKey, len(list))
	for i, f := range list {
		keys[i] = familyKey{b.project, f}
	}
	return keys
}

// keys are the rows that moves change, each once.
func (b *batch) keys(moves []tally.Move) []rowKey {
	keys := []rowKey{}
	seen := map[rowKey]bool{}
	for _, m := range moves {
		if k := keyOf(b.project, m); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// post adds moves to the rows of the families that are serving. A family with a row
// that nobody can have written stops serving instead (S14).
func (b *batch) post(moves []tally.Move) {
	stored := map[rowKey]row{}
	corrupt := map[tally.Family]bool{}
	for _, r := range b.rows {
		stored[r.ID] = r
		corrupt[r.Family] = corrupt[r.Family] || !r.whole()
	}
	for _, g := range b.guards {
		rows := tally.Sum(g.Family, moves)
		if g.State != Serving || !slices.ContainsFunc(moves, func(m tally.Move) bool { return m.Family == g.Family }) {
			continue
		}
		g.Version++
		if corrupt[g.Family] {
			g.State = CorruptRow
			b.changedGuards = append(b.changedGuards, g)
			continue
		}
		g.Revision = b.revision
		b.changedGuards = append(b.changedGuards, g)
		for _, m := range rows.Moves(g.Family) {
			key := keyOf(b.project, m)
			r, found := stored[key]
			if !found {
				r = row{ID: key, Project: b.project, Family: g.Family}
			}
			sum := tally.Counters{}
			sum.Add(r.Counters, 1)
			sum.Add(m.Counters, 1)
			r.Counters, r.Revision, r.Version = sum, b.revision, r.Version+1
			r.Digest = r.seal()
			b.changedRows = append(b.changedRows, r)
		}
	}
}

func (b *batch) receipts(study string, path Mode, list []Entry, now time.Time) []receipt {
	out := make([]receipt, len(list))
	for i, e := range list {
		out[i] = receipt{e.ID, b.project, study, e.Namespace, e.Operation, path, b.revision, now}
	}
	return out
}

func (b *batch) line(operations int, moves []tally.Move, now time.Time) revision {
	return revision{revisionKey{b.project, b.revision}, b.project, b.revision, operations, moves, now}
}

// notify coalesces: one slot per family, however many revisions it stands for.
func (b *batch) notify(families []tally.Family, read []slot) []slot {
	out := make([]slot, len(families))
	for i, f := range families {
		out[i] = slot{ID: familyKey{b.project, f}, Project: b.project, Family: f}
		for _, s := range read {
			if s.Family == f {
				out[i].Version = s.Version
			}
		}
		out[i].Version++
		out[i].Target = b.revision
	}
	return out
}
