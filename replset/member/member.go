// Package member runs one member of a set: its store, its part in the agreement,
// its links to the others and its clients' server, from one Config. It knows how
// these are joined; it must never know in which process it runs, nor who decides
// about faults.
package member

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/consensus"
	"github.com/assaylab/assay/replset/internal/defect"
	"github.com/assaylab/assay/replset/link"
	"github.com/assaylab/assay/replset/server"
	"github.com/assaylab/assay/replset/store"
)

// Config is what a member is started with. It can be sent to another process as
// JSON.
type Config struct {
	Index int // of this member in Hosts and Peers
	Name  string
	Hosts []string // addresses for clients, of all members
	Peers []string // addresses for each other
	Token link.Token
	Dir   string // where the data is, in the file system that Start is given

	Tick                          time.Duration // raft's unit of time
	ElectionTicks, HeartbeatTicks int
	ElectionSpread                int // see consensus.Options
	NoSync                        bool
	KeepEntries                   uint64        // see consensus.Options
	SegmentBytes                  int64         // likewise
	ChangeHistory                 int64         // bytes; 0 is store.DefaultHistory
	Defect                        defect.Defect // planted by tests
	Server                        server.Options

	Hub       *link.Hub   `json:"-"` // of members in one process; nil: they are in several
	TLS       *tls.Config `json:"-"` // for clients
	PackedTLS *PackedTLS  // the same, where TLS could not be sent

	Faults Faults // when it starts
}

func (c *Config) id() uint64 { return uint64(c.Index) + 1 }

// Member is one that runs.
type Member struct {
	c        Config
	onChange func()
	changed  *Event

	listener net.Listener
	link     *link.Node
	exchange *link.Exchange
	server   *server.Server
	node     *consensus.Node
	db       *pebble.DB
	fatal    *fatal
	space    *space
	inbox    inbox
	group    sync.WaitGroup

	mu       sync.Mutex // of the faults
	isolated bool
	severed  bool
	resume   chan struct{} // while it is paused
}

// Start makes a member run on the data that it has. onChange is called when its
// role has changed; it must not block.
func Start(c Config, fs vfs.FS, onChange func()) (_ *Member, err error) {
	m := &Member{c: c, onChange: onChange, changed: NewEvent(), fatal: newFatal(), space: &space{fs: fs, dir: c.Dir}}
	defer func() {
		if err != nil {
			err = fmt.Errorf("member %d: %w", c.Index, errors.Join(err, m.Close()))
		}
	}()
	clientTLS := c.TLS
	if clientTLS == nil && c.PackedTLS != nil {
		if clientTLS, err = c.PackedTLS.unpack(); err != nil {
			return nil, err
		}
	}
	if m.listener, err = link.ListenTCP(c.Hosts[c.Index]); err != nil {
		return nil, err
	}
	if m.link, err = link.Listen(c.id(), c.Token, c.Peers[c.Index], m.inbox.receive); err != nil {
		return nil, err
	}
	if c.Hub != nil {
		m.link.Join(c.Hub)
	}
	if err := checkLayout(c.Dir, fs); err != nil {
		return nil, err
	}
	if m.db, err = openDB(fs.PathJoin(c.Dir, stateFolder), fs, m.fatal); err != nil {
		return nil, err
	}
	st, err := store.New(m.db)
	if err != nil {
		return nil, err
	}
	if c.ChangeHistory > 0 {
		st.SetHistory(c.ChangeHistory)
	}
	m.server = server.New(m.forServer(st), c.Server)
	m.SetFaults(c.Faults)
	// Before the node, which asks.
	m.exchange = m.link.Exchange(m.answer)
	ids := make([]uint64, len(c.Peers))
	for i, peer := range c.Peers {
		ids[i] = uint64(i) + 1
		m.link.Connect(ids[i], peer)
	}
	m.node, err = consensus.Start(consensus.Options{
		ID: c.id(), Members: ids, Machine: &machine{store: st, server: m.server, fs: fs, space: m.space},
		DB: m.db, FS: fs, Dir: fs.PathJoin(c.Dir, logFolder), Broken: m.fatal.broken,
		Send: m.link.Send, Ask: m.asker(forConsensus), Now: time.Now, OnRole: m.onRole,
		Tick: c.Tick, ElectionTicks: c.ElectionTicks, HeartbeatTicks: c.HeartbeatTicks, ElectionSpread: c.ElectionSpread, NoSync: c.NoSync,
		KeepEntries: c.KeepEntries, SegmentBytes: c.SegmentBytes, Defect: c.Defect,
	})
	if err != nil {
		return nil, errors.Join(err, m.fatal.err())
	}
	m.group.Go(m.watch)
	m.fatal.onFatal(func() { go m.node.Stop() })
	m.inbox.node.Store(m.node)
	m.server.Serve(m.listener, clientTLS)
	return m, nil
}

// inbox hands messages to the node once there is one.
type inbox struct {
	node atomic.Pointer[consensus.Node]
}

func (b *inbox) receive(_ uint64, msg []byte) {
	if n := b.node.Load(); n != nil {
		n.Receive(msg) // a message before the start is a lost one
	}
}

// Whom a question is for.
const (
	forServer byte = iota
	forConsensus
)

// asker asks a part of other members.
func (m *Member) asker(whom byte) func(ctx context.Context, to uint64, question []byte) ([]byte, error) {
	return func(ctx context.Context, to uint64, question []byte) ([]byte, error) {
		return m.exchange.Ask(ctx, to, append([]byte{whom}, question...))
	}
}

// answer carries out what another member asks. Nothing is no answer, to either part.
func (m *Member) answer(ctx context.Context, from uint64, question []byte) []byte {
	switch n := m.inbox.node.Load(); {
	case len(question) == 0:
		return nil
	case question[0] == forServer:
		return m.server.Answer(ctx, question[1:])
	case question[0] == forConsensus && n != nil:
		return n.Answer(ctx, from, question[1:])
	}
	return nil
}

func (m *Member) onRole(r consensus.Role) {
	m.server.SetRole(server.Role{Term: r.Term, Primary: int(r.Leader) - 1, Writable: r.Leader == m.c.id() && r.Ready})
	m.changed.Fire()
	m.onChange()
}

// watch says so when the member's part in the agreement ends. If it ended by itself,
// clients are told that there is no primary that this member knows of.
func (m *Member) watch() {
	<-m.node.Done()
	if m.Err() != nil {
		m.server.SetRole(server.Role{Term: m.node.Role().Term, Primary: -1})
	}
	m.changed.Fire()
	m.onChange()
}

// Role is what the member knows of its place.
func (m *Member) Role() server.Role { return m.server.Role() }

// Err is why the member takes no part in the set any more, nil if it does.
func (m *Member) Err() error {
	if err := m.fatal.err(); err != nil {
		return err
	}
	if m.node == nil {
		return nil // it did not get that far
	}
	return m.node.Err()
}

// Check compares indexes and documents and returns what disagrees.
func (m *Member) Check(ctx context.Context) (faults []string, err error) { return m.server.Check(ctx) }

// Clean drops all databases. It returns server.ErrNotLeader on a secondary.
func (m *Member) Clean(ctx context.Context) error { return m.server.Clean(ctx) }

func translate(err error) error {
	switch {
	case errors.Is(err, consensus.ErrUnknown):
		return server.ErrUnknown
	case errors.Is(err, consensus.ErrNotLeader), errors.Is(err, consensus.ErrStopped):
		return server.ErrNotLeader
	case errors.Is(err, link.ErrSilent):
		return server.ErrSilent
	}
	return err
}

// forServer is what the server may ask of the member. The node does not exist yet.
func (m *Member) forServer(st *store.Store) server.Member {
	return server.Member{
		SetName: m.c.Name, Hosts: m.c.Hosts, Self: m.c.Index, Store: st,
		Begin: func(ctx context.Context, term uint64, data []byte) (func(context.Context) (server.Applied, error), error) {
			if err := m.space.room(len(data)); err != nil {
				return nil, err
			}
			p, err := m.node.Begin(ctx, term, data)
			if err != nil {
				return nil, translate(err)
			}
			return func(ctx context.Context) (server.Applied, error) {
				e, _, err := p.Wait(ctx)
				return server.Applied{Index: e.Index, Timestamp: e.Timestamp}, translate(err)
			}, nil
		},
		ReadIndex: func(ctx context.Context) error { return translate(m.node.ReadIndex(ctx)) },
		Replicated: func(ctx context.Context, i uint64, n int) error {
			return translate(m.node.Replicated(ctx, i, n))
		},
		Ask: func(ctx context.Context, member int, question []byte) ([]byte, error) {
			answer, err := m.asker(forServer)(ctx, uint64(member)+1, question)
			return answer, translate(err)
		},
		StepDown: m.StepDown,
		StepUp:   m.StepUp,
		Applied:  func() uint64 { return m.node.Applied() },
	}
}

// Mute ends all that the member says and hears, from one moment on, while what it does
// goes on. Close must follow.
func (m *Member) Mute() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.Hold()
	m.link.Pause(true)
}

// Sever ends everything by which others could hear of the member: its address
// refuses connections, those that exist break, and no message leaves any more.
// Close must follow.
func (m *Member) Sever() error {
	if m.listener == nil || !m.letGo() {
		return nil
	}
	err := m.listener.Close()
	if m.exchange != nil {
		m.exchange.Close() // before the server, which its work is done by
	}
	if m.server != nil {
		m.server.Close()
	}
	if m.link != nil {
		err = errors.Join(err, m.link.Close())
	}
	return err
}

// Close ends the member and waits until nothing of it runs.
func (m *Member) Close() error {
	err := m.Sever()
	if m.node != nil {
		m.node.Stop()
	}
	m.group.Wait()
	if m.db != nil {
		err = errors.Join(err, m.closeDB())
		m.db = nil
	}
	return err
}

// brokenClose is how long storage that has failed may take to close: it may wait for
// what its failure has left locked.
const brokenClose = time.Second

func (m *Member) closeDB() error {
	if m.Err() == nil {
		return m.db.Close()
	}
	done := make(chan struct{})
	go func(db *pebble.DB) {
		defer close(done)
		// It says again what the member has failed with.
		defer func() { _ = recover() }()
		_ = db.Close()
	}(m.db)
	t := time.NewTimer(brokenClose)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	return nil
}

// machine is the store as the agreement sees it.
type machine struct {
	store  *store.Store
	server *server.Server
	fs     vfs.FS
	space  *space
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

func (m *machine) Freeze() consensus.Frozen { return m.store.Freeze() }

func (m *machine) Arrive(dir string) consensus.Arriving {
	return arriving{m.store.Arrive(m.fs, dir), m.space}
}

// arriving takes nothing in that the disk has no room for: not what is kept for the log above all.
type arriving struct {
	*store.Arriving
	space *space
}

func (a arriving) Take(piece []byte) error {
	if err := a.space.room(len(piece)); err != nil {
		return err
	}
	return a.Arriving.Take(piece)
}
