package consensus

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// frozen is the state as of one applied entry, for a member that lacks more than the log
// still has.
//
//  1. The loop freezes the state, which costs nothing, and goes on: bytes are made of it
//     beside the loop. Raft is told that there is no snapshot for now and asks again with the
//     follower's next heartbeat.
//  2. A snapshot that is ready is given to everybody who asks, while the log goes on from
//     there.
//  3. From when the state is frozen until frozenFor after it was ready the log is not cut behind
//     it: a snapshot from which the log does not go on is worth nothing, and the next
//     one would be too. More than lagBytes do not stay for it.
//  4. After that it is dropped, since it is as large as the state.
//
// It was made in the loop once. A state whose bytes take longer than an election timeout then
// cost the leader its place each time somebody lacked it, and its successor the same.
type frozen struct {
	group  sync.WaitGroup
	cancel context.CancelFunc // ends what is being made

	mu     sync.Mutex
	index  uint64       // of what is being made, or ready; 0 is neither
	ready  *pb.Snapshot // nil while it is being made
	since  time.Time    // when it was ready
	failed error
}

// frozenFor is for how long a snapshot is there for others, and is given the time to arrive.
const frozenFor = 5 * time.Second

// Snapshot is raft's. The loop calls it through raft.
func (l *log) Snapshot() (*pb.Snapshot, error) {
	f := &l.frozen
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return nil, f.failed
	}
	if f.ready != nil && f.index >= l.begin.index {
		return f.ready, nil
	}
	if f.index != 0 && f.ready == nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	term, err := l.Term(l.applied)
	if err != nil {
		return nil, err
	}
	meta := &pb.SnapshotMetadata{Index: proto.Uint64(l.applied), Term: proto.Uint64(term), ConfState: &pb.ConfState{Voters: l.begin.voters}}
	f.index, f.ready = l.applied, nil
	stamp, state := l.stamp, l.freeze()
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	f.group.Go(func() {
		defer cancel()
		var data []byte
		err := caught(func() (err error) {
			data, err = state(ctx)
			return err
		})
		f.mu.Lock()
		defer f.mu.Unlock()
		if err != nil {
			f.failed = err
			return
		}
		data = append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(data)), stamp), data...)
		f.ready, f.since = &pb.Snapshot{Data: data, Metadata: meta}, time.Now()
	})
	return nil, raft.ErrSnapshotTemporarilyUnavailable
}

// keeps is the entry behind which the log must not be cut; any may be if there is none.
func (f *frozen) keeps() (index uint64, any bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index, f.index == 0
}

// look drops a snapshot that has been there for long enough.
func (f *frozen) look(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ready != nil && now.Sub(f.since) > frozenFor {
		f.index, f.ready = 0, nil
	}
}

// end waits for what is being made.
func (f *frozen) end() {
	f.mu.Lock()
	if f.cancel != nil {
		f.cancel()
	}
	f.mu.Unlock()
	f.group.Wait()
}
