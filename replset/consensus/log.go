package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"

	"github.com/cockroachdb/pebble/v2"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/assaylab/assay/internal/wal"
	"github.com/assaylab/assay/replset/internal/defect"
)

// log is raft's storage: what may still be asked for in memory, everything durable in
// two places that have no order in common. The log proper is in segments of package
// wal, which a write syncs; the state, with what the log has made of it, is in pebble,
// which syncs when it moves a full table from memory to disk, and needs no log of its
// own. What a crash leaves of pebble is the state after some number of its batches, in
// the order in which they were committed; of the log, all that was synced and perhaps
// the front of what was not.
//
//		state   applied        index and timestamp, in the batch of what was applied
//		        begin          where the log begins, see the type
//		log     entry          replaces the one of its index and all behind it
//		        hard state     term, vote, commit index; the last one counts
//
//	 1. Records are in the order in which raft handed them out, and within one write the
//	    hard state comes last. So a write that a crash has torn leaves entries without the
//	    term they came in, of which nobody was told; and never a commit index without the
//	    entries that it speaks of, nor a vote without its term.
//	 2. The state is never ahead of the log: only what is in this member's own synced log
//	    is applied. It may be behind by any number of entries; those up to the commit
//	    index are applied again before the member is heard of.
//	 3. begin is written behind the batch that applied the entry that it names. So
//	    whatever a crash leaves of the state, the log goes on from there.
//	 4. A segment is given up when all its records are covered by the begin of a state
//	    that is on disk. Which names of segments a crash keeps is package wal's affair.
//	 5. A snapshot of another member replaces state and begin in one batch, which is on disk
//	    before anybody hears of it, and covers all records there are; the hard state that
//	    came with it is in begin. The records need not be removed with it.
//	    Everything before it is synced first, so that no number is given twice.
//	 6. A commit index alone is not written: it is in begin and beside the next write. What
//	    was applied was committed, and a start raises it to that.
//	 7. A new member's log is there before begin says so. Begin without a log is a log that
//	    was lost, and a log without begin a state that was; neither starts. Nor does a
//	    log that ends before what was applied, or whose commit index lies beyond it.
//	 8. Nothing is acknowledged after a write or a sync that failed: the member stops.
//
// Entries that were cut from memory are not read back from segments. A member that lacks
// them gets a snapshot, as it always did; the segments are for starting.
//
// Rejected: the log in pebble, whose own log grows, so that each sync commits the
// file system's journal too, and which wrote each entry twice more, to a table and
// out of it again; a record for a snapshot in the log beside its state in pebble,
// which leaves moments in which only one of the two knows of it.
type log struct {
	*raft.MemoryStorage
	o    *Options
	db   *pebble.DB
	wal  *wal.Log
	keep uint64 // Options.KeepEntries
	late bool   // defect.AckBeforeSync

	// Of whom writes: the writer, and the loop while that is idle.
	hard    *pb.HardState // the newest
	unsaved bool          // hard is not in the log
	ops     []wal.Op
	refs    []*wal.Op

	// Of the loop.
	applied   uint64
	stamp     uint64 // of the last applied entry that has one
	lastStamp uint64 // of the whole log, when it was opened
	begin     begin  // as last written
	places    []place
	cut       place // of the last entry that is not in memory any more
	freeze    func() Frozen
	passages  passages
	reclaimer reclaimer
}

// place is where an entry in memory is in the log.
type place struct {
	number uint64 // of its record
	weight uint64 // of all entries up to this one, in bytes
}

const (
	metaApply = "m\x00applied"
	metaBegin = "m\x00begin"

	segmentBytes = 4 << 20
	// firstBytes is the size of a segment that starting a member makes.
	firstBytes = 512 << 10
	spares     = 2
)

func (o *Options) wal() wal.Config {
	size := o.SegmentBytes
	if size == 0 {
		size = segmentBytes
	}
	// A segment of another member is none of this log.
	magic := append([]byte("replset"), byte('0'+o.ID%10))
	return wal.Config{FS: files{o.FS}, Dir: o.Dir, Magic: string(magic), SegmentBytes: size, FirstBytes: min(size, firstBytes), Spares: spares}
}

// openLog reads state and log, and makes both of a new member.
func openLog(o *Options) (*log, error) {
	if err := o.FS.RemoveAll(o.arriving()); err != nil {
		return nil, err
	}
	l := &log{MemoryStorage: raft.NewMemoryStorage(), o: o, db: o.DB, keep: o.KeepEntries, late: o.Defect == defect.AckBeforeSync}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("the log in %s: %w", o.Dir, err)
	}
	return l, nil
}

func (l *log) open() error {
	if err := l.readApplied(); err != nil {
		return err
	}
	found, err := l.readBegin(nil)
	if err != nil {
		return err
	}
	if found == nil {
		if err := l.makeFolder(); err != nil {
			return err
		}
		l.begin = begin{member: l.o.ID, voters: l.o.Members, hard: &pb.HardState{}}
	} else {
		l.begin = *found
	}
	if l.begin.member != l.o.ID {
		return fmt.Errorf("it is of member %d, and this is member %d", l.begin.member, l.o.ID)
	}
	r := replay{begin: &l.begin, applied: l.applied, hard: &pb.HardState{}}
	var rec wal.Recovered
	if l.wal, rec, err = wal.Open(l.o.wal(), l.begin.covered, r.take); err != nil {
		return err
	}
	if err := l.adopt(found, &r, rec); err != nil {
		return errors.Join(err, l.wal.Close(true))
	}
	return nil
}

// adopt takes in what was read, if it can be what a member has left.
func (l *log) adopt(found *begin, r *replay, rec wal.Recovered) error {
	switch {
	case found != nil && rec.None:
		return errors.New("it is gone, and the state that was made from it is there")
	case found == nil && (l.wal.Last() > 0 || l.applied > 0):
		return fmt.Errorf("it has %d records, and the state is not there that says where it begins", l.wal.Last())
	}
	hs, err := r.end()
	if err != nil {
		return err
	}
	l.hard = hs
	if err := l.SetHardState(hs); err != nil {
		return err
	}
	if l.begin.index > 0 {
		meta := &pb.SnapshotMetadata{Index: proto.Uint64(l.begin.index), Term: proto.Uint64(l.begin.term)}
		if err := l.ApplySnapshot(&pb.Snapshot{Metadata: meta}); err != nil {
			return err
		}
	}
	l.lastStamp = max(l.stamp, r.stamp)
	l.locate(r.entries, r.numbers)
	if err := l.MemoryStorage.Append(r.entries); err != nil {
		return err
	}
	l.cut.number = l.begin.covered
	if found == nil {
		return l.bootstrap()
	}
	return nil
}

// makeFolder makes the folder of a new log, durably.
func (l *log) makeFolder() error {
	fs := files{l.o.FS}
	return errors.Join(fs.MkdirAll(l.o.Dir), fs.SyncDir(path.Dir(l.o.Dir)))
}

// bootstrap writes the beginning of a new log (7).
func (l *log) bootstrap() error {
	b := l.db.NewBatch()
	defer b.Close()
	if err := b.Set([]byte(metaBegin), l.begin.encode(), nil); err != nil {
		return err
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return err
	}
	return l.flush(nil)
}

// flush puts on disk what pebble has in memory. It gives up when stop is closed, and when
// that cannot be done: pebble tries for ever.
func (l *log) flush(stop <-chan struct{}) error {
	done, err := l.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-l.o.Broken:
		return errors.New("the state cannot be written")
	case <-stop:
		return ErrStopped
	}
}

func (l *log) readApplied() error {
	v, closer, err := l.db.Get([]byte(metaApply))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	if len(v) != 16 {
		return fmt.Errorf("the applied index has %d bytes", len(v))
	}
	l.applied, l.stamp = binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:])
	return nil
}

// readBegin returns begin as an iterator with those options sees it, nil if there is none.
func (l *log) readBegin(o *pebble.IterOptions) (*begin, error) {
	it, err := l.db.NewIter(o)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if !it.SeekGE([]byte(metaBegin)) || string(it.Key()) != metaBegin {
		return nil, it.Error()
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return nil, err
	}
	return decodeBegin(v)
}

// InitialState is raft's.
func (l *log) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hs, _, err := l.MemoryStorage.InitialState()
	return hs, &pb.ConfState{Voters: l.begin.voters}, err
}

// append writes what raft wants stored, in order, syncs it if it must be, and returns
// the number of the first record of each message's entries. It touches the log only, so
// that the writer may call it.
func (l *log) append(messages []*pb.Message) (numbers []uint64, err error) {
	l.ops = l.ops[:0]
	must := false
	numbers = make([]uint64, len(messages))
	for i, m := range messages {
		must = l.note(m) || must
		numbers[i] = uint64(len(l.ops)) // its place, for now
		for _, e := range m.GetEntries() {
			l.ops = append(l.ops, entryRecord(e))
		}
	}
	if !must {
		return numbers, nil
	}
	if l.unsaved {
		l.ops = append(l.ops, wal.Op{Type: recordHard, Val: appendHard(nil, l.hard)})
		l.unsaved = false
	}
	l.refs = l.refs[:0]
	for i := range l.ops {
		l.refs = append(l.refs, &l.ops[i])
	}
	if err := l.wal.Append(l.refs); err != nil {
		return nil, err
	}
	for i, at := range numbers {
		numbers[i] = l.ops[min(int(at), len(l.ops)-1)].LSN
	}
	clear(l.ops) // they hold on to the entries
	if l.o.NoSync || l.late {
		return numbers, nil
	}
	return numbers, l.wal.Sync()
}

// note takes note of the hard state that a write carries, and says whether the write must
// be synced.
func (l *log) note(m *pb.Message) bool {
	must := mustSync(m, l.hard)
	if hs := hardState(m); !raft.IsEmptyHardState(hs) {
		l.hard, l.unsaved = hs, true
	}
	return must
}

// mirror takes a write that append has made into memory.
func (l *log) mirror(m *pb.Message, number uint64) error {
	if hs := hardState(m); !raft.IsEmptyHardState(hs) {
		if err := l.SetHardState(hs); err != nil {
			return err
		}
	}
	if entries := m.GetEntries(); len(entries) > 0 {
		numbers := make([]uint64, len(entries))
		for i := range numbers {
			numbers[i] = number + uint64(i)
		}
		l.locate(entries, numbers)
		return l.MemoryStorage.Append(entries)
	}
	return nil
}

// close ends the log. With broken nothing is written any more.
func (l *log) close(broken bool) error {
	l.passages.end()
	l.reclaimer.group.Wait()
	return l.wal.Close(broken)
}
