package replset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/link"
	"github.com/assaylab/assay/replset/server"
)

func (s *Set) member(i int) (*member, error) {
	if i < 0 || i >= len(s.members) {
		return nil, fmt.Errorf("replset: there is no member %d", i)
	}
	if s.closed {
		return nil, errors.New("replset: the set is closed")
	}
	return s.members[i], nil
}

// StepDown makes the primary hand over, and returns when another member takes
// writes and all that run know it.
func (s *Set) StepDown(ctx context.Context) error {
	p, err := s.AwaitPrimary(ctx)
	if err != nil {
		return err
	}
	if err := s.members[p].stepDown(ctx); err != nil {
		return fmt.Errorf("replset: stepping down member %d: %w", p, err)
	}
	return s.await(ctx, "a new primary", func() string {
		if s.Primary() == p {
			return s.status()
		}
		return s.agree()
	})
}

// Kill ends a member as SIGKILL does: its connections break, and nothing that it
// had under way gets any further. Its data is what it had written, or with
// LoseUnsynced what it had synced. The address is free until Restart.
func (s *Set) Kill(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if m.running() == nil {
		return fmt.Errorf("replset: member %d is down already", i)
	}
	err = m.isolate()
	var left *vfs.MemFS
	if s.o.LoseUnsynced {
		// The moment of death. It comes after the last message has left: nothing may
		// be acknowledged that is written after it.
		left = m.fs.CrashClone(vfs.CrashCloneCfg{})
	}
	m.node.Load().Stop()
	err = errors.Join(err, m.db.Close())
	if left != nil {
		m.fs = left
	}
	s.changed.fire()
	return err
}

// Restart starts a member that was killed, at the same address.
func (s *Set) Restart(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if m.running() != nil {
		return fmt.Errorf("replset: member %d runs", i)
	}
	if err := m.open(m.addr, m.peer); err != nil {
		return err
	}
	for way, f := range s.faults {
		if way[0] == i {
			m.link.SetFault(s.members[way[1]].id(), f)
		}
	}
	if err := m.start(); err != nil {
		return errors.Join(err, m.isolate())
	}
	return nil
}

// Pause stops a member as SIGSTOP does: connections stay and nothing is answered,
// nor does the member notice that time goes by.
func (s *Set) Pause(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	srv := m.running()
	if srv == nil || m.resume != nil {
		return fmt.Errorf("replset: member %d does not run", i)
	}
	srv.Pause()
	m.link.Pause(true)
	m.resume = make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return m.node.Load().Pause(ctx, m.resume)
}

// Resume ends Pause.
func (s *Set) Resume(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if m.resume == nil {
		return fmt.Errorf("replset: member %d is not paused", i)
	}
	m.unpause()
	m.link.Pause(false)
	m.running().Resume()
	return nil
}

// Partition cuts the links between members of different groups, silently; clients
// still reach all of them. A member in no group is alone.
func (s *Set) Partition(groups ...[]int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	side := map[int]int{}
	for g, group := range groups {
		for _, i := range group {
			if _, err := s.member(i); err != nil {
				return err
			}
			if _, twice := side[i]; twice {
				return fmt.Errorf("replset: member %d is in two groups", i)
			}
			side[i] = g
		}
	}
	for i := range s.members {
		if _, ok := side[i]; !ok {
			side[i] = len(groups) + i
		}
	}
	for i := range s.members {
		for j := range s.members {
			s.fault(i, j, link.Fault{Cut: side[i] != side[j]})
		}
	}
	return nil
}

// Cut loses everything that one member sends to another; Delay holds it up.
func (s *Set) Cut(from, to int) error { return s.setFault(from, to, link.Fault{Cut: true}) }

// Delay adds a time to each message from one member to another.
func (s *Set) Delay(from, to int, d time.Duration) error {
	return s.setFault(from, to, link.Fault{Delay: d})
}

func (s *Set) setFault(from, to int, f link.Fault) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range []int{from, to} {
		if _, err := s.member(i); err != nil {
			return err
		}
	}
	s.fault(from, to, f)
	return nil
}

// fault remembers the fault too, for a member that is down and comes back.
func (s *Set) fault(from, to int, f link.Fault) {
	if from == to {
		return
	}
	s.faults[[2]int{from, to}] = f
	s.members[from].link.SetFault(s.members[to].id(), f)
}

// Heal ends Partition, Cut and Delay.
func (s *Set) Heal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("replset: the set is closed")
	}
	for i := range s.members {
		for j := range s.members {
			s.fault(i, j, link.Fault{})
		}
	}
	return nil
}

// Clean drops all databases, for a set that several tests share.
func (s *Set) Clean(ctx context.Context) error {
	for {
		p, err := s.AwaitPrimary(ctx)
		if err != nil {
			return err
		}
		srv := s.members[p].running()
		if srv == nil {
			continue
		}
		err = srv.Clean(ctx)
		if err == nil || !errors.Is(err, server.ErrNotLeader) {
			return err
		}
	}
}
