package screening

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/internal/defect"
)

// SavePath is the protocol that a save follows.
type SavePath int

const (
	// SourceOnly keeps no statistics. For projects whose mode is off.
	SourceOnly SavePath = iota
	// Transactional keeps them in the same transaction.
	Transactional
	// Fold leaves an entry in the study for the worker.
	Fold
	// ByMode reads the project's mode in each attempt and does as it says. During a
	// change of mode it is the path to use.
	ByMode
)

func (p SavePath) String() string {
	if p < SourceOnly || p > ByMode {
		return fmt.Sprintf("invalid(%d)", int(p))
	}
	return [...]string{"source-only", "transactional", "fold", "by-mode"}[p]
}

// reads says whether a path reads the mode before the write, not in it.
func (p SavePath) reads() bool { return p == Fold || p == ByMode }

// Outcome is what a submission came to. It is filled in as far as the submission got,
// also when it failed.
type Outcome struct {
	Operation bson.ObjectID
	Study     string // that was written
	Version   int64  // of the study as saved
	Entries   int    // pending entries that the save carries, or receipts it wrote; 0 if it moved no statistics
	Attempts  int    // charged ones
	Free      int    // retries that only folds caused
	Conflicts []Conflict
	// Resolved says that the answer to a write was lost and that what became of it was
	// found out.
	Resolved bool
}

// Conflict is an attempt that lost.
type Conflict struct {
	Cause Cause
	Free  bool // it was not charged
	Study string
	Version,
	Folds int64 // of the study as the attempt had loaded it
}

// Save saves a decision. The error says what became of it otherwise; see the Err
// variables. A save that moves no statistics (the same decision again) is a save.
func (s *Store) Save(ctx context.Context, path SavePath, d Decision) (Outcome, error) {
	c, err := d.change()
	if err != nil {
		return Outcome{}, err
	}
	return s.run(ctx, path, c)
}

// SaveSession saves an annotation session, or deletes it where n.Session is nil.
func (s *Store) SaveSession(ctx context.Context, path SavePath, n SessionChange) (Outcome, error) {
	c, err := n.change()
	if err != nil {
		return Outcome{}, err
	}
	if s.o.Tracking && c.presence {
		c.Guarded = true
	}
	return s.run(ctx, path, c)
}

// Release gives a reservation back.
func (s *Store) Release(ctx context.Context, path SavePath, r Release) (Outcome, error) {
	c, err := r.change()
	if err != nil {
		return Outcome{}, err
	}
	return s.run(ctx, path, c)
}

// run is the loop of attempts (docs/screening.md section 4).
func (s *Store) run(ctx context.Context, path SavePath, c *change) (out Outcome, err error) {
	if path < SourceOnly || path > ByMode {
		return out, fmt.Errorf("screening: no such path: %v", path)
	}
	out.Operation, out.Study = c.Operation, c.Study
	if out.Operation.IsZero() {
		out.Operation = bson.NewObjectIDFromTimestamp(s.o.Now())
	}
	var last *loaded
	for {
		a := Attempt{Operation: out.Operation, Study: c.Study, Reviewer: c.reviewer, Number: out.Attempts + out.Free + 1, Charged: out.Attempts}
		if s.o.Hooks.Begin != nil {
			s.o.Hooks.Begin(a)
		}
		l, err := s.load(ctx, path, c, &out, last)
		if err == nil && s.o.Hooks.Loaded != nil {
			err = s.o.Hooks.Loaded(ctx, a)
		}
		var w written
		if err == nil {
			w, err = s.write(ctx, path, c, l, out.Operation)
		}
		if errors.Is(err, ErrDuplicate) {
			err = s.lasting(ctx, c.Project, c.Study, out.Operation, err)
		}
		out.Resolved = out.Resolved || w.resolved
		if s.o.Hooks.End != nil {
			s.o.Hooks.End(a, err)
		}
		if err == nil {
			out.Attempts++
			out.Version, out.Entries = w.version, w.entries
			return out, nil
		}
		var stale *lost
		if !errors.As(err, &stale) || l == nil {
			return out, err
		}
		last = l
		out.Attempts++
		out.Conflicts = append(out.Conflicts, s.conflict(stale.cause, l))
		if stale.now != nil {
			s.attribute(&out, last, *stale.now)
		}
		if out.Attempts == attempts && path.reads() {
			// A fold does not use up the last attempt either, so it must be known whether it was one.
			if err := s.peek(ctx, &out, last); err != nil {
				return out, err
			}
		}
		if out.Attempts >= attempts {
			return out, fmt.Errorf("study %q: %w after %d attempts: %w", c.Study, ErrExhausted, out.Attempts, stale)
		}
	}
}

func (s *Store) conflict(cause Cause, l *loaded) Conflict {
	return Conflict{Cause: s.report(cause), Study: l.study.ID, Version: l.study.Version, Folds: l.study.Folds}
}

// report is the cause as it is told.
func (s *Store) report(cause Cause) Cause {
	if s.o.Defect == defect.MiscountedConflict() && (cause == Statistics || cause == StudyFold) {
		return StudySave
	}
	return cause
}

// attribute gives the last conflict its cause, once the study's position is known, and
// takes back the charge of one that only folds caused (F3).
func (s *Store) attribute(out *Outcome, last *loaded, now position) {
	if last == nil || len(out.Conflicts) == 0 {
		return
	}
	k := &out.Conflicts[len(out.Conflicts)-1]
	if k.Cause != Unattributed {
		return
	}
	cause := moved(last.study.position(), now)
	k.Cause = s.report(cause)
	if cause == StudyFold && out.Free < freeRetries {
		k.Free = true
		out.Attempts--
		out.Free++
	}
}

// moved is who moved a study from one position to another (S2).
func moved(from, to position) Cause {
	switch version, folds := to.version-from.version, to.folds-from.folds; {
	case version == 0:
		return Unattributed
	case version == folds:
		return StudyFold
	default:
		return StudySave
	}
}

// Attribute finds out, with one read, what an unattributed conflict lost against, as
// far as the study tells now: what came after the conflict counts too. It is for who
// counts causes outside of what is timed.
func (s *Store) Attribute(ctx context.Context, k Conflict) (Cause, error) {
	if k.Cause != Unattributed {
		return k.Cause, nil
	}
	p, err := s.seats(ctx, k.Study)
	return s.report(moved(position{k.Version, k.Folds}, position{p.Version, p.Folds})), err
}
