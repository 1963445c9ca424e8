package member

import (
	"context"
	"errors"
	"time"

	"github.com/assaylab/assay/replset/consensus"
)

// retryAfter is when a request to hand over that could not be made is made again.
const retryAfter = 10 * time.Millisecond

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

// StepUp makes this member primary: it asks who leads to hand over, or stands for
// election if nobody does. It returns when this member takes writes.
func (m *Member) StepUp(ctx context.Context) error {
	for {
		changed := m.changed.Next()
		if m.Role().Writable {
			return nil
		}
		r := m.node.Role()
		var err error
		switch r.Leader {
		case m.c.id(): // elected, and about to be ready
		case 0:
			err = m.node.Campaign(ctx)
		default:
			err = m.node.Claim(ctx)
		}
		if err != nil {
			return err
		}
		if !waitAny(ctx, changed, m.attempt()) {
			return ctx.Err()
		}
	}
}
