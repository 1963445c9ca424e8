package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// # A member that lacks more than the log still has
//
// The leader's half is a passage, the other member's an arrival.
//
//   - P1 The leader freezes its state as of one applied entry, which costs nothing, and reads it
//     beside the loop. A frozen state is for one member.
//   - P2 It goes in pieces, each a question that is answered when the piece is taken in: what is
//     slow, at either end or between, slows the passage and nothing else, and no
//     message is so large that others wait behind it.
//   - P3 Raft is told once how a passage has ended, and sends that member nothing
//     but heartbeats until then. What is lost on the way, or refused, ends it; after passagePause raft asks
//     the member again what it has, and begins another.
//   - P4 From the moment when the state is frozen the log is not cut behind it, until the
//     passage has failed, or the member has come as near as the log would be kept for anyhow, or
//     is away: a state from which the log does not go on is worth nothing. More than
//     lagBytes do not stay for it.
//   - P5 A passage ends with its term: what the other member would be told at the end comes from a leader
//     that is none any more.
//   - P6 The other member takes the pieces in beside its loop, and beside the state that it has. It
//     votes, answers and can be read meanwhile. Its loop hears of the state when all of
//     it is on disk, and then has it in the time of a sync, in one step with the beginning of its log (log, 5).
//   - P7 A member takes in one state at a time, the last that was begun.
//   - P8 Who takes one in does not usurp (Usurp): nobody would vote for it, and a term that it moves on ends
//     what it waits for (P5).
//
// Rejected: the state as one message, made and taken in in one piece. In the loop it cost the leader
// its place each time that took longer than an election timeout, and its successor the same. Beside the loop
// it still held up everything else on the link, took three times the state's size of memory on both
// sides, and kept the other member deaf for as long; with some hundred thousand documents longer than the log was kept.
// Rejected too: for the member to fetch the pieces. The leader would not know how that ended.

// Frozen is a state that does not change any more.
type Frozen interface {
	// Next returns the next piece, which a message must have room for, or io.EOF.
	Next() ([]byte, error)
	Close() error
}

// passagePause keeps a member that takes nothing in, because its disk is full, from being sent a state without
// end.
const passagePause = 200 * time.Millisecond

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// passage is one state on its way.
type passage struct {
	index uint64
	state Frozen             // until it is under way
	to    uint64             // 0: not under way
	end   context.CancelFunc // of what is under way
	there bool               // it has arrived
}

// passages are those of one leader. They belong to the loop.
type passages struct {
	list  []*passage
	group sync.WaitGroup
}

// Snapshot is raft's. The loop calls it through raft, which then has a message sent that
// says the same.
func (l *log) Snapshot() (*pb.Snapshot, error) {
	term, err := l.Term(l.applied)
	if err != nil {
		return nil, err
	}
	l.passages.list = append(l.passages.list, &passage{index: l.applied, state: l.freeze()})
	return &pb.Snapshot{
		Data:     binary.BigEndian.AppendUint64(nil, l.stamp),
		Metadata: &pb.SnapshotMetadata{Index: proto.Uint64(l.applied), Term: proto.Uint64(term), ConfState: &pb.ConfState{Voters: l.begin.voters}},
	}, nil
}

// keeps is the entry behind which the log must not be cut; any may be if there is none.
func (p *passages) keeps() (index uint64, any bool) {
	any = true
	for _, x := range p.list {
		if any || x.index < index {
			index, any = x.index, false
		}
	}
	return index, any
}

// drop ends those that are to be dropped.
func (p *passages) drop(which func(*passage) bool) {
	kept := p.list[:0]
	for _, x := range p.list {
		switch {
		case !which(x):
			kept = append(kept, x)
		case x.to == 0:
			_ = x.state.Close()
		default:
			x.end()
		}
	}
	clear(p.list[len(kept):])
	p.list = kept
}

func (p *passages) dropAll() { p.drop(func(*passage) bool { return true }) }

// end waits until nothing is under way any more.
func (p *passages) end() {
	p.dropAll()
	p.group.Wait()
}

// pass begins what raft wants sent.
func (n *Node) pass(m *pb.Message) {
	var p *passage
	for _, x := range n.log.passages.list {
		if x.to == 0 && x.index == m.GetSnapshot().GetMetadata().GetIndex() {
			p = x
		}
	}
	if p == nil {
		return // of a term that is over
	}
	ctx, end := context.WithCancel(context.Background())
	p.to, p.end = m.GetTo(), end
	state := p.state
	p.state = nil
	n.log.passages.group.Go(func() {
		defer end()
		var lost error
		broken := caught(func() (err error) {
			lost, err = n.carry(ctx, m, state)
			return err
		})
		broken = errors.Join(broken, state.Close())
		if lost != nil {
			pause(ctx, passagePause)
		}
		_ = n.post(ctx, func() { n.passed(p, lost, broken) })
	})
}

// passed takes note of how a passage has ended.
func (n *Node) passed(p *passage, lost, broken error) {
	if broken != nil {
		n.broken = broken
		return
	}
	if p.there = lost == nil; p.there {
		n.raw.ReportSnapshot(p.to, raft.SnapshotFinish)
		return
	}
	n.log.passages.drop(func(x *passage) bool { return x == p })
	n.raw.ReportSnapshot(p.to, raft.SnapshotFailure)
}

// settlePassages drops those that the log need not be kept for any more (P4).
func (n *Node) settlePassages() {
	if len(n.log.passages.list) == 0 {
		return
	}
	others := n.raw.Status().Progress
	n.log.passages.drop(func(p *passage) bool {
		other, known := others[p.to]
		return p.there && (!known || !other.RecentActive || other.Match+n.log.keep >= n.applied)
	})
}

// Questions that carry a state. Each has the passage's number in front, and its own.
const (
	passBegin = 1 + iota // the message that says what it is a state of
	passPiece
	passEnd
)

const passHeader = 1 + 8 + 8

// carry asks the other member to take in one piece after the other. lost is why it has not; err
// is why there is nothing to take in.
func (n *Node) carry(ctx context.Context, m *pb.Message, state Frozen) (lost, err error) {
	what, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	passage, number := n.passage.Add(1), uint64(0)
	ask := func(kind byte, body []byte) error {
		q := make([]byte, 0, passHeader+len(body))
		q = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(append(q, kind), passage), number)
		number++
		answer, err := n.o.Ask(ctx, m.GetTo(), append(q, body...))
		if err != nil {
			return err
		}
		return refusal(answer)
	}
	if err := ask(passBegin, what); err != nil {
		return err, nil
	}
	for {
		piece, err := state.Next()
		if err == io.EOF {
			return ask(passEnd, nil), nil
		}
		if err != nil {
			return nil, err
		}
		if err := ask(passPiece, piece); err != nil {
			return err, nil
		}
	}
}
