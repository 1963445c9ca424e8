package replset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/assaylab/assay/replset/link"
	"github.com/assaylab/assay/replset/member"
	"github.com/assaylab/assay/replset/server"
)

func (s *Set) member(i int) (*slot, error) {
	if i < 0 || i >= len(s.members) {
		return nil, fmt.Errorf("replset: there is no member %d; they are 0 to %d", i, len(s.members)-1)
	}
	if s.closed {
		return nil, errors.New("replset: the set is closed")
	}
	return s.members[i], nil
}

// standing is a member that runs and is not paused.
func (s *Set) standing(i int) (*slot, error) {
	m, err := s.member(i)
	switch {
	case err != nil:
		return nil, err
	case !m.runs:
		return nil, fmt.Errorf("replset: member %d is down", i)
	case m.paused.Load():
		return nil, fmt.Errorf("replset: member %d is paused", i)
	}
	return m, nil
}

// StepDown makes the primary hand over, and returns when another member takes
// writes and all that can know it do.
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

// StepUp makes a member primary: whoever leads hands over to it, and if nobody does
// it stands for election. It returns when the member takes writes and all that can
// know it do. One that cannot be elected keeps trying until ctx ends.
func (s *Set) StepUp(ctx context.Context, i int) error {
	s.mu.Lock()
	m, err := s.standing(i)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := m.stepUp(ctx); err != nil {
		return fmt.Errorf("replset: stepping up member %d: %s: %w", i, s.status(), err)
	}
	return s.await(ctx, fmt.Sprintf("member %d as primary", i), func() string {
		if s.Primary() != i {
			return s.status()
		}
		return s.agree()
	})
}

// Kill ends a member as SIGKILL does, which it is for a member that is a process:
// its connections break, and nothing that it had under way gets any further. Its
// data is what it had written, or with LoseUnsynced what it had synced. Until
// Restart its address refuses connections.
func (s *Set) Kill(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if !m.runs {
		return fmt.Errorf("replset: member %d is down already", i)
	}
	return s.kill(m)
}

// KillAll ends all members that run at one moment, as a power failure does.
func (s *Set) KillAll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("replset: the set is closed")
	}
	var up []*slot
	for _, m := range s.members {
		if m.runs {
			up = append(up, m)
		}
	}
	return s.kill(up...)
}

// kill first makes members mute and deaf, all of them, and then lets them die: what one
// was told by another, the other had done before it died.
func (s *Set) kill(members ...*slot) error {
	errs := make([]error, len(members))
	for i, m := range members {
		errs[i] = m.mute()
	}
	var group sync.WaitGroup
	for i, m := range members {
		m.runs = false
		m.paused.Store(false)
		group.Go(func() { errs[i] = errors.Join(errs[i], m.kill()) })
	}
	group.Wait()
	s.changed.Fire()
	return errors.Join(errs...)
}

// Restart starts a member that was killed, at the same address. Faults of its links
// are those of now.
func (s *Set) Restart(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if m.runs {
		return fmt.Errorf("replset: member %d runs", i)
	}
	if err := m.start(); err != nil {
		return fmt.Errorf("replset: %w", err)
	}
	m.runs = true
	return nil
}

// Pause stops a member as SIGSTOP does, which it is for a member that is a process:
// connections stay and nothing is answered, nor does the member notice that time
// goes by. Faults that are set meanwhile hold from its side when it resumes, and
// from the others' at once.
func (s *Set) Pause(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.standing(i)
	if err != nil {
		return err
	}
	m.paused.Store(true)
	return m.pause()
}

// Resume ends Pause.
func (s *Set) Resume(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if !m.paused.Load() {
		return fmt.Errorf("replset: member %d is not paused", i)
	}
	m.paused.Store(false)
	return m.resume()
}

// Partition cuts the links between members of different groups, silently; clients
// still reach all of them. A member in no group is alone. It replaces what Cut,
// Delay and an earlier Partition have set.
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
	clear(s.faults)
	for i := range s.members {
		for j := range s.members {
			if side[i] != side[j] {
				s.faults[[2]int{i, j}] = link.Fault{Cut: true}
			}
		}
	}
	return s.spread()
}

// Isolate cuts a member off from the other members and from all clients, silently:
// connections stay open, new ones are taken by the system and served by nobody, and
// nothing is answered. What clients sent arrives when Heal ends it, as on a network
// that comes back. Unlike a paused member, it notices that it is alone.
func (s *Set) Isolate(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	m.isolated.Store(true)
	return s.spread()
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
	if from == to {
		return fmt.Errorf("replset: member %d has no link to itself", from)
	}
	s.faults[[2]int{from, to}] = f
	return s.spread()
}

// Heal ends Partition, Isolate, Cut and Delay.
func (s *Set) Heal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("replset: the set is closed")
	}
	for _, m := range s.members {
		m.isolated.Store(false)
	}
	clear(s.faults)
	return s.spread()
}

// fault is what happens to messages of one direction.
func (s *Set) fault(from, to int) link.Fault {
	if s.members[from].isolated.Load() || s.members[to].isolated.Load() {
		return link.Fault{Cut: true}
	}
	return s.faults[[2]int{from, to}]
}

// spread tells every member what is wrong around it. Both ends of a cut are told, so
// that it loses also what is under way.
func (s *Set) spread() error {
	var errs []error
	for i, m := range s.members {
		f := member.Faults{Links: map[int]link.Fault{}, Deaf: map[int]bool{}, Isolated: m.isolated.Load()}
		for j := range s.members {
			if j != i {
				f.Links[j], f.Deaf[j] = s.fault(i, j), s.fault(j, i).Cut
			}
		}
		errs = append(errs, m.setFaults(f))
	}
	return errors.Join(errs...)
}

// Clean drops all databases, for a set that several tests share.
func (s *Set) Clean(ctx context.Context) error {
	for {
		p, err := s.AwaitPrimary(ctx)
		if err != nil {
			return err
		}
		err = s.members[p].clean(ctx)
		if err == nil || !errors.Is(err, server.ErrNotLeader) && !errors.Is(err, errDown) {
			return err
		}
	}
}
