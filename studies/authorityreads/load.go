package authorityreads

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/authority"
)

// Bounds of a read beyond its deadline.
const (
	tolerance = 100 * time.Millisecond // a read that ends later is over its deadline
	hangAfter = time.Second            // a read that still runs then hangs
)

// read is one read as its worker saw it. Times are since the load's origin, taken
// outside the call.
type read struct {
	start, end time.Duration
	person     int32 // place among the hot people, -1 for another
	revision   int32 // 0 says that nobody was found
	reason     authority.Reason
	torn       bool // roles and revision do not fit: half of a record
}

func (r read) failed() bool { return r.reason != "" }

// load is what readers do in a trial: closed loops, each with one read in flight.
type load struct {
	sources  []authority.Source // one per client
	inFlight int                // of each
	hot      []authority.ID
	readHot  int // how many of them are read; all others are only written
	hotOnly  bool
	cold     int
	deadline time.Duration
	seed     uint64
	origin   time.Time
	until    time.Duration // no read begins later

	workers []*worker
	hangs   atomic.Int64
	lag     atomic.Int64 // how late the watchdog's own ticks came at most, ns: what the machine owes everybody
}

// worker is one closed loop. Its reads are its own until it has ended.
type worker struct {
	source authority.Source
	rng    *rand.Rand
	reads  []read
	// began is the start of the read in flight, 0 for none; the watchdog looks at it.
	began atomic.Int64
}

// run reads until the end and returns when all workers have. Reads that hang are
// counted, and then broken off through ctx. It returns an error where even that does
// not end them: the trial's figures are then worth nothing.
func (l *load) run(ctx context.Context) error {
	whole := ctx
	ctx, breakOff := context.WithCancel(ctx)
	defer breakOff()
	for c, s := range l.sources {
		for i := range l.inFlight {
			l.workers = append(l.workers, &worker{source: s, rng: rand.New(rand.NewPCG(l.seed, uint64(c*l.inFlight+i)))})
		}
	}
	var all sync.WaitGroup
	for _, w := range l.workers {
		all.Go(func() { l.work(ctx, w) })
	}
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		l.watch(ended)
	}()
	go func() {
		all.Wait()
		close(ended)
	}()
	defer func() { <-watched }()
	last := l.until - time.Since(l.origin) + l.deadline + hangAfter + tolerance
	timer := time.NewTimer(last)
	defer timer.Stop()
	select {
	case <-ended:
		return whole.Err()
	case <-ctx.Done():
	case <-timer.C:
	}
	breakOff()
	timer.Reset(startTimeout)
	select {
	case <-ended:
		return whole.Err()
	case <-timer.C:
		return fmt.Errorf("reads still run %s after they were broken off", startTimeout)
	}
}

func (l *load) work(ctx context.Context, w *worker) {
	for ctx.Err() == nil {
		person := -1
		id := authority.ID{}
		if l.hotOnly || w.rng.IntN(2) == 0 {
			person = w.rng.IntN(l.readHot)
			id = l.hot[person]
		} else {
			id = cold(w.rng.IntN(l.cold))
		}
		start := time.Since(l.origin)
		if start >= l.until {
			return
		}
		w.began.Store(int64(start))
		rec, err := w.source.Read(ctx, id)
		w.began.Store(0)
		r := read{start: start, end: time.Since(l.origin), person: int32(person), revision: int32(rec.Revision)}
		if err != nil {
			if ctx.Err() != nil && r.end-r.start < l.deadline {
				return // broken off with the trial, not refused
			}
			r.reason = authority.ReasonOf(err)
		} else {
			held := rec.Has(role)
			r.torn = rec.ID != id || rec.Found != (rec.Revision > 0) || held != (rec.Revision%2 == 1) || person < 0 && rec.Revision != 1
		}
		w.reads = append(w.reads, r)
	}
}

// watch counts the reads that hang, each once.
func (l *load) watch(ended <-chan struct{}) {
	const often = 20 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	counted := make([]int64, len(l.workers))
	last := time.Since(l.origin)
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		now := time.Since(l.origin)
		l.lag.Store(max(l.lag.Load(), int64(now-last-often)))
		last = now
		for i, w := range l.workers {
			if began := w.began.Load(); began > 0 && counted[i] != began && now-time.Duration(began) > l.deadline+hangAfter {
				counted[i] = began
				l.hangs.Add(1)
			}
		}
	}
}

// all are the reads of all workers.
func (l *load) all() []read {
	n := 0
	for _, w := range l.workers {
		n += len(w.reads)
	}
	out := make([]read, 0, n)
	for _, w := range l.workers {
		out = append(out, w.reads...)
	}
	return out
}

// readers connects the clients of a load.
func (e *experiment) readers(uri string) (sources []authority.Source, clients []*mongo.Client, err error) {
	for range e.scenario.clients {
		s, c, err := e.reader(uri)
		if err != nil {
			disconnect(clients...)
			return nil, nil, err
		}
		sources, clients = append(sources, s), append(clients, c)
	}
	return sources, clients, nil
}

// reader connects one client and makes the arm's reader of it.
func (e *experiment) reader(uri string) (authority.Source, *mongo.Client, error) {
	var more *options.ClientOptions
	if e.arm.client != nil {
		more = e.arm.client()
	}
	client, err := connect(uri, more)
	if err != nil {
		return nil, nil, err
	}
	s, err := e.arm.source(peopleOf(client), e.plan.shape())
	if err != nil {
		disconnect(client)
		return nil, nil, err
	}
	return s, client, nil
}
