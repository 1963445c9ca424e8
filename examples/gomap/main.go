// Command gomap is a complete experiment in Go: may the RWMutex around a shared
// map be replaced by sync.Map? It has every verb of assay:
//
//	go run ./examples/gomap lint
//	go run ./examples/gomap run
//	go run ./examples/gomap report RUN --format html -o page.html
package main

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/assaylab/assay/lab"
)

//go:embed protocol.yaml
var protocol []byte

func main() {
	lab.Main(&lab.Study{
		Name:      "gomap",
		About:     "may the RWMutex around a shared map be replaced by sync.Map?",
		Protocols: map[string][]byte{"": protocol},
		Arms: map[string]lab.ArmFunc{
			"rwmutex": func(_ context.Context, t *lab.T) error { return work(t, &locked{m: map[uint64]uint64{}}) },
			"syncmap": func(_ context.Context, t *lab.T) error { return work(t, &sync.Map{}) },
			// The planted defect: a run of `lossy` must end in ABORT, or the check
			// that guards all the others is worth nothing.
			"lossy": func(_ context.Context, t *lab.T) error {
				return work(t, &lossy{locked: locked{m: map[uint64]uint64{}}})
			},
		},
	})
}

// table is what both maps offer.
type table interface {
	Store(key, value any)
	Load(key any) (value any, ok bool)
}

type locked struct {
	mu sync.RWMutex
	m  map[uint64]uint64
}

func (l *locked) Store(k, v any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m[k.(uint64)] = v.(uint64)
}

func (l *locked) Load(k any) (any, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	v, ok := l.m[k.(uint64)]
	return v, ok
}

// lossy forgets one store in a thousand.
type lossy struct {
	locked
	n int
}

func (l *lossy) Store(k, v any) {
	l.mu.Lock()
	l.n++
	forget := l.n%1000 == 0
	l.mu.Unlock()
	if !forget {
		l.locked.Store(k, v)
	}
}

const (
	workers = 4
	keys    = 20_000 // per worker
)

// work stores keys of its own from several goroutines, reading as many as the
// cell says for each store, and then checks that every one is there.
func work(t *lab.T, m table) error {
	reads, err := strconv.Atoi(t.Factors["reads"])
	if err != nil {
		return fmt.Errorf("factor reads: %w", err)
	}
	latencies := make([][]int64, workers)
	var group sync.WaitGroup
	t.Begin()
	for w := range workers {
		group.Go(func() {
			base := t.Seed + uint64(w)<<40
			for i := range uint64(keys) {
				start := time.Now()
				m.Store(base+i, i)
				for r := range uint64(reads) {
					m.Load(base + (i*31+r)%(i+1))
				}
				latencies[w] = append(latencies[w], int64(time.Since(start)))
			}
		})
	}
	group.Wait()
	t.End()

	for _, l := range latencies {
		t.Samples("op", l)
	}
	t.Record("ops_per_s", workers*keys/t.Timed().Seconds())
	t.Report(everyKey(t, m))
	return nil
}

// everyKey is the correctness check: what was stored is there.
func everyKey(t *lab.T, m table) lab.Result {
	res := lab.Result{Name: "every_key", Verdict: lab.Pass}
	for w := range uint64(workers) {
		for i := range uint64(keys) {
			res.Operations++
			if v, ok := m.Load(t.Seed + w<<40 + i); !ok || v.(uint64) != i {
				res.Verdict = lab.Fail
				res.Message = "a stored key is gone or has another value"
				if len(res.Examples) < 3 {
					res.Examples = append(res.Examples, fmt.Sprintf("worker %d key %d: found %v, %v", w, i, v, ok))
				}
			}
		}
	}
	return res
}
