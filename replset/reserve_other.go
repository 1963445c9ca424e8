//go:build !linux

package replset

import (
	"fmt"
	"net"
	"strconv"
)

// reserved is nothing here: an address is found free, and is anybody's until the
// member starts and while it is down. See reserve_linux.go for what it is there.
type reserved struct{}

func reserve(host string, port int) (reserved, string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return reserved{}, "", fmt.Errorf("replset: %w", err)
	}
	return reserved{}, l.Addr().String(), l.Close()
}

func (reserved) free() {}
