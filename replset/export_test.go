package replset

import (
	"context"
	"net"
	"strconv"
)

// StartAtPeer starts a set whose member 0 has as its address for other members that of a
// member of another set that is down.
func StartAtPeer(t T, other *Set, i int) *Set {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	_, port, _ := net.SplitHostPort(other.members[i].peer)
	n, _ := strconv.Atoi(port)
	s, err := newSet(ctx, Options{}, n)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
