package screening

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// What became of a submission that was not saved. All of them are definite, except
// ErrOutcomeUnknown: nothing of the submission is stored, nor will be.
var (
	// ErrStale: an attempt lost against somebody else's write. It comes with
	// ErrExhausted.
	ErrStale = errors.New("the study or what it depends on has changed since it was loaded")
	// ErrExhausted: all attempts were stale. Submit again when the contention is over.
	ErrExhausted = errors.New("all attempts lost against other writes")
	// ErrAtCapacity: the study has as many reviewers as it may have. Offer another.
	ErrAtCapacity = errors.New("the study has no seat left for this reviewer")
	// ErrNotEligible: not an active member, or without the stage's grant.
	ErrNotEligible = errors.New("the reviewer may not review at this stage")
	// ErrDuplicate: this operation was saved before. Treat it as saved.
	ErrDuplicate = errors.New("this operation was saved before")
	// ErrDeadline: too much time passed between the reads and the write, so nothing
	// was written. Submit again.
	ErrDeadline = errors.New("the deadline before the write has passed")
	// ErrOutcomeUnknown: whether it was saved could not be found out; it is always an
	// *UnknownError, whose ticket Resolve takes.
	ErrOutcomeUnknown = errors.New("whether this was saved is not known")
	ErrUnknownProject = errors.New("no such project")
	ErrUnknownStudy   = errors.New("no such study in this project")
	// ErrUnknownSession: no such annotation session on the study; ErrNoReservation: the
	// reviewer holds none there.
	ErrUnknownSession = errors.New("no such annotation session")
	ErrNoReservation  = errors.New("the reviewer has no reservation")
	// ErrNothingToClaim: no study of the project is free for this reviewer.
	ErrNothingToClaim = errors.New("no study to claim")
	// ErrLocked: a bulk update has the study or the project. Submit again later.
	ErrLocked = errors.New("a bulk update holds the lock")
	// ErrModeDisagrees: the project's mode is not that of the path, or the durable
	// reviewer mode not that of Options. Choose the path by the mode, or use ByMode.
	ErrModeDisagrees = errors.New("the durable mode disagrees")
	// ErrRetired: the operation is older than the receipts that are kept, so it cannot
	// be told whether it was saved. Submit it as a new operation, if it still holds.
	ErrRetired = errors.New("the operation is older than the receipts kept")
	// ErrNotServing: the family's rows are not maintained or being rebuilt.
	ErrNotServing = errors.New("the statistics are not being served")
	// ErrCorrupt: a document that cannot be what this package wrote. Rebuild heals rows.
	ErrCorrupt = errors.New("corrupt document")
)

// Ticket names a write whose outcome is unknown, with all that a resolver needs.
type Ticket struct {
	Project, Study string // Study is empty for a claim of any study
	Operation      bson.ObjectID
	Version        int64 // of the study when it was loaded; 0 if it was not
	Folds          int64 // of the study then
	Epoch          int64 // of the entries that the write carried
	Durable        bool  // the write carried entries or receipts, so that absence can be proved
}

// UnknownError is ErrOutcomeUnknown with its ticket.
type UnknownError struct {
	Ticket Ticket
	Cause  error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("operation %s on study %q: %v: %v", e.Ticket.Operation.Hex(), e.Ticket.Study, ErrOutcomeUnknown, e.Cause)
}

func (e *UnknownError) Unwrap() []error { return []error{ErrOutcomeUnknown, e.Cause} }
