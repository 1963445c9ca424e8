package replset

import (
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// reserved keeps an address for a member that comes and goes.
//
// It is a socket that is bound and does not listen. While nobody listens at the
// address, connections are refused as by a dead process; the kernel gives the port
// to nobody who asks for any free one; and the member's own listener can be opened
// beside it, because both allow reuse and only one may listen. So an address is
// known, and taken, before the member starts, and still is when it was killed, in
// whichever process it runs.
//
// Rejected: handing the listening socket itself to the member and keeping a copy.
// While a copy is open the kernel goes on taking connections for a dead member,
// which then hang instead of being refused; without one, the port is anybody's
// until the restart. SO_REUSEPORT would let two sets share a port silently.
//
// What it does not keep out is a program that asks for this very port while the
// member is down; the member's restart then fails and says so, and links refuse
// strangers (see package link).
type reserved struct{ fd int }

// reserve takes an address; port 0 is any that is free.
func reserve(host string, port int) (reserved, string, error) {
	none := reserved{-1}
	fail := func(err error) (reserved, string, error) {
		return none, "", fmt.Errorf("replset: the address %s: %w", net.JoinHostPort(host, strconv.Itoa(port)), err)
	}
	ip, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fail(err)
	}
	family, sa := unix.AF_INET6, unix.Sockaddr(nil)
	if v4 := ip.IP.To4(); v4 != nil {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte(v4)}
	} else {
		sa = &unix.SockaddrInet6{Port: port, Addr: [16]byte(ip.IP.To16())}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	r := reserved{fd}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		r.free()
		return fail(err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		r.free()
		return fail(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		r.free()
		return fail(err)
	}
	switch a := bound.(type) {
	case *unix.SockaddrInet4:
		port = a.Port
	case *unix.SockaddrInet6:
		port = a.Port
	}
	return r, net.JoinHostPort(host, strconv.Itoa(port)), nil
}

func (r reserved) free() {
	if r.fd >= 0 {
		_ = unix.Close(r.fd)
	}
}
