package replset

import (
	"context"
	"errors"
	"testing"
)

// TestAMemberWhoseClockIsAheadIsLate as whoever asked it would be: its time is over when that of the
// other has a moment left.
func TestAMemberWhoseClockIsAheadIsLate(t *testing.T) {
	l := &life{waiting: map[int]chan report{}}
	l.orders = &lines{w: answering(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting[l.nextID] <- report{ID: l.nextID, Error: "stepping up: context deadline exceeded", TooLate: true}
	})}
	if _, err := l.ask(t.Context(), order{Do: doStepUp}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it was %v", err)
	}
}

type answering func()

func (f answering) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}
