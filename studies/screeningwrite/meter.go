package screeningwrite

import (
	"context"
	"maps"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
)

// meter counts what a client does while it is open. Connections are always counted;
// commands only where the client was made with its command monitor, because the driver
// then makes every command's document readable, which costs the arms unequally.
type meter struct {
	mu          sync.Mutex
	open        bool
	counting    bool // commands
	commands    map[string]int
	writes      []string // statistics collections written to
	connections int64
	established map[string]int // connections now there, by address
}

func newMeter() *meter { return &meter{established: map[string]int{}} }

// counted is what happened in one window.
type counted struct {
	connections int64
	commands    map[string]int // nil: not counted
	writes      []string
}

func (m *meter) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open, m.commands, m.writes = true, map[string]int{}, nil
	m.connections = 0
}

func (m *meter) stop() counted {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = false
	c := counted{connections: m.connections}
	if m.counting {
		c.commands, c.writes = maps.Clone(m.commands), m.writes
	}
	return c
}

// total is how many commands there were since the window was opened.
func (m *meter) total() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, k := range m.commands {
		n += k
	}
	return n
}

func (m *meter) pool() *event.PoolMonitor {
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		m.mu.Lock()
		defer m.mu.Unlock()
		switch e.Type {
		case event.ConnectionCreated:
			m.connections++
		case event.ConnectionReady:
			m.established[e.Address]++
		case event.ConnectionClosed:
			m.established[e.Address]--
		}
	}}
}

// fewest is how many connections the address has that has fewest, of those that have
// any, and how many there are in all.
func (m *meter) fewest() (fewest, all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.established {
		if fewest == 0 || n < fewest {
			fewest = n
		}
		all += n
	}
	return fewest, all
}

func (m *meter) monitor() *event.CommandMonitor {
	m.counting = true
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.open {
			return
		}
		m.commands[e.CommandName]++
		if c, ok := e.Command.Lookup(e.CommandName).StringValueOK(); ok && writes(e.CommandName) && statistics(c) {
			m.writes = append(m.writes, e.CommandName+" "+c)
		}
	}}
}

func writes(command string) bool {
	switch command {
	case "insert", "update", "delete", "findAndModify", "bulkWrite":
		return true
	}
	return false
}

// statistics says whether a collection is one of the subject's statistics, all of
// which have that in their name.
func statistics(collection string) bool {
	return len(collection) >= len("statistics") && collection[:len("statistics")] == "statistics"
}

// slowLink is a dialer whose connections send everything later by one round trip.
// The driver sends a command in one write and then waits, so that each costs its round
// trip once; an answer is not held up again.
type slowLink time.Duration

func (l slowLink) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: c, rtt: time.Duration(l)}, nil
}

type slowConn struct {
	net.Conn
	rtt time.Duration
}

func (c *slowConn) Write(b []byte) (int, error) {
	time.Sleep(c.rtt)
	return c.Conn.Write(b)
}
