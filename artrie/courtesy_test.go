package artrie

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
)

// TestScarcityIsSeen has more goroutines than processors, then none but its own.
func TestScarcityIsSeen(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var c courtesy
	var stop atomic.Bool
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for !stop.Load() {
				runtime.Gosched()
			}
		})
	}
	if c.look(); c.scarce.Load() != restSyncs {
		t.Errorf("four goroutines queue for one processor, and readers rest for %d syncs", c.scarce.Load())
	}
	if c.look(); c.scarce.Load() != restSyncs-1 {
		t.Errorf("%d syncs are left after one", c.scarce.Load())
	}
	stop.Store(true)
	busy.Wait()
	// The runtime has goroutines of its own, which may queue for a moment.
	for c.scarce.Store(1); c.scarce.Load() != 0; {
		c.scarce.Store(0)
		c.look()
	}
}

// TestAReaderThatFetchesYields: with one processor another goroutine runs before the reader
// is done, if a write is on its way.
func TestAReaderThatFetchesYields(t *testing.T) {
	fs := crashfs.New()
	s := open(t, fs, arrangement{budget: 1 << 20})
	for i := range 100 {
		if _, err := s.Insert(ngram(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s.waiting.Add(1)
	before := s.Stats().Faults
	var ran atomic.Bool
	var other sync.WaitGroup
	other.Go(func() { ran.Store(true) })
	for i := 0; i < 100 && !ran.Load(); i++ {
		if _, err := s.Evict(0); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.lookup(ngram(i)); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if !ran.Load() {
		t.Errorf("nobody else ran during %d fetches", s.Stats().Faults-before)
	}
	s.waiting.Add(-1)
	other.Wait()
	closed(t, s, fs)
}
