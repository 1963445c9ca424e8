package authorityreads

import (
	"context"
	"sync"
	"time"

	"github.com/assaylab/assay/authority"
)

// write is one change of a hot person as its writer saw it.
type write struct {
	start, end time.Duration
	person     int
	revision   int64 // that it makes
	outcome    authority.Outcome
}

// writers is how many change people beside the readers.
const writers = 4

// toggler grants and revokes the role of hot people, each of whom has one writer, with
// a majority's acknowledgement.
type toggler struct {
	writer *authority.Writer
	reader authority.Source // for the fresh read that an unknown outcome needs
	hot    []authority.ID
	every  time.Duration // pause of each writer between changes
	origin time.Time

	mu     sync.Mutex
	writes []write
	lost   int // people left alone because the outcome of a change stayed open
}

// run changes people until ctx ends.
func (t *toggler) run(ctx context.Context) {
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			var mine []*changing
			for i := w; i < len(t.hot); i += writers {
				mine = append(mine, &changing{person: i, revision: 1})
			}
			t.work(ctx, mine)
		})
	}
	all.Wait()
}

// changing is a person and the revision that the writer knows.
type changing struct {
	person   int
	revision int64
	left     bool
}

func (t *toggler) work(ctx context.Context, mine []*changing) {
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for next := 0; len(mine) > 0; next++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p := mine[next%len(mine)]
		if p.left {
			continue
		}
		t.change(ctx, p)
	}
}

func (t *toggler) change(ctx context.Context, p *changing) {
	do := t.writer.Revoke
	if p.revision%2 == 0 {
		do = t.writer.Grant
	}
	w := write{start: time.Since(t.origin), person: p.person, revision: p.revision + 1}
	w.outcome, _ = do(context.WithoutCancel(ctx), t.hot[p.person], role, p.revision)
	w.end = time.Since(t.origin)
	t.mu.Lock()
	t.writes = append(t.writes, w)
	t.mu.Unlock()
	switch w.outcome {
	case authority.Applied:
		p.revision++
		return
	case authority.Unknown:
		for ctx.Err() == nil {
			if rec, err := t.reader.Read(ctx, t.hot[p.person]); err == nil {
				if rec.Revision == w.revision {
					p.revision++
					return
				}
				break
			}
		}
	}
	// It may still take effect, or nobody else should have been there: a second change
	// from the same revision could not be told from it.
	p.left = true
	t.mu.Lock()
	t.lost++
	t.mu.Unlock()
}
