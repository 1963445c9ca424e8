package server

import (
	"bufio"
	"context"
	"net"
	"time"

	"github.com/assaylab/assay/replset/wire"
)

// conn is one client's connection. It is used by its own goroutine alone.
type conn struct {
	id     int32
	peer   string
	app    string // client.application.name of the handshake
	client document

	stream     bool  // a hello is being streamed
	streamSeen int64 // the version that was sent last
}

const (
	bufferSize   = 8 << 10
	writeTimeout = time.Minute // a client that never reads loses its connection
)

func (s *Server) serve(nc net.Conn) {
	s.mu.Lock()
	s.connID++
	c := &conn{id: s.connID, peer: nc.RemoteAddr().String()}
	s.mu.Unlock()
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
		if nc.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
			return false
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

// deadline is ctx with a limit in milliseconds, 0 being none.
func deadline(ctx context.Context, millis int64) (context.Context, context.CancelFunc) {
	if millis <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(millis)*time.Millisecond)
}
