package screening

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// pending is one entry of a study, judged: reason is "" if it can be folded.
type pending struct {
	study  string
	raw    bson.Raw
	entry  Entry
	reason string
}

// judge says whether an entry can be folded. Worker, reader and rebuild all go by it,
// or they would disagree about what a row contains.
func judge(study string, raw bson.Raw, control Control) pending {
	p := pending{study: study, raw: raw}
	if err := bson.Unmarshal(raw, &p.entry); err != nil {
		p.reason = "cannot be read: " + err.Error()
		return p
	}
	switch e := p.entry; {
	case e.ID.IsZero(), e.Operation.IsZero(), len(e.Moves) == 0:
		p.reason = "incomplete"
	case e.Namespace != ScreeningNamespace && e.Namespace != AnnotationNamespace:
		p.reason = fmt.Sprintf("unknown namespace %q", e.Namespace)
	case !control.foldable(e.Epoch):
		p.reason = fmt.Sprintf("unknown epoch %d, foldable are %d to %d", e.Epoch, control.OldestEpoch, control.Epoch)
	}
	for _, m := range p.entry.Moves {
		if err := m.Check(); err != nil && p.reason == "" {
			p.reason = err.Error()
		}
	}
	return p
}

// pendingSet is what the worker and the reader need of a study.
type pendingSet struct {
	ID      string     `bson:"_id"`
	Version int64      `bson:"version"`
	Pending []bson.Raw `bson:"pending"`
}

// outstanding lists the studies of a project that have entries; limit 0 is all.
func (s *Store) outstanding(ctx context.Context, project string, limit int64) ([]pendingSet, error) {
	return list[pendingSet](ctx, s.studies,
		bson.D{{Key: "project", Value: project}, {Key: "pendingCount", Value: bson.D{{Key: "$gt", Value: 0}}}},
		options.Find().SetLimit(limit).SetProjection(bson.D{{Key: "version", Value: 1}, {Key: "pending", Value: 1}}))
}

// Control is the control row of a project as it stands.
func (s *Store) Control(ctx context.Context, project string) (Control, error) {
	c, found, err := get[Control](ctx, s.controls, byID(project))
	if err == nil && !found {
		err = fmt.Errorf("%w: %q", ErrUnknownProject, project)
	}
	return c, err
}

// Study is a study as it stands.
func (s *Store) Study(ctx context.Context, id string) (Study, error) {
	study, found, err := get[Study](ctx, s.studies, byID(id))
	if err == nil && !found {
		err = fmt.Errorf("%w: %q", ErrUnknownStudy, id)
	}
	return study, err
}
