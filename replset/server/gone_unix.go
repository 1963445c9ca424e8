//go:build unix

package server

import (
	"net"
	"syscall"
)

// gone says whether the other end has closed the connection. It looks without taking
// anything: what a client has sent ahead stays, and hides a close behind it.
func gone(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ended = n == 0 && err == nil || err == syscall.ECONNRESET || err == syscall.EPIPE
	})
	return ended || err != nil
}
