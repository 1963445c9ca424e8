package screening

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/screening/tally"
)

// Project is a review project.
type Project struct {
	ID             string `bson:"_id"`
	Eligibility    bool   `bson:"eligibility"`    // only active members with the stage's grant may review
	PolicyVersion  int64  `bson:"policyVersion"`  // raised by each change of policy, membership or grant
	AdmissionToken int64  `bson:"admissionToken"` // raised by each of those and by each eligible save
	Lock           string `bson:"lock"`           // of a bulk update; "" is none
}

// Study is one study of a project, with everything that its reviewers did.
type Study struct {
	ID          string `bson:"_id"`
	Project     string `bson:"project"`
	Version     int64  `bson:"version"`  // raised by every write
	Folds       int64  `bson:"folds"`    // raised by the worker's writes alone
	Capacity    int    `bson:"capacity"` // seats; 0 is no limit
	tally.Study `bson:",inline"`
	Holders     []string        `bson:"holders"` // reviewers with a seat
	Lock        string          `bson:"lock"`    // of a bulk update; "" is none
	Recent      []bson.ObjectID `bson:"recent"`  // the last operations, at most recentKept
	// Pending are entries not folded yet. They are kept as they were read, so that a
	// save does not lose what it cannot interpret.
	Pending      []bson.Raw `bson:"pending"`
	PendingCount int        `bson:"pendingCount"`
	Extra        bson.M     `bson:",inline"` // fields of other versions of this package
}

// recentKept is how many operations a study remembers. Part of the proof of absence
// in docs/screening.md section 8.
const recentKept = 16

// Namespace is the half of a submission that an entry or receipt belongs to.
type Namespace string

const (
	ScreeningNamespace  Namespace = "screening"
	AnnotationNamespace Namespace = "annotation"
)

// Entry is what a save leaves in its study for the worker.
type Entry struct {
	ID        bson.ObjectID `bson:"id"` // drawn for the attempt that wrote it
	Namespace Namespace     `bson:"ns"`
	Operation bson.ObjectID `bson:"op"`
	Epoch     int64         `bson:"epoch"`
	Moves     []tally.Move  `bson:"moves"`
	At        time.Time     `bson:"at"`
}

type member struct {
	Project  string `bson:"project"`
	Reviewer string `bson:"reviewer"`
}

type membership struct {
	ID     member `bson:"_id"`
	Active bool   `bson:"active"`
}

type grant struct {
	Project  string `bson:"project"`
	Stage    string `bson:"stage"`
	Reviewer string `bson:"reviewer"`
}

type stageGrant struct {
	ID     grant `bson:"_id"`
	Review bool  `bson:"review"`
}

// clone is a copy whose slices may be changed.
func (s Study) clone() Study {
	s.Decisions, s.Sessions, s.Reservations = slices.Clone(s.Decisions), slices.Clone(s.Sessions), slices.Clone(s.Reservations)
	s.Holders, s.Recent, s.Pending = slices.Clone(s.Holders), slices.Clone(s.Recent), slices.Clone(s.Pending)
	return s
}

// settle brings what follows from decisions, sessions and reservations up to date.
func (s *Study) settle(op bson.ObjectID) {
	s.Version++
	s.Recent = append(s.Recent, op)
	s.Recent = s.Recent[max(0, len(s.Recent)-recentKept):]
	s.Holders = s.Holders[:0]
	hold := func(reviewer string) {
		if !slices.Contains(s.Holders, reviewer) {
			s.Holders = append(s.Holders, reviewer)
		}
	}
	for _, d := range s.Decisions {
		hold(d.Reviewer)
	}
	for _, n := range s.Sessions {
		hold(n.Reviewer)
	}
	for _, r := range s.Reservations {
		hold(r.Reviewer)
	}
}

// carry adds entries to the pending set.
func (s *Study) carry(entries []Entry) error {
	for _, e := range entries {
		raw, err := bson.Marshal(e)
		if err != nil {
			return err
		}
		s.Pending = append(s.Pending, raw)
	}
	s.PendingCount = len(s.Pending)
	return nil
}

// carries says whether an operation is in the pending set.
func (s *Study) carries(op bson.ObjectID) bool {
	return slices.ContainsFunc(s.Pending, func(raw bson.Raw) bool {
		id, ok := raw.Lookup("op").ObjectIDOK()
		return ok && id == op
	})
}

// position is what tells who moved a study between two loads (S2).
type position struct{ version, folds int64 }

func (s *Study) position() position { return position{s.Version, s.Folds} }
