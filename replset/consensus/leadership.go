package consensus

import (
	"context"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
)

// What may be asked of a member about who leads.

// Campaign makes the member stand for election now.
func (n *Node) Campaign(ctx context.Context) error {
	return n.post(ctx, func() { _ = n.raw.Campaign() })
}

// TakeOver makes the member lead, if it can: the leader is asked to hand over to it,
// and where none is known it stands for election. It returns once the attempt has
// begun.
func (n *Node) TakeOver(ctx context.Context) error {
	return n.post(ctx, func() {
		switch n.role.Leader {
		case n.o.ID:
		case 0:
			_ = n.raw.Campaign()
		default:
			// An election would be refused by members that hear from the leader.
			n.raw.TransferLeader(n.o.ID)
		}
	})
}

// Usurp makes the member stand for election though it hears of a leader, and the
// others vote though they do, as if that leader had handed over: it is for a leader
// that was cut off, does not know it, and cannot be asked. Nothing but liveness rests
// on members' loyalty to a leader, since reads are confirmed by a majority and not by a
// lease. It returns once the attempt has begun. A member that is taking in a state makes none (P8).
func (n *Node) Usurp(ctx context.Context) error {
	return n.post(ctx, func() {
		if n.arrival.underWay() {
			return
		}
		st := n.raw.BasicStatus()
		_ = n.raw.Step(&pb.Message{Type: pb.MsgTimeoutNow.Enum(), To: &n.o.ID, From: &st.Lead, Term: st.HardState.Term})
	})
}

// Transfer asks the leader, which this member must be, to hand over to another;
// to 0 means the one whose log is furthest. It returns once the attempt has
// begun.
func (n *Node) Transfer(ctx context.Context, to uint64) error {
	done := make(chan error, 1)
	err := n.post(ctx, func() {
		if n.role.Leader != n.o.ID {
			done <- ErrNotLeader
			return
		}
		if to == 0 {
			to = n.furthest()
		}
		if to == 0 {
			done <- errors.New("no other member can take over")
			return
		}
		n.raw.TransferLeader(to)
		done <- nil
	})
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-n.done:
		return n.stopped()
	}
}

// furthest is the reachable follower with the longest log, 0 if there is none.
func (n *Node) furthest() uint64 {
	st := n.raw.Status()
	best, match := uint64(0), uint64(0)
	for id, pr := range st.Progress {
		if id != n.o.ID && pr.RecentActive && pr.Match >= match {
			best, match = id, pr.Match
		}
	}
	return best
}
