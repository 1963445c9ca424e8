package replset

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/internal/defect"
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

// Hooks are what tests may change beside options.
type Hooks struct {
	Defect         defect.Defect
	KeepEntries    uint64
	SessionTimeout time.Duration
	LockTimeout    time.Duration
	Disk           func(member int, fs vfs.FS) vfs.FS
}

// With returns the options with hooks.
func (o Options) With(h Hooks) Options {
	o.hooks = hooks{defect: h.Defect, keepEntries: h.KeepEntries, sessionTimeout: h.SessionTimeout, lockTimeout: h.LockTimeout, disk: h.Disk}
	return o
}
