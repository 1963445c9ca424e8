package consensus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// TestALeaderLeadsWhileASnapshotIsMade has a snapshot take many election timeouts, during which the
// log grows far beyond what it keeps. The leader goes on, and the one snapshot is worth
// something when it comes.
func TestALeaderLeadsWhileASnapshotIsMade(t *testing.T) {
	const keep = 16
	c := newClusterOf(t, 3, keep)
	c.propose("first")
	lead := c.leader()
	term := lead.node.Role().Term
	var away *member
	for _, m := range c.members {
		if m != lead {
			away = m
		}
	}
	c.stop(away)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	propose := func(n int) {
		t.Helper()
		for i := range n {
			if _, _, err := lead.node.Propose(ctx, fmt.Appendf(nil, "%d", i)); err != nil {
				t.Fatalf("propose: %v", err)
			}
		}
	}
	propose(3 * keep)
	hold := make(chan struct{})
	lead.machine.mu.Lock()
	lead.machine.hold = hold
	lead.machine.mu.Unlock()
	c.start(away, c.ids())
	until(t, "a snapshot to be asked for", func() bool { return lead.machine.made.Load() > 0 })
	for began := time.Now(); time.Since(began) < time.Second; { // ten election timeouts
		propose(keep)
	}
	if r := lead.node.Role(); r.Leader != lead.id || r.Term != term {
		t.Errorf("the leader of term %d is now at %+v", term, r)
	}
	close(hold)
	last := c.propose("last")
	until(t, "the member to catch up", func() bool {
		all := away.machine.all()
		return len(all) > 4*keep && all[len(all)-1] == last
	})
	if made := lead.machine.made.Load(); made != 1 {
		t.Errorf("%d snapshots were made for one member", made)
	}
}

// TestAMemberStopsWhileASnapshotIsMade waits for nobody.
func TestAMemberStopsWhileASnapshotIsMade(t *testing.T) {
	const keep = 4
	c := newClusterOf(t, 3, keep)
	lead := c.leader()
	away := c.members[lead.id%3]
	c.stop(away)
	for i := range 3 * keep {
		c.propose(fmt.Sprint(i))
	}
	lead.machine.mu.Lock()
	lead.machine.hold = make(chan struct{})
	lead.machine.mu.Unlock()
	c.start(away, c.ids())
	until(t, "a snapshot to be asked for", func() bool { return lead.machine.made.Load() > 0 })
	c.stop(lead)
}

// TestASnapshotIsDropped when it has been there for long enough, or the log does not go on from it.
func TestASnapshotIsDropped(t *testing.T) {
	made := 0
	l := &log{MemoryStorage: raft.NewMemoryStorage(), applied: 3}
	for i := range uint64(3) {
		if err := l.Append([]*pb.Entry{{Index: proto.Uint64(i + 1), Term: proto.Uint64(1)}}); err != nil {
			t.Fatal(err)
		}
	}
	l.freeze = func() func(context.Context) ([]byte, error) {
		made++
		return func(context.Context) ([]byte, error) { return []byte("state"), nil }
	}
	get := func() *pb.Snapshot {
		t.Helper()
		if _, err := l.Snapshot(); err != raft.ErrSnapshotTemporarilyUnavailable {
			t.Fatalf("got %v at once", err)
		}
		l.frozen.group.Wait()
		s, err := l.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := get()
	if got := s.GetMetadata().GetIndex(); got != 3 || string(s.GetData()[8:]) != "state" {
		t.Fatalf("a snapshot up to %d with %q", got, s.GetData())
	}
	if kept, any := l.frozen.keeps(); kept != 3 || any {
		t.Errorf("the log may be cut behind %d, or anywhere (%v)", kept, any)
	}
	l.frozen.look(l.frozen.since.Add(frozenFor))
	if again, err := l.Snapshot(); err != nil || again != s {
		t.Errorf("it was not there for the next one: %v", err)
	}
	l.frozen.look(l.frozen.since.Add(frozenFor + 1))
	if _, any := l.frozen.keeps(); !any {
		t.Error("it keeps the log for ever")
	}
	get()
	l.begin.index = 5
	if err := l.Append([]*pb.Entry{{Index: proto.Uint64(4), Term: proto.Uint64(1)}, {Index: proto.Uint64(5), Term: proto.Uint64(2)}, {Index: proto.Uint64(6), Term: proto.Uint64(2)}}); err != nil {
		t.Fatal(err)
	}
	l.applied = 6
	if got := get().GetMetadata(); got.GetIndex() != 6 || got.GetTerm() != 2 || !slices.Equal(got.GetConfState().GetVoters(), l.begin.voters) {
		t.Errorf("behind the cut there is a snapshot of %v", got)
	}
	if made != 3 {
		t.Errorf("%d were made, 3 were needed", made)
	}
}

// TestASnapshotThatPanicsEndsTheMember and not the process: pebble panics where a file of its own
// is gone.
func TestASnapshotThatPanicsEndsTheMember(t *testing.T) {
	const keep = 4
	c := newClusterOf(t, 3, keep)
	lead := c.leader()
	away := c.members[lead.id%3]
	c.stop(away)
	for i := range 3 * keep {
		c.propose(fmt.Sprint(i))
	}
	lead.broken = true
	lead.machine.mu.Lock()
	lead.machine.fails = true
	lead.machine.mu.Unlock()
	c.start(away, c.ids())
	select {
	case <-lead.node.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the leader goes on")
	}
	if err := lead.node.Err(); err == nil || !strings.Contains(err.Error(), "a file is gone") {
		t.Errorf("it ended with %v", err)
	}
	lead.db.Close()
}
