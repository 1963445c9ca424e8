package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// What may be asked of a member and is answered later: proposals, reads, copies.

// Proposal is an entry under way.
type Proposal struct {
	n    *Node
	want uint64 // the term in which alone it may be proposed; 0 is any
	term uint64
	done chan outcome
}

type outcome struct {
	entry  Entry
	result any
	err    error
}

type read struct {
	index uint64
	term  uint64
	done  chan error
}

// copied waits until an entry is in the log of so many members.
type copied struct {
	index uint64
	term  uint64
	count int
	done  chan error
}

// Propose enters data into the log and waits until it has been applied here.
// It returns the entry and what Machine.Apply returned for it. Where ctx ends
// first, the entry stays under way and the error wraps ctx.Err().
func (n *Node) Propose(ctx context.Context, data []byte) (Entry, any, error) {
	p, err := n.Begin(ctx, 0, data)
	if err != nil {
		return Entry{}, nil, err
	}
	return p.Wait(ctx)
}

// Begin enters data into the log, if this member leads in the given term; 0 is
// any. What was computed from the state of one term must not be proposed in
// another: in between somebody else may have led.
func (n *Node) Begin(ctx context.Context, term uint64, data []byte) (*Proposal, error) {
	p := &Proposal{n: n, want: term, done: make(chan outcome, 1)}
	return p, n.post(ctx, func() { n.propose(p, data) })
}

// Wait waits until the proposal is answered, see invariant 3. Where ctx ends
// first the entry stays under way, and Wait can be called again.
func (p *Proposal) Wait(ctx context.Context) (Entry, any, error) {
	select {
	case out := <-p.done:
		return out.entry, out.result, out.err
	case <-ctx.Done():
		return Entry{}, nil, ctx.Err()
	case <-p.n.done:
		select {
		case out := <-p.done:
			return out.entry, out.result, out.err
		default:
			return Entry{}, nil, fmt.Errorf("%w; %w", ErrUnknown, p.n.stopped())
		}
	}
}

func (n *Node) propose(p *Proposal, data []byte) {
	if n.role.Leader != n.o.ID {
		p.done <- outcome{err: ErrNotLeader}
		return
	}
	n.parked = append(n.parked, parked{p, data})
}

// parked is a proposal that waits to be handed to raft.
type parked struct {
	p    *Proposal
	data []byte
}

// flush hands to raft what has come in, in one message, when company says so. It waits
// for this member's own sync in any case.
//
// They also wait while leadership is being handed over or raft has too much under way:
// to answer ErrNotLeader at once would send a client back to where the roles say
// that the leader is, which for now is here, until it gives up.
func (n *Node) flush() {
	leading := n.role.Leader == n.o.ID
	if len(n.parked) == 0 || leading && (n.syncing > 0 || n.raw.BasicStatus().LeadTransferee != 0) {
		return
	}
	now := time.Now()
	if leading {
		if left := n.company.wait(now, len(n.parked)); left > 0 {
			n.flushAgain.Reset(left)
			return
		}
	}
	var batch []parked
	m := &pb.Message{Type: pb.MsgProp.Enum(), From: proto.Uint64(n.o.ID)}
	for _, p := range n.parked {
		if !leading || p.p.want != 0 && p.p.want != n.role.Term {
			p.p.done <- outcome{err: ErrNotLeader}
			continue
		}
		stamp := max(n.lastStamp+1, uint64(n.o.Now().Unix())<<32|1)
		b := make([]byte, stampHeader, stampHeader+len(p.data))
		binary.BigEndian.PutUint64(b, stamp)
		binary.BigEndian.PutUint64(b[8:], n.o.ID)
		n.nextID++
		binary.BigEndian.PutUint64(b[16:], n.nextID)
		n.lastStamp = stamp
		m.Entries = append(m.Entries, &pb.Entry{Data: append(b, p.data...)})
		batch = append(batch, p)
	}
	n.parked = nil
	if len(batch) == 0 {
		return
	}
	if err := n.raw.Step(m); errors.Is(err, raft.ErrProposalDropped) {
		n.parked = batch
		return
	} else if err != nil {
		for _, p := range batch {
			p.p.done <- outcome{err: fmt.Errorf("%w: %w", ErrNotLeader, err)}
		}
		return
	}
	n.company.handOver(now, len(batch))
	for i, p := range batch {
		p.p.term = n.role.Term
		n.pending[n.nextID-uint64(len(batch)-1-i)] = p.p
	}
}

// ReadIndex waits until a read on this member, made after it returns, sees
// everything that was acknowledged anywhere before ReadIndex was called. It
// returns ErrNotLeader on a member that does not lead, or no longer.
func (n *Node) ReadIndex(ctx context.Context) error {
	r := &read{done: make(chan error, 1)}
	if err := n.post(ctx, func() { n.readIndex(r) }); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return n.stopped()
	}
}

func (n *Node) readIndex(r *read) {
	if n.role.Leader != n.o.ID {
		r.done <- ErrNotLeader
		return
	}
	n.nextID++
	r.term = n.role.Term
	n.reads[n.nextID] = r
	var rctx [8]byte
	binary.BigEndian.PutUint64(rctx[:], n.nextID)
	n.raw.ReadIndex(rctx[:])
}

// Replicated waits until so many members, this one included, have the entry of
// that index in their log. It returns ErrNotLeader when this member no longer
// leads.
func (n *Node) Replicated(ctx context.Context, index uint64, count int) error {
	c := &copied{index: index, count: count, done: make(chan error, 1)}
	err := n.post(ctx, func() {
		c.term = n.role.Term
		n.copies = append(n.copies, c)
	})
	if err != nil {
		return err
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return n.stopped()
	}
}

// countCopies answers Replicated. Who has given up is answered like everybody
// else, when the entry gets that far or the term ends.
func (n *Node) countCopies() {
	if len(n.copies) == 0 {
		return
	}
	progress := n.raw.Status().Progress
	kept := n.copies[:0]
	for _, c := range n.copies {
		have := 0
		for _, pr := range progress {
			if pr.Match >= c.index {
				have++
			}
		}
		switch {
		case n.role.Leader != n.o.ID || n.role.Term != c.term:
			c.done <- ErrNotLeader
		case have >= c.count:
			c.done <- nil
		default:
			kept = append(kept, c)
		}
	}
	n.copies = kept
}

// Pause stops the loop, and with it time, until resume is closed, as SIGSTOP
// stops a process. It returns once the loop stands still.
func (n *Node) Pause(ctx context.Context, resume <-chan struct{}) error {
	stands := make(chan struct{})
	err := n.post(ctx, func() {
		close(stands)
		select {
		case <-resume:
		case <-n.stop:
		}
	})
	if err != nil {
		return err
	}
	select {
	case <-stands:
		return nil
	case <-n.done:
		return n.stopped()
	case <-ctx.Done():
		return ctx.Err()
	}
}
