package check

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Outcome says what the client knows about the effect of its operation. It has
// no default: an operation without one is malformed.
type Outcome string

// The outcomes.
const (
	OutcomeOK     Outcome = "ok"     // it took effect, with the answer recorded
	OutcomeFailed Outcome = "failed" // it had no effect, for certain; also a cas that was refused
	OutcomeMaybe  Outcome = "maybe"  // it timed out or broke off: it may take effect at any later time, or never
)

// The kinds of operation that [Register] and [Dictionary] know.
const (
	KindRead   = "read"   // Register: returned Value
	KindWrite  = "write"  // Register: set Value
	KindCAS    = "cas"    // Register: found Expect and set Value
	KindGet    = "get"    // Dictionary: Found says whether the key was there, Value what it held
	KindPut    = "put"    // Dictionary: set Value, whatever was there
	KindInsert = "insert" // Dictionary: set Value unless the key was there, which Found says
	KindDelete = "delete" // Dictionary: removed the key if it was there, which Found says
)

// Op is one operation as its client saw it. Times are durations since an
// origin that all operations of the history share.
type Op struct {
	Client  int           `json:"client"`
	Kind    string        `json:"kind"`
	Key     string        `json:"key,omitempty"`
	Value   string        `json:"value,omitempty"`  // what was written, or what was read
	Expect  string        `json:"expect,omitempty"` // of a cas: the value it replaced
	Found   bool          `json:"found,omitempty"`  // of a get, insert or delete: whether the key was there before
	Outcome Outcome       `json:"outcome"`
	Call    time.Duration `json:"call_ns"`             // before it was sent
	Return  time.Duration `json:"return_ns,omitempty"` // after its answer was there; of a maybe it means nothing
}

// never is when an operation with an unknown outcome returns: it may be
// ordered after everything else, which is the same as not having happened.
const never = math.MaxInt64

// Operations turns ops into what [Linearizable] takes, each with its Op as
// input. A failed operation did not happen and is left out. So is a read or
// get whose outcome is maybe: it changed nothing and told nothing. A maybe
// operation of another kind returns at the end of time. It returns an error for an
// operation that has no valid outcome, or that ended before it began.
func Operations(ops []Op) ([]porcupine.Operation, error) {
	var out []porcupine.Operation
	for i, op := range ops {
		if err := op.malformed(); err != nil {
			return nil, fmt.Errorf("malformed history: operation %d: %w", i, err)
		}
		end := int64(op.Return)
		switch {
		case op.Outcome == OutcomeFailed, op.Outcome == OutcomeMaybe && op.readsOnly():
			continue
		case op.Outcome == OutcomeMaybe:
			end = never
		}
		out = append(out, porcupine.Operation{ClientId: op.Client, Input: op, Call: int64(op.Call), Return: end})
	}
	return out, nil
}

func (op Op) malformed() error {
	switch op.Outcome {
	case OutcomeOK, OutcomeFailed:
		if op.Return < op.Call {
			return fmt.Errorf("it returned at %v, before its call at %v", op.Return, op.Call)
		}
		return nil
	case OutcomeMaybe:
		return nil
	case "":
		return errors.New("it has no outcome")
	default:
		return fmt.Errorf("no outcome is called %q", op.Outcome)
	}
}

func (op Op) readsOnly() bool { return op.Kind == KindRead || op.Kind == KindGet }

// tells says whether the operation's answer can contradict a model at all.
func (op Op) tells() bool {
	return op.Outcome == OutcomeOK && op.Kind != KindWrite && op.Kind != KindPut
}

// String writes op without its times: cas "k" from "1" to "2".
func (op Op) String() string {
	text := fmt.Sprintf("%s %s", op.Kind, show(op.Key))
	switch op.Kind {
	case KindRead:
		text += " returned " + show(op.Value)
	case KindGet:
		if op.Found {
			text += " returned " + show(op.Value)
		} else {
			text += " found nothing"
		}
	case KindCAS:
		text += fmt.Sprintf(" from %s to %s", show(op.Expect), show(op.Value))
	case KindWrite, KindPut, KindInsert:
		text += " " + show(op.Value)
	}
	if op.Outcome == OutcomeOK && (op.Kind == KindInsert || op.Kind == KindDelete) {
		text += fmt.Sprintf(", found %t", op.Found)
	}
	if op.Outcome == OutcomeMaybe {
		text += ", maybe"
	}
	return text
}
