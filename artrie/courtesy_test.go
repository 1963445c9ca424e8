package artrie

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
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
