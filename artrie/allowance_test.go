package artrie

import "testing"

// TestTheAllowanceFollowsTheCollector: without room for the collector fewer nodes are kept,
// half of the budget at least, and with room all of it again.
func TestTheAllowanceFollowsTheCollector(t *testing.T) {
	var a allowance
	const budget, live = 3200, 1000
	a.init(budget)
	cycle := uint64(0)
	step := func(goal uint64) int64 {
		cycle++
		a.step(cycle, goal, live)
		a.step(cycle, goal, live) // one step in a cycle
		return a.bytes.Load()
	}
	if got := step(2 * live); got != budget {
		t.Errorf("with room: %d bytes", got)
	}
	if got := step(live); got != budget-100 {
		t.Errorf("after a cycle without room: %d bytes", got)
	}
	if got := step(live + live/6); got != budget-100 {
		t.Errorf("after a cycle with just enough: %d bytes", got)
	}
	for range 100 {
		step(live)
	}
	if got := a.bytes.Load(); got != budget/2 {
		t.Errorf("after a hundred cycles without room: %d bytes", got)
	}
	for range 100 {
		step(2 * live)
	}
	if got := a.bytes.Load(); got != budget {
		t.Errorf("after a hundred cycles with room: %d bytes", got)
	}
	// The runtime has the figures under these names.
	a.adjust()
	for _, s := range a.read {
		if s.Value.Kind() == 0 {
			t.Errorf("the runtime does not know %s", s.Name)
		}
	}
}
