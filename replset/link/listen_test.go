package link

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// A copy of a closed listener keeps its address for a moment, as a process that is being
// started does.
func TestAnAddressThatWasJustGivenUp(t *testing.T) {
	old, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := old.Addr().String()
	held, err := old.(*net.TCPListener).File()
	if err != nil {
		t.Skipf("no copies of sockets here: %v", err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err := net.Listen("tcp", addr); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("the copy keeps no address: %v, %v", l, err)
	}
	time.AfterFunc(20*time.Millisecond, func() { held.Close() })
	l, err := ListenTCP(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if again, err := ListenTCP(addr); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("an address that stays in use gave %v, %v", again, err)
	}
}
