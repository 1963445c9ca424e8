package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// revisions is what was written to one key.
type revisions struct {
	begun  map[int64]time.Duration // start of the write of each revision
	writes []StaleWrite
	acked  []acknowledged // by time once sealed
	broken string         // why reads of this key cannot be judged; empty if they can
}

// acknowledged is the highest revision acknowledged up to a time.
type acknowledged struct {
	at      time.Duration
	highest int64
}

func (k *revisions) blame(format string, args ...any) {
	if k.broken == "" {
		k.broken = fmt.Sprintf(format, args...)
	}
}

func (k *revisions) write(w StaleWrite) {
	if _, twice := k.begun[w.Revision]; twice {
		k.blame("revision %d was written twice", w.Revision)
	}
	if w.Revision < 1 {
		k.blame("revision %d was written; revisions start at 1", w.Revision)
	}
	if !w.Maybe && w.Acked < w.Start {
		k.blame("revision %d was acknowledged at %v, before its write began at %v", w.Revision, w.Acked, w.Start)
	}
	k.begun[w.Revision] = w.Start
	k.writes = append(k.writes, w)
	if !w.Maybe {
		k.acked = append(k.acked, acknowledged{at: w.Acked, highest: w.Revision})
	}
}

// seal orders the acknowledgements, so that floor can search them, and holds
// the writes against the assumption that revisions only grow. It returns what
// broke it, empty if nothing did.
func (k *revisions) seal() string {
	slices.SortFunc(k.acked, func(a, b acknowledged) int { return cmp.Compare(a.at, b.at) })
	var highest int64
	for i := range k.acked {
		highest = max(highest, k.acked[i].highest)
		k.acked[i].highest = highest
	}
	for _, w := range k.writes {
		if floor := k.floor(w.Start); w.Revision < floor {
			k.blame("the write of revision %d began after revision %d had been acknowledged", w.Revision, floor)
		}
	}
	return k.broken
}

// floor is the highest revision acknowledged before t, 0 if there is none. An
// acknowledgement at t itself is not before it.
func (k *revisions) floor(t time.Duration) int64 {
	n, _ := slices.BinarySearchFunc(k.acked, t, func(a acknowledged, t time.Duration) int { return cmp.Compare(a.at, t) })
	if n == 0 {
		return 0
	}
	return k.acked[n-1].highest
}

// judge says what is wrong with an answered read, and whether an acknowledged
// write bound it at all.
func (k *revisions) judge(r StaleRead, all *findings) (bound bool) {
	floor := k.floor(r.Start)
	begun, written := k.begun[r.Revision]
	where := fmt.Sprintf("read of %s from %v to %v", show(r.Key), r.Start, r.End)
	switch {
	case !written && r.Revision != 0:
		all.add(foundInvented, "%s returned revision %d, which nobody wrote", where, r.Revision)
	case r.Revision < floor:
		all.add(foundStale, "%s returned revision %d, when %d had been acknowledged", where, r.Revision, floor)
	case written && begun > r.End:
		all.add(foundFuture, "%s returned revision %d, whose write began at %v", where, r.Revision, begun)
	}
	return floor > 0
}
