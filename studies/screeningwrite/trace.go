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

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/screening"
)

// traced is one command of a save.
type traced struct {
	name, collection string
	reads            string   // the filter of a find
	writes           []string // documents, as collection and _id or filter
	transaction      bool
	start, took      time.Duration
	round            int  // commands of a round run at the same time
	again            bool // reads what was read before in the same snapshot
}

// tracer keeps the commands of a client in the order in which they began.
type tracer struct {
	mu     sync.Mutex
	origin time.Time
	seen   []traced
	open   map[int64]int // index in seen by request
}

func (r *tracer) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.origin, r.seen, r.open = time.Now(), nil, map[int64]int{}
}

func (r *tracer) end() []traced {
	r.mu.Lock()
	defer r.mu.Unlock()
	return annotate(slices.Clone(r.seen))
}

func (r *tracer) monitor() *event.CommandMonitor {
	finished := func(id int64, took time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if i, ok := r.open[id]; ok {
			r.seen[i].took = took
		}
	}
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			c := read(e.CommandName, e.Command)
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.open == nil {
				return
			}
			c.start = time.Since(r.origin)
			r.open[e.RequestID] = len(r.seen)
			r.seen = append(r.seen, c)
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) { finished(e.RequestID, e.Duration) },
		Failed:    func(_ context.Context, e *event.CommandFailedEvent) { finished(e.RequestID, e.Duration) },
	}
}

// read takes from a command what a trace shows of it.
func read(name string, c bson.Raw) traced {
	t := traced{name: name}
	t.collection, _ = c.Lookup(name).StringValueOK()
	_, err := c.LookupErr("autocommit")
	t.transaction = err == nil
	target := func(filter bson.RawValue) {
		doc, ok := filter.DocumentOK()
		if !ok {
			return
		}
		id, err := doc.LookupErr("_id")
		if err != nil {
			id = filter
		}
		t.writes = append(t.writes, t.collection+" "+id.String())
	}
	each := func(list, field string) {
		values, err := c.Lookup(list).Array().Values()
		if err != nil {
			return
		}
		for _, v := range values {
			if doc, ok := v.DocumentOK(); ok {
				target(doc.Lookup(field))
			}
		}
	}
	switch name {
	case "find":
		t.reads = t.collection + " " + c.Lookup("filter").String()
	case "findAndModify":
		target(c.Lookup("query"))
	case "update":
		if _, err := c.LookupErr("updates"); err == nil {
			each("updates", "q")
		}
	case "insert":
		values, err := c.LookupErr("documents")
		if list, ok := values.ArrayOK(); err == nil && ok {
			docs, _ := list.Values()
			for _, d := range docs {
				target(d)
			}
		}
	}
	return t
}

// annotate numbers the rounds and marks reads of what the same snapshot has read.
func annotate(seen []traced) []traced {
	slices.SortStableFunc(seen, func(a, b traced) int { return cmp.Compare(a.start, b.start) })
	round, until := 0, time.Duration(-1)
	known := map[string]bool{}
	for i := range seen {
		c := &seen[i]
		if c.start >= until {
			round++
		}
		until = max(until, c.start+c.took)
		c.round = round
		if c.reads != "" && c.transaction {
			c.again = known[c.reads]
			known[c.reads] = true
		}
	}
	return seen
}

// hot are the documents that both of two saves of different studies write.
func hot(one, other []traced) []string {
	written := map[string]bool{}
	for _, c := range one {
		for _, w := range c.writes {
			written[w] = true
		}
	}
	var out []string
	for _, c := range other {
		for _, w := range c.writes {
			if written[w] && !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}

// trace notes the ordered commands of one save per arm, alone, what the commands of
// saves that meet cost, and the paired measurements of pairs.go.
func (r *run) trace(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(r.arms)) {
		one, hot, err := r.traceArm(ctx, r.arms[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.note(traceTable(name, one, hot))
	}
	if err := r.traceContended(ctx); err != nil {
		return err
	}
	return r.pairs(ctx)
}

// traced is a client whose commands are noted.
func (r *run) traced(seen *tracer) (*mongo.Client, error) {
	return mongo.Connect(options.Client().ApplyURI(r.uri).SetAppName(Name + " tracer").SetMonitor(seen.monitor()))
}

func (r *run) traceArm(ctx context.Context, a arm) (one []traced, both []string, err error) {
	seen := &tracer{}
	c, err := r.traced(seen)
	if err != nil {
		return nil, nil, err
	}
	defer disconnect(c)
	f, err := r.project(ctx, a, cell{target: targetDifferent, reviewers: 3}, &reviewers{client: c})
	if err != nil {
		return nil, nil, err
	}
	work := f.work(1)
	var traces [][]traced
	for _, list := range work { // the first makes the connections
		s, err := screening.Open(ctx, c.Database(r.database), screening.Options{Defect: a.defect})
		if err != nil {
			return nil, nil, err
		}
		seen.begin()
		if _, err := s.Save(ctx, a.path, list[0]); err != nil {
			return nil, nil, err
		}
		traces = append(traces, seen.end())
	}
	return traces[2], hot(traces[1], traces[2]), nil
}

// traceTable is the trace of one save as text: times in ms since the save began.
func traceTable(name string, seen []traced, hot []string) string {
	var b strings.Builder
	rounds := 0
	for _, c := range seen {
		rounds = max(rounds, c.round)
	}
	fmt.Fprintf(&b, "trace of one %s save, alone: %d commands in %d sequential rounds\n", name, len(seen), rounds)
	fmt.Fprintf(&b, "%3s %5s %8s %8s  %s\n", "#", "round", "at ms", "took ms", "command")
	for i, c := range seen {
		what := c.kind()
		if c.again {
			what += " (read before in the same snapshot)"
		}
		if slices.ContainsFunc(c.writes, func(w string) bool { return slices.Contains(hot, w) }) {
			what += " (hot)"
		}
		fmt.Fprintf(&b, "%3d %5d %8.3f %8.3f  %s\n", i+1, c.round, ms(c.start), ms(c.took), what)
	}
	if len(hot) == 0 {
		b.WriteString("no document is written by saves of different studies")
	} else {
		fmt.Fprintf(&b, "written by every save, whatever its study: %s", strings.Join(hot, "; "))
	}
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func disconnect(c *mongo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.Disconnect(ctx)
}
