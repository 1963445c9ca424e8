package screeningwrite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/trial"
	"github.com/assaylab/assay/screening"
)

// allowed are the commands that one save may issue: alone, with the eligibility policy,
// and for one more attempt. 0 is no budget.
type allowed struct{ alone, eligible, retry int }

func budgetOf(p screening.SavePath) allowed {
	switch p {
	case screening.SourceOnly:
		return allowed{alone: 2, eligible: 7, retry: 2}
	case screening.Fold:
		return allowed{alone: 4, eligible: 9, retry: 6}
	case screening.Transactional:
		return allowed{alone: 21}
	}
	return allowed{}
}

// budget is the check of scope run: each arm saves on a client whose commands are
// counted, apart from all trials, and stays within its budget; and a fold save writes no
// statistics. The transactional save has to trip that last one, or the detector is blind.
func (r *run) budget(ctx context.Context, j *trial.Judging) check.Result {
	c := find(checkBudget, 0)
	ran := map[string]bool{}
	for _, o := range j.Observations {
		ran[o.Arm] = true
	}
	seen := 0
	for _, name := range slices.Sorted(maps.Keys(ran)) {
		a := r.arms[name]
		limit := budgetOf(a.path)
		for _, p := range []struct {
			what              string
			most              int
			eligible, contest bool
		}{
			{"a save", limit.alone, false, false},
			{"a save with the eligibility policy", limit.eligible, true, false},
			{"a save with one more attempt", limit.alone + limit.retry, false, true},
		} {
			if p.most == 0 || p.contest && limit.retry == 0 {
				continue
			}
			n, writes, err := r.probe(ctx, a, p.eligible, p.contest)
			if err != nil {
				return check.Result{Name: checkBudget, Verdict: check.Unknown, Message: fmt.Sprintf("%s, %s: %v", name, p.what, err)}
			}
			seen++
			if n > p.most {
				c.wrong("%s: %s issued %d commands, its budget is %d", name, p.what, n, p.most)
			}
			if a.path != screening.Transactional && len(writes) > 0 {
				c.wrong("%s: %s wrote statistics: %v", name, p.what, writes)
			}
			if a.path == screening.Transactional && len(writes) == 0 {
				c.wrong("%s: %s was not seen to write statistics, so the detector is blind", name, p.what)
			}
		}
	}
	c.Operations = seen
	return c.Result
}

// counter is a client of its own whose commands are counted.
func (r *run) counter(ctx context.Context) (*reviewers, func(), error) {
	c := &reviewers{meter: newMeter()}
	var err error
	c.client, err = mongo.Connect(options.Client().ApplyURI(r.uri).SetAppName(Name + " counter").SetMonitor(c.meter.monitor()))
	if err != nil {
		return nil, nil, err
	}
	return c, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = c.client.Disconnect(end)
	}, nil
}

// probe counts the commands of one save of a project of its own. A contested one loses
// its first attempt to another reviewer.
func (r *run) probe(ctx context.Context, a arm, eligible, contested bool) (commands int, writes []string, err error) {
	c, end, err := r.counter(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer end()
	f, err := r.project(ctx, a, cell{target: targetSame, reviewers: 2, eligibility: eligible}, c)
	if err != nil {
		return 0, nil, err
	}
	work := f.work(1)
	rival := func(ctx context.Context, at screening.Attempt) error {
		if !contested || at.Number > 1 {
			return nil
		}
		s, err := screening.Open(ctx, r.desk.Database(r.database), screening.Options{Eligibility: eligible})
		if err != nil {
			return err
		}
		_, err = s.Save(ctx, a.path, work[1][0])
		return err
	}
	s, err := screening.Open(ctx, c.client.Database(r.database), screening.Options{Eligibility: eligible, Defect: a.defect, Hooks: screening.Hooks{Loaded: rival}})
	if err != nil {
		return 0, nil, err
	}
	c.meter.start()
	out, err := s.Save(ctx, a.path, work[0][0])
	seen := c.meter.stop()
	if err == nil && contested && out.Attempts != 2 {
		err = errors.New("the first attempt was not lost")
	}
	for _, n := range seen.commands {
		commands += n
	}
	return commands, seen.writes, err
}
