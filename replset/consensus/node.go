// Package consensus agrees on entries: raft with a durable log, on top of
// go.etcd.io/raft. It knows terms, roles and indexes; it must never know what an
// entry means, which is its Machine's affair.
//
// # One turn of the loop
//
// A single goroutine owns the raft state machine. It takes in messages, ticks
// and proposals, and then, for what raft says is ready:
//
//  1. Messages that wait for nothing are sent: a leader's entries leave before its
//     own log is on disk, because its own vote for them is counted only after
//     step 2. (Raft thesis 10.2.1.)
//  2. New entries and the hard state go to the writer, with the messages that wait
//     for them. The writer sends those when it has synced: an acknowledgement never
//     leaves before what it acknowledges is on disk.
//  3. Committed entries that are in this member's own synced log are applied in
//     order, in one batch with the applied index, unsynced: they can be applied
//     again from the log.
//  4. Who waits for them is told.
//
// That more is committed followers are told with the next entries, or after a moment if
// none come: a message of its own costs every member as much as the entries did.
//
// The loop never waits for the disk, except to make a state that has come in its own. It did once,
// with the sync between steps 1 and 3: whoever waited for an entry then also
// waited for the sync of the next one.
//
// # Invariants
//
//  1. What a member acknowledges, it has synced (step 2).
//  2. Applying is a function of the log: entries in order, each once. The applied
//     index is in the batch of its effects.
//  3. A proposal is answered once: applied, refused before it entered the log, or
//     ErrUnknown, when this member stopped being leader of the term in which the
//     proposal was made. After ErrUnknown it may still be applied.
//  4. Timestamps grow along the log, also across terms: each is above the last
//     one in the proposer's log.
//  5. A linearizable read waits until this member has applied everything that was
//     committed when a majority, asked after the read began, still followed it.
package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/assaylab/assay/replset/internal/defect"
)

var (
	// ErrNotLeader is returned when this member is not the leader; nothing was
	// proposed.
	ErrNotLeader = errors.New("not the leader")
	// ErrUnknown is returned when leadership was lost while a proposal was under
	// way: it may or may not be applied.
	ErrUnknown = errors.New("leadership was lost while the entry was under way; it may still be applied")
	// ErrStopped is returned after Stop, or after the log could not be written.
	ErrStopped = errors.New("the member has stopped")
)

// Entry is what a Machine applies.
type Entry struct {
	Index, Term uint64
	Timestamp   uint64 // grows along the log; 0 for raft's own empty entries
	Data        []byte // as it was proposed; nil for raft's own
}

// Machine is the state that entries build.
type Machine interface {
	// Apply adds the entry's effects to the batch. done, if not nil, is called
	// once the batch is visible, with its result handed to whoever proposed.
	// An error stops the member: its state can no longer follow the log.
	Apply(b *pebble.Batch, e Entry) (result any, err error)
	// Visible is called after a batch of entries up to e has become visible;
	// e.Timestamp is the last one up to there. Start calls it for what a member
	// had applied when it stopped.
	Visible(e Entry)
	// Freeze holds the whole state as it is. What it returns is read beside whatever is
	// applied meanwhile.
	Freeze() Frozen
	// Arrive begins to take in another member's state, beside the one that is there, in an empty
	// folder. It becomes this member's by Adopt, which is not called beside Apply.
	Arrive(dir string) Arriving
}

// Options configure a member. All fields up to HeartbeatTicks must be set, but
// Broken and OnRole.
type Options struct {
	ID      uint64
	Members []uint64 // all of the set, this one included
	DB      *pebble.DB
	FS      vfs.FS // the file system that DB is in
	Dir     string // of the log, which is made if it is not there; its parent must be
	// Broken is closed when DB cannot be written any more; nil is never.
	Broken  <-chan struct{}
	Machine Machine
	Send    func(to uint64, msg []byte)
	// Ask asks another member's Answer. It may be called before Start returns.
	Ask    func(ctx context.Context, to uint64, question []byte) (answer []byte, err error)
	Now    func() time.Time
	OnRole func(Role) // called from the loop; must not block

	Tick           time.Duration // raft's unit of time
	ElectionTicks  int
	HeartbeatTicks int
	// ElectionSpread is how many ticks after ElectionTicks without a leader a member
	// stands for election at the latest; 0 is raft's own, ElectionTicks.
	ElectionSpread int

	NoSync bool        // do not sync the log: for tests that do not crash
	Logger raft.Logger // nil discards
	// KeepEntries is how many applied entries stay in the log for members that were
	// away; who was away longer gets a snapshot. The log is cut when it has twice
	// as many, or more than 64 MiB. 0 is 4096.
	KeepEntries  uint64
	SegmentBytes int64         // of the log's files; 0 is 4 MiB
	Defect       defect.Defect // planted by tests
}

// Role is what a member knows of its place.
type Role struct {
	Term   uint64
	Leader uint64 // 0 is none known
	// Ready says that this member leads and has applied an entry of its own
	// term, so that it knows everything that was committed before.
	Ready bool
}

// Node is one member's part in the agreement.
type Node struct {
	o      Options
	raw    *raft.RawNode
	log    *log
	writer *writer
	events chan func()
	stop   chan struct{}
	done   chan struct{}
	once   sync.Once
	fail   error

	// Of the loop.
	writing   int // writes that the writer has
	syncing   int // those of them that have entries
	pending   map[uint64]*Proposal
	nextID    uint64
	reads     map[uint64]*read
	waiting   []*read // confirmed, not yet applied far enough
	copies    []*copied
	parked    []parked
	company   company
	lastStamp uint64
	applied   uint64
	role      Role
	held      held
	patience  patience

	landed *landed // in this turn
	broken error   // why the loop must end

	flushAgain *time.Timer // wakes the loop to look at parked ones

	passage atomic.Uint64 // numbers given
	arrival arrival

	mu     sync.Mutex
	shown  Role
	latest uint64
}

// stampHeader is in front of each proposed entry: timestamp, proposer, number.
const stampHeader = 24

// replayBytes is how much is applied in one batch when a member starts.
const replayBytes = 1 << 20

// Start opens the log, applies what was committed, and joins the set.
func Start(o Options) (*Node, error) {
	if o.Logger == nil {
		o.Logger = discard{}
	}
	if o.KeepEntries == 0 {
		o.KeepEntries = 4096
	}
	n := &Node{
		o: o, events: make(chan func(), 1024), stop: make(chan struct{}), done: make(chan struct{}),
		pending: map[uint64]*Proposal{}, reads: map[uint64]*read{}, held: newHeld(), flushAgain: idleTimer(),
		patience: newPatience(o.ElectionTicks, o.ElectionSpread),
	}
	n.passage.Store(rand.Uint64()) // none is given again after a restart
	l, err := openLog(&n.o)
	if err != nil {
		return nil, err
	}
	n.log, n.applied, n.lastStamp = l, l.applied, l.lastStamp
	l.freeze = o.Machine.Freeze
	if err := n.begin(); err != nil {
		return nil, errors.Join(err, l.close(true))
	}
	n.writer = newWriter(l, n.transmit)
	go n.loop()
	return n, nil
}

// begin brings the state to where the log is known to be committed, and starts raft
// there.
func (n *Node) begin() error {
	o, l := &n.o, n.log
	n.latest = l.applied
	if l.applied > 0 {
		o.Machine.Visible(Entry{Index: l.applied, Timestamp: l.stamp})
	}
	for n.applied < l.hard.GetCommit() {
		entries, err := l.Entries(n.applied+1, l.hard.GetCommit()+1, replayBytes)
		if err == nil {
			err = n.apply(entries)
		}
		if err != nil {
			return err
		}
	}
	var err error
	n.raw, err = raft.NewRawNode(&raft.Config{
		ID: o.ID, ElectionTick: o.ElectionTicks, HeartbeatTick: o.HeartbeatTicks, Storage: l, Applied: n.applied,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256, MaxUncommittedEntriesSize: 1 << 28,
		CheckQuorum: true, PreVote: true, ReadOnlyOption: raft.ReadOnlySafe, AsyncStorageWrites: true,
		DisableProposalForwarding: true, Logger: o.Logger,
	})
	return err
}

// Stop ends the member's loop. It may be called more than once.
func (n *Node) Stop() {
	n.once.Do(func() { close(n.stop) })
	<-n.done
}

// Done is closed when the member's loop has ended, by Stop or by itself.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is why the member stopped by itself, nil if it did not.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.fail
	default:
		return nil
	}
}

// Role returns what the member knew at its last turn.
func (n *Node) Role() Role {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shown
}

// Applied returns the index of the last entry that is visible here.
func (n *Node) Applied() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.latest
}

func (n *Node) post(ctx context.Context, f func()) error {
	select {
	case n.events <- f:
		return nil
	case <-n.done:
		return n.stopped()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *Node) stopped() error {
	if n.fail != nil {
		return fmt.Errorf("%w: %w", ErrStopped, n.fail)
	}
	return ErrStopped
}

// Receive takes in a message that another member's Send was given.
func (n *Node) Receive(msg []byte) {
	m := &pb.Message{}
	if proto.Unmarshal(msg, m) != nil || m.GetType() == pb.MsgSnap {
		return // a state comes with questions
	}
	_ = n.post(context.Background(), func() {
		n.patience.heard(m, n.raw.BasicStatus().HardState.GetTerm())
		// A message that raft refuses is a lost message.
		_ = n.raw.Step(m)
	})
}

// loop runs until Stop, or until the member cannot go on.
func (n *Node) loop() {
	defer close(n.done)
	if n.fail = n.run(); n.fail != nil {
		n.role = Role{Term: n.role.Term}
		n.show()
	}
	n.writer.end()
	n.arrival.end(n)
	if err := n.log.close(n.fail != nil); err != nil && n.fail == nil {
		n.fail = err
	}
	n.abandon()
}

// run is the loop. Neither a log that raft finds impossible nor a database that
// cannot be written may take the process with it: raft and pebble panic then, and
// the member stops with an error instead.
func (n *Node) run() error { return caught(n.turns) }

// caught makes an error of a panic.
func caught(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the member cannot go on: %v", p)
		}
	}()
	return f()
}

func (n *Node) turns() error {
	ticker := time.NewTicker(n.o.Tick)
	defer ticker.Stop()
	defer n.held.timer.Stop()
	defer n.flushAgain.Stop()
	for {
		n.flush()
		if err := n.turn(); errors.Is(err, ErrStopped) {
			return nil
		} else if err != nil {
			return err
		}
		n.countCopies()
		select {
		case <-n.stop:
			return nil
		case <-ticker.C:
			if err := n.tick(); err != nil {
				return err
			}
		case f := <-n.events:
			f()
		case w := <-n.writer.written:
			if err := n.durable(w); err != nil {
				return err
			}
		case <-n.held.timer.C:
			n.held.release(n.transmit)
		case <-n.flushAgain.C:
		}
		// Whatever else has arrived belongs to the same turn.
		for more := true; more; {
			select {
			case f := <-n.events:
				f()
			case <-ticker.C:
				if err := n.tick(); err != nil {
					return err
				}
			default:
				more = false
			}
		}
	}
}

func (n *Node) tick() error {
	n.raw.Tick()
	n.settlePassages()
	n.arrival.look(n, time.Now())
	if n.patience.over(n.raw.BasicStatus().RaftState) {
		_ = n.raw.Campaign()
	}
	if n.o.Defect == defect.AckBeforeSync {
		return n.log.wal.Sync()
	}
	return nil
}

// abandon answers whoever still waits when the loop ends.
func (n *Node) abandon() {
	for id, p := range n.pending {
		p.done <- outcome{err: fmt.Errorf("%w; %w", ErrUnknown, n.stopped())}
		delete(n.pending, id)
	}
	for _, r := range n.reads {
		r.done <- n.stopped()
	}
	for _, r := range n.waiting {
		r.done <- n.stopped()
	}
	for _, p := range n.parked {
		p.p.done <- outcome{err: ErrNotLeader}
	}
}

func (n *Node) turn() error {
	for n.raw.HasReady() {
		rd := n.raw.Ready()
		if rd.SoftState != nil || !raft.IsEmptyHardState(rd.HardState) {
			n.updateRole(rd)
		}
		n.noteStamps(rd.Entries)
		for _, m := range rd.Messages {
			var err error
			switch m.GetTo() {
			case raft.LocalAppendThread:
				err = n.persist(m)
			case raft.LocalApplyThread:
				if err = n.apply(m.GetEntries()); err == nil {
					n.deliver(m.GetResponses())
				}
			default:
				n.send(m)
			}
			if err != nil {
				return err
			}
		}
		n.readStates(rd.ReadStates)
	}
	if n.landed != nil {
		n.landed.discard(n)
		n.landed = nil
	}
	return n.broken
}

func (n *Node) send(m *pb.Message) {
	if n.held.holds(m) {
		return
	}
	if m.GetType() == pb.MsgSnap {
		n.pass(m)
		return
	}
	n.transmit(m)
}

// transmit may be called by the writer too.
func (n *Node) transmit(m *pb.Message) {
	if b, err := proto.Marshal(m); err == nil {
		n.o.Send(m.GetTo(), b)
	}
}

func (n *Node) updateRole(rd raft.Ready) {
	next := n.role
	if rd.SoftState != nil {
		next.Leader = rd.SoftState.Lead
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		next.Term = rd.HardState.GetTerm()
	}
	if next.Term != n.role.Term || next.Leader != n.o.ID {
		next.Ready = false
	}
	if next == n.role {
		return
	}
	n.role = next
	// First the role, then the answers that refer to it: whoever is told that this
	// member does not lead must find it saying so.
	n.show()
	n.settle()
}

// settle answers proposals and reads of a term that this member no longer leads.
func (n *Node) settle() {
	n.company.forget()
	n.log.passages.dropAll()
	gone := func(term uint64) bool { return n.role.Leader != n.o.ID || n.role.Term != term }
	for id, p := range n.pending {
		if gone(p.term) {
			p.done <- outcome{err: ErrUnknown}
			delete(n.pending, id)
		}
	}
	for id, r := range n.reads {
		if gone(r.term) {
			r.done <- ErrNotLeader
			delete(n.reads, id)
		}
	}
	kept := n.waiting[:0]
	for _, r := range n.waiting {
		if gone(r.term) {
			r.done <- ErrNotLeader
		} else {
			kept = append(kept, r)
		}
	}
	n.waiting = kept
}

func (n *Node) show() {
	n.mu.Lock()
	n.shown = n.role
	n.mu.Unlock()
	if n.o.OnRole != nil {
		n.o.OnRole(n.role)
	}
}

// noteStamps keeps the last timestamp of the log, so that a later leadership of
// this member starts above it.
func (n *Node) noteStamps(entries []*pb.Entry) {
	for _, e := range entries {
		if len(e.GetData()) >= stampHeader {
			n.lastStamp = max(n.lastStamp, binary.BigEndian.Uint64(e.GetData()))
		}
	}
}

func (n *Node) apply(entries []*pb.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	b := n.o.DB.NewBatch()
	defer b.Close()
	type answer struct {
		p   *Proposal
		out outcome
	}
	var answers []answer
	last := Entry{Timestamp: n.log.stamp}
	for _, e := range entries {
		if e.GetType() != pb.EntryNormal {
			return fmt.Errorf("entry %d: membership changes are not in use", e.GetIndex())
		}
		entry := Entry{Index: e.GetIndex(), Term: e.GetTerm()}
		if data := e.GetData(); len(data) >= stampHeader {
			entry.Timestamp, entry.Data = binary.BigEndian.Uint64(data), data[stampHeader:]
			result, err := n.o.Machine.Apply(b, entry)
			if err != nil {
				return fmt.Errorf("applying entry %d: %w", entry.Index, err)
			}
			if binary.BigEndian.Uint64(data[8:]) == n.o.ID {
				id := binary.BigEndian.Uint64(data[16:])
				if p := n.pending[id]; p != nil && p.term == entry.Term {
					answers = append(answers, answer{p, outcome{entry: entry, result: result}})
					delete(n.pending, id)
				}
			}
		}
		if entry.Timestamp == 0 {
			entry.Timestamp = last.Timestamp // raft's own entries do not move time
		}
		last = entry
	}
	if err := n.log.setApplied(b, last.Index, last.Timestamp); err != nil {
		return err
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("applying up to entry %d: %w", last.Index, err)
	}
	n.applied = last.Index
	n.o.Machine.Visible(last)
	n.mu.Lock()
	n.latest = last.Index
	n.mu.Unlock()
	for _, a := range answers {
		a.p.done <- a.out
	}
	if len(n.pending) == 0 {
		n.company.applied(time.Now(), len(n.parked))
	}
	if n.role.Leader == n.o.ID && !n.role.Ready && last.Term == n.role.Term {
		n.role.Ready = true
		n.show()
	}
	n.release()
	return n.log.compact(n.needed)
}

// needed is the last entry that all followers have which are not away.
func (n *Node) needed() uint64 {
	index := n.applied
	if n.raw == nil || n.role.Leader != n.o.ID {
		return index
	}
	for id, pr := range n.raw.Status().Progress {
		if id != n.o.ID && pr.RecentActive {
			index = min(index, pr.Match)
		}
	}
	return index
}

// readStates moves confirmed reads on to wait for their index.
func (n *Node) readStates(states []raft.ReadState) {
	for _, s := range states {
		id := binary.BigEndian.Uint64(s.RequestCtx)
		if r := n.reads[id]; r != nil {
			delete(n.reads, id)
			r.index = s.Index
			n.waiting = append(n.waiting, r)
		}
	}
	n.release()
}

func (n *Node) release() {
	kept := n.waiting[:0]
	for _, r := range n.waiting {
		if r.index <= n.applied {
			r.done <- nil
		} else {
			kept = append(kept, r)
		}
	}
	n.waiting = kept
}
