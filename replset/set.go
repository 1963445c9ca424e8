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
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/assaylab/assay/replset/link"
	"github.com/assaylab/assay/replset/member"
)

// Set is a running replica set. Its methods may be used concurrently.
type Set struct {
	o       Options
	members []*slot
	keeper  *keeper // of members as processes
	temp    string  // a folder of its own, removed by Close
	folder  io.Closer

	mu      sync.Mutex // of what changes members: kill, restart, faults, close
	closed  bool
	faults  map[[2]int]link.Fault // of the links, from and to
	changed *member.Event         // a member's role changed
}

// New starts a set. It returns when a primary takes writes and every member tells
// clients the same; ctx bounds the wait, and the error says which member lacks what.
func New(ctx context.Context, o Options) (*Set, error) { return newSet(ctx, o, 0) }

// newSet has the port of the first member's link too, 0 is any.
func newSet(ctx context.Context, o Options, linkPort int) (_ *Set, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Set{o: o, faults: map[[2]int]link.Fault{}, changed: member.NewEvent()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if o.Command != nil {
		if s.o.Dir == "" {
			if s.temp, err = os.MkdirTemp("", "replset"); err != nil {
				return nil, fmt.Errorf("replset: %w", err)
			}
			s.o.Dir = s.temp
		}
		s.keeper = newKeeper()
	}
	if s.o.Dir != "" {
		if s.folder, err = openFolder(s.o.Dir, identity{o.Name, o.Members}); err != nil {
			return nil, err
		}
	}
	if err := s.reserve(linkPort); err != nil {
		return nil, err
	}
	if err := s.startAll(); err != nil {
		return nil, err
	}
	// Nobody has to wait for an election timeout to find out that there is no
	// leader.
	if err := s.members[0].stepUp(ctx); err != nil {
		return nil, fmt.Errorf("replset: waiting for member 0 to become primary: %w: %s", err, s.status())
	}
	return s, s.await(ctx, "a primary that all members know", s.agree)
}

// reserve takes the addresses of all members before the first one starts: an
// address that was given out stays taken.
func (s *Set) reserve(linkPort int) error {
	for i := range s.o.Members {
		m := &slot{}
		s.members = append(s.members, m)
		port := 0
		if s.o.Port != 0 {
			port = s.o.Port + i
		}
		var err error
		if m.addrKept, m.addr, err = reserve(s.o.Host, port); err != nil {
			return err
		}
		if m.peerKept, m.peer, err = reserve("127.0.0.1", linkPort); err != nil {
			return err
		}
		linkPort = 0
	}
	return nil
}

func (s *Set) startAll() error {
	c, err := s.o.config()
	if err != nil {
		return err
	}
	c.Token = link.NewToken()
	for _, m := range s.members {
		c.Hosts, c.Peers = append(c.Hosts, m.addr), append(c.Peers, m.peer)
	}
	if s.o.Command == nil {
		c.Hub = link.NewHub()
	}
	for i, m := range s.members {
		c.Index, c.Dir = i, filepath.Join(s.o.Dir, fmt.Sprintf("member%d", i))
		if s.o.Command != nil {
			m.form = newProcess(c, s.o.Command, s.keeper, s.changed.Fire)
		} else {
			m.form = newLocal(c, &s.o, s.changed.Fire)
		}
	}
	errs := make([]error, len(s.members))
	var group sync.WaitGroup
	for i, m := range s.members {
		group.Go(func() {
			if errs[i] = m.start(); errs[i] == nil {
				m.runs = true
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("replset: %w", err)
	}
	return nil
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
	return "mongodb://" + strings.Join(s.hosts(), ",") + "/?replicaSet=" + s.o.Name + s.tls()
}

func (s *Set) tls() string {
	if s.o.TLS != nil {
		return "&tls=true"
	}
	return ""
}

// MemberURI is the connection string of one member alone.
func (s *Set) MemberURI(i int) string {
	return "mongodb://" + s.members[i].addr + "/?directConnection=true" + s.tls()
}

func (s *Set) hosts() []string {
	out := make([]string, len(s.members))
	for i, m := range s.members {
		out[i] = m.addr
	}
	return out
}

// Primary is the number of the member that takes writes, -1 if there is none. Of
// two that think so, the one of the later term is it. One that is paused or isolated
// takes none.
func (s *Set) Primary() int {
	best, term := -1, uint64(0)
	for i, m := range s.members {
		if r, up := m.role(); up && !m.paused.Load() && !m.isolated.Load() && r.Writable && r.Term >= term {
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

// agree says what is missing until all members that can know it name the same
// writable primary.
func (s *Set) agree() string {
	p := s.Primary()
	if p < 0 {
		return s.status()
	}
	for i, m := range s.members {
		if r, up := m.role(); up && r.Primary != p && s.hears(i, p) {
			return s.status()
		}
	}
	return ""
}

// hears says whether word of the primary can reach a member.
func (s *Set) hears(i, primary int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.members[i].paused.Load() && !s.fault(primary, i).Cut
}

func (s *Set) status() string {
	var parts []string
	for i, m := range s.members {
		r, up := m.role()
		switch {
		case !up:
			parts = append(parts, fmt.Sprintf("member %d is down", i))
		case m.paused.Load():
			parts = append(parts, fmt.Sprintf("member %d is paused", i))
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
		changed := s.changed.Next()
		missing := lacks()
		if missing == "" {
			return nil
		}
		if err := s.hopeless(); err != nil {
			return fmt.Errorf("replset: waiting for %s: %w", what, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("replset: waiting for %s: %s: %w", what, missing, ctx.Err())
		}
	}
}

// hopeless says why no primary can be had any more: so many members have failed by
// themselves that no majority is left.
func (s *Set) hopeless() error {
	var errs []error
	for i, m := range s.members {
		if err := m.err(); err != nil {
			errs = append(errs, fmt.Errorf("member %d: %w", i, err))
		}
	}
	if len(s.members)-len(errs) > len(s.members)/2 {
		return nil
	}
	return errors.Join(errs...)
}

// Check compares indexes and documents on every member that runs.
func (s *Set) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var errs []error
	for i, m := range s.members {
		if m.paused.Load() {
			continue
		}
		faults, err := m.check(ctx)
		for _, f := range faults {
			errs = append(errs, fmt.Errorf("replset: member %d: %s", i, f))
		}
		if err != nil && !errors.Is(err, errDown) {
			errs = append(errs, fmt.Errorf("replset: checking member %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// Close ends the set and its clients' connections. It may be called more than once.
// Nothing of the set is left then: no process, no port, no folder that it made.
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
		if m.form != nil {
			group.Go(func() { errs[i] = m.close() })
		}
	}
	group.Wait()
	for _, m := range s.members {
		m.addrKept.free()
		m.peerKept.free()
	}
	if s.keeper != nil {
		s.keeper.close()
	}
	if s.folder != nil {
		errs = append(errs, s.folder.Close())
	}
	if s.temp != "" {
		errs = append(errs, os.RemoveAll(s.temp))
	}
	return errors.Join(errs...)
}

// Pids are the processes of the members: 0 for one that is down, or that runs in
// this process.
func (s *Set) Pids() []int {
	out := make([]int, len(s.members))
	for i, m := range s.members {
		out[i] = m.pid()
	}
	return out
}

// PeakMemory is the most memory that each member's process has held (VmHWM), in
// bytes, over all its lives. It is 0 for members in this process, whose memory
// cannot be told apart, and where the system does not say.
func (s *Set) PeakMemory() []int64 {
	out := make([]int64, len(s.members))
	for i, m := range s.members {
		out[i] = m.peakMemory()
	}
	return out
}
