package replset_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// message is a command as a client sends it.
func message(t testing.TB, command any) []byte {
	t.Helper()
	body, err := bson.Marshal(command)
	must(t, err)
	return messageOf(body)
}

func messageOf(body []byte) []byte {
	payload := wiremessage.AppendMsgFlags(nil, 0)
	payload = wiremessage.AppendMsgSectionType(payload, wiremessage.SingleDocument)
	payload = append(payload, body...)
	return append(wiremessage.AppendHeader(nil, int32(16+len(payload)), 1, 0, wiremessage.OpMsg), payload...)
}

func helloMessage(t testing.TB) []byte {
	return message(t, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})
}

// rawConn is a client without the driver's manners.
type rawConn struct{ net.Conn }

func dialRaw(t testing.TB, addr string) *rawConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(patience)))
	return &rawConn{c}
}

// ask sends a command to the database admin and returns the answer.
func (c *rawConn) ask(t testing.TB, command bson.D) bson.M {
	t.Helper()
	_, err := c.Write(message(t, append(command, bson.E{Key: "$db", Value: "admin"})))
	must(t, err)
	a, err := c.answer()
	must(t, err)
	return a
}

func (c *rawConn) answer() (bson.M, error) {
	var head [16]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint32(head[:])-16)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	var a bson.M
	return a, bson.Unmarshal(b[5:], &a)
}

// countingDialer counts the bytes of all its connections.
type countingDialer struct{ in, out atomic.Int64 }

func (d *countingDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &countedConn{c, d}, err
}

type countedConn struct {
	net.Conn
	d *countingDialer
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.d.in.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.d.out.Add(int64(n))
	return n, err
}
