package replset

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/assaylab/assay/replset/member"
	"github.com/assaylab/assay/replset/server"
)

// form is how a member is run: in this process (local) or as a process of its own
// (process). The Set calls start, kill, pause, resume and close one at a time and
// only where they fit; the others may come at any time, and return errDown where
// the member does not run.
type form interface {
	start() error // on the data that it has, with the faults that it was told of
	mute() error  // it says and hears nothing any more; kill must follow
	kill() error
	pause() error
	resume() error
	close() error

	role() (r server.Role, up bool)
	err() error // why it runs no more although nobody killed it
	stepDown(context.Context) error
	stepUp(context.Context) error
	check(context.Context) (faults []string, err error)
	clean(context.Context) error // server.ErrNotLeader on a secondary

	setFaults(member.Faults) error // of now, and of its next start

	pid() int          // 0 in this process or down
	peakMemory() int64 // of its process, in bytes; 0 in this process
}

var errDown = errors.New("the member does not run")

// slot is one member of a set: its addresses stay, what runs at them comes and
// goes.
type slot struct {
	form
	addr, peer         string // for clients and for other members
	addrKept, peerKept reserved
	runs               bool        // under the set's lock
	isolated, paused   atomic.Bool // changed under it
}
