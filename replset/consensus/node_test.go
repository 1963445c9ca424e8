package consensus

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/assaylab/assay/replset/internal/ordered"
	"github.com/assaylab/assay/replset/internal/tables"
	"github.com/assaylab/assay/replset/link"
)

// counter is a machine that keeps what was applied, in order, in the member's
// database, as every real machine does.
type counter struct {
	db *pebble.DB
	fs vfs.FS

	mu     sync.Mutex
	last   uint64
	hold   chan struct{} // no piece of a frozen state is read before it is closed; nil does not hold
	fails  bool          // to read one panics
	refuse bool          // to take one in fails

	made, open    atomic.Int64 // states frozen, and not closed
	took, adopted atomic.Int64 // pieces, states
}

func stateKey(index uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'s'}, index) }

func (c *counter) Apply(b *pebble.Batch, e Entry) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Timestamp <= c.last {
		return nil, fmt.Errorf("timestamp %d after %d", e.Timestamp, c.last)
	}
	c.last = e.Timestamp
	return nil, b.Set(stateKey(e.Index), e.Data, nil)
}

func (c *counter) Visible(Entry) {}

func (c *counter) Freeze() Frozen {
	c.made.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open.Add(1)
	return &frozen{c: c, left: c.list(), hold: c.hold, fails: c.fails}
}

// frozen has a piece for each entry.
type frozen struct {
	c     *counter
	left  [][2][]byte // keys and values
	hold  chan struct{}
	fails bool
}

func (f *frozen) Next() ([]byte, error) {
	if f.fails {
		panic("a file is gone")
	}
	if f.hold != nil {
		<-f.hold
	}
	if len(f.left) == 0 {
		return nil, io.EOF
	}
	piece, err := json.Marshal(f.left[0])
	f.left = f.left[1:]
	return piece, err
}

func (f *frozen) Close() error {
	f.c.open.Add(-1)
	return nil
}

func (c *counter) Arrive(dir string) Arriving {
	return &arrivingState{c: c, w: tables.New(c.db, c.fs, dir+"/state", []byte{'s'}, []byte{'s' + 1})}
}

type arrivingState struct {
	c *counter
	w *tables.Writer
}

func (a *arrivingState) Take(piece []byte) error {
	a.c.mu.Lock()
	refuse := a.c.refuse
	a.c.mu.Unlock()
	if refuse {
		return errors.New("no room")
	}
	var kv [2][]byte
	if err := json.Unmarshal(piece, &kv); err != nil {
		return err
	}
	a.c.took.Add(1)
	return a.w.Set(kv[0], kv[1])
}

func (a *arrivingState) Tables() ([]string, error) { return a.w.Close() }
func (a *arrivingState) Adopt() error              { a.c.adopted.Add(1); return nil }
func (a *arrivingState) Abandon()                  { a.w.Abandon() }

// list is all that is there, in order.
func (c *counter) list() (out [][2][]byte) {
	entries := c.entries()
	for _, index := range slices.Sorted(maps.Keys(entries)) {
		out = append(out, [2][]byte{stateKey(index), []byte(entries[index])})
	}
	return out
}

func (c *counter) entries() map[uint64]string {
	out := map[uint64]string{}
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: []byte{'s'}, UpperBound: []byte{'s' + 1}})
	if err != nil {
		return nil
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		out[binary.BigEndian.Uint64(it.Key()[1:])] = string(it.Value())
	}
	return out
}

func (c *counter) all() []string {
	entries := c.entries()
	var out []string
	for _, index := range slices.Sorted(maps.Keys(entries)) {
		out = append(out, entries[index])
	}
	return out
}

type member struct {
	id      uint64
	fs      *vfs.MemFS
	wrap    func(vfs.FS) vfs.FS // around fs, nil is none
	broken  bool                // its disk fails, so that nothing can be closed well
	db      *pebble.DB
	link    *link.Node
	talks   *link.Exchange
	node    *Node
	machine *counter
	oldest  atomic.Uint64 // term; messages of earlier ones do not reach it
	lacks   atomic.Uint64 // entries behind lower ones than this do not reach it
}

type cluster struct {
	t       *testing.T
	keep    uint64
	members []*member
}

func newCluster(t *testing.T, n int) *cluster { return newClusterOf(t, n, 0) }

func (c *cluster) ids() (ids []uint64) {
	for _, m := range c.members {
		ids = append(ids, m.id)
	}
	return ids
}

// newClusterOf keeps so many entries for members that are away.
func newClusterOf(t *testing.T, n int, keep uint64) *cluster {
	c := &cluster{t: t, keep: keep}
	for i := range n {
		id := uint64(i + 1)
		m := &member{id: id, fs: vfs.NewCrashableMem()}
		c.members = append(c.members, m)
		c.listen(m, "127.0.0.1:0")
	}
	for _, m := range c.members {
		c.connect(m)
	}
	for _, m := range c.members {
		c.start(m, c.ids())
	}
	t.Cleanup(func() {
		for _, m := range c.members {
			c.stop(m)
			m.hangUp()
		}
	})
	return c
}

func (c *cluster) listen(m *member, addr string) {
	l, err := link.Listen(m.id, link.Token{}, addr, func(_ uint64, msg []byte) {
		var what pb.Message
		if n := m.running(); n != nil && proto.Unmarshal(msg, &what) == nil && what.GetTerm() >= m.oldest.Load() &&
			(what.GetType() != pb.MsgApp || what.GetIndex() >= m.lacks.Load()) {
			n.Receive(msg)
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
	m.link = l
	m.talks = l.Exchange(func(ctx context.Context, from uint64, question []byte) []byte {
		if n := m.running(); n != nil {
			return n.Answer(ctx, from, question)
		}
		return nil
	})
}

// hangUp ends the member's links.
func (m *member) hangUp() {
	m.talks.Close()
	m.link.Close()
}

func (c *cluster) connect(m *member) {
	for _, o := range c.members {
		m.link.Connect(o.id, o.link.Addr())
	}
}

var nodes sync.Map // member to its node, read by link goroutines

func (m *member) running() *Node {
	if n, ok := nodes.Load(m); ok {
		return n.(*Node)
	}
	return nil
}

func (c *cluster) start(m *member, ids []uint64) {
	c.t.Helper()
	c.open(m, ids, m.link.Send)
	nodes.Store(m, m.node)
}

// startAlone starts a member that hears of nobody.
func (c *cluster) startAlone(m *member) {
	c.t.Helper()
	c.open(m, c.ids(), func(uint64, []byte) {})
}

func (c *cluster) open(m *member, ids []uint64, send func(uint64, []byte)) {
	c.t.Helper()
	var fs vfs.FS = m.fs
	if m.wrap != nil {
		fs = m.wrap(fs)
	}
	db, err := pebble.Open("data/state", &pebble.Options{FS: ordered.FS{FS: fs}, Logger: quiet{}, DisableWAL: true})
	if err != nil {
		c.t.Fatal(err)
	}
	m.db, m.machine = db, &counter{db: db, fs: fs}
	m.node, err = Start(Options{
		ID: m.id, Members: ids, DB: db, FS: fs, Dir: "data/log", SegmentBytes: 8 << 10, Machine: m.machine, Send: send, Ask: m.talks.Ask, Now: time.Now,
		Tick: 10 * time.Millisecond, ElectionTicks: 10, HeartbeatTicks: 1, KeepEntries: c.keep,
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) stop(m *member) {
	if m.node == nil {
		return
	}
	nodes.Delete(m)
	m.node.Stop()
	if err := m.node.Err(); err != nil && !m.broken {
		c.t.Errorf("member %d: %v", m.id, err)
	}
	if !m.broken {
		m.db.Close()
	}
	m.node = nil
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }

// until polls a condition with a deadline; there is no event to wait for, since
// roles are told per member.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			t.Fatalf("waited 20 s for %s", what)
		case <-tick.C:
		}
	}
}

func (c *cluster) leader() *member {
	var lead *member
	until(c.t, "a leader that is ready", func() bool {
		for _, m := range c.members {
			if m.node != nil {
				if r := m.node.Role(); r.Leader == m.id && r.Ready {
					lead = m
					return true
				}
			}
		}
		return false
	})
	return lead
}

// propose tries until the proposal is certainly applied. Each attempt has a
// name of its own, so that an unknown outcome can be told from a second one.
func (c *cluster) propose(name string) string {
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s/%d", name, i)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, _, err := c.leader().node.Propose(ctx, []byte(id))
		cancel()
		if err == nil {
			return id
		}
		if !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrUnknown) {
			c.t.Fatalf("propose: %v", err)
		}
	}
}

func TestEveryMemberAppliesTheSameOrder(t *testing.T) {
	c := newCluster(t, 3)
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for i := range 25 {
				c.propose(fmt.Sprintf("w%d-%d", w, i))
			}
		})
	}
	group.Wait()
	until(t, "all members to have 200 entries", func() bool {
		for _, m := range c.members {
			if len(m.machine.all()) < 200 {
				return false
			}
		}
		return true
	})
	want := fmt.Sprint(c.members[0].machine.all())
	for _, m := range c.members[1:] {
		if got := fmt.Sprint(m.machine.all()); got != want {
			t.Errorf("member %d applied another order", m.id)
		}
	}
}

func TestAcknowledgedSurvivesLossOfLeaderAndOfUnsyncedBlocks(t *testing.T) {
	c := newCluster(t, 3)
	ids := []uint64{1, 2, 3}
	var acked []string
	for round := range 6 {
		for i := range 10 {
			acked = append(acked, c.propose(fmt.Sprintf("r%d-%d", round, i)))
		}
		lead := c.leader()
		// A crash: what was not synced is gone.
		clone := lead.fs.CrashClone(vfs.CrashCloneCfg{})
		c.stop(lead)
		acked = append(acked, c.propose(fmt.Sprintf("r%d-without", round)))
		lead.fs = clone
		c.start(lead, ids)
	}
	final := c.propose("final")
	until(t, "all members to have the last entry", func() bool {
		for _, m := range c.members {
			all := m.machine.all()
			if len(all) == 0 || all[len(all)-1] != final {
				return false
			}
		}
		return true
	})
	lead := c.leader()
	have := map[string]int{}
	for _, id := range lead.machine.all() {
		have[id]++
	}
	for _, id := range acked {
		if have[id] == 0 {
			t.Errorf("acknowledged entry %s is gone", id)
		}
		if have[id] > 1 {
			t.Errorf("entry %s was applied %d times", id, have[id])
		}
	}
}

func TestCutLeaderRefusesLinearizableReads(t *testing.T) {
	c := newCluster(t, 3)
	c.propose("before")
	old := c.leader()
	for _, m := range c.members {
		if m != old {
			old.link.SetFault(m.id, link.Fault{Cut: true})
			m.link.SetFault(old.id, link.Fault{Cut: true})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := old.node.ReadIndex(ctx); err == nil {
		t.Error("a leader cut off from its majority answered a linearizable read")
	}
	until(t, "another leader", func() bool {
		for _, m := range c.members {
			if r := m.node.Role(); m != old && r.Leader == m.id && r.Ready {
				return true
			}
		}
		return false
	})
	for _, m := range c.members {
		old.link.SetFault(m.id, link.Fault{})
		m.link.SetFault(old.id, link.Fault{})
	}
	c.propose("after")
}

func TestMemberThatWasAwayCatchesUpFromASnapshot(t *testing.T) {
	c := newCluster(t, 3)
	c.propose("first")
	lead := c.leader()
	var away *member
	for _, m := range c.members {
		if m != lead {
			away = m
		}
	}
	c.stop(away)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for w := range 64 {
		group.Go(func() {
			for i := range 2*4096/64 + 4 {
				if _, _, err := lead.node.Propose(ctx, fmt.Appendf(nil, "%d-%d", w, i)); err != nil {
					t.Errorf("propose: %v", err)
					return
				}
			}
		})
	}
	group.Wait()
	c.start(away, []uint64{1, 2, 3})
	last := c.propose("last")
	until(t, "the member to catch up", func() bool {
		all := away.machine.all()
		return len(all) > 2*4096 && all[len(all)-1] == last
	})
}

func TestTransferMovesLeadershipWithoutLoss(t *testing.T) {
	c := newCluster(t, 3)
	c.propose("before")
	old := c.leader()
	if err := old.node.Transfer(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	until(t, "leadership to move", func() bool { return old.node.Role().Leader != old.id && old.node.Role().Leader != 0 })
	c.propose("after")
}

func TestFollowerRefuses(t *testing.T) {
	c := newCluster(t, 3)
	lead := c.leader()
	for _, m := range c.members {
		if m == lead {
			continue
		}
		if _, _, err := m.node.Propose(context.Background(), []byte("x")); !errors.Is(err, ErrNotLeader) {
			t.Errorf("propose on a follower: %v", err)
		}
		if err := m.node.ReadIndex(context.Background()); !errors.Is(err, ErrNotLeader) {
			t.Errorf("linearizable read on a follower: %v", err)
		}
	}
}
