package artrie

import (
	"runtime/metrics"
	"sync/atomic"
)

// allowance is how many bytes of nodes a store with a budget keeps: the budget, and
// less while the runtime's memory limit leaves its collector little room. A collector
// without room runs all the time and takes more from every operation than the nodes
// are worth that stand in its way. See docs/artrie.md, section 7.
type allowance struct {
	budget int64
	bytes  atomic.Int64
	cycles uint64 // of the collector, at the last adjustment
	read   [3]metrics.Sample
}

const (
	// The allowance goes down in steps of a 32nd of the budget, to the half at least,
	// and up in half such steps.
	allowanceStep  = 32
	leastAllowance = 2
	// The collector has little room when its goal is not an eighth above what was
	// live, and enough when it is a fifth.
	little, enough = 8, 5
)

func (a *allowance) init(budget int64) {
	a.budget = budget
	a.bytes.Store(budget)
	a.read[0].Name = "/gc/cycles/total:gc-cycles"
	a.read[1].Name = "/gc/heap/goal:bytes"
	a.read[2].Name = "/gc/heap/live:bytes"
}

// adjust follows the collector, one step in each of its cycles. One caller at a time.
func (a *allowance) adjust() {
	metrics.Read(a.read[:])
	for _, s := range a.read {
		if s.Value.Kind() != metrics.KindUint64 {
			return
		}
	}
	a.step(a.read[0].Value.Uint64(), a.read[1].Value.Uint64(), a.read[2].Value.Uint64())
}

func (a *allowance) step(cycles, goal, live uint64) {
	if cycles == a.cycles || live == 0 {
		return
	}
	a.cycles = cycles
	now, step := a.bytes.Load(), a.budget/allowanceStep
	switch {
	case goal < live+live/little:
		a.bytes.Store(max(now-step, a.budget/leastAllowance))
	case goal > live+live/enough:
		a.bytes.Store(min(now+step/2, a.budget))
	}
}
