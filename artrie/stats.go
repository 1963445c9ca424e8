package artrie

import (
	"sync/atomic"

	"github.com/assaylab/assay/artrie/fsys"
)

type counters struct {
	writes, batches, commitSyncs, casRetries atomic.Int64
	faults, coldReads, evicted               atomic.Int64
	checkpoints, checkpointErrors            atomic.Int64
}

// Stats are counts since Open and sizes now. They are not one moment.
type Stats struct {
	Keys int64

	Writes      int64 // acknowledged
	Batches     int64 // commits that reached the log
	CommitSyncs int64 // syncs that a write waited for
	CASRetries  int64 // root swaps lost by the CAS committer

	Resident  int64 // bytes of nodes in memory
	Faults    int64 // subtrees brought back
	ColdReads int64 // subtrees read and not kept
	Evicted   int64 // subtrees dropped

	Checkpoints      int64
	CheckpointErrors int64 // of those in the background
	NodeBytes        int64 // length of the node file
	LiveBytes        int64 // of it, reached by the tree
	LogBytes         int64

	Replayed int  // operations that Open took from the log
	TailCut  bool // Open cut a torn tail, which nobody had been acknowledged

	FS fsys.Counts // everything that the file system was asked for
}

// Stats returns the counters.
func (t *Trie) Stats() Stats {
	c := &t.count
	return Stats{
		Keys:        t.Len(),
		Writes:      c.writes.Load(),
		Batches:     c.batches.Load(),
		CommitSyncs: c.commitSyncs.Load(),
		CASRetries:  c.casRetries.Load(),
		Resident:    t.resident.Load(),
		Faults:      c.faults.Load(),
		ColdReads:   c.coldReads.Load(),
		Evicted:     c.evicted.Load(),

		Checkpoints:      c.checkpoints.Load(),
		CheckpointErrors: c.checkpointErrors.Load(),
		NodeBytes:        t.nodeBytes.Load(),
		LiveBytes:        t.live.Load(),
		LogBytes:         t.log.Bytes(),
		Replayed:         t.rec.Replayed,
		TailCut:          t.rec.Cut,
		FS:               t.fs.Counts(),
	}
}
