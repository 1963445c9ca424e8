package screening

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/screening/tally"
)

// Mode is how a project's statistics are kept.
type Mode string

const (
	ModeOff           Mode = "off"
	ModeTransactional Mode = "transactional"
	ModeFold          Mode = "fold"
)

// Control is the control row of a project.
type Control struct {
	Project     string         `bson:"_id"`
	Mode        Mode           `bson:"mode"`
	Epoch       int64          `bson:"epoch"`       // stamped on entries; raised by each change of mode and by a drop
	OldestEpoch int64          `bson:"oldestEpoch"` // of the entries that may still be folded
	Families    []tally.Family `bson:"families"`    // maintained
	Source      int64          `bson:"sourceInvalidation"`
	Committed   int64          `bson:"committedProjection"`
	Client      int64          `bson:"clientInvalidation"`
	Transition  *Transition    `bson:"transition"` // under way, or nil
	Version     int64          `bson:"version"`
}

// Transition is a change of mode under way.
type Transition struct {
	From  Mode      `bson:"from"`
	To    Mode      `bson:"to"`
	Epoch int64     `bson:"epoch"` // that it began
	At    time.Time `bson:"at"`
}

// same says whether other is this very transition, and not a later one of the kind.
func (t *Transition) same(other *Transition) bool {
	return t != nil && other != nil && t.From == other.From && t.To == other.To && t.Epoch == other.Epoch
}

// next is the control row after a revision that carries moves.
func (c Control) next() Control {
	c.Version++
	c.Source++
	c.Committed, c.Client = c.Source, c.Source
	return c
}

// foldable says whether an entry of this epoch may be folded.
func (c Control) foldable(epoch int64) bool { return c.OldestEpoch <= epoch && epoch <= c.Epoch }

type globalControl struct {
	ID       string `bson:"_id"`
	Tracking bool   `bson:"tracking"` // the durable reviewer mode
	Version  int64  `bson:"version"`
}

const globalID = "global"

// GuardState is whether a family's rows may be shown.
type GuardState string

const (
	Stale      GuardState = "stale" // not maintained from a known start
	Rebuilding GuardState = "rebuilding"
	Serving    GuardState = "serving"
	CorruptRow GuardState = "corrupt" // a row was found that nobody can have written
)

type familyKey struct {
	Project string       `bson:"project"`
	Family  tally.Family `bson:"family"`
}

type guard struct {
	ID          familyKey    `bson:"_id"`
	Project     string       `bson:"project"`
	Family      tally.Family `bson:"family"`
	State       GuardState   `bson:"state"`
	Epoch       int64        `bson:"epoch"`
	Revision    int64        `bson:"publishedRevision"`
	Quarantined int64        `bson:"quarantined"` // entries that no rebuild has settled
	Version     int64        `bson:"version"`
}

type rowKey struct {
	Project  string       `bson:"project"`
	Family   tally.Family `bson:"family"`
	Reviewer string       `bson:"reviewer"`
	Stage    string       `bson:"stage"`
}

func (k rowKey) scope() tally.Scope { return tally.Scope{Reviewer: k.Reviewer, Stage: k.Stage} }

func keyOf(project string, m tally.Move) rowKey {
	return rowKey{project, m.Family, m.Scope.Reviewer, m.Scope.Stage}
}

type row struct {
	ID       rowKey         `bson:"_id"`
	Project  string         `bson:"project"`
	Family   tally.Family   `bson:"family"`
	Counters tally.Counters `bson:"counters"`
	Revision int64          `bson:"revision"`
	Digest   string         `bson:"digest"`
	Version  int64          `bson:"version"`
}

// seal makes the digest that whole checks (S14).
func (r row) seal() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %d", r.ID, r.Revision, r.Version)
	for _, k := range slices.Sorted(maps.Keys(r.Counters)) {
		fmt.Fprintf(h, " %q=%d", k, r.Counters[k])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (r row) whole() bool { return r.Digest == r.seal() }

type receipt struct {
	Entry     bson.ObjectID `bson:"_id"`
	Project   string        `bson:"project"`
	Study     string        `bson:"study"`
	Namespace Namespace     `bson:"ns"`
	Operation bson.ObjectID `bson:"op"`
	Path      Mode          `bson:"path"`
	Revision  int64         `bson:"revision"`
	At        time.Time     `bson:"at"`
}

type retirement struct {
	Project string    `bson:"_id"`
	Horizon time.Time `bson:"horizon"` // operations born before it may have lost their receipts
}

type revisionKey struct {
	Project  string `bson:"project"`
	Revision int64  `bson:"revision"`
}

// revision is a line of the ledger.
type revision struct {
	ID         revisionKey  `bson:"_id"`
	Project    string       `bson:"project"`
	Revision   int64        `bson:"revision"`
	Operations int          `bson:"operations"`
	Moves      []tally.Move `bson:"moves"`
	At         time.Time    `bson:"at"`
}

type slot struct {
	ID      familyKey    `bson:"_id"`
	Project string       `bson:"project"`
	Family  tally.Family `bson:"family"`
	Target  int64        `bson:"targetClientInvalidation"`
	Version int64        `bson:"version"`
}

// Quarantined is an entry that could not be folded.
type Quarantined struct {
	ID        bson.ObjectID  `bson:"_id"`
	Project   string         `bson:"project"`
	Study     string         `bson:"study"`
	Operation bson.ObjectID  `bson:"op"`
	Families  []tally.Family `bson:"families"` // whose guards count it
	Entry     bson.Raw       `bson:"entry"`    // as it was found
	Reason    string         `bson:"reason"`
	Settled   []tally.Family `bson:"settled"` // families rebuilt since
	At        time.Time      `bson:"at"`
}

type dropRange struct {
	ID      bson.ObjectID `bson:"_id"`
	Project string        `bson:"project"`
	From    int64         `bson:"fromEpoch"`
	Through int64         `bson:"throughEpoch"`
	Reason  string        `bson:"reason"`
	At      time.Time     `bson:"at"`
}
