package screeningwrite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/lab/trial"
	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

const stage = "title"

// families is what statistics are kept of, as in the reference.
var families = []tally.Family{tally.ProjectScreening}

type fixtureKey struct{ arm, cell string }

// fixture is the project of one arm in one cell, and what must be in it.
type fixture struct {
	run     *run
	arm     arm
	name    string // of the arm
	cell    cell
	key     string // as the reference names the cell
	project string
	studies []string
	crowd   *reviewers
	desk    *screening.Store
	worker  *screening.Store

	batches int // so far
	want    map[place]bool
	saves   map[string]int // by study
	entries int            // that saves must have carried, or receipts written
	fences  int            // that resolving unknown outcomes may have cost, in versions
}

// place is where a decision stands.
type place struct{ study, reviewer string }

// fixture is made at the first trial of its arm and cell.
func (r *run) fixture(ctx context.Context, t *trial.T, a arm, c cell) (*fixture, error) {
	k := fixtureKey{t.Arm, t.Cell}
	if f := r.fixtures[k]; f != nil {
		return f, nil
	}
	crowd, err := r.crowd(ctx, r.plan.rtt+c.regime.rtt)
	if err != nil {
		return nil, err
	}
	f, err := r.project(ctx, a, c, crowd)
	if err != nil {
		return nil, err
	}
	f.name = t.Arm
	r.fixtures[k] = f
	return f, nil
}

// project makes a project with studies, members and grants.
func (r *run) project(ctx context.Context, a arm, c cell, crowd *reviewers) (*fixture, error) {
	db := r.desk.Database(r.database)
	f := &fixture{run: r, arm: a, cell: c, key: keyOf(c), project: "PS-WRITE-01-" + bson.NewObjectID().Hex(), crowd: crowd, want: map[place]bool{}, saves: map[string]int{}}
	var err error
	if f.desk, err = screening.Open(ctx, db, screening.Options{}); err != nil {
		return nil, err
	}
	if f.worker, err = screening.Open(ctx, db, screening.Options{Defect: a.defect}); err != nil {
		return nil, err
	}
	if err := f.desk.AddProject(ctx, screening.NewProject{ID: f.project, Mode: a.mode, Families: families}); err != nil {
		return nil, err
	}
	n := smallStudies
	if c.regime.library {
		n = len(r.library)
	}
	var list []screening.NewStudy
	for i := range n {
		id := fmt.Sprintf("%s/%05d", f.project, i)
		if c.regime.library {
			id += " " + shortTitle(r.library[i])
		}
		f.studies = append(f.studies, id)
		list = append(list, screening.NewStudy{ID: id})
	}
	if err := f.desk.AddStudies(ctx, f.project, list...); err != nil {
		return nil, err
	}
	if !c.eligibility {
		return f, nil
	}
	for i := range c.reviewers {
		if err := f.desk.SetMembership(ctx, f.project, reviewer(i), true); err != nil {
			return nil, err
		}
		if err := f.desk.SetGrant(ctx, f.project, stage, reviewer(i), true); err != nil {
			return nil, err
		}
	}
	return f, f.desk.SetPolicy(ctx, f.project, true)
}

// keyOf is the cell's name in the reference: same_study_1_reviewers and so on, with
// what the reference does not have behind it.
func keyOf(c cell) string {
	s := fmt.Sprintf("%s_%d_reviewers", c.target, c.reviewers)
	if c.eligibility {
		s += "_eligibility"
	}
	return s
}

func reviewer(i int) string { return fmt.Sprintf("reviewer-%02d", i) }

// work is what each reviewer submits in a batch, in order. Decisions alternate from
// one batch to the next, so that every save of the first attempt moves statistics.
func (f *fixture) work(seed uint64) [][]screening.Decision {
	rng := rand.New(rand.NewPCG(seed, 0))
	skew := rand.NewZipf(rng, 1.2, 8, uint64(len(f.studies)-1))
	all := make([][]screening.Decision, f.cell.reviewers)
	for i := range all {
		for k := range f.cell.regime.submissions() {
			study := f.studies[0]
			switch f.cell.target {
			case targetDifferent:
				study = f.studies[i]
			case targetSkewed:
				study = f.studies[skew.Uint64()]
			}
			include := (f.batches*f.cell.regime.submissions()+k)%2 == 0
			all[i] = append(all[i], screening.Decision{
				Submission: screening.Submission{Project: f.project, Study: study}, Reviewer: reviewer(i), Stage: stage, Include: include,
			})
		}
	}
	return all
}

// reads are the studies of the project as they are.
func (f *fixture) reads(ctx context.Context) ([]screening.Study, error) {
	cur, err := f.run.desk.Database(f.run.database).Collection("study").Find(ctx, bson.D{{Key: "project", Value: f.project}}, options.Find().SetBatchSize(1000))
	if err != nil {
		return nil, err
	}
	var out []screening.Study
	return out, cur.All(ctx, &out)
}

// largest is the size in bytes of the largest document that the arm's saves write.
func (f *fixture) largest(ctx context.Context, studies []screening.Study) (int, error) {
	n := 0
	for _, s := range studies {
		raw, err := bson.Marshal(s)
		if err != nil {
			return 0, err
		}
		n = max(n, len(raw))
	}
	for _, c := range []string{"statisticsCurrent", "statisticsControl"} {
		cur, err := f.run.desk.Database(f.run.database).Collection(c).Find(ctx, bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "project", Value: f.project}}, bson.D{{Key: "_id", Value: f.project}}}}})
		if err != nil {
			return 0, err
		}
		var docs []bson.Raw
		if err := cur.All(ctx, &docs); err != nil {
			return 0, err
		}
		for _, d := range docs {
			n = max(n, len(d))
		}
	}
	return n, nil
}

// syncOnce is how long it takes to have one small write on this run's disk.
func syncOnce(dir string) (time.Duration, error) {
	file, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 4096)); err != nil {
		return 0, err
	}
	begun := time.Now()
	err = file.Sync()
	return time.Since(begun), err
}
