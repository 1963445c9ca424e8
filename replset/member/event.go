package member

import (
	"context"
	"sync"
	"time"
)

// Event is a broadcast: who waits holds the channel that the next Fire closes.
type Event struct {
	mu sync.Mutex
	ch chan struct{}
}

// NewEvent is an event that nobody has fired.
func NewEvent() *Event { return &Event{ch: make(chan struct{})} }

// Next is closed by the next Fire.
func (e *Event) Next() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ch
}

// Fire wakes everybody.
func (e *Event) Fire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.ch)
	e.ch = make(chan struct{})
}

// waitAny waits for an event or some time; false when ctx ended.
func waitAny(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	case <-ctx.Done():
		return false
	}
	return true
}
