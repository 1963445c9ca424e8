package link

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// both runs a test of nodes that speak over TCP, and of nodes in one process.
func both(t *testing.T, test func(t *testing.T, h *Hub)) {
	t.Run("tcp", func(t *testing.T) { test(t, nil) })
	t.Run("hub", func(t *testing.T) { test(t, NewHub()) })
}

// pair is two nodes and what the second has received.
func pair(t *testing.T, h *Hub) (a, b *Node, got chan string) {
	t.Helper()
	got = make(chan string, 100)
	token := NewToken()
	open := func(id uint64, f func(uint64, []byte)) *Node {
		n, err := Listen(id, token, "127.0.0.1:0", f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		if h != nil {
			n.Join(h)
		}
		return n
	}
	a = open(1, func(uint64, []byte) {})
	b = open(2, func(_ uint64, msg []byte) { got <- string(msg) })
	a.Connect(2, b.Addr())
	b.Connect(1, a.Addr())
	return a, b, got
}

func expect(t *testing.T, got chan string, want string) {
	t.Helper()
	select {
	case m := <-got:
		if m != want {
			t.Fatalf("%q arrived, want %q", m, want)
		}
	case <-time.After(patience):
		t.Fatalf("%q did not arrive", want)
	}
}

func nothing(t *testing.T, got chan string) {
	t.Helper()
	select {
	case m := <-got:
		t.Fatalf("%q arrived", m)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestAPauseHoldsWhatGoesOutAndWhatComesIn(t *testing.T) { both(t, testPause) }

func testPause(t *testing.T, h *Hub) {
	for _, who := range []string{"sender", "receiver"} {
		t.Run(who, func(t *testing.T) {
			a, b, got := pair(t, h)
			a.Send(2, []byte("before"))
			expect(t, got, "before")
			n := a
			if who == "receiver" {
				n = b
			}
			n.Pause(true)
			a.Send(2, []byte("meanwhile"))
			nothing(t, got)
			n.Pause(false)
			expect(t, got, "meanwhile")
		})
	}
}

// A question goes the way of every message, and never to who receives the others.
func TestAQuestionTravels(t *testing.T) { both(t, testQuestion) }

func testQuestion(t *testing.T, h *Hub) {
	a, b, got := pair(t, h)
	answer := func(_ context.Context, from uint64, question []byte) []byte {
		return fmt.Appendf(nil, "%d asked %s", from, question)
	}
	x, y := a.Exchange(answer), b.Exchange(answer)
	defer x.Close()
	defer y.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reply, err := x.Ask(ctx, 2, []byte("why"))
	if err != nil || string(reply) != "1 asked why" {
		t.Fatalf("%q, %v", reply, err)
	}
	nothing(t, got)
}

func TestACutLosesAndHealsInOneDirection(t *testing.T) { both(t, testCut) }

func testCut(t *testing.T, h *Hub) {
	a, b, got := pair(t, h)
	b.SetDeaf(1, true)
	a.Send(2, []byte("not heard"))
	nothing(t, got)
	b.SetDeaf(1, false)
	a.SetFault(2, Fault{Cut: true})
	a.Send(2, []byte("lost"))
	nothing(t, got)
	a.SetFault(2, Fault{})
	a.Send(2, []byte("after"))
	expect(t, got, "after")
}

// Nodes of two sets at each other's addresses hear nothing of each other.
func TestStrangersAreNotHeard(t *testing.T) {
	got := make(chan string, 100)
	hear := func(_ uint64, msg []byte) { got <- string(msg) }
	a, err := Listen(1, NewToken(), "127.0.0.1:0", hear)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Listen(2, NewToken(), "127.0.0.1:0", hear)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	a.Connect(2, b.Addr())
	b.Connect(1, a.Addr())
	for range 10 {
		a.Send(2, []byte("from a"))
		b.Send(1, []byte("from b"))
	}
	nothing(t, got)
}

// Whoever has taken an address gets nothing but a random number, whatever it answers.
func TestAnImpostorLearnsNothing(t *testing.T) {
	for what, answer := range map[string]func(nonce []byte) []byte{
		"nothing":          func([]byte) []byte { return nil },
		"what it was sent": func(n []byte) []byte { return append(append([]byte(nil), n...), make([]byte, macSize)...) },
		"a guess": func(n []byte) []byte {
			return append(make([]byte, nonceSize), Token{}.mac("listener", n, make([]byte, nonceSize))...)
		},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		n, err := Listen(1, NewToken(), "127.0.0.1:0", func(uint64, []byte) {})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		n.Connect(2, l.Addr().String())
		n.Send(2, []byte("secret"))
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		nonce := make([]byte, nonceSize)
		if _, err := io.ReadFull(c, nonce); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(answer(nonce)); err != nil {
			t.Fatal(err)
		}
		if what == "nothing" {
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		if rest, _ := io.ReadAll(c); len(rest) > 0 {
			t.Errorf("who answered %s was sent %q", what, rest)
		}
		c.Close()
	}
}

// The messages of a greeting cannot be used again, on another connection or the other
// way round.
func TestAGreetingIsGoodForOneConnection(t *testing.T) {
	got := make(chan string, 100)
	token := NewToken()
	b, err := Listen(2, token, "127.0.0.1:0", func(_ uint64, msg []byte) { got <- string(msg) })
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	b.Connect(1, b.Addr())
	dial := func() net.Conn {
		c, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	// As it should be, recorded.
	var sent []byte
	c := dial()
	if err := token.introduce(&recorder{Conn: c, sent: &sent}, 1); err != nil {
		t.Fatal(err)
	}
	hello := append([]byte{0, 0, 0, 5, 0}, "hello"...)
	if _, err := c.Write(hello); err != nil {
		t.Fatal(err)
	}
	expect(t, got, "hello")
	// Once more.
	c = dial()
	if _, err := c.Write(append(sent, hello...)); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(c); len(rest) > nonceSize+macSize {
		t.Errorf("a greeting that was used again got %d bytes", len(rest))
	}
	// As another member than the one that it was made for.
	c = dial()
	other := &recorder{Conn: c, alter: func(b []byte) []byte {
		if len(b) > nonceSize {
			b[7] = 3
		}
		return b
	}}
	if err := token.introduce(other, 1); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write(hello)
	if rest, _ := io.ReadAll(c); len(rest) > 0 {
		t.Errorf("a greeting under another number got %d bytes", len(rest))
	}
	nothing(t, got)
}

// recorder keeps, and may alter, what is sent.
type recorder struct {
	net.Conn
	sent  *[]byte
	alter func([]byte) []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.sent != nil {
		*r.sent = append(*r.sent, b...)
	}
	if r.alter != nil {
		b = r.alter(b)
	}
	return r.Conn.Write(b)
}

// A node that is gone, or is paused for ever, keeps nobody from closing.
func TestANodeClosesWhateverTheOtherDoes(t *testing.T) {
	both(t, func(t *testing.T, h *Hub) {
		a, b, got := pair(t, h)
		b.Pause(true)
		a.Send(2, []byte("to a paused one"))
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		b.Pause(false)
		a, b, got = pair(t, h)
		a.Send(2, []byte("hello"))
		expect(t, got, "hello")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		for range 3 {
			a.Send(2, []byte("to one that is gone"))
		}
		nothing(t, got)
	})
}

func TestADelayHoldsMessagesUpOnceEach(t *testing.T) { both(t, testDelay) }

func testDelay(t *testing.T, h *Hub) {
	a, _, got := pair(t, h)
	const n = 100
	// One after the other they would take 50 s.
	a.SetFault(2, Fault{Delay: 500 * time.Millisecond})
	for i := range n {
		a.Send(2, fmt.Append(nil, i))
	}
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for i := range n {
		select {
		case m := <-got:
			if m != fmt.Sprint(i) {
				t.Fatalf("message %s came in place of %d", m, i)
			}
		case <-deadline.C:
			t.Fatalf("only %d of %d messages have arrived", i, n)
		}
	}
}
