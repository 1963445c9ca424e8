// Package ledger keeps a run: an append-only folder in which nothing is ever
// edited, chained by hashes from the lock to the last observation.
//
// It knows how to store, resume and verify; it must never know what a value
// means or whether a result is good.
//
// # The folder
//
//	lock.json            the frozen protocol
//	environment.json     machine and build
//	observations.jsonl   the chain: one record per line
//	samples.bin          bulk samples, little-endian 64-bit, referred to by the chain
//	results.json         what analyze computed
//	verdict.json         what decide made of it
//	seal.json            hashes of all of the above, written once at the end
//	report.html          a page made from them; can be made again at any time
//	scratch/             the trials' working folder, and where the run was
//	                     started (origin.json); gone after the run
//
// # What holds
//
//  1. A record is appended by one write that ends in a newline. Bytes after
//     the last newline are therefore the remains of a write that a crash cut
//     off; they, and nothing else, may be dropped by a resume.
//  2. Samples are written before the record that refers to them, and synced
//     before it is synced.
//  3. A sync comes before a round mark: at the latest SyncEvery after the
//     previous one, always at the end of a cell and of the run. Each mark says
//     how many records that sync, or an earlier one, has put on disk. A power
//     failure can therefore cost the rounds of at most that stretch; a kill
//     costs at most the trial under way.
//  4. A run is sealed once. A sealed folder is never written again, but for
//     pages.
//  5. One process at a time writes: it holds a lock on the chain, which dies
//     with it.
//
// Records that no mark vouches for may survive a power failure while their
// samples do not; resume drops such records, counts the bytes and says so in
// the chain. A record that a mark vouches for and whose samples are wrong is
// damage.
//
// What a chain without a seal cannot show is that its last lines were taken
// away: that is what a crash leaves. Only the seal fixes the end.
//
// Rejected: a sync per trial (it would put disk traffic between the trials
// of a round, where they are compared), and one file per trial (a directory
// sync each, and no order of its own).
package ledger

import (
	"errors"
	"time"
)

// SchemaVersion is the version of the run folder that this package writes and
// the newest that it reads.
const SchemaVersion = 1

// SyncEvery is the longest stretch of short rounds between two syncs.
const SyncEvery = 100 * time.Millisecond

// Names of the files in a run folder.
const (
	LockFile         = "lock.json"
	EnvironmentFile  = "environment.json"
	ObservationsFile = "observations.jsonl"
	SamplesFile      = "samples.bin"
	ResultsFile      = "results.json"
	VerdictFile      = "verdict.json"
	SealFile         = "seal.json"
	ReportFile       = "report.html"
	ProfilesDir      = "profiles" // where they were asked for; outside of the chain, which has their summaries
	ScratchDir       = "scratch"
	OriginFile       = "origin.json" // in ScratchDir
)

var (
	errMalformed = errors.New("not a line that assay wrote")
	errChanged   = errors.New("was changed: its bytes do not match its own hash")
)

// ErrNotRun is returned when a folder is not a run folder.
var ErrNotRun = errors.New("not a run folder")

// ErrSealed is returned when a finished run is asked to go on.
var ErrSealed = errors.New("the run is finished and sealed")

// ErrNewer is returned for a folder that a newer assay wrote.
var ErrNewer = errors.New("written by a newer assay")

// ErrBusy is returned when another process is writing to the run.
var ErrBusy = errors.New("another process is writing to this run")
