package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset/internal/defect"
	"github.com/assaylab/assay/replset/store"
)

// Options are what a server is told beside its member. The zero value of each
// field is MongoDB's default.
type Options struct {
	LinearizableByWrite bool          // a linearizable read commits a no-op, as MongoDB's does
	TransactionLifetime time.Duration // 60 s
	LockTimeout         time.Duration // how long a transaction waits for a collection; 3 s, MongoDB has 5 ms
	SnapshotHistory     time.Duration // how far back a snapshot read may go; 30 s
	HeartbeatMillis     int64         // for replSetGetStatus and replSetGetConfig only
	ElectionMillis      int64         // likewise: the shortest time without a heartbeat after which an election may begin
	SessionTimeout      time.Duration // after which the record of a session goes; 30 min
	// LongestHello is how long a streaming hello says nothing; no limit but the
	// client's if 0. A driver that is closed at the wrong moment waits for it.
	LongestHello time.Duration
	// Users are who may log in, and must; nil lets everybody in.
	Users  []User
	Defect defect.Defect // planted by tests
}

// Server serves the clients of one member.
type Server struct {
	m Member
	o Options

	ctx      context.Context
	cancel   context.CancelFunc
	group    sync.WaitGroup
	started  time.Time
	latches  *latches
	commands map[string]*command
	cursors  *cursors
	sessions *sessions
	points   *failPoints
	topology *topology
	waits    *stampWaits
	access   *access // nil: everybody may do everything

	parsedMu sync.Mutex
	parsed   map[uint32]*collection
	nextID   uint32

	mu       sync.Mutex
	conns    map[*conn]bool
	closed   bool
	connID   int32
	holds    int
	resume   chan struct{} // closed unless held
	known    uint64        // the highest cluster time heard of
	counters map[string]int64
}

// New makes the server of a member. Serve opens it to clients.
func New(m Member, o Options) *Server {
	if o.TransactionLifetime == 0 {
		o.TransactionLifetime = time.Minute
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = 3 * time.Second
	}
	if o.SnapshotHistory == 0 {
		o.SnapshotHistory = 30 * time.Second
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 30 * time.Minute
	}
	s := &Server{
		m: m, o: o, started: time.Now(), latches: newLatches(), cursors: newCursors(), sessions: newSessions(), points: newFailPoints(),
		waits: &stampWaits{}, parsed: map[uint32]*collection{}, conns: map[*conn]bool{},
		resume: make(chan struct{}), counters: map[string]int64{}, access: newAccess(o.Users),
	}
	close(s.resume)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.topology = newTopology(s.ctx)
	s.commands = map[string]*command{}
	for _, c := range commandTable() {
		s.commands[c.name] = c
		for _, alias := range c.aliases {
			s.commands[alias] = c
		}
	}
	s.group.Go(s.janitor)
	return s
}

// Serve takes connections of a listener until that is closed, with TLS if that is not
// nil. It returns at once.
func (s *Server) Serve(l net.Listener, t *tls.Config) {
	s.group.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				if errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil {
					return
				}
				if !sleep(s.ctx, 5*time.Millisecond) {
					return // out of file descriptors, most likely; others must go on
				}
				continue
			}
			c := s.remember(nc)
			if c == nil {
				nc.Close()
				return
			}
			s.group.Go(func() {
				defer s.forget(c)
				if t == nil {
					s.serve(c, nc)
				} else {
					s.serve(c, tls.Server(nc, t))
				}
			})
		}
	})
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (s *Server) remember(nc net.Conn) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.connID++
	c := &conn{id: s.connID, peer: nc.RemoteAddr().String(), raw: nc}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	s.conns[c] = true
	return c
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.cancel()
	c.raw.Close()
}

// SetRole tells the server what its member has become. It does not block.
func (s *Server) SetRole(r Role) { s.topology.set(r) }

// Role is the role that clients are told.
func (s *Server) Role() Role { return s.topology.role() }

// Visible tells the server that entries up to a timestamp are visible.
func (s *Server) Visible(stamp uint64) { s.waits.reached(stamp) }

// Hold makes the server stand still, as a process that was stopped or a network
// that is gone: connections are open, and nothing is answered. Each Hold needs its
// Release.
func (s *Server) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds++; s.holds == 1 {
		s.resume = make(chan struct{})
	}
}

// Release ends Hold.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds--; s.holds == 0 {
		close(s.resume)
	}
}

// gate waits while the server is held; false when it closes.
func (s *Server) gate() bool {
	s.mu.Lock()
	resume := s.resume
	s.mu.Unlock()
	select {
	case <-resume:
		return true
	default:
	}
	select {
	case <-resume:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// Close ends all connections and waits until nothing of the server runs. The
// listener is its owner's.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for c := range s.conns {
		c.raw.Close()
	}
	s.mu.Unlock()
	s.group.Wait()
	s.cursors.closeAll()
	s.sessions.abandonAll()
}

func (s *Server) count(what string) {
	s.mu.Lock()
	s.counters[what]++
	s.mu.Unlock()
}

const janitorEvery = 250 * time.Millisecond

// janitor removes what time has made useless: old versions, idle cursors and
// sessions, transactions that took too long, documents past their TTL.
func (s *Server) janitor() {
	lastTTL, lastPrune := time.Now(), time.Now()
	for sleep(s.ctx, janitorEvery) {
		s.interruptGone()
		horizon := uint64(time.Now().Add(-s.o.SnapshotHistory).Unix()) << 32
		// What cannot be swept now is swept next time.
		_, _ = s.m.Store.Sweep(horizon)
		s.cursors.expire(time.Now())
		s.expireTransactions(time.Now())
		if time.Since(lastTTL) > ttlEvery {
			lastTTL = time.Now()
			s.expireDocuments(s.ctx)
		}
		if time.Since(lastPrune) > s.o.SessionTimeout/pruneParts {
			lastPrune = time.Now()
			// What fails is tried again the next time.
			_ = s.pruneSessions(s.ctx)
		}
	}
}

// stampWaits lets readers wait until a timestamp is visible.
type stampWaits struct {
	mu   sync.Mutex
	list []stampWait
}

type stampWait struct {
	stamp uint64
	done  chan struct{}
}

func (w *stampWaits) reached(stamp uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.list[:0]
	for _, x := range w.list {
		if x.stamp <= stamp {
			close(x.done)
		} else {
			kept = append(kept, x)
		}
	}
	w.list = kept
}

func (w *stampWaits) wait(ctx context.Context, st *store.Store, stamp uint64) error {
	if st.Stamp() >= stamp {
		return nil
	}
	done := make(chan struct{})
	w.mu.Lock()
	w.list = append(w.list, stampWait{stamp, done})
	w.mu.Unlock()
	if st.Stamp() >= stamp {
		return nil // it came in between; reached will find and drop the entry
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		w.mu.Lock()
		w.list = slices.DeleteFunc(w.list, func(x stampWait) bool { return x.done == done })
		w.mu.Unlock()
		return ctx.Err()
	}
}

func timestamp(stamp uint64) bson.Timestamp {
	return bson.Timestamp{T: uint32(stamp >> 32), I: uint32(stamp)}
}

func stampOf(t, i uint32) uint64 { return uint64(t)<<32 | uint64(i) }
