// Package link carries messages between the members of a set, over loopback
// TCP or within one process, and can be told to lose or delay them, one direction at a
// time.
//
// It carries opaque bytes and promises what a network promises: nothing. A
// message arrives once, late, or not at all; two messages of one direction
// arrive in order if both arrive on the same connection. It must never know what
// it carries. A cut is silent: no connection is reset and no error returned, as
// with a cable that was pulled. An Exchange asks and answers on top of that.
package link

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	queueLength = 1024    // messages per direction; beyond it they are lost
	maxMessage  = 1 << 30 // bytes; an entry of a large transaction is the largest
	headerSize  = 5       // length, what it is
	redialFirst = 5 * time.Millisecond
	redialMost  = 200 * time.Millisecond
	bufferSize  = 64 << 10
)

// Fault is what happens to messages of one direction. The zero Fault is none.
type Fault struct {
	Cut   bool          // everything is lost
	Delay time.Duration // between sending and arriving, of each message
}

// Node is one member's end of all its links.
type Node struct {
	id       uint64
	token    Token
	listener net.Listener
	receive  func(from uint64, msg []byte)
	hub      *Hub // nil: other members are reached over TCP

	mu     sync.Mutex
	peers  map[uint64]*peer
	conns  map[net.Conn]bool
	faults map[uint64]Fault // outgoing, by receiver
	deaf   map[uint64]bool  // incoming that is lost, by sender
	paused bool
	closed bool
	talks  *Exchange // nil until it is opened

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
}

type peer struct {
	addr  string
	queue chan parcel
}

// parcel is a message and when it may leave.
type parcel struct {
	what byte // plain, or of the exchange
	msg  []byte
	due  time.Time // zero is at once
}

const (
	plain byte = iota
	ofExchange
)

// Listen opens a member's listener on addr; port 0 takes a free one, which
// stays taken until Close. Only who has the token is listened to, and spoken to.
// receive is called for each message that arrives, concurrently for different
// senders, and owns the bytes.
func Listen(id uint64, token Token, addr string, receive func(from uint64, msg []byte)) (*Node, error) {
	l, err := ListenTCP(addr)
	if err != nil {
		return nil, fmt.Errorf("link of member %d: %w", id, err)
	}
	n := &Node{
		id: id, token: token, listener: l, receive: receive,
		peers: map[uint64]*peer{}, conns: map[net.Conn]bool{}, faults: map[uint64]Fault{}, deaf: map[uint64]bool{},
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.group.Go(n.accept)
	return n, nil
}

// Addr is where other members reach this one.
func (n *Node) Addr() string { return n.listener.Addr().String() }

// Connect makes the link to a peer known. Connecting again moves it.
func (n *Node) Connect(id uint64, addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || id == n.id {
		return
	}
	if p := n.peers[id]; p != nil {
		p.addr = addr
		return
	}
	p := &peer{addr: addr, queue: make(chan parcel, queueLength)}
	n.peers[id] = p
	n.group.Go(func() { n.send(id, p) })
}

// SetFault says what happens from now on to messages for a peer.
func (n *Node) SetFault(to uint64, f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[to] = f
}

// SetDeaf loses everything that comes from a peer, also what it sent before. A cut
// at both ends of a direction lets nothing through once both have returned.
func (n *Node) SetDeaf(from uint64, yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deaf[from] = yes
}

// Pause holds every message, in and out, as a stopped process would; those
// that arrive meanwhile wait in the kernel. Resume lets them go.
func (n *Node) Pause(yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paused = yes
}

func (n *Node) fault(to uint64) Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults[to]
}

// Send queues a message and does not wait. What a full queue or a cut loses is
// lost silently; the sender must be able to live with that.
func (n *Node) Send(to uint64, msg []byte) { n.enqueue(to, parcel{what: plain, msg: msg}) }

// Exchange opens the node's exchange, which has the links' faults. Questions that came
// before are lost. It must be closed before the node.
func (n *Node) Exchange(serve func(ctx context.Context, from uint64, question []byte) []byte) *Exchange {
	x := newExchange(func(to uint64, msg []byte) { n.enqueue(to, parcel{what: ofExchange, msg: msg}) }, serve)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.talks = x
	return x
}

func (n *Node) enqueue(to uint64, out parcel) {
	n.mu.Lock()
	p, f := n.peers[to], n.faults[to]
	n.mu.Unlock()
	if p == nil || f.Cut {
		return
	}
	if f.Delay > 0 {
		out.due = time.Now().Add(f.Delay)
	}
	select {
	case p.queue <- out:
	default:
	}
}

// send drains one peer's queue over one connection, made anew when it breaks.
func (n *Node) send(id uint64, p *peer) {
	var conn net.Conn
	var out *bufio.Writer
	drop := func() {
		if conn != nil {
			n.forget(conn)
			conn = nil
		}
	}
	defer drop()
	wait := redialFirst
	var next *parcel // taken from the queue already
	for {
		var now parcel
		if next != nil {
			now, next = *next, nil
		} else {
			select {
			case <-n.ctx.Done():
				return
			case now = <-p.queue:
			}
		}
		if d := time.Until(now.due); !now.due.IsZero() && d > 0 && !n.sleep(d) {
			return
		}
		if !n.held() {
			return
		}
		if n.fault(id).Cut {
			continue
		}
		if n.hub != nil {
			n.hand(p, now)
			continue
		}
		if conn == nil {
			c, err := n.dial(p)
			if err != nil {
				// The message is lost; whoever needs it sends again.
				if !n.sleep(wait) {
					return
				}
				wait = min(2*wait, redialMost)
				continue
			}
			conn, out, wait = c, bufio.NewWriterSize(c, bufferSize), redialFirst
		}
		var err error
		if next, err = n.write(id, out, p, now); err != nil {
			drop()
		}
	}
}

// write sends a message and everything else that is queued and due, in one flush. It
// returns what it took from the queue and may not send yet.
func (n *Node) write(id uint64, out *bufio.Writer, p *peer, now parcel) (*parcel, error) {
	for {
		var head [headerSize]byte
		binary.BigEndian.PutUint32(head[:], uint32(len(now.msg)))
		head[4] = now.what
		if _, err := out.Write(head[:]); err != nil {
			return nil, err
		}
		if _, err := out.Write(now.msg); err != nil {
			return nil, err
		}
		select {
		case more := <-p.queue:
			if !more.due.IsZero() || n.fault(id).Cut || n.stopped() {
				return &more, out.Flush()
			}
			now = more
		default:
			return nil, out.Flush()
		}
	}
}

func (n *Node) dial(p *peer) (net.Conn, error) {
	n.mu.Lock()
	addr := p.addr
	n.mu.Unlock()
	d := net.Dialer{Timeout: redialMost}
	c, err := d.DialContext(n.ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if !n.remember(c) {
		c.Close()
		return nil, net.ErrClosed
	}
	if err := n.token.introduce(c, n.id); err != nil {
		n.forget(c)
		return nil, err
	}
	return c, nil
}

func (n *Node) remember(c net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.conns[c] = true
	return true
}

func (n *Node) forget(c net.Conn) {
	n.mu.Lock()
	delete(n.conns, c)
	n.mu.Unlock()
	c.Close()
}

func (n *Node) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-n.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (n *Node) accept() {
	for {
		c, err := n.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || n.ctx.Err() != nil {
				return
			}
			if !n.sleep(redialFirst) {
				return
			}
			continue
		}
		if !n.remember(c) {
			c.Close()
			return
		}
		n.group.Go(func() {
			defer n.forget(c)
			n.read(c)
		})
	}
}

// read hands over the messages of one connection until it ends. A peer that
// sends something else is cut off.
func (n *Node) read(c net.Conn) {
	if !n.held() {
		return
	}
	from, err := n.token.admit(c)
	if err != nil {
		return
	}
	in := bufio.NewReaderSize(c, bufferSize)
	for {
		var head [headerSize]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(head[:4])
		if size > maxMessage {
			return
		}
		msg := make([]byte, size)
		if _, err := io.ReadFull(in, msg); err != nil {
			return
		}
		if !n.held() {
			return
		}
		if hears, talks := n.hears(from); hears {
			n.deliver(from, head[4], msg, talks)
		}
	}
}

// deliver gives a message to whom it is for. What is for nobody is lost.
func (n *Node) deliver(from uint64, what byte, msg []byte, talks *Exchange) {
	switch {
	case what == plain:
		n.receive(from, msg)
	case what == ofExchange && talks != nil:
		talks.receive(from, msg)
	}
}

// hears says whether messages of a peer arrive, and where those of the exchange go. One
// that is not known yet is a lost message too: connections come before configuration.
func (n *Node) hears(from uint64) (bool, *Exchange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers[from] != nil && !n.deaf[from], n.talks
}

func (n *Node) stopped() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paused
}

// held waits while the node is paused; false when it was closed.
func (n *Node) held() bool {
	for {
		n.mu.Lock()
		paused := n.paused
		n.mu.Unlock()
		if !paused {
			return n.ctx.Err() == nil
		}
		if !n.sleep(time.Millisecond) {
			return false
		}
	}
}

// Close ends all connections and waits until nothing of the node runs any more.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	n.cancel()
	if n.hub != nil {
		n.hub.leave(n)
	}
	err := n.listener.Close()
	for c := range n.conns {
		c.Close()
	}
	n.mu.Unlock()
	n.group.Wait()
	return err
}
