package link

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// stillInUse is how long an address may be in use that is this member's alone.
const stillInUse = time.Second

// ListenTCP opens a member's listener, also at an address where one was closed a moment
// ago. A process that this one is just starting holds, between fork and exec, a copy of
// every socket that was open, closed ones included: for that moment the kernel has two
// listeners, and refuses a third.
func ListenTCP(addr string) (net.Listener, error) {
	for over := time.Now().Add(stillInUse); ; {
		l, err := net.Listen("tcp", addr)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(over) {
			return l, err
		}
		time.Sleep(time.Millisecond)
	}
}
