package server

import (
	"context"
	"errors"

	"github.com/assaylab/assay/replset/store"
)

var (
	errNotLeader = errors.New("this member is not the primary")
	// errUnknown: the entry may or may not be applied.
	errUnknown = errors.New("leadership was lost while the write was under way")
)

// ErrSilent is what Ask returns where the other member was not heard of: whether it has
// done what it was asked, or will, is open.
var ErrSilent = errors.New("the other member does not answer")

// ErrNotLeader and ErrUnknown are what the functions of a Member return when
// nothing was proposed, and when the fate of what was proposed is open.
var (
	ErrNotLeader = errNotLeader
	ErrUnknown   = errUnknown
)

// ErrDiskFull is wrapped by what Begin returns when the member has no room for what
// was to be proposed.
var ErrDiskFull = errors.New("not enough disk space to write")

// Applied is where an entry stands in the log.
type Applied struct{ Index, Timestamp uint64 }

// Role is what the member knows of its place.
type Role struct {
	Term    uint64
	Primary int // position in Hosts, -1 if none is known
	// Writable: this member is primary, and has applied all that was committed
	// before its term.
	Writable bool
}

// Member is what a server needs of the member it belongs to.
type Member struct {
	SetName string
	Hosts   []string
	Self    int // position in Hosts
	Store   *store.Store

	// Begin enters data into the log, in that term or not at all, and returns how
	// to wait for it. wait may be called again after its context ended.
	Begin func(ctx context.Context, term uint64, data []byte) (wait func(context.Context) (Applied, error), err error)
	// ReadIndex returns once this member has applied all that was acknowledged
	// before the call, and confirmed that it still leads.
	ReadIndex func(ctx context.Context) error
	// Replicated waits until so many members have an entry in their log.
	Replicated func(ctx context.Context, index uint64, count int) error
	// Ask has another member's server answer a question, see Server.Answer. Where ctx
	// ends first the error is its cause.
	Ask func(ctx context.Context, member int, question []byte) (answer []byte, err error)
	// StepDown hands leadership to another member and returns when it is gone.
	StepDown func(ctx context.Context) error
	// StepUp makes this member stand for election.
	StepUp func(ctx context.Context) error
	// Applied is the index of the last entry that is visible here.
	Applied func() uint64
}
