// Package history judges what clients of a set saw: whether the operations on a
// document have one order that agrees with real time, and whether transactions were
// isolated. It is pure; it knows operations, their outcomes and times, and must never
// know how they were made.
//
// # Documents
//
// A register is a document with a value and a number that every write adds one to.
// Registers gives a history to porcupine: linearizability of reads, writes and
// compare-and-swaps, one document at a time. An operation whose outcome is open may
// take effect at any time after its call, or never.
//
// # Transactions
//
// Lists judges transactions that append unique values to lists and read them, after
// Kingsbury and Alvaro, "Elle" (VLDB 2020): a list that was read tells the order of all
// writes to it, so that dependencies between transactions are known and not guessed.
// The anomalies are those of Adya's thesis (1999). Snapshot isolation forbids every
// cycle of dependencies in which no two anti-dependencies follow each other (Cerone and
// Gotsman, JACM 2018); write skew has two in a row and is allowed.
//
// A transaction that wrote and began after another had returned must also have seen
// it: such pairs are dependencies too. One that only read is exempt, since a
// member that was deposed and does not know it may still answer it.
package history

// Outcome is what a client knows of an operation.
type Outcome int

const (
	// Maybe: it may have taken effect, may yet, or never will.
	Maybe Outcome = iota
	// OK: it took effect before it returned.
	OK
	// Failed: it had no effect and never will.
	Failed
)

func (o Outcome) String() string { return [...]string{"maybe", "ok", "failed"}[o] }
