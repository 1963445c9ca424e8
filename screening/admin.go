package screening

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/screening/tally"
)

// NewProject is a project to add.
type NewProject struct {
	ID       string
	Mode     Mode           // it is born in; "" is off
	Families []tally.Family // whose statistics are kept while the mode is not off; none is all
}

// AddProject makes a project without studies. Nobody has saved to it, so its rows are
// right and served from the start.
func (s *Store) AddProject(ctx context.Context, n NewProject) error {
	if n.ID == "" {
		return fmt.Errorf("screening: a project without a name")
	}
	id, families, mode, state := n.ID, n.Families, n.Mode, Serving
	switch mode {
	case "", ModeOff:
		mode, state = ModeOff, Stale
	case ModeTransactional, ModeFold:
	default:
		return fmt.Errorf("screening: no such mode: %q", mode)
	}
	if len(families) == 0 {
		families = tally.Families()
	}
	for _, f := range families {
		if !f.Known() {
			return fmt.Errorf("screening: unknown family %q", f)
		}
	}
	return s.administer(ctx, func(ctx context.Context) error {
		if _, err := s.projects.InsertOne(ctx, Project{ID: id, PolicyVersion: 1}); err != nil {
			return err
		}
		if _, err := s.controls.InsertOne(ctx, Control{Project: id, Mode: mode, Epoch: 1, OldestEpoch: 1, Families: families, Version: 1}); err != nil {
			return err
		}
		guards := make([]guard, len(families))
		for i, f := range families {
			guards[i] = guard{ID: familyKey{id, f}, Project: id, Family: f, State: state, Epoch: 1, Version: 1}
		}
		_, err := s.guards.InsertMany(ctx, guards)
		return err
	})
}

// NewStudy is a study to add.
type NewStudy struct {
	ID       string
	Required int // reviewers until a stage has come to something; 0 is 2
	Capacity int // seats; 0 is no limit
}

// AddStudies adds studies to a project. None contributes to statistics before somebody
// acts on it.
func (s *Store) AddStudies(ctx context.Context, project string, list ...NewStudy) error {
	for part := range slices.Chunk(list, 1000) {
		docs := make([]Study, len(part))
		for i, n := range part {
			if n.ID == "" || n.Required < 0 || n.Capacity < 0 {
				return fmt.Errorf("screening: study %q: it needs a name, and numbers that are not negative", n.ID)
			}
			docs[i] = Study{ID: n.ID, Project: project, Version: 1, Capacity: n.Capacity, Holders: []string{}, Recent: []bson.ObjectID{}, Pending: []bson.Raw{},
				Study: tally.Study{Required: n.Required, Decisions: []tally.Decision{}, Sessions: []tally.Session{}, Reservations: []tally.Reservation{}}}
		}
		if _, found, err := get[Project](ctx, s.projects, byID(project)); err != nil {
			return err
		} else if !found {
			return fmt.Errorf("%w: %q", ErrUnknownProject, project)
		}
		if _, err := s.studies.InsertMany(ctx, docs); err != nil {
			return err
		}
	}
	return nil
}

// SetPolicy turns the eligibility policy of a project on or off.
func (s *Store) SetPolicy(ctx context.Context, project string, on bool) error {
	return s.policy(ctx, project, bson.D{{Key: "eligibility", Value: on}}, nil)
}

// SetMembership makes a reviewer an active member, or not.
func (s *Store) SetMembership(ctx context.Context, project, reviewer string, active bool) error {
	return s.policy(ctx, project, nil, func(ctx context.Context) error {
		id := member{project, reviewer}
		_, err := s.memberships.ReplaceOne(ctx, byID(id), membership{id, active}, options.Replace().SetUpsert(true))
		return err
	})
}

// SetGrant gives a reviewer the right to review at a stage, or takes it.
func (s *Store) SetGrant(ctx context.Context, project, stage, reviewer string, review bool) error {
	return s.policy(ctx, project, nil, func(ctx context.Context) error {
		id := grant{project, stage, reviewer}
		_, err := s.grants.ReplaceOne(ctx, byID(id), stageGrant{id, review}, options.Replace().SetUpsert(true))
		return err
	})
}

// policy changes what eligibility depends on, together with the project's policy
// version and token, so that no save overlaps it unseen (S13).
func (s *Store) policy(ctx context.Context, project string, set bson.D, also func(context.Context) error) error {
	update := bson.D{{Key: "$inc", Value: bson.D{{Key: "policyVersion", Value: int64(1)}, {Key: "admissionToken", Value: int64(1)}}}}
	if len(set) > 0 {
		update = append(update, bson.E{Key: "$set", Value: set})
	}
	return s.administer(ctx, func(ctx context.Context) error {
		res, err := s.projects.UpdateOne(ctx, byID(project), update)
		switch {
		case err != nil:
			return err
		case res.MatchedCount == 0:
			return fmt.Errorf("%w: %q", ErrUnknownProject, project)
		case also == nil:
			return nil
		}
		return also(ctx)
	})
}

// SetTracking changes the durable reviewer mode. Fold and transactional saves of stores
// that were opened for the other mode are refused from then on.
func (s *Store) SetTracking(ctx context.Context, on bool) error {
	_, err := majority(s.globals).UpdateOne(ctx, byID(globalID), bson.D{
		{Key: "$set", Value: bson.D{{Key: "tracking", Value: on}}}, {Key: "$inc", Value: bson.D{{Key: "version", Value: int64(1)}}}})
	return err
}
