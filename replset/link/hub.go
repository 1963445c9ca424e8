package link

import (
	"sync"
	"time"
)

// Hub joins the nodes of one process: what one sends another is handed over and goes
// through no socket. It promises no more than a connection does, and faults are the
// same.
type Hub struct {
	mu    sync.Mutex
	nodes map[string]*Node // by address
}

// NewHub joins nobody.
func NewHub() *Hub { return &Hub{nodes: map[string]*Node{}} }

// Join makes a node reach, and be reached by, those of the hub and nobody else. It is
// called once, before the node is connected.
func (n *Node) Join(h *Hub) {
	n.hub = h
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nodes[n.Addr()] = n
}

// leave is called when the node closes.
func (h *Hub) leave(n *Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes[n.Addr()] == n {
		delete(h.nodes, n.Addr())
	}
}

func (h *Hub) at(addr string) *Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes[addr]
}

// hand gives a message to a node of the hub. If none has the address it is lost.
func (n *Node) hand(p *peer, out parcel) {
	n.mu.Lock()
	addr := p.addr
	n.mu.Unlock()
	if to := n.hub.at(addr); to != nil && to.enter(n) {
		defer to.group.Done()
		_, talks := to.hears(n.id)
		to.deliver(n.id, out.what, out.msg, talks)
	}
}

// enter waits while the node is paused, and says whether it hears a message of from
// then. If it does, its group has one more.
func (n *Node) enter(from *Node) bool {
	for {
		n.mu.Lock()
		paused := n.paused
		heard := !n.closed && !paused && n.peers[from.id] != nil && !n.deaf[from.id]
		if heard {
			n.group.Add(1)
		}
		closed := n.closed
		n.mu.Unlock()
		if heard || closed || !paused {
			return heard
		}
		if !from.sleep(time.Millisecond) {
			return false
		}
	}
}
