package replset

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/consensus"
	"github.com/assaylab/assay/replset/link"
	"github.com/assaylab/assay/replset/server"
	"github.com/assaylab/assay/replset/store"
)

// member is one of the set: its addresses and data stay, the rest comes and goes
// with kill and restart.
type member struct {
	set   *Set
	index int
	addr  string // for clients
	peer  string // for other members
	fs    *vfs.MemFS

	// The listeners, of a member that was not started yet.
	listener net.Listener
	link     *link.Node

	current atomic.Pointer[server.Server] // nil while it is down
	node    atomic.Pointer[consensus.Node]
	db      *pebble.DB
	inbox   *inbox
	resume  chan struct{} // while it is paused
}

func (m *member) id() uint64 { return uint64(m.index) + 1 }

// inbox hands messages to the node once there is one.
type inbox struct {
	mu   sync.Mutex
	node *consensus.Node
}

func (b *inbox) receive(_ uint64, msg []byte) {
	b.mu.Lock()
	n := b.node
	b.mu.Unlock()
	if n != nil {
		n.Receive(msg) // a message before the start is a lost one
	}
}

// listen takes the addresses of a new member.
func (s *Set) listen(i int) (*member, error) {
	m := &member{set: s, index: i}
	port := 0
	if s.o.Port != 0 {
		port = s.o.Port + i
	}
	if err := m.open(net.JoinHostPort(s.o.Host, strconv.Itoa(port)), "127.0.0.1:0"); err != nil {
		return nil, err
	}
	m.addr, m.peer = m.listener.Addr().String(), m.link.Addr()
	if s.o.Dir == "" {
		m.fs = vfs.NewMem()
		if s.o.LoseUnsynced {
			m.fs = vfs.NewCrashableMem()
		}
	}
	return m, nil
}

func (m *member) open(addr, peer string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("replset: member %d: %w", m.index, err)
	}
	m.inbox = &inbox{}
	m.link, err = link.Listen(m.id(), peer, m.inbox.receive)
	if err != nil {
		l.Close()
		return fmt.Errorf("replset: member %d: %w", m.index, err)
	}
	m.listener = l
	return nil
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, v ...any) { panic(fmt.Sprintf("replset: storage: "+f, v...)) }

func (m *member) openDB() error {
	dir, err := m.set.dir(m.index)
	if err != nil {
		return fmt.Errorf("replset: member %d: %w", m.index, err)
	}
	cache := pebble.NewCache(16 << 20)
	defer cache.Unref()
	o := &pebble.Options{Logger: quiet{}, Cache: cache, MemTableSize: 8 << 20}
	if dir == "" {
		dir, o.FS = "data", m.fs
	}
	if m.db, err = pebble.Open(dir, o); err != nil {
		return fmt.Errorf("replset: member %d: its data: %w", m.index, err)
	}
	return nil
}

// start makes the member run, on the data that it has.
func (m *member) start() (err error) {
	if err := m.openDB(); err != nil {
		return err
	}
	st, err := store.New(m.db, 0)
	if err != nil {
		return errors.Join(fmt.Errorf("replset: member %d: %w", m.index, err), m.db.Close())
	}
	o := m.set.o
	srv := server.New(m.forServer(st), server.Options{
		LinearizableByWrite: o.LinearizableByWrite, TransactionLifetime: o.TransactionLifetime,
		HeartbeatMillis: o.Timing.heartbeat().Milliseconds(), LongestHello: o.Timing.hello(),
	})
	mach := &machine{store: st, server: srv}
	ids := make([]uint64, len(m.set.members))
	for i, other := range m.set.members {
		ids[i] = other.id()
		if other != m {
			m.link.Connect(other.id(), other.peer)
		}
	}
	tick, election, heartbeat := o.Timing.ticks()
	node, err := consensus.Start(consensus.Options{
		ID: m.id(), Members: ids, DB: m.db, Machine: mach, Send: m.link.Send, Now: time.Now,
		OnRole: func(r consensus.Role) {
			srv.SetRole(m.roleFor(r))
			m.set.changed.fire()
		},
		Tick: tick, ElectionTicks: election, HeartbeatTicks: heartbeat, NoSync: o.NoSync,
	})
	if err != nil {
		srv.Close()
		return errors.Join(fmt.Errorf("replset: member %d: %w", m.index, err), m.db.Close())
	}
	m.node.Store(node)
	m.inbox.mu.Lock()
	m.inbox.node = node
	m.inbox.mu.Unlock()
	m.current.Store(srv)
	srv.Serve(m.listener)
	return nil
}

func (m *member) roleFor(r consensus.Role) server.Role {
	return server.Role{Term: r.Term, Primary: int(r.Leader) - 1, Writable: r.Leader == m.id() && r.Ready}
}

func (t Timing) heartbeat() time.Duration {
	if t == MongoDB {
		return 2 * time.Second
	}
	return 15 * time.Millisecond
}

func (t Timing) hello() time.Duration {
	if t == MongoDB {
		return 0
	}
	return 500 * time.Millisecond
}

// ticks of a fast set tolerate that the process stands still for a moment: an
// election takes 10 to 20 of them without a heartbeat.
func (t Timing) ticks() (tick time.Duration, election, heartbeat int) {
	if t == MongoDB {
		return 500 * time.Millisecond, 20, 4
	}
	return 15 * time.Millisecond, 10, 1
}

func translate(err error) error {
	switch {
	case errors.Is(err, consensus.ErrUnknown):
		return server.ErrUnknown
	case errors.Is(err, consensus.ErrNotLeader), errors.Is(err, consensus.ErrStopped):
		return server.ErrNotLeader
	}
	return err
}

// forServer is what the server may ask of the member. The node does not exist yet.
func (m *member) forServer(st *store.Store) server.Member {
	return server.Member{
		SetName: m.set.o.Name, Hosts: m.set.hosts(), Self: m.index, Store: st,
		Begin: func(ctx context.Context, term uint64, data []byte) (func(context.Context) (server.Applied, error), error) {
			p, err := m.node.Load().Begin(ctx, term, data)
			if err != nil {
				return nil, translate(err)
			}
			return func(ctx context.Context) (server.Applied, error) {
				e, _, err := p.Wait(ctx)
				return server.Applied{Index: e.Index, Timestamp: e.Timestamp}, translate(err)
			}, nil
		},
		ReadIndex: func(ctx context.Context) error { return translate(m.node.Load().ReadIndex(ctx)) },
		Replicated: func(ctx context.Context, i uint64, n int) error {
			return translate(m.node.Load().Replicated(ctx, i, n))
		},
		StepDown: m.stepDown,
		StepUp:   func(ctx context.Context) error { return m.node.Load().Campaign(ctx) },
		Applied:  func() uint64 { return m.node.Load().Applied() },
	}
}

// stepDown hands leadership over and returns when another member leads.
func (m *member) stepDown(ctx context.Context) error {
	for {
		changed := m.set.changed.next()
		r := m.node.Load().Role()
		if r.Leader != m.id() {
			return nil
		}
		if err := m.node.Load().Transfer(ctx, 0); err != nil && !errors.Is(err, consensus.ErrNotLeader) {
			if !waitAny(ctx, changed, 10*time.Millisecond) {
				return ctx.Err()
			}
			continue
		}
		// An attempt that came to nothing is over after an election timeout.
		tick, election, _ := m.set.o.Timing.ticks()
		if !waitAny(ctx, changed, 2*tick*time.Duration(election)) {
			return ctx.Err()
		}
	}
}

// waitAny waits for an event or some time; false when ctx ended.
func waitAny(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	case <-ctx.Done():
		return false
	}
	return true
}

func (m *member) running() *server.Server { return m.current.Load() }

func (m *member) role() (r server.Role, up bool) {
	srv := m.running()
	if srv == nil {
		return server.Role{Primary: -1}, false
	}
	return srv.Role(), true
}

func (m *member) err() error {
	if m.running() == nil {
		return nil
	}
	return m.node.Load().Err()
}

// isolate ends everything by which others could hear of the member.
func (m *member) isolate() error {
	m.unpause()
	err := m.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	if srv := m.current.Swap(nil); srv != nil {
		srv.Close()
	}
	return errors.Join(err, m.link.Close())
}

func (m *member) close() error {
	up := m.running() != nil
	err := m.isolate()
	if up {
		m.node.Load().Stop()
		err = errors.Join(err, m.db.Close())
	}
	return err
}

func (m *member) unpause() {
	if m.resume != nil {
		close(m.resume)
		m.resume = nil
	}
}

// machine is the store as the agreement sees it.
type machine struct {
	store  *store.Store
	server *server.Server
}

func (m *machine) Apply(b *pebble.Batch, e consensus.Entry) (any, error) {
	effects, err := store.DecodeEffects(e.Data)
	if err != nil {
		return nil, err
	}
	return nil, m.store.Apply(b, e.Timestamp, effects)
}

func (m *machine) Visible(e consensus.Entry) {
	m.store.Visible(e.Timestamp)
	m.server.Visible(e.Timestamp)
}

func (m *machine) Snapshot() ([]byte, error) { return m.store.Snapshot() }

func (m *machine) Restore(b *pebble.Batch, snapshot []byte) error {
	return m.store.Restore(b, snapshot)
}
