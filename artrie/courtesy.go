package artrie

import (
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// courtesy is how readers, who lock nothing and so never stop by themselves, leave
// processors to writers. A goroutine that comes back from a sync queues for a
// processor, and its thread for one of the machine: yielding helps with the first
// only, resting with both. See docs/artrie.md, section 5.
type courtesy struct {
	// scarce is for how many syncs more a reader that gives way also rests.
	scarce atomic.Int32
}

const (
	// giveWayEvery is how many reads a reader does on average before it gives way.
	giveWayEvery = 64
	rest         = 50 * time.Microsecond
	// yieldEvery is how many fetches a reader does on average before it yields. A fetch
	// takes the time of ten reads; to rest as often would cost most of the reads.
	yieldEvery = 4
	// restSyncs is for how long scarcity that was seen once counts. While readers rest
	// there is none to see.
	restSyncs = 256
)

// look is called by the writer that has just synced: does anyone queue for a processor?
func (c *courtesy) look() {
	if n := c.scarce.Load(); n > 0 {
		c.scarce.Store(n - 1)
		return
	}
	sample := [1]metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(sample[:])
	if v := sample[0].Value; v.Kind() == metrics.KindUint64 && v.Uint64() > 0 {
		c.scarce.Store(restSyncs)
	}
}

// giveWay is called by readers while a write is on its way. A random draw decides
// and not a counter, which would be a line that all readers write.
func (c *courtesy) giveWay() {
	if rand.Uint32()%giveWayEvery != 0 {
		return
	}
	if c.scarce.Load() > 0 {
		time.Sleep(rest)
		return
	}
	runtime.Gosched()
}

// fetched is called after a fetch while a write is on its way, by readers and by writers
// that are not in a batch yet.
func (c *courtesy) fetched() {
	if rand.Uint32()%yieldEvery == 0 {
		runtime.Gosched()
	}
}
