package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/assaylab/assay/artrie"
	"golang.org/x/sys/unix"
)

// runtimeShare is what the memory limit leaves to the runtime itself, which takes 6 to
// 7 MiB of it whatever the heap, and to the pieces of spans that are in no use, in bytes.
const runtimeShare = 10 << 20

// measureEviction reads uniformly until the store is in its steady state, then writes
// beside paced uniform reads. part 1 has no budget. The memory limit of the runtime is
// set by one rule for all: a quarter over the nodes, and runtimeShare.
func measureEviction(c config, dir string, part int64) (f figures, err error) {
	nodes := int64(c.Keys) * keyBytes / part
	debug.SetMemoryLimit(nodes + nodes/4 + runtimeShare)
	opt := artrie.Options{}
	if part > 1 {
		opt.MemoryBudget = nodes
	}
	t, err := artrie.Open(dir, &opt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if part == 1 {
		for range t.All() {
		}
	}
	b := make([]byte, 0, keyRoom)
	for i := range c.Keys / 2 {
		b = appendKey(b[:0], int(mix(uint64(i))%uint64(c.Keys)))
		if _, _, err := t.Get(bytesString(b)); err != nil {
			return nil, err
		}
	}
	unix.Sync()
	// What opening and warming took at most is not what the store takes.
	debug.FreeOSMemory()
	peak := watchMemory()
	before, used := t.Stats(), cpuNow().own
	var highest, looks atomic.Int64
	l := load{ops: c.Ops, first: c.Keys, limit: c.Limit, readers: 4, paced: true, every: 100 * time.Millisecond}
	f, err = l.run(
		func(k string) error { _, err := t.Insert(k); return err },
		func(k string) error {
			if looks.Add(1)%256 == 0 {
				if r := t.Stats().Resident; r > highest.Load() {
					highest.Store(r)
				}
			}
			_, _, err := t.Get(k)
			return err
		},
		func() error { _, err := t.Checkpoint(); return err })
	if err != nil {
		return nil, err
	}
	st := t.Stats()
	f["cpu"] = (cpuNow().own - used) / ticks / float64(max(1, looks.Load()))
	f["peak"] = peak()
	f["misses"] = float64(st.Faults-before.Faults) / float64(max(1, looks.Load()))
	f["syncs"] = float64(st.CommitSyncs-before.CommitSyncs) / float64(st.Writes-before.Writes)
	f["counted"] = float64(highest.Load()) / float64(nodes)
	return f, t.Err()
}

// watchMemory samples the anonymous resident size of this process, which leaves out
// the program's text, until the function it returns is called: that gives the highest, in bytes.
func watchMemory() (peak func() float64) {
	stop, done := make(chan struct{}), make(chan float64)
	go func() {
		highest := 0.0
		for tick := time.Tick(2 * time.Millisecond); ; {
			var size, resident, shared float64
			if b, err := os.ReadFile("/proc/self/statm"); err == nil {
				if _, err := fmt.Sscan(string(b), &size, &resident, &shared); err == nil {
					highest = max(highest, (resident-shared)*float64(os.Getpagesize()))
				}
			}
			select {
			case <-stop:
				done <- highest
				return
			case <-tick:
			}
		}
	}()
	return func() float64 { close(stop); return <-done }
}
