package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// Reason is why authority could not be established.
type Reason string

// The reasons. To whoever decides they are all the same: nothing is known, so
// nothing is allowed. They differ in what an operator does next.
const (
	Deadline    Reason = "deadline"     // time ran out: at the server (maxTimeMS) or here; what a lost majority looks like to most reads
	NotPrimary  Reason = "not-primary"  // the server that was asked is, or became, no primary
	NoMajority  Reason = "no-majority"  // the primary said that it cannot reach a majority
	Unreachable Reason = "unreachable"  // no connection to a primary, or it broke
	Malformed   Reason = "malformed"    // the document is not a record
	Canceled    Reason = "canceled"     // whoever asked went away
	ServerError Reason = "server-error" // the server refused for another reason, such as a missing permission
	Fault       Reason = "fault"        // the driver failed in a way that it does not explain, or panicked
)

// Refusal is the error of a read that established nothing.
type Refusal struct {
	Reason Reason
	Err    error
}

func (r *Refusal) Error() string { return fmt.Sprintf("authority: %s: %v", r.Reason, r.Err) }

// Unwrap is what went wrong, for errors.Is and errors.As.
func (r *Refusal) Unwrap() error { return r.Err }

// ReasonOf is the reason in err, Fault for an error without one and "" for nil.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return r.Reason
	}
	return Fault
}

// Server error codes, from error_codes.yml of the server. The classes of "not primary"
// are those of the specification of server discovery and monitoring.
var (
	codesDeadline   = []int{50, 262}
	codesNotPrimary = []int{10107, 13435, 13436, 10058, 189, 11602, 11600, 91}
	codesNoMajority = []int{64, 100, 134, linearizableFailed}
)

// linearizableFailed is LinearizableReadConcernError: the no-op write that confirms a
// read was not acknowledged by a majority in time.
const linearizableFailed = 187

// refuse turns a driver's error into a refusal. caller is the context as it was given,
// so that a caller who left is told from a deadline that is ours.
func refuse(caller context.Context, err error) *Refusal {
	return &Refusal{Reason: reason(caller, err), Err: err}
}

func reason(caller context.Context, err error) Reason {
	if errors.Is(caller.Err(), context.Canceled) {
		return Canceled
	}
	if ce := (mongo.CommandError{}); errors.As(err, &ce) && ce.Code != 0 {
		switch code := int(ce.Code); {
		case slices.Contains(codesDeadline, code):
			return Deadline
		case slices.Contains(codesNotPrimary, code):
			return NotPrimary
		case slices.Contains(codesNoMajority, code):
			return NoMajority
		}
		return ServerError
	}
	switch {
	case mongo.IsTimeout(err):
		return Deadline
	case mongo.IsNetworkError(err), isUnreachable(err):
		return Unreachable
	}
	return Fault
}

// isUnreachable knows the driver's errors of connections and server selection, some of
// which carry no label.
func isUnreachable(err error) bool {
	return errors.As(err, new(topology.ConnectionError)) || errors.As(err, new(topology.ServerSelectionError)) ||
		errors.As(err, new(topology.PoolError)) || errors.As(err, new(driver.RetryablePoolError)) || errors.Is(err, topology.ErrServerClosed) || errors.Is(err, mongo.ErrClientDisconnected)
}
