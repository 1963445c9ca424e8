package consensus

import (
	"math/rand/v2"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// patience is after how many ticks without a word from a leader this member stands
// for election. Raft itself draws between one and two election timeouts; where the
// timeout is 10 s, as with MongoDB, a set would be without a primary for up to 20 s,
// while MongoDB adds at most 15 % (electionTimeoutOffsetLimitFraction). With Spread
// set this draws as MongoDB does: the timeout and 1 to Spread ticks more.
//
// Safety does not rest on it: it only says when to ask for votes, which raft grants
// or not. It never comes before the timeout, so that the others, which stay loyal
// to a leader for one timeout, have given it up as well. Raft's own draw goes on
// beside it, for an attempt that came to nothing.
type patience struct {
	timeout, spread int // ticks; a spread of 0 leaves all to raft
	quiet           int // ticks since a leader was heard
	limit           int
}

func newPatience(timeout, spread int) patience {
	p := patience{timeout: timeout, spread: spread}
	p.renew()
	return p
}

// renew begins to wait anew.
func (p *patience) renew() {
	p.quiet = 0
	if p.spread > 0 {
		p.limit = p.timeout + 1 + rand.IntN(p.spread)
	}
}

// heard takes in a message at a member whose term is term.
func (p *patience) heard(m *pb.Message, term uint64) {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap:
		if m.GetTerm() >= term {
			p.renew()
		}
	}
}

// over counts a tick at a member in a state and says whether it should stand now.
func (p *patience) over(state raft.StateType) bool {
	if p.spread == 0 || state == raft.StateLeader {
		p.renew()
		return false
	}
	if p.quiet++; p.quiet < p.limit {
		return false
	}
	p.renew()
	return true
}
