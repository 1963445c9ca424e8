// Package defect names mistakes that can be planted into a set, so that its tests
// can show that they would be found. It is internal and a field of it is set by
// test code alone, so that no program can plant one; it knows names and must never
// know where they take effect.
package defect

// Defect is one planted mistake. The zero value is none.
type Defect int

// The mistakes, one for each guarantee that histories check.
const (
	None Defect = iota
	// ReadWithoutQuorum answers linearizable reads from the state of a member that
	// takes itself for the primary.
	ReadWithoutQuorum
	// AckBeforeSync acknowledges entries when they are written, and syncs them a
	// moment later.
	AckBeforeSync
	// SecondUpdaterWins lets a transaction write a document that has changed since
	// its snapshot.
	SecondUpdaterWins
	// LostRetryRecord writes without the record by which a retry is recognised.
	LostRetryRecord
)

// All are the mistakes that there are.
func All() []Defect {
	return []Defect{ReadWithoutQuorum, AckBeforeSync, SecondUpdaterWins, LostRetryRecord}
}

func (d Defect) String() string {
	switch d {
	case ReadWithoutQuorum:
		return "read without quorum"
	case AckBeforeSync:
		return "acknowledge before sync"
	case SecondUpdaterWins:
		return "second updater wins"
	case LostRetryRecord:
		return "lost retry record"
	}
	return "none"
}
