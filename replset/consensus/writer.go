package consensus

import (
	"fmt"
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"
)

// writer puts the log on disk beside the loop, so that the loop takes in messages,
// applies entries and answers while a sync is under way. Whatever has come in
// meanwhile shares the next sync: group commit without a timer.
//
// Raft hands out writes in order, and each with the messages that must wait for it.
// The writer keeps the order, writes all that is there in one batch, syncs it if
// any message waits, and hands the writes back to the loop, which sends what
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
