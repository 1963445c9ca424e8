package screeningwrite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/assaylab/assay/screening"
)

// contendedCell is where a fold save costs most more than a source-only one: different
// studies whose saves meet at the project's token.
var contendedCell = cell{target: targetDifferent, reviewers: 5, eligibility: true}

// contendedBatches is how many batches each arm submits, by turns.
const contendedBatches = 40

// contended is what one arm's submissions did in contendedCell.
type contended struct {
	submissions, attempts, saved int
	took                         time.Duration // all submissions
	commands                     map[string]spent
}

// spent is what was spent on one kind of command.
type spent struct {
	n    int
	took time.Duration
}

// kind is a command as a table names it.
func (c traced) kind() string {
	what := c.name
	if c.collection != "" {
		what += " " + c.collection
	}
	if c.transaction {
		what += " (in the transaction)"
	}
	return what
}

// traceContended says on which commands source-only and fold spend a submission's time
// when reviewers are in each other's way.
func (r *run) traceContended(ctx context.Context) error {
	names := []string{"source_only", "fold"}
	sides := make([]*contendedSide, len(names))
	for i, name := range names {
		a, ok := r.arms[name]
		if !ok {
			return nil // the run has not both
		}
		var err error
		if sides[i], err = r.contendedSide(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer disconnect(sides[i].client)
	}
	for i := range contendedBatches {
		for k := range sides {
			if err := sides[(i+k)%len(sides)].batch(ctx); err != nil {
				return err
			}
		}
	}
	r.note(contendedTable(names, [2]contended{sides[0].sum, sides[1].sum}))
	return nil
}

// contendedSide is an arm with a project and a client of its own.
type contendedSide struct {
	client *mongo.Client
	seen   *tracer
	f      *fixture
	sum    contended
}

func (r *run) contendedSide(ctx context.Context, a arm) (*contendedSide, error) {
	s := &contendedSide{seen: &tracer{}, sum: contended{commands: map[string]spent{}}}
	var err error
	if s.client, err = r.traced(s.seen); err != nil {
		return nil, err
	}
	if s.f, err = r.project(ctx, a, contendedCell, &reviewers{client: s.client}); err != nil {
		disconnect(s.client)
		return nil, err
	}
	return s, nil
}

// batch lets the reviewers submit at once. The first one makes the connections and is
// not counted.
func (s *contendedSide) batch(ctx context.Context) error {
	first := s.f.batches == 0
	work := s.f.work(uint64(s.f.batches) + 1)
	s.f.batches++
	s.seen.begin()
	all := make([]*submission, len(work))
	release := make(chan struct{})
	var group sync.WaitGroup
	for i, list := range work {
		group.Go(func() {
			<-release
			all[i] = s.f.submit(ctx, s.client.Database(s.f.run.database), list[0], nil)
		})
	}
	close(release)
	group.Wait()
	commands := s.seen.end()
	if s.f.arm.path == screening.Fold {
		if _, err := s.f.worker.Drain(ctx, s.f.project); err != nil {
			return err
		}
	}
	if !first {
		s.sum.add(all, commands)
	}
	return nil
}

func (c *contended) add(all []*submission, commands []traced) {
	for _, s := range all {
		c.submissions++
		c.attempts += len(s.attempts)
		c.took += s.took
		if s.saved {
			c.saved++
		}
	}
	for _, t := range commands {
		sum := c.commands[t.kind()]
		c.commands[t.kind()] = spent{sum.n + 1, sum.took + t.took}
	}
}

// contendedTable sets the two arms side by side, what differs most first.
func contendedTable(names []string, sides [2]contended) string {
	var b strings.Builder
	fmt.Fprintf(&b, "where a submission's time goes\n%d reviewers on different studies with the eligibility policy,\n", contendedCell.reviewers)
	fmt.Fprintf(&b, "%d batches per arm by turns; commands of one round overlap, so that\ntheir times add up to more\n", contendedBatches-1)
	fmt.Fprintf(&b, "%-38s %13s  %13s %7s\n", "per submission: how many, ms", names[0], names[1], "more")
	per := func(d time.Duration, c contended) float64 { return ms(d) / float64(max(c.submissions, 1)) }
	row := func(what string, n [2]float64, took [2]float64) {
		fmt.Fprintf(&b, "%-38s %5.2f x %5.2f  %5.2f x %5.2f %+7.2f\n", what, n[0], took[0], n[1], took[1], took[1]-took[0])
	}
	var n, took [2]float64
	for i, c := range sides {
		n[i], took[i] = float64(c.attempts)/float64(max(c.submissions, 1)), per(c.took, c)
	}
	row("attempts, and the time of all of them", n, took)
	kinds := slices.Collect(maps.Keys(sides[0].commands))
	for k := range sides[1].commands {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	more := func(k string) float64 {
		return per(sides[1].commands[k].took, sides[1]) - per(sides[0].commands[k].took, sides[0])
	}
	slices.SortFunc(kinds, func(a, b string) int {
		return cmp.Or(cmp.Compare(more(b), more(a)), strings.Compare(a, b))
	})
	for _, k := range kinds {
		for i, c := range sides {
			n[i], took[i] = float64(c.commands[k].n)/float64(max(c.submissions, 1)), per(c.commands[k].took, c)
		}
		row(k, n, took)
	}
	for i, c := range sides {
		fmt.Fprintf(&b, "%s: %d of %d submissions saved\n", names[i], c.saved, c.submissions)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
