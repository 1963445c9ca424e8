package screeningwrite

import (
	"context"
	"sync"
)

// barrier keeps submissions in lockstep: whoever waits goes on when all that are left
// wait. It is for submissions that end, each of which calls leave once.
type barrier struct {
	mu      sync.Mutex
	members int
	waiting int
	open    chan struct{}
}

func newBarrier(members int) *barrier { return &barrier{members: members, open: make(chan struct{})} }

// wait returns when everybody who has not left waits, or with the context's error.
func (b *barrier) wait(ctx context.Context) error {
	b.mu.Lock()
	b.waiting++
	open := b.open
	b.release()
	b.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave takes one member out.
func (b *barrier) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.members--
	b.release()
}

func (b *barrier) release() {
	if b.waiting > 0 && b.waiting >= b.members {
		b.waiting = 0
		close(b.open)
		b.open = make(chan struct{})
	}
}
