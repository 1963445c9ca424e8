package link

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// pair is two nodes and what the second has received.
func pair(t *testing.T) (a, b *Node, got chan string) {
	t.Helper()
	got = make(chan string, 100)
	token := NewToken()
	open := func(id uint64, f func(uint64, []byte)) *Node {
		n, err := Listen(id, token, "127.0.0.1:0", f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
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

func TestAPauseHoldsWhatGoesOutAndWhatComesIn(t *testing.T) {
	for _, who := range []string{"sender", "receiver"} {
		t.Run(who, func(t *testing.T) {
			a, b, got := pair(t)
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

func TestACutLosesAndHealsInOneDirection(t *testing.T) {
	a, _, got := pair(t)
	a.SetFault(2, Fault{Cut: true})
	a.Send(2, []byte("lost"))
	nothing(t, got)
	a.SetFault(2, Fault{})
	a.Send(2, []byte("after"))
	expect(t, got, "after")
}

func TestADelayHoldsMessagesUpOnceEach(t *testing.T) {
	a, _, got := pair(t)
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
