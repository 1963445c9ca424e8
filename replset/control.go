package replset

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/assaylab/assay/replset/member"
	"github.com/assaylab/assay/replset/server"
)

// What a set and a member in a process of its own say to each other: JSON, one line
// each. The first line that the member reads is its member.Config; order and report
// are the others. The end of its standard input is the member's end.

// order is what the set wants of the member. Orders are carried out side by side,
// except that one of faults is carried out before the next is read.
type order struct {
	ID      int // of the report that answers it; not 0
	Do      verb
	Within  time.Duration  `json:",omitempty"` // 0 is no limit
	Faults  *member.Faults `json:",omitempty"`
	Instead int            `json:",omitempty"` // the order that need not be answered any more
}

type verb string

const (
	doFaults   verb = "faults"
	doStepDown verb = "stepdown"
	doStepUp   verb = "stepup"
	doCheck    verb = "check"
	doClean    verb = "clean"
	doCancel   verb = "cancel"
)

// report is what the member says: an answer, or with ID 0 what it is now.
type report struct {
	ID        int      `json:",omitempty"`
	Error     string   `json:",omitempty"`
	NotLeader bool     `json:",omitempty"` // what the error is
	TooLate   bool     `json:",omitempty"` // likewise: the time that the order had is over
	Found     []string `json:",omitempty"` // by a check

	Role   *server.Role `json:",omitempty"` // it serves clients, as this
	Failed string       `json:",omitempty"` // why it takes no part any more
}

// lines writes values as JSON, one line each, whoever calls.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(append(b, '\n'))
	return err
}
