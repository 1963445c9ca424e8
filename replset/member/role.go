package member

import (
	"context"
	"errors"
	"time"

	"github.com/assaylab/assay/replset/consensus"
)

// retryAfter is when a request to hand over that could not be made is made again.
const retryAfter = 10 * time.Millisecond

// longestAttempt is how long a member that stands for election waits for votes.
const longestAttempt = 500 * time.Millisecond

// attempt is how long an attempt to hand over may take before it has come to
// nothing: raft gives it up after an election timeout.
func (m *Member) attempt() time.Duration { return 2 * m.c.Tick * time.Duration(m.c.ElectionTicks) }

// StepDown hands leadership over and returns when this member no longer leads.
func (m *Member) StepDown(ctx context.Context) error {
	for {
		changed := m.changed.Next()
		if m.node.Role().Leader != m.c.id() {
			return nil
		}
		wait := m.attempt()
		if err := m.node.Transfer(ctx, 0); errors.Is(err, consensus.ErrStopped) {
			return err
		} else if err != nil && !errors.Is(err, consensus.ErrNotLeader) {
			wait = retryAfter
		}
		if !waitAny(ctx, changed, wait) {
			return ctx.Err()
		}
	}
}

// StepUp makes this member primary: it asks who leads to hand over, and stands for
// election if nobody leads or the leader does not answer. It returns when this member
// takes writes.
func (m *Member) StepUp(ctx context.Context) error {
	claimed := uint64(0) // the leader that was asked already
	for {
		asked := m.node.Role()
		take := m.node.TakeOver
		if asked.Leader != 0 && asked.Leader == claimed {
			take = m.node.Usurp
		}
		claimed = asked.Leader
		if err := take(ctx); err != nil {
			return err
		}
		// An election moves the role several times. To stand again at each step would
		// undo it.
		over := time.Now().Add(min(m.attempt(), longestAttempt))
		for {
			changed := m.changed.Next()
			if m.Role().Writable {
				return nil
			}
			left := time.Until(over)
			if r := m.node.Role(); left <= 0 || r.Leader != 0 && r.Leader != m.c.id() && r != asked {
				break
			}
			if !waitAny(ctx, changed, left) {
				return ctx.Err()
			}
		}
	}
}
