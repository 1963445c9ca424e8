package server

import (
	"bufio"
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/assaylab/assay/replset/wire"
)

// conn is one client's connection. It is used by its own goroutine alone, but for
// running.
type conn struct {
	id     int32
	peer   string
	app    string // client.application.name of the handshake
	client document
	user   string // who has logged in
	login  *login // under way
	logins int32

	raw     net.Conn // beneath TLS
	ctx     context.Context
	cancel  context.CancelFunc // when the client has gone
	running atomic.Int64       // number of the request that is being answered, 0 if none
	request int64
	seen    int64 // running, when interruptGone last looked

	patience   time.Time // until when writes may take
	stream     bool      // a hello is being streamed
	streamSeen int64     // the version that was sent last
}

const (
	bufferSize   = 8 << 10
	writeTimeout = time.Minute // a client that never reads loses its connection
	writeSlack   = time.Second // by which that may be shorter: to set it for each answer costs
)

func (s *Server) serve(c *conn, nc net.Conn) {
	in := bufio.NewReaderSize(nc, bufferSize)
	for {
		req, err := wire.Read(in)
		if err != nil || !s.gate() || !s.answer(c, nc, req) {
			return
		}
	}
}

// answer runs a request and sends its answers; false ends the connection.
func (s *Server) answer(c *conn, nc net.Conn, req *wire.Request) bool {
	c.request++
	c.running.Store(c.request)
	defer c.running.Store(0)
	responseTo := req.ID
	c.stream = false
	for {
		out, more, hangUp := s.dispatch(c, req)
		if hangUp || !s.gate() {
			return false
		}
		if req.Quiet() {
			return true
		}
		b, id, err := wire.Reply(req, responseTo, out, more)
		if err != nil {
			return false
		}
		if now := time.Now(); c.patience.Sub(now) < writeTimeout-writeSlack {
			c.patience = now.Add(writeTimeout)
			if nc.SetWriteDeadline(c.patience) != nil {
				return false
			}
		}
		if _, err := nc.Write(b); err != nil {
			return false
		}
		if !more {
			return true
		}
		c.stream, responseTo = true, id
	}
}

// interruptGone ends commands that have been running for a while and whose client has
// gone: it would wait for cursors, locks and concerns on nobody's behalf. While the
// server is held nothing is heard of clients.
func (s *Server) interruptGone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds > 0 {
		return
	}
	for c := range s.conns {
		running := c.running.Load()
		if running != 0 && running == c.seen && gone(c.raw) {
			c.cancel()
		}
		c.seen = running
	}
}

// deadline is ctx with a limit in milliseconds, 0 being none.
func deadline(ctx context.Context, millis int64) (context.Context, context.CancelFunc) {
	if millis <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(millis)*time.Millisecond)
}
