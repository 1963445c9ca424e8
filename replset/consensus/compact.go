package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/assaylab/assay/replset/internal/tables"
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
	return b.Set([]byte(metaApply), encodeApplied(index, stamp), nil)
}

func encodeApplied(index, stamp uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, index), stamp)
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
	if kept, any := l.passages.keeps(); !any && weight-l.cut.weight < lagBytes {
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

// reset replaces state and log by a snapshot, whose state is in tables, with the hard state that
// comes with it (5). It may write one more in dir. The writer must be idle. It gives up when stop is closed.
func (l *log) reset(state []string, dir string, s *pb.Snapshot, hs *pb.HardState, stamp uint64, stop <-chan struct{}) error {
	meta := s.GetMetadata()
	if hs.GetCommit() < meta.GetIndex() {
		return fmt.Errorf("log: a snapshot up to %d came with the commit index %d", meta.GetIndex(), hs.GetCommit())
	}
	if err := l.wal.Sync(); err != nil {
		return err
	}
	next := l.begin
	next.index, next.term, next.covered, next.hard = meta.GetIndex(), meta.GetTerm(), l.wal.Last(), hs
	w := tables.New(l.db, l.o.FS, l.o.FS.PathJoin(dir, "log"), []byte("m"), []byte("n"))
	err := errors.Join(w.Set([]byte(metaApply), encodeApplied(next.index, stamp)), w.Set([]byte(metaBegin), next.encode()))
	own, closing := w.Close()
	if err := errors.Join(err, closing); err != nil {
		return err
	}
	if err := l.ingest(slices.Concat(state, own)); err != nil {
		return err
	}
	if err := l.flush(stop); err != nil {
		return err
	}
	l.applied, l.stamp = next.index, stamp
	l.hard, l.unsaved = hs, false
	l.begin, l.places, l.cut = next, nil, place{number: next.covered}
	// The mirror keeps no state, only where the log now starts.
	return l.ApplySnapshot(&pb.Snapshot{Metadata: meta})
}

// ingest makes tables part of the database, all or none. They may not be durable then. It gives up
// where the database cannot be written, since pebble then waits for ever.
func (l *log) ingest(paths []string) error {
	done := make(chan error, 1)
	go func() {
		done <- caught(func() error { return l.db.Ingest(context.Background(), paths) })
	}()
	select {
	case err := <-done:
		return err
	case <-l.o.Broken:
		return errors.New("the state cannot be written")
	}
}
