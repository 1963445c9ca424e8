package member

import (
	"context"
	"errors"
	"time"

	"github.com/assaylab/assay/replset/link"
)

// Faults are all that is wrong around a member. The zero value is nothing.
type Faults struct {
	Links    map[int]link.Fault // of what it sends, by receiver
	Deaf     map[int]bool       // from whom nothing arrives
	Isolated bool               // clients get no answers; their connections stay
}

// SetFaults replaces the faults. They are in force when it returns.
func (m *Member) SetFaults(f Faults) {
	for i := range m.c.Peers {
		m.link.SetFault(uint64(i)+1, f.Links[i])
		m.link.SetDeaf(uint64(i)+1, f.Deaf[i])
	}
	m.isolate(f.Isolated)
}

// isolate cuts the member off from its clients as a network does that fails:
// connections stay, what they bring waits, and nothing is answered; or ends that.
func (m *Member) isolate(yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if yes == m.isolated {
		return
	}
	m.isolated = yes
	if yes {
		m.server.Hold()
	} else {
		m.server.Release()
	}
}

// Pause stops a member as SIGSTOP does: nothing is sent or answered, nor does the
// member notice that time goes by.
func (m *Member) Pause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resume != nil {
		return errors.New("it is paused already")
	}
	m.server.Hold()
	m.link.Pause(true)
	m.resume = make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return m.node.Pause(ctx, m.resume)
}

// Resume ends Pause.
func (m *Member) Resume() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resume == nil {
		return errors.New("it is not paused")
	}
	close(m.resume)
	m.resume = nil
	m.link.Pause(false)
	m.server.Release()
	return nil
}

// letGo lets the loop run so that it can end; false when that was done before.
func (m *Member) letGo() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resume != nil {
		close(m.resume)
		m.resume = nil
	}
	first := !m.severed
	m.severed = true
	return first
}
