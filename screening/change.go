package screening

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/screening/tally"
)

// Submission is what all changes of a study have in common.
type Submission struct {
	Project, Study string
	// Operation names the submission, so that it is recognised when it is sent again.
	// The zero value has the store make one.
	Operation bson.ObjectID
	// Resubmission says that this operation was sent before and its answer never
	// came; the first attempt then looks at everything that could know it.
	Resubmission bool
	// Guarded has the write depend on a seat of the study's capacity.
	Guarded bool
	// Lock is that of the bulk update that this change is part of; "" is none.
	Lock string
}

// Decision is a reviewer's decision, with or without the annotation session that was
// submitted with it.
type Decision struct {
	Submission
	Reviewer, Stage string
	Include         bool
	Session         *Session
}

// Session is an annotation session to save. One with the same ID is replaced.
type Session struct {
	ID          string
	Annotations map[string]string
}

// SessionChange saves a session on its own, or deletes it where Session is nil.
type SessionChange struct {
	Submission
	Reviewer, Stage string
	ID              string
	Session         *Session
}

// Release gives a reservation back.
type Release struct {
	Submission
	Reviewer, Stage string
}

// half is the part of a change that one namespace is responsible for.
type half struct {
	namespace     Namespace
	before, after tally.Study
}

// change is a pure function from the study that was loaded to the one to be written.
type change struct {
	Submission
	reviewer, stage string
	namespaces      []Namespace
	eligible        bool // the eligibility policy applies
	presence        bool // with tracking on, the write is the presence transaction
	apply           func(*tally.Study, time.Time, *[]half) error
}

// evolve computes the study to be written and the halves that led to it.
func (c *change) evolve(s Study, op bson.ObjectID, now time.Time) (Study, []half, error) {
	next := s.clone()
	var halves []half
	if err := c.apply(&next.Study, now, &halves); err != nil {
		return s, nil, err
	}
	next.settle(op)
	return next, halves, nil
}

// step runs one half of a change.
func step(s *tally.Study, ns Namespace, halves *[]half, edit func(*tally.Study)) {
	before := *s
	s.Decisions, s.Sessions, s.Reservations = slices.Clone(s.Decisions), slices.Clone(s.Sessions), slices.Clone(s.Reservations)
	edit(s)
	*halves = append(*halves, half{ns, before, *s})
}

func (d Decision) change() (*change, error) {
	c := &change{Submission: d.Submission, reviewer: d.Reviewer, stage: d.Stage, namespaces: []Namespace{ScreeningNamespace}, eligible: true}
	if d.Session != nil {
		c.namespaces = append(c.namespaces, AnnotationNamespace)
	}
	c.apply = func(s *tally.Study, now time.Time, halves *[]half) error {
		step(s, ScreeningNamespace, halves, func(s *tally.Study) {
			decided := tally.Decision{Reviewer: d.Reviewer, Stage: d.Stage, Include: d.Include, At: now}
			if i := slices.IndexFunc(s.Decisions, func(o tally.Decision) bool { return o.Reviewer == d.Reviewer && o.Stage == d.Stage }); i >= 0 {
				s.Decisions[i] = decided
			} else {
				s.Decisions = append(s.Decisions, decided)
			}
			s.Reservations = slices.DeleteFunc(s.Reservations, func(r tally.Reservation) bool { return r.Reviewer == d.Reviewer && r.Stage == d.Stage })
		})
		if d.Session != nil {
			step(s, AnnotationNamespace, halves, putSession(*d.Session, d.Reviewer, d.Stage, now))
		}
		return nil
	}
	if d.Session != nil && d.Session.ID == "" {
		return nil, fmt.Errorf("screening: a session without ID")
	}
	return c, c.check()
}

func putSession(n Session, reviewer, stage string, now time.Time) func(*tally.Study) {
	return func(s *tally.Study) {
		saved := tally.Session{ID: n.ID, Reviewer: reviewer, Stage: stage, Annotations: n.Annotations, At: now}
		if i := slices.IndexFunc(s.Sessions, func(o tally.Session) bool { return o.ID == n.ID && o.Reviewer == reviewer }); i >= 0 {
			s.Sessions[i] = saved
			return
		}
		s.Sessions = append(s.Sessions, saved)
	}
}

func (n SessionChange) change() (*change, error) {
	id := n.ID
	if n.Session != nil {
		id = cmp.Or(n.ID, n.Session.ID)
	}
	if id == "" {
		return nil, fmt.Errorf("screening: a session without ID")
	}
	c := &change{Submission: n.Submission, reviewer: n.Reviewer, stage: n.Stage, namespaces: []Namespace{AnnotationNamespace}, presence: n.Session != nil}
	c.apply = func(s *tally.Study, now time.Time, halves *[]half) error {
		if n.Session != nil {
			step(s, AnnotationNamespace, halves, putSession(Session{id, n.Session.Annotations}, n.Reviewer, n.Stage, now))
			return nil
		}
		i := slices.IndexFunc(s.Sessions, func(o tally.Session) bool { return o.ID == id && o.Reviewer == n.Reviewer })
		if i < 0 {
			return fmt.Errorf("%w: %q of %q", ErrUnknownSession, id, n.Reviewer)
		}
		step(s, AnnotationNamespace, halves, func(s *tally.Study) { s.Sessions = slices.Delete(s.Sessions, i, i+1) })
		return nil
	}
	return c, c.check()
}

func (r Release) change() (*change, error) {
	c := &change{Submission: r.Submission, reviewer: r.Reviewer, stage: r.Stage, namespaces: []Namespace{ScreeningNamespace}}
	c.apply = func(s *tally.Study, _ time.Time, halves *[]half) error {
		i := slices.IndexFunc(s.Reservations, func(o tally.Reservation) bool { return o.Reviewer == r.Reviewer && o.Stage == r.Stage })
		if i < 0 {
			return fmt.Errorf("%w: %q at %q", ErrNoReservation, r.Reviewer, r.Stage)
		}
		step(s, ScreeningNamespace, halves, func(s *tally.Study) { s.Reservations = slices.Delete(s.Reservations, i, i+1) })
		return nil
	}
	return c, c.check()
}

func (c *change) check() error {
	switch {
	case c.Project == "":
		return fmt.Errorf("screening: %w: no project named", ErrUnknownProject)
	case c.Study == "":
		return fmt.Errorf("screening: %w: no study named", ErrUnknownStudy)
	case c.reviewer == "":
		return fmt.Errorf("screening: %w: no reviewer named", ErrNotEligible)
	}
	return nil
}

// entries are what the halves owe to the statistics of the families given.
func entries(families []tally.Family, epoch int64, halves []half, op bson.ObjectID, now time.Time) []Entry {
	var out []Entry
	for _, h := range halves {
		if moves := tally.Moves(families, h.before, h.after); len(moves) > 0 {
			out = append(out, Entry{ID: bson.NewObjectID(), Namespace: h.namespace, Operation: op, Epoch: epoch, Moves: moves, At: now})
		}
	}
	return out
}

func movesOf(list []Entry) []tally.Move {
	var out []tally.Move
	for _, e := range list {
		out = append(out, e.Moves...)
	}
	return out
}
