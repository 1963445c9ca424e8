package server

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

type (
	document = bsoncore.Document
	builder  = bsoncore.DocumentBuilder
)

func newDoc() *builder { return bsoncore.NewDocumentBuilder() }

// Codes of MongoDB that this package answers with.
const (
	codeInternalError       = 1
	codeBadValue            = 2
	codeHostUnreachable     = 6
	codeFailedToParse       = 9
	codeUnauthorized        = 13
	codeTypeMismatch        = 14
	codeIllegalOperation    = 20
	codeLockTimeout         = 24
	codeNamespaceNotFound   = 26
	codeIndexNotFound       = 27
	codeCursorNotFound      = 43
	codeNamespaceExists     = 48
	codeMaxTimeMSExpired    = 50
	codeCommandNotFound     = 59
	codeWriteConcernFailed  = 64
	codeImmutableField      = 66
	codeCannotCreateIndex   = 67
	codeInvalidOptions      = 72
	codeInvalidNamespace    = 73
	codeUnknownReplWC       = 79
	codeIndexOptions        = 85
	codeIndexKeySpecs       = 86
	codeShutdown            = 91
	codeUnsatisfiableWC     = 100
	codeWriteConflict       = 112
	codeDocumentFailedVal   = 121
	codePrimarySteppedDown  = 189
	codeLinearizableFailed  = 187
	codeTransactionTooOld   = 225
	codeNotImplemented      = 238
	codeSnapshotTooOld      = 239
	codeQueryPlanKilled     = 175
	codeSnapshotUnavailable = 246
	codeNoSuchTransaction   = 251
	codeTxnCommitted        = 256
	codeExceededTimeLimit   = 262
	codeNotInTransaction    = 263
	codeNoMatchingDocument  = 47
	codeViewDepth           = 165
	codeNotOnView           = 166
	codeOptionNotOnView     = 167
	codeCursorKilled        = 237
	codeInvalidResumeToken  = 260
	codeChangeStreamFatal   = 280
	codeHistoryLost         = 286
	codeDuplicateKey        = 11000
	codeInterruptedRole     = 11602
	codeInterruptedStop     = 11600
	codeNotPrimary          = 10107
	codeNotPrimaryNoOk      = 13435
	codeNotPrimaryOrSec     = 13436
	codeUnknownField        = 40415
	codeMissingField        = 40414

	codeAuthenticationFailed = 18
	codeMechanismUnavailable = 334
	codeOutOfDiskSpace       = 14031
)

// Error is an error as it is answered.
type Error struct {
	Code    int32
	Message string
	Labels  []string // nil: by the rules; set by a fail point
	Extra   document // fields beside the code, such as keyValue
	Staged  bool     // by a fail point: the topology is what it was
}

func (e *Error) Error() string { return fmt.Sprintf("(%s) %s", codeName(e.Code), e.Message) }

func errorf(code int32, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// asError gives every error a code. What has none is a defect or a full disk, and
// the client is told so.
func asError(err error) *Error {
	var own *Error
	var other *query.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &other):
		return &Error{Code: other.Code, Message: other.Message}
	case errors.Is(err, ErrDiskFull):
		return &Error{Code: codeOutOfDiskSpace, Message: err.Error()}
	case errors.Is(err, errNotLeader):
		return &Error{Code: codeNotPrimary, Message: "not primary"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: codeMaxTimeMSExpired, Message: "operation exceeded time limit"}
	case errors.Is(err, context.Canceled):
		return &Error{Code: codeInterruptedStop, Message: "interrupted at shutdown"}
	}
	return &Error{Code: codeInternalError, Message: err.Error()}
}

// interrupted is what a write is told that was under way when this member stopped
// being primary, and that has written nothing.
func interrupted() error {
	return errorf(codeInterruptedRole, "operation was interrupted")
}

func hasCode(err error, code int32) bool {
	return err != nil && asError(err).Code == code
}

// append adds the error's fields to an answer or a writeErrors element.
func (e *Error) append(b *builder) {
	b.AppendString("errmsg", e.Message).AppendInt32("code", e.Code).AppendString("codeName", codeName(e.Code))
	e.appendExtra(b)
}

func (e *Error) appendExtra(b *builder) {
	if e.Extra == nil {
		return
	}
	for k, v := range value.Fields(e.Extra) {
		b.AppendValue(k, v)
	}
}

func isRetriable(code int32) bool {
	switch code {
	case 6, 7, 89, 91, 134, 189, 262, 317, 358, 402, 406, 407, 412, 9001, 10107, 11600, 11602, 13435, 13436:
		return true
	}
	return false
}

// movesTopology says whether a client must look again who is primary.
func (e *Error) movesTopology() bool {
	return e != nil && !e.Staged && isNotPrimary(e.Code)
}

func isNotPrimary(code int32) bool {
	switch code {
	case 10107, 13435, 13436, 10058, 11600, 11602, 189, 91:
		return true
	}
	return false
}
