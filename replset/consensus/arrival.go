package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Arriving is another member's Frozen as it comes in.
type Arriving interface {
	// Take takes in the next piece.
	Take(piece []byte) error
	// Tables ends it. What it returns replaces the state in the database when it is ingested.
	Tables() (paths []string, err error)
	// Adopt is called before the tables are ingested, and Visible after that.
	Adopt() error
	// Abandon ends it, before Tables or after Take or Tables have failed.
	Abandon()
}

// arrival is a state that comes in, see P6 to P8. Another member's questions bring it.
type arrival struct {
	mu     sync.Mutex
	closed bool
	state  Arriving // nil: none
	what   *pb.Message
	dir    string
	number uint64 // of the passage
	next   uint64 // question
	heard  time.Time
}

// arrivalPatience is how long one that has begun is waited for, without a word.
const arrivalPatience = 10 * time.Second

// landed is a state that is here, for the loop.
type landed struct {
	what   *pb.Message
	state  Arriving
	dir    string
	tables []string
	taken  chan bool // has room for the answer
}

var errUnwanted = errors.New("it is not wanted any more")

// arriving is the folder of what comes in. Nothing in it outlives the process.
func (o *Options) arriving() string { return o.FS.PathJoin(o.FS.PathDir(o.Dir), "arriving") }

// What an answer begins with. An empty one is none.
const (
	answerNo  = iota // and why
	answerYes        // it was taken in
)

// Answer answers what another member's Ask has asked.
func (n *Node) Answer(ctx context.Context, from uint64, question []byte) []byte {
	if err := caught(func() error { return n.answer(ctx, from, question) }); err != nil {
		return append([]byte{answerNo}, err.Error()...)
	}
	return []byte{answerYes}
}

// refusal is what an answer says against what was asked, nil if nothing.
func refusal(answer []byte) error {
	switch {
	case len(answer) == 0:
		return errors.New("the other member has said nothing")
	case answer[0] == answerYes:
		return nil
	}
	return errors.New(string(answer[1:]))
}

func (n *Node) answer(ctx context.Context, from uint64, question []byte) error {
	if len(question) < passHeader {
		return fmt.Errorf("a question of %d bytes", len(question))
	}
	number, at, body := binary.BigEndian.Uint64(question[1:]), binary.BigEndian.Uint64(question[9:]), question[passHeader:]
	a := &n.arrival
	a.mu.Lock()
	defer a.mu.Unlock()
	if question[0] == passBegin {
		return a.begin(n, from, number, body)
	}
	if a.state == nil || a.number != number || a.what.GetFrom() != from || a.next != at {
		return errUnwanted
	}
	a.next++
	a.heard = time.Now()
	switch question[0] {
	case passPiece:
		err := a.state.Take(body)
		if err != nil {
			a.drop(n)
		}
		return err
	case passEnd:
		l, err := a.finish(n)
		if err != nil {
			return err
		}
		a.mu.Unlock()
		defer a.mu.Lock()
		return n.hand(ctx, l)
	}
	return fmt.Errorf("a question of kind %d", question[0])
}

func (a *arrival) begin(n *Node, from, number uint64, body []byte) error {
	m := &pb.Message{}
	if err := proto.Unmarshal(body, m); err != nil {
		return err
	}
	if m.GetType() != pb.MsgSnap || m.GetFrom() != from || m.GetTo() != n.o.ID || len(m.GetSnapshot().GetData()) != 8 {
		return errors.New("this is not the beginning of a state")
	}
	if a.closed || m.GetTerm() < n.Role().Term {
		return errUnwanted
	}
	a.drop(n)
	dir := n.o.FS.PathJoin(n.o.arriving(), strconv.FormatUint(from, 10)+"-"+strconv.FormatUint(number, 10))
	if err := errors.Join(n.o.FS.RemoveAll(dir), n.o.FS.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	a.state, a.what, a.dir, a.number, a.next, a.heard = n.o.Machine.Arrive(dir), m, dir, number, 1, time.Now()
	return nil
}

// finish takes what has come in out of the arrival.
func (a *arrival) finish(n *Node) (*landed, error) {
	tables, err := a.state.Tables()
	if err != nil {
		a.drop(n)
		return nil, err
	}
	l := &landed{what: a.what, state: a.state, dir: a.dir, tables: tables, taken: make(chan bool, 1)}
	a.state = nil
	return l, nil
}

// drop gives up what is coming in.
func (a *arrival) drop(n *Node) {
	if a.state != nil {
		a.state.Abandon()
		a.state = nil
		_ = n.o.FS.RemoveAll(a.dir)
	}
}

// look gives it up if nothing has been heard of it. It does not wait for a piece that is being taken in.
func (a *arrival) look(n *Node, now time.Time) {
	if a.mu.TryLock() {
		defer a.mu.Unlock()
		if now.Sub(a.heard) > arrivalPatience {
			a.drop(n)
		}
	}
}

// end gives up what is coming in, and refuses what would.
func (a *arrival) end(n *Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.drop(n)
}

// underWay says whether something is coming in.
func (a *arrival) underWay() bool {
	if !a.mu.TryLock() {
		return true
	}
	defer a.mu.Unlock()
	return a.state != nil
}

// hand gives the loop what has come in, and waits until it is this member's state, or is not wanted.
func (n *Node) hand(ctx context.Context, l *landed) error {
	err := n.post(ctx, func() {
		if n.landed != nil {
			l.discard(n)
			return
		}
		n.landed = l
		n.patience.heard(l.what, n.raw.BasicStatus().HardState.GetTerm())
		_ = n.raw.Step(l.what) // what raft does not want is discarded at the end of the turn
	})
	if err != nil {
		l.discard(n)
		return err
	}
	select {
	case taken := <-l.taken:
		if !taken {
			return errUnwanted
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return n.stopped()
	}
}

// discard gives up what the loop does not want.
func (l *landed) discard(n *Node) {
	_ = n.o.FS.RemoveAll(l.dir)
	l.taken <- false
}
