package consensus

import (
	"testing"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// ticksUntil counts ticks of a follower until it stands for election, at most 1000.
func ticksUntil(p *patience) int {
	for n := 1; n <= 1000; n++ {
		if p.over(raft.StateFollower) {
			return n
		}
	}
	return 0
}

func TestAMemberStandsWithinTheSpread(t *testing.T) {
	seen := map[int]bool{}
	for range 2000 {
		p := newPatience(200, 30)
		n := ticksUntil(&p)
		if n <= 200 || n > 230 {
			t.Fatalf("stood after %d ticks; the timeout is 200 and the spread 30", n)
		}
		seen[n] = true
		if again := ticksUntil(&p); again <= 200 || again > 230 {
			t.Fatalf("stood again after %d ticks", again)
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d different times: members would stand at once and split the votes", len(seen))
	}
}

func TestALeaderHeardIsWaitedFor(t *testing.T) {
	const term = 7
	for _, c := range []struct {
		name  string
		kind  pb.MessageType
		term  uint64
		heard bool
	}{
		{"heartbeat", pb.MsgHeartbeat, term, true},
		{"entries", pb.MsgApp, term, true},
		{"snapshot", pb.MsgSnap, term, true},
		{"a leader of a later term", pb.MsgApp, term + 1, true},
		{"a leader that was replaced", pb.MsgHeartbeat, term - 1, false},
		{"another that asks for votes", pb.MsgPreVote, term + 1, false},
		{"an answer", pb.MsgAppResp, term, false},
	} {
		p := newPatience(200, 1)
		for range 150 {
			p.over(raft.StateFollower)
		}
		message := &pb.Message{Type: c.kind.Enum(), Term: &c.term}
		p.heard(message, term)
		want := 51
		if c.heard {
			want = 201
		}
		if n := ticksUntil(&p); n != want {
			t.Errorf("%s: stood after %d more ticks, want %d", c.name, n, want)
		}
	}
}

func TestWhoLeadsOrLeavesItToRaftNeverStands(t *testing.T) {
	for _, p := range []patience{newPatience(10, 5), newPatience(10, 0)} {
		state := raft.StateLeader
		if p.spread == 0 {
			state = raft.StateFollower
		}
		for n := range 1000 {
			if p.over(state) {
				t.Fatalf("spread %d, %v: stood after %d ticks", p.spread, state, n)
			}
		}
	}
}
