package consensus

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	pb "go.etcd.io/raft/v3/raftpb"
)

// keepBytes is how much of the applied entries stays in the log, beside KeepEntries, for members that
// were away. The log is cut when it has twice as much. What a follower that is not away
// still lacks stays longer, up to lagBytes.
const (
	keepBytes = 32 << 20
	lagBytes  = 4 * keepBytes
)

// locate notes where entries that come into memory are in the log. They replace those
// of their indexes and all behind.
func (l *log) locate(entries []*pb.Entry, numbers []uint64) {
	if len(entries) == 0 {
		return
	}
	l.places = l.places[:entries[0].GetIndex()-l.begin.index-1]
	weight := l.cut.weight
	if n := len(l.places); n > 0 {
		weight = l.places[n-1].weight
	}
	for i, e := range entries {
		weight += uint64(len(e.GetData())) + entryHead
		l.places = append(l.places, place{number: numbers[i], weight: weight})
	}
}

// at is the place of an entry in memory, or of the last one that is not.
func (l *log) at(index uint64) place {
	if index == l.begin.index {
		return l.cut
	}
	return l.places[index-l.begin.index-1]
}

func (l *log) setApplied(b *pebble.Batch, index, stamp uint64) error {
	l.applied, l.stamp = index, stamp
	v := binary.BigEndian.AppendUint64(nil, index)
	return b.Set([]byte(metaApply), binary.BigEndian.AppendUint64(v, stamp), nil)
}

// compact cuts the log behind what members that were away may still ask for. needed is
// the last entry that every follower has which is not away; it is asked when it matters.
func (l *log) compact(needed func() uint64) error {
	weight := l.at(l.applied).weight
	var index uint64
	switch heavy := weight-l.cut.weight >= 2*keepBytes; {
	case l.applied-l.begin.index >= 2*l.keep:
		index = l.applied - l.keep
	case heavy:
		// The first entry behind which there is no more than may stay.
		light := sort.Search(int(l.applied-l.begin.index), func(i int) bool {
			return weight-l.at(l.begin.index+uint64(i)).weight <= keepBytes
		})
		if index = l.begin.index + uint64(light); weight-l.cut.weight < lagBytes {
			index = min(index, needed())
		}
	}
	if kept, any := l.frozen.keeps(); !any && weight-l.cut.weight < lagBytes {
		index = min(index, kept)
	}
	if index <= l.begin.index {
		return nil
	}
	return l.cutAt(index)
}

// cutAt moves the beginning of the log (3).
func (l *log) cutAt(index uint64) error {
	term, err := l.Term(index)
	if err != nil {
		return err
	}
	hs, _, err := l.MemoryStorage.InitialState()
	if err != nil {
		return err
	}
	at := l.at(index)
	next := l.begin
	next.index, next.term, next.covered, next.hard = index, term, at.number, hs
	if err := l.db.Set([]byte(metaBegin), next.encode(), pebble.NoSync); err != nil {
		return err
	}
	if err := l.Compact(index); err != nil {
		return err
	}
	l.places = slices.Clone(l.places[index-l.begin.index:])
	l.begin, l.cut = next, at
	return l.reclaimer.begin(l)
}

// reclaimer gives up segments beside the loop (4).
type reclaimer struct {
	busy    atomic.Bool
	group   sync.WaitGroup
	failed  atomic.Pointer[error]
	durable uint64 // covered by the begin that was last found on disk
}

// begin looks how much of the log the state on disk has made useless. It returns what
// went wrong the last time.
func (r *reclaimer) begin(l *log) error {
	if err := r.failed.Load(); err != nil {
		return *err
	}
	if !r.busy.CompareAndSwap(false, true) {
		return nil
	}
	r.group.Go(func() {
		defer r.busy.Store(false)
		if err := caught(func() error { return r.run(l) }); err != nil {
			err = fmt.Errorf("giving up segments of the log: %w", err)
			r.failed.Store(&err)
		}
	})
	return nil
}

func (r *reclaimer) run(l *log) error {
	durable, err := l.readBegin(&pebble.IterOptions{OnlyReadGuaranteedDurable: true})
	if err != nil || durable == nil {
		return err
	}
	if durable.covered == r.durable {
		// Nothing has moved since the log was cut before: its entries have hardly any
		// effect, and the table that holds them may take long to fill.
		_, err := l.db.AsyncFlush()
		return err
	}
	r.durable = durable.covered
	return l.wal.Reclaim(durable.covered)
}

func openSnapshot(data []byte) (state []byte, stamp uint64, err error) {
	if len(data) < 8 {
		return nil, 0, fmt.Errorf("a snapshot of %d bytes", len(data))
	}
	return data[8:], binary.BigEndian.Uint64(data), nil
}

// reset replaces the log by the snapshot whose state is in the batch, with the hard
// state that comes with it (5). The writer must be idle. It gives up when stop is closed.
func (l *log) reset(b *pebble.Batch, s *pb.Snapshot, hs *pb.HardState, stamp uint64, stop <-chan struct{}) error {
	meta := s.GetMetadata()
	if hs.GetCommit() < meta.GetIndex() {
		return fmt.Errorf("log: a snapshot up to %d came with the commit index %d", meta.GetIndex(), hs.GetCommit())
	}
	if err := l.wal.Sync(); err != nil {
		return err
	}
	next := l.begin
	next.index, next.term, next.covered, next.hard = meta.GetIndex(), meta.GetTerm(), l.wal.Last(), hs
	if err := l.setApplied(b, next.index, stamp); err != nil {
		return err
	}
	if err := b.Set([]byte(metaBegin), next.encode(), nil); err != nil {
		return err
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return err
	}
	if err := l.flush(stop); err != nil {
		return err
	}
	l.hard, l.unsaved = hs, false
	l.begin, l.places, l.cut = next, nil, place{number: next.covered}
	// The mirror keeps no state, only where the log now starts.
	return l.ApplySnapshot(&pb.Snapshot{Metadata: meta})
}
