package consensus

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// lagging is a cluster in which one member lacks more than the log has, and does not run yet.
func lagging(t *testing.T, keep int) (c *cluster, lead, away *member) {
	t.Helper()
	c = newClusterOf(t, 3, uint64(keep))
	c.propose("first")
	lead = c.leader()
	away = c.members[lead.id%3]
	c.stop(away)
	c.proposeTo(lead, 3*keep)
	// What a link still holds would bring it what the others have cut.
	until(t, "the others to cut their logs", func() bool {
		least := ^uint64(0)
		for _, m := range c.members {
			if m == away {
				continue
			}
			got := make(chan uint64, 1)
			if err := m.node.post(t.Context(), func() { got <- m.node.log.begin.index }); err != nil {
				t.Fatal(err)
			}
			least = min(least, <-got)
		}
		away.lacks.Store(least)
		return least >= uint64(keep)
	})
	return c, lead, away
}

// waiting is lagging, and the member is being sent a state of which no piece comes before release.
func waiting(t *testing.T, keep int) (c *cluster, lead, away *member, release func()) {
	t.Helper()
	c, lead, away = lagging(t, keep)
	hold := make(chan struct{})
	release = sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release) // ahead of the members' end
	lead.machine.set(func() { lead.machine.hold = hold })
	c.start(away, c.ids())
	until(t, "a passage", func() bool { return away.node.arrival.underWay() })
	return c, lead, away, release
}

// proposeTo has a leader, which must go on leading, apply n entries.
func (c *cluster) proposeTo(lead *member, n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range n {
		if _, _, err := lead.node.Propose(ctx, fmt.Appendf(nil, "%d", i)); err != nil {
			c.t.Fatalf("propose: %v", err)
		}
	}
}

// set changes what a machine does.
func (c *counter) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// arrivalsLeft says whether anything of a state that came in is there still.
func (m *member) arrivalsLeft() bool {
	names, _ := m.fs.List("data/arriving")
	return len(names) > 0
}

// TestALeaderLeadsWhileAStateIsOnItsWay has that take many election timeouts, during which the
// log grows far beyond what it keeps (P1, P4). The leader goes on, the other member can be asked to vote and
// keeps the state that it has (P6), and the one passage is worth something when it ends.
func TestALeaderLeadsWhileAStateIsOnItsWay(t *testing.T) {
	const keep = 16
	c, lead, away, release := waiting(t, keep)
	term := lead.node.Role().Term
	for began := time.Now(); time.Since(began) < time.Second; { // ten election timeouts
		c.proposeTo(lead, keep)
	}
	if r := lead.node.Role(); r.Leader != lead.id || r.Term != term {
		t.Errorf("the leader of term %d is now at %+v", term, r)
	}
	if r := away.node.Role(); r.Leader != lead.id {
		t.Errorf("the member that waits for a state knows %+v", r)
	}
	if now := away.machine.all(); len(now) > 1 {
		t.Errorf("it has %d entries before the state is there", len(now))
	}
	release()
	caughtUp(t, c, away, c.propose("last"))
	if made, adopted := lead.machine.made.Load(), away.machine.adopted.Load(); made != 1 || adopted != 1 {
		t.Errorf("%d states were frozen and %d adopted for one member", made, adopted)
	}
	until(t, "the log to be cut again", func() bool {
		c.proposeTo(lead, keep)
		got := make(chan bool, 1)
		_ = lead.node.post(t.Context(), func() {
			_, any := lead.node.log.passages.keeps()
			got <- any
		})
		return <-got
	})
	if left := lead.machine.open.Load(); left != 0 || away.arrivalsLeft() {
		t.Errorf("%d frozen states are open, files are left: %v", left, away.arrivalsLeft())
	}
}

// TestAMemberStopsWhileAStateIsOnItsWay waits for nobody.
func TestAMemberStopsWhileAStateIsOnItsWay(t *testing.T) {
	c, lead, away := lagging(t, 4)
	c.start(away, c.ids())
	until(t, "a passage", func() bool { return lead.machine.made.Load() > 0 })
	away.link.Pause(true)
	c.stop(lead)
	if left := lead.machine.open.Load(); left != 0 {
		t.Errorf("%d frozen states are open", left)
	}
	away.link.Pause(false)
}

// TestAStateThatIsRefused is sent again, until it is not (P3).
func TestAStateThatIsRefused(t *testing.T) {
	c, lead, away, release := waiting(t, 4)
	away.machine.set(func() { away.machine.refuse = true })
	release()
	until(t, "more than one passage", func() bool { return lead.machine.made.Load() > 2 })
	if r := lead.node.Role(); r.Leader != lead.id {
		t.Errorf("the leader is now at %+v", r)
	}
	if away.machine.adopted.Load() != 0 {
		t.Error("a state that was refused was adopted")
	}
	away.machine.set(func() { away.machine.refuse = false })
	caughtUp(t, c, away, c.propose("last"))
	until(t, "all to be closed", func() bool { return lead.machine.open.Load() == 0 && !away.arrivalsLeft() })
}

// TestAMemberThatStartsAnewDuringAPassage gets another one (P3).
func TestAMemberThatStartsAnewDuringAPassage(t *testing.T) {
	c, _, away, release := waiting(t, 4)
	c.stop(away)
	c.start(away, c.ids())
	if away.arrivalsLeft() {
		t.Error("what came in before it stopped is there still")
	}
	release()
	caughtUp(t, c, away, c.propose("last"))
}

// TestAPassageEndsWithItsTerm (P5): the next leader begins its own.
func TestAPassageEndsWithItsTerm(t *testing.T) {
	c, lead, away, release := waiting(t, 4)
	until(t, "another leader", func() bool {
		_ = lead.node.Transfer(t.Context(), 0)
		r := lead.node.Role()
		return r.Leader != 0 && r.Leader != lead.id
	})
	caughtUp(t, c, away, c.propose("last"))
	release()
	until(t, "the first passage to end", func() bool { return lead.machine.open.Load() == 0 })
	if lead.machine.made.Load() == 0 || away.machine.adopted.Load() != 1 {
		t.Errorf("%d states were adopted", away.machine.adopted.Load())
	}
}

// TestWhoTakesInAStateDoesNotUsurp (P8).
func TestWhoTakesInAStateDoesNotUsurp(t *testing.T) {
	c, lead, away, release := waiting(t, 4)
	term := lead.node.Role().Term
	for range 5 {
		if err := away.node.Usurp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.proposeTo(lead, 4)
	release()
	caughtUp(t, c, away, c.propose("last"))
	if r := lead.node.Role(); r.Term != term || r.Leader != lead.id {
		t.Errorf("the leader of term %d is now at %+v", term, r)
	}
}

// TestAStateThatCannotBeReadEndsTheMember and not the process: pebble panics where a file of its own
// is gone.
func TestAStateThatCannotBeReadEndsTheMember(t *testing.T) {
	c, lead, away := lagging(t, 4)
	lead.broken = true
	lead.machine.set(func() { lead.machine.fails = true })
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

// TestQuestionsOfAPassageThatAreNone are refused, and leave nothing; a state is taken in only if every
// piece has come in its place, and only the last one that was begun (P7).
func TestQuestionsOfAPassageThatAreNone(t *testing.T) {
	c := newClusterOf(t, 3, 4)
	c.propose("first")
	lead := c.leader()
	m := c.members[lead.id%3]
	other := c.members[(lead.id+1)%3]
	term := m.node.Role().Term
	message := func(change func(*pb.Message)) []byte {
		msg := &pb.Message{
			Type: pb.MsgSnap.Enum(), From: &other.id, To: &m.id, Term: &term,
			Snapshot: &pb.Snapshot{Data: make([]byte, 8), Metadata: &pb.SnapshotMetadata{Index: proto.Uint64(1000), Term: &term}},
		}
		change(msg)
		b, err := proto.Marshal(msg)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := message(func(*pb.Message) {})
	question := func(kind byte, passage, number uint64, body []byte) []byte {
		return append(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{kind}, passage), number), body...)
	}
	ask := func(q []byte) error { return refusal(m.node.Answer(t.Context(), other.id, q)) }
	for what, q := range map[string][]byte{
		"nothing":           nil,
		"half a question":   make([]byte, passHeader-1),
		"an unknown kind":   question(9, 1, 0, nil),
		"no message":        question(passBegin, 1, 0, []byte("garbage")),
		"another message":   question(passBegin, 1, 0, message(func(m *pb.Message) { m.Type = pb.MsgApp.Enum() })),
		"for somebody else": question(passBegin, 1, 0, message(func(m *pb.Message) { m.To = &lead.id })),
		"of somebody else":  question(passBegin, 1, 0, message(func(m *pb.Message) { m.From = &lead.id })),
		"without a stamp":   question(passBegin, 1, 0, message(func(m *pb.Message) { m.Snapshot.Data = nil })),
		"an earlier term":   question(passBegin, 1, 0, message(func(m *pb.Message) { m.Term = proto.Uint64(term - 1) })),
		"without beginning": question(passPiece, 1, 1, nil),
		"an end of nothing": question(passEnd, 1, 1, nil),
	} {
		if ask(q) == nil {
			t.Errorf("%s was taken", what)
		}
	}
	for _, answer := range [][]byte{nil, {}, {answerNo}, {7}} {
		if refusal(answer) == nil {
			t.Errorf("%v is a yes", answer)
		}
	}
	piece, _ := json.Marshal([2][]byte{stateKey(5), []byte("planted")})
	begin := func(number uint64) {
		t.Helper()
		if err := ask(question(passBegin, number, 0, good)); err != nil {
			t.Fatal(err)
		}
	}
	for what, qs := range map[string][][]byte{
		"a piece left out":     {question(passPiece, 7, 2, piece)},
		"a piece twice":        {question(passPiece, 7, 1, piece), question(passPiece, 7, 1, piece)},
		"an end too early":     {question(passPiece, 7, 1, piece), question(passEnd, 7, 3, nil)},
		"of another passage":   {question(passPiece, 8, 1, piece)},
		"no piece":             {question(passPiece, 7, 1, []byte("garbage"))},
		"a kind in the middle": {question(77, 7, 1, nil)},
	} {
		begin(7)
		var last error
		for _, q := range qs {
			last = ask(q)
		}
		if last == nil {
			t.Errorf("%s was taken", what)
		}
	}
	begin(1)
	begin(2)
	if ask(question(passPiece, 1, 1, piece)) == nil {
		t.Error("a piece of a passage that another has replaced was taken")
	}
	if refusal(m.node.Answer(t.Context(), lead.id, question(passPiece, 2, 1, piece))) == nil {
		t.Error("a piece that another member has sent was taken")
	}
	m.node.arrival.look(m.node, time.Now().Add(arrivalPatience+time.Second))
	if ask(question(passPiece, 2, 1, piece)) == nil || m.arrivalsLeft() {
		t.Error("a passage that was given up goes on")
	}
	if m.machine.adopted.Load() != 0 || slices.Contains(m.machine.all(), "planted") {
		t.Error("what was refused is there")
	}
	caughtUp(t, c, m, c.propose("last"))
}

// TestAStateThatIsNotWantedAnyMore: the member has caught up while it came in.
func TestAStateThatIsNotWantedAnyMore(t *testing.T) {
	c := newClusterOf(t, 3, 0)
	first := c.propose("first")
	lead := c.leader()
	m := c.members[lead.id%3]
	caughtUp(t, c, m, first)
	term := m.node.Role().Term
	b, err := proto.Marshal(&pb.Message{
		Type: pb.MsgSnap.Enum(), From: &lead.id, To: &m.id, Term: &term,
		Snapshot: &pb.Snapshot{Data: make([]byte, 8), Metadata: &pb.SnapshotMetadata{
			Index: proto.Uint64(1), Term: proto.Uint64(1), ConfState: &pb.ConfState{Voters: c.ids()},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	head := func(kind byte, number uint64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{kind}, 3), number)
	}
	if err := refusal(m.node.Answer(t.Context(), lead.id, append(head(passBegin, 0), b...))); err != nil {
		t.Fatal(err)
	}
	if err := refusal(m.node.Answer(t.Context(), lead.id, head(passEnd, 1))); err == nil || err.Error() != errUnwanted.Error() {
		t.Errorf("it was answered %v", err)
	}
	if m.machine.adopted.Load() != 0 || m.arrivalsLeft() {
		t.Error("it was adopted, or left something")
	}
	caughtUp(t, c, m, c.propose("last"))
}

// TestTheLogIsKeptForPassages (P4).
func TestTheLogIsKeptForPassages(t *testing.T) {
	l := &log{MemoryStorage: raft.NewMemoryStorage()}
	open := 0
	l.freeze = func() Frozen { open++; return closing(func() { open-- }) }
	for i := range uint64(6) {
		if err := l.Append([]*pb.Entry{{Index: proto.Uint64(i + 1), Term: proto.Uint64(2)}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, any := l.passages.keeps(); !any {
		t.Error("the log is kept for nobody")
	}
	for _, applied := range []uint64{5, 3} {
		l.applied = applied
		s, err := l.Snapshot()
		if err != nil || s.GetMetadata().GetIndex() != applied || s.GetMetadata().GetTerm() != 2 {
			t.Fatalf("at %d there is %v, %v", applied, s, err)
		}
	}
	if kept, any := l.passages.keeps(); kept != 3 || any {
		t.Errorf("the log may be cut behind %d, or anywhere (%v)", kept, any)
	}
	l.passages.drop(func(p *passage) bool { return p.index == 3 })
	if kept, any := l.passages.keeps(); kept != 5 || any || open != 1 {
		t.Errorf("the log may be cut behind %d, or anywhere (%v); %d are open", kept, any, open)
	}
	l.passages.end()
	if _, any := l.passages.keeps(); !any || open != 0 {
		t.Errorf("it keeps the log for ever; %d are open", open)
	}
}

type closing func()

func (closing) Next() ([]byte, error) { return nil, errors.New("not read") }
func (f closing) Close() error        { f(); return nil }
