package screeningwrite

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/assaylab/assay/screening"
)

// reaper ends the context of whoever sends the command numbered.
type reaper struct {
	mu   sync.Mutex
	left int
	end  context.CancelFunc
}

func (r *reaper) arm(at int, end context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.end = at, end
}

func (r *reaper) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(context.Context, *event.CommandStartedEvent) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.left--; r.left == 0 && r.end != nil {
			r.end()
		}
	}}
}

// deaths are the commands of a drain at which a worker dies, the middle of its
// transaction first. A drain of one batch has thirteen.
func deaths(kill int) int { return [...]int{8, 4, 11, 6, 13, 2, 9, 12, 7, 10, 5, 3}[kill%12] }

// killWorker lets a worker die in the middle of a drain, every fourth batch of a plain
// regime. What it still had under way has ended when this returns.
func (f *fixture) killWorker(ctx context.Context) (killed bool, err error) {
	if f.arm.path != screening.Fold || f.batches%4 != 1 || f.cell.regime != (regime{rtt: f.cell.regime.rtt}) {
		return false, nil
	}
	s, err := screening.Open(ctx, f.run.mortal.Database(f.run.database), screening.Options{Defect: f.arm.defect})
	if err != nil {
		return false, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	f.run.reaper.arm(deaths(f.batches/4), end)
	_, err = s.Drain(ctx, f.project)
	return err != nil, nil // that it fails is the point
}

// drains are what workers did in a batch.
type drains struct {
	entries, quarantined, lost int
	killed                     bool
	took                       time.Duration // of the last drain, which nothing disturbed
	folded                     int           // by it
	err                        error
}

func (d *drains) add(n screening.Drained) {
	d.entries += n.Entries
	d.quarantined += n.Quarantined
	d.lost += n.Lost
}

// meanwhile drains until it is stopped, which returns what it did.
func (f *fixture) meanwhile(ctx context.Context) (stop func() drains) {
	ctx, end := context.WithCancel(ctx)
	var d drains
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.worker.Work(ctx, f.project, time.Millisecond, func(n screening.Drained, err error) {
			d.add(n)
			if err != nil {
				d.err = err
			}
		})
	}()
	return func() drains {
		end()
		<-done
		return d
	}
}
