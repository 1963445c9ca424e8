package consensus

import (
	"fmt"
	"sync"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// writer puts the log on disk beside the loop, so that the loop takes in messages,
// applies entries and answers while a sync is under way. Whatever has come in
// meanwhile shares the next sync: group commit without a timer.
//
// Raft hands out writes in order, and each with the messages that must wait for it.
// The writer keeps the order, writes all that is there in one batch, syncs what must
// be, and hands the writes back to the loop, which sends what
// waited (etcd raft calls this AsyncStorageWrites).
type writer struct {
	log     *log
	written chan written // taken by the loop only

	mu    sync.Mutex
	queue []*pb.Message
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

// written are writes that are as durable as they must be, or why they are not.
type written struct {
	messages []*pb.Message
	err      error
}

func newWriter(l *log) *writer {
	w := &writer{log: l, written: make(chan written), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
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
		out := written{messages: messages, err: w.write(messages)}
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

// write turns what the database panics with, such as a disk that fails, into an
// error.
func (w *writer) write(messages []*pb.Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the log cannot be written: %v", p)
		}
	}()
	return w.log.append(messages)
}

// end stops the writer. What it has not written is lost, as in a crash.
func (w *writer) end() {
	close(w.stop)
	<-w.done
}

// persist hands a write to the writer. A snapshot replaces what the writer and apply
// work on, so that it waits for the writer and is taken in here.
func (n *Node) persist(m *pb.Message) error {
	if raft.IsEmptySnap(m.GetSnapshot()) {
		n.write(m)
		return nil
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
	n.write(m)
	return nil
}

func (n *Node) write(m *pb.Message) {
	n.writing++
	if len(m.GetEntries()) > 0 {
		n.syncing++
	}
	n.writer.put(m)
}

// durable takes note of writes that have been synced, and sends what waited for
// them.
func (n *Node) durable(w written) error {
	if w.err != nil {
		return fmt.Errorf("writing the log: %w", w.err)
	}
	n.writing -= len(w.messages)
	for _, m := range w.messages {
		if len(m.GetEntries()) > 0 {
			n.syncing--
		}
		if err := n.log.mirror(m); err != nil {
			return err
		}
		n.deliver(m.GetResponses())
	}
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

func (n *Node) restore(s *pb.Snapshot, hs *pb.HardState) error {
	b := n.o.DB.NewBatch()
	defer b.Close()
	state, stamp, err := openSnapshot(s.GetData())
	if err != nil {
		return err
	}
	if err := n.o.Machine.Restore(b, state); err != nil {
		return fmt.Errorf("restoring from a snapshot: %w", err)
	}
	n.lastStamp = max(n.lastStamp, stamp)
	if err := n.log.reset(b, s, hs, stamp); err != nil {
		return err
	}
	n.applied = s.GetMetadata().GetIndex()
	n.o.Machine.Visible(Entry{Index: n.applied, Term: s.GetMetadata().GetTerm(), Timestamp: stamp})
	n.mu.Lock()
	n.latest = n.applied
	n.mu.Unlock()
	return nil
}
