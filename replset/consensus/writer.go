package consensus

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// writer puts the log on disk beside the loop, so that the loop takes in messages,
// applies entries and answers while a sync is under way. Whatever has come in
// meanwhile shares the next sync: group commit without a timer.
//
// Raft hands out writes in order, and each with the messages that must wait for it.
// The writer keeps the order, writes all that is there in one batch, syncs it, sends
// other members what waited for that, and hands the writes back to the loop, which
// tells raft (etcd raft calls this AsyncStorageWrites).
type writer struct {
	log     *log
	send    func(*pb.Message) // to another member
	written chan written      // taken by the loop only

	mu    sync.Mutex
	queue []*pb.Message
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

// written are writes that are as durable as they must be, or why they are not.
type written struct {
	messages []*pb.Message
	numbers  []uint64 // of the records of their first entries
	err      error
}

func newWriter(l *log, send func(*pb.Message)) *writer {
	w := &writer{log: l, send: send, written: make(chan written), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

// put never waits. What is in the queue is bounded by what raft lets be under way.
func (w *writer) put(m *pb.Message) {
	w.mu.Lock()
	w.queue = append(w.queue, m)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *writer) run() {
	defer close(w.done)
	for {
		select {
		case <-w.stop:
			return
		case <-w.wake:
		}
		w.mu.Lock()
		messages := w.queue
		w.queue = nil
		w.mu.Unlock()
		if len(messages) == 0 {
			continue
		}
		out := w.write(messages)
		select {
		case w.written <- out:
		case <-w.stop:
			return
		}
		if out.err != nil {
			return // after a failed write nothing may be acknowledged any more
		}
	}
}

func (w *writer) write(messages []*pb.Message) written {
	out := written{messages: messages}
	if out.numbers, out.err = w.log.append(messages); out.err != nil {
		return out
	}
	for _, m := range messages {
		m.Responses = slices.DeleteFunc(m.GetResponses(), func(r *pb.Message) bool {
			if r.GetTo() == w.log.o.ID {
				return false
			}
			w.send(r)
			return true
		})
	}
	return out
}

// end stops the writer. What it has not written is lost, as in a crash.
func (w *writer) end() {
	close(w.stop)
	<-w.done
}

// persist hands a write to the writer. A snapshot replaces what the writer and apply
// work on, so that it waits for the writer and is made this member's state here.
func (n *Node) persist(m *pb.Message) error {
	if raft.IsEmptySnap(m.GetSnapshot()) {
		return n.write(m)
	}
	for n.writing > 0 {
		if err := n.durable(<-n.writer.written); err != nil {
			return err
		}
	}
	if err := n.restore(m.GetSnapshot(), hardState(m)); err != nil {
		return err
	}
	m.Snapshot = nil
	return n.write(m)
}

// write hands a write to the writer, unless nothing waits for the disk: neither this one
// nor one before it.
func (n *Node) write(m *pb.Message) error {
	if n.writing == 0 && !mustSync(m, n.log.hard) {
		n.log.note(m)
		return n.complete(m, 0)
	}
	n.writing++
	if len(m.GetEntries()) > 0 {
		n.syncing++
	}
	n.writer.put(m)
	return nil
}

// durable takes note of writes that have been synced, and sends what waited for
// them.
func (n *Node) durable(w written) error {
	if w.err != nil {
		return fmt.Errorf("writing the log: %w", w.err)
	}
	n.writing -= len(w.messages)
	for i, m := range w.messages {
		if len(m.GetEntries()) > 0 {
			n.syncing--
		}
		if err := n.complete(m, w.numbers[i]); err != nil {
			return err
		}
	}
	return nil
}

// complete is for a write that is as durable as it must be.
func (n *Node) complete(m *pb.Message, number uint64) error {
	if err := n.log.mirror(m, number); err != nil {
		return err
	}
	n.deliver(m.GetResponses())
	return nil
}

func (n *Node) deliver(msgs []*pb.Message) {
	for _, m := range msgs {
		if m.GetTo() == n.o.ID {
			_ = n.raw.Step(m) // an answer from an earlier term is dropped by raft itself
		} else {
			n.send(m)
		}
	}
}

// restore makes a state that has come in this member's own.
func (n *Node) restore(s *pb.Snapshot, hs *pb.HardState) error {
	l := n.landed
	n.landed = nil
	if l == nil || l.what.GetSnapshot().GetMetadata().GetIndex() != s.GetMetadata().GetIndex() {
		return fmt.Errorf("a snapshot up to %d came without its state", s.GetMetadata().GetIndex())
	}
	stamp := binary.BigEndian.Uint64(s.GetData())
	if err := l.state.Adopt(); err != nil {
		return fmt.Errorf("taking in a snapshot: %w", err)
	}
	n.lastStamp = max(n.lastStamp, stamp)
	if err := n.log.reset(l.tables, l.dir, s, hs, stamp, n.stop); err != nil {
		return err
	}
	n.applied = s.GetMetadata().GetIndex()
	n.o.Machine.Visible(Entry{Index: n.applied, Term: s.GetMetadata().GetTerm(), Timestamp: stamp})
	n.mu.Lock()
	n.latest = n.applied
	n.mu.Unlock()
	_ = n.o.FS.RemoveAll(l.dir) // is empty
	l.taken <- true
	return n.log.reclaimer.begin(n.log)
}
