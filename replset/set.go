// Package replset is an embedded MongoDB-compatible replica set: one to seven
// members in this process, pure Go, no download. The official driver connects to
// URI() and finds a set that elects, steps down, commits to a majority and survives
// the loss of a member; a test can make it do so.
//
//	set := replset.Start(t, replset.Options{})
//	client, err := mongo.Connect(options.Client().ApplyURI(set.URI()))
//
// It knows members, their addresses and faults, and must never know a command.
// docs/replset.md argues how it works and says what it is not.
//
// Reads of read concern local are reads of majority here: raft applies what a majority
// has. Code that is wrong only when MongoDB rolls back a write that was not
// replicated is not found wrong by this set.
package replset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/assaylab/assay/replset/link"
)

// Timing is how fast a set finds out that a member is gone.
type Timing int

const (
	// Fast elects a new primary within about 300 ms. It is for tests.
	Fast Timing = iota
	// MongoDB has the times of a deployed set: heartbeats of 2 s, elections after
	// 10 s.
	MongoDB
)

// Options are what a set is made of. The zero value is three members in memory.
type Options struct {
	Members int    // 1 to 7; 0 is 3
	Name    string // of the set; "" is rs0
	Dir     string // where members keep their data; "" is in memory
	Host    string // listened on and told to clients; "" is 127.0.0.1
	Port    int    // of the first member, the others follow; 0 is any free ports
	Timing  Timing

	// NoSync answers writes before they are on disk. A kill then loses what it
	// would not lose otherwise; a report of figures must say so.
	NoSync bool
	// LoseUnsynced makes a kill of a member in memory lose what it had not synced, as
	// a power failure does. Each sync then costs a copy of the log.
	LoseUnsynced bool
	// LinearizableByWrite lets a linearizable read commit a no-op, as MongoDB does,
	// so that a benchmark carries that cost. Otherwise a majority is asked.
	LinearizableByWrite bool
	// TransactionLifetime ends a transaction that is open for longer; 0 is 60 s.
	TransactionLifetime time.Duration
}

func (o *Options) check() error {
	if o.Members == 0 {
		o.Members = 3
	}
	if o.Members < 1 || o.Members > 7 {
		return fmt.Errorf("replset: %d members; a set has 1 to 7", o.Members)
	}
	if o.Name == "" {
		o.Name = "rs0"
	}
	if strings.ContainsAny(o.Name, "/?&=# ") {
		return fmt.Errorf("replset: the name %q does not fit a URI", o.Name)
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.LoseUnsynced && (o.NoSync || o.Dir != "") {
		return errors.New("replset: LoseUnsynced is for members in memory that sync")
	}
	if o.Port < 0 || o.Port+o.Members > 1<<16 {
		return fmt.Errorf("replset: port %d", o.Port)
	}
	return nil
}

// Set is a running replica set. Its methods may be used concurrently.
type Set struct {
	o       Options
	members []*member

	mu      sync.Mutex // of what changes members: kill, restart, faults, close
	closed  bool
	faults  map[[2]int]link.Fault // of the links, from and to
	changed *event                // a member's role changed
}

// New starts a set. It returns when a primary takes writes and every member tells
// clients the same; ctx bounds the wait, and the error says which member lacks what.
func New(ctx context.Context, o Options) (*Set, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Set{o: o, faults: map[[2]int]link.Fault{}, changed: newEvent()}
	// All listeners first: an address that was given out stays taken.
	for i := range o.Members {
		m, err := s.listen(i)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.members = append(s.members, m)
	}
	for _, m := range s.members {
		if err := m.start(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	// Nobody has to wait for an election timeout to find out that there is no
	// leader.
	if err := s.members[0].node.Load().Campaign(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.await(ctx, "a primary that all members know", s.agree); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// T is the part of testing.T that Start needs.
type T interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

const startTimeout = 30 * time.Second

// Start is New for a test: the set is closed when the test ends, after a check
// that every member's indexes agree with its documents.
func Start(t T, o Options) *Set {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := New(ctx, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Check(), s.Close()); err != nil {
			t.Fatalf("closing the set: %v", err)
		}
	})
	return s
}

// URI is the connection string of the set.
func (s *Set) URI() string {
	return "mongodb://" + strings.Join(s.hosts(), ",") + "/?replicaSet=" + s.o.Name
}

// MemberURI is the connection string of one member alone.
func (s *Set) MemberURI(i int) string {
	return "mongodb://" + s.members[i].addr + "/?directConnection=true"
}

func (s *Set) hosts() []string {
	out := make([]string, len(s.members))
	for i, m := range s.members {
		out[i] = m.addr
	}
	return out
}

// Primary is the number of the member that takes writes, -1 if there is none. Of
// two that think so, the one of the later term is it.
func (s *Set) Primary() int {
	best, term := -1, uint64(0)
	for i, m := range s.members {
		if r, up := m.role(); up && r.Writable && r.Term >= term {
			best, term = i, r.Term
		}
	}
	return best
}

// AwaitPrimary waits until there is a primary and returns its number.
func (s *Set) AwaitPrimary(ctx context.Context) (int, error) {
	p := -1
	err := s.await(ctx, "a primary", func() string {
		if p = s.Primary(); p < 0 {
			return s.status()
		}
		return ""
	})
	return p, err
}

// agree says what is missing until all members name the same writable primary.
func (s *Set) agree() string {
	p := s.Primary()
	if p < 0 {
		return s.status()
	}
	for _, m := range s.members {
		if r, up := m.role(); up && r.Primary != p {
			return s.status()
		}
	}
	return ""
}

func (s *Set) status() string {
	var parts []string
	for i, m := range s.members {
		r, up := m.role()
		switch {
		case !up:
			parts = append(parts, fmt.Sprintf("member %d is down", i))
		case r.Writable:
			parts = append(parts, fmt.Sprintf("member %d is primary in term %d", i, r.Term))
		default:
			parts = append(parts, fmt.Sprintf("member %d follows %d in term %d", i, r.Primary, r.Term))
		}
	}
	return strings.Join(parts, ", ")
}

// await waits until lacks returns "".
func (s *Set) await(ctx context.Context, what string, lacks func() string) error {
	for {
		changed := s.changed.next()
		missing := lacks()
		if missing == "" {
			return nil
		}
		for i, m := range s.members {
			if err := m.err(); err != nil {
				return fmt.Errorf("replset: waiting for %s: member %d: %w", what, i, err)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("replset: waiting for %s: %s: %w", what, missing, ctx.Err())
		}
	}
}

// Check compares indexes and documents on every member that runs.
func (s *Set) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var errs []error
	for i, m := range s.members {
		if srv := m.running(); srv != nil {
			faults, err := srv.Check(ctx)
			for _, f := range faults {
				errs = append(errs, fmt.Errorf("replset: member %d: %s", i, f))
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Close ends the set and its clients' connections. It may be called more than once.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	errs := make([]error, len(s.members))
	var group sync.WaitGroup
	for i, m := range s.members {
		group.Go(func() { errs[i] = m.close() })
	}
	group.Wait()
	return errors.Join(errs...)
}

func (s *Set) dir(i int) (string, error) {
	if s.o.Dir == "" {
		return "", nil
	}
	dir := filepath.Join(s.o.Dir, fmt.Sprintf("member%d", i))
	return dir, os.MkdirAll(dir, 0o755)
}

// event is a broadcast: who waits holds the channel that the next one closes.
type event struct {
	mu sync.Mutex
	ch chan struct{}
}

func newEvent() *event { return &event{ch: make(chan struct{})} }

func (e *event) next() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ch
}

func (e *event) fire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.ch)
	e.ch = make(chan struct{})
}
