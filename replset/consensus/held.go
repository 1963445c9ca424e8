package consensus

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// holdFor is how long a message that only says what is committed waits for entries to
// go with.
const holdFor = time.Millisecond

// held are messages without entries, one for each follower at most. To lose one is to lose
// a message: the next with entries says more, and raft repeats what is missing.
type held struct {
	messages map[uint64]*pb.Message
	since    time.Time // of the oldest
	timer    *time.Timer
	set      bool
}

func newHeld() held { return held{messages: map[uint64]*pb.Message{}, timer: idleTimer()} }

// idleTimer is a timer that Reset starts.
func idleTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// holds keeps a message that can wait, and forgets what a message makes unnecessary.
func (h *held) holds(m *pb.Message) bool {
	if m.GetType() != pb.MsgApp {
		return false
	}
	if len(m.GetEntries()) > 0 {
		delete(h.messages, m.GetTo())
		return false
	}
	if len(h.messages) == 0 {
		h.since = time.Now()
	}
	h.messages[m.GetTo()] = m
	if !h.set {
		h.set = true
		h.timer.Reset(holdFor)
	}
	return true
}

// release sends what has waited long enough. The timer calls it.
func (h *held) release(send func(*pb.Message)) {
	h.set = false
	if len(h.messages) == 0 {
		return
	}
	if left := holdFor - time.Since(h.since); left > 0 {
		h.set = true
		h.timer.Reset(left)
		return
	}
	for to, m := range h.messages {
		send(m)
		delete(h.messages, to)
	}
}
