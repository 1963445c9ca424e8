package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Keys of the log within the member's database.
const (
	logPrefix = 'l' // l, index: entry
	metaHard  = "m\x00hard"
	metaConf  = "m\x00conf"
	metaApply = "m\x00applied" // applied index and timestamp
	metaFirst = "m\x00first"   // index and term that the log starts behind
)

// log is raft's storage: a mirror in memory, everything durable in pebble.
type log struct {
	*raft.MemoryStorage
	db        *pebble.DB
	write     *pebble.WriteOptions
	keep      uint64 // Options.KeepEntries
	late      bool   // defect.AckBeforeSync
	applied   uint64
	stamp     uint64        // of the last applied entry that has one
	lastStamp uint64        // of the whole log, when it was opened
	hard      *pb.HardState // as last written; belongs to whom last does
	last      uint64        // index of the last entry in the database; the writer's, and restore's while it is idle
	conf      *pb.ConfState
	snapshot  func() ([]byte, error)
}

func logKey(index uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{logPrefix}, index)
}

func openLog(db *pebble.DB, noSync bool, keep uint64) (*log, error) {
	l := &log{MemoryStorage: raft.NewMemoryStorage(), db: db, write: pebble.Sync, keep: keep}
	if noSync {
		l.write = pebble.NoSync
	}
	if b, err := l.get(metaApply); err != nil {
		return nil, err
	} else if b != nil {
		if len(b) != 16 {
			return nil, fmt.Errorf("log: the applied index has %d bytes", len(b))
		}
		l.applied, l.stamp = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		l.lastStamp = l.stamp
	}
	if b, err := l.get(metaConf); err != nil {
		return nil, err
	} else if b != nil {
		l.conf = &pb.ConfState{}
		if err := proto.Unmarshal(b, l.conf); err != nil {
			return nil, fmt.Errorf("log: membership: %w", err)
		}
	}
	if b, err := l.get(metaHard); err != nil {
		return nil, err
	} else if b != nil {
		hs := &pb.HardState{}
		if err := proto.Unmarshal(b, hs); err != nil {
			return nil, fmt.Errorf("log: hard state: %w", err)
		}
		if err := l.SetHardState(hs); err != nil {
			return nil, err
		}
	}
	return l, l.load()
}

func (l *log) get(key string) ([]byte, error) {
	v, closer, err := l.db.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return append([]byte(nil), v...), nil
}

// load reads the entries into memory.
func (l *log) load() error {
	first, term := uint64(0), uint64(0)
	if b, err := l.get(metaFirst); err != nil {
		return err
	} else if len(b) == 16 {
		first, term = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	}
	if first > 0 {
		s := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: proto.Uint64(first), Term: proto.Uint64(term), ConfState: l.conf}}
		if err := l.ApplySnapshot(s); err != nil {
			return err
		}
	}
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{logPrefix}, UpperBound: []byte{logPrefix + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	var entries []*pb.Entry
	want := first + 1
	for it.First(); it.Valid(); it.Next() {
		e := &pb.Entry{}
		if err := proto.Unmarshal(it.Value(), e); err != nil {
			return fmt.Errorf("log: entry at %x: %w", it.Key(), err)
		}
		if e.GetIndex() < want {
			continue
		}
		if e.GetIndex() != want {
			return fmt.Errorf("log: entry %d is missing, the next is %d", want, e.GetIndex())
		}
		if len(e.GetData()) >= stampHeader {
			l.lastStamp = max(l.lastStamp, binary.BigEndian.Uint64(e.GetData()))
		}
		want++
		entries = append(entries, e)
	}
	if err := it.Error(); err != nil {
		return err
	}
	if l.applied >= want {
		return fmt.Errorf("log: entries up to %d were applied and the log ends at %d", l.applied, want-1)
	}
	hs, _, err := l.MemoryStorage.InitialState()
	if err != nil {
		return err
	}
	if hs.GetCommit() < l.applied {
		// The commit index is written beside what it allows to be applied, and may
		// be behind. What was applied was committed.
		hs = &pb.HardState{Term: hs.Term, Vote: hs.Vote, Commit: proto.Uint64(l.applied)}
		if err := l.SetHardState(hs); err != nil {
			return err
		}
	}
	if commit := hs.GetCommit(); commit < first || commit >= want {
		return fmt.Errorf("log: committed up to %d, where entries %d to %d are there and %d were applied", commit, first+1, want-1, l.applied)
	}
	l.last, l.hard = want-1, hs
	return l.MemoryStorage.Append(entries)
}

// bootstrap writes the membership into a new log.
func (l *log) bootstrap(members []uint64) error {
	if l.conf != nil {
		return nil
	}
	l.conf = &pb.ConfState{Voters: members}
	b, err := proto.Marshal(l.conf)
	if err != nil {
		return err
	}
	return l.db.Set([]byte(metaConf), b, l.write)
}

// InitialState is raft's.
func (l *log) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hs, _, err := l.MemoryStorage.InitialState()
	return hs, l.conf, err
}

// append writes what raft wants stored, in order, and syncs entries, terms and votes.
// A commit index alone is not synced, although raft attaches an answer to it: what
// was committed can be found out again, and the answer speaks of entries that an
// earlier call has synced. It touches the database only, so that the writer may
// call it.
func (l *log) append(messages []*pb.Message) error {
	b := l.db.NewBatch()
	defer b.Close()
	how := pebble.NoSync
	for _, m := range messages {
		hs := hardState(m)
		changed := !raft.IsEmptyHardState(hs) && raft.MustSync(hs, l.hard, 0)
		if (len(m.GetEntries()) > 0 || changed) && !l.late {
			how = l.write
		}
		if !raft.IsEmptyHardState(hs) {
			l.hard = hs
			v, err := proto.Marshal(hs)
			if err != nil {
				return err
			}
			if err := b.Set([]byte(metaHard), v, nil); err != nil {
				return err
			}
		}
		entries := m.GetEntries()
		if len(entries) == 0 {
			continue
		}
		// What stood behind the first new entry was of a leader that lost.
		if from := entries[0].GetIndex(); from <= l.last {
			if err := b.DeleteRange(logKey(from), logKey(l.last+1), nil); err != nil {
				return err
			}
		}
		for _, e := range entries {
			v, err := proto.Marshal(e)
			if err != nil {
				return err
			}
			if err := b.Set(logKey(e.GetIndex()), v, nil); err != nil {
				return err
			}
		}
		l.last = entries[len(entries)-1].GetIndex()
	}
	return b.Commit(how)
}

// mirror takes a write that append has made into the mirror.
func (l *log) mirror(m *pb.Message) error {
	if hs := hardState(m); !raft.IsEmptyHardState(hs) {
		if err := l.SetHardState(hs); err != nil {
			return err
		}
	}
	return l.MemoryStorage.Append(m.GetEntries())
}

// hardState is the hard state that a write carries, empty if it carries none.
func hardState(m *pb.Message) *pb.HardState {
	if m.GetTerm() == 0 && m.GetVote() == 0 && m.GetCommit() == 0 {
		return &pb.HardState{}
	}
	return &pb.HardState{Term: proto.Uint64(m.GetTerm()), Vote: proto.Uint64(m.GetVote()), Commit: proto.Uint64(m.GetCommit())}
}

func (l *log) setApplied(b *pebble.Batch, index, stamp uint64) error {
	l.applied, l.stamp = index, stamp
	v := binary.BigEndian.AppendUint64(nil, index)
	return b.Set([]byte(metaApply), binary.BigEndian.AppendUint64(v, stamp), nil)
}

// compact cuts the log behind what members that were away may still ask for.
func (l *log) compact(applied uint64) error {
	first, err := l.FirstIndex()
	if err != nil {
		return err
	}
	if applied < first+2*l.keep {
		return nil
	}
	cut := applied - l.keep
	term, err := l.Term(cut)
	if err != nil {
		return err
	}
	b := l.db.NewBatch()
	defer b.Close()
	if err := l.setFirst(b, cut, term); err != nil {
		return err
	}
	if err := b.DeleteRange(logKey(0), logKey(cut+1), nil); err != nil {
		return err
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return err
	}
	return l.Compact(cut)
}

func (l *log) setFirst(b *pebble.Batch, index, term uint64) error {
	v := binary.BigEndian.AppendUint64(nil, index)
	return b.Set([]byte(metaFirst), binary.BigEndian.AppendUint64(v, term), nil)
}

// Snapshot is raft's: the whole state as of the last applied entry. The loop
// calls it through raft, so that the state does not move meanwhile.
func (l *log) Snapshot() (*pb.Snapshot, error) {
	state, err := l.snapshot()
	if err != nil {
		return nil, err
	}
	term, err := l.Term(l.applied)
	if err != nil {
		return nil, err
	}
	data := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(state)), l.stamp)
	return &pb.Snapshot{
		Data:     append(data, state...),
		Metadata: &pb.SnapshotMetadata{Index: proto.Uint64(l.applied), Term: proto.Uint64(term), ConfState: l.conf},
	}, nil
}

func openSnapshot(data []byte) (state []byte, stamp uint64, err error) {
	if len(data) < 8 {
		return nil, 0, fmt.Errorf("a snapshot of %d bytes", len(data))
	}
	return data[8:], binary.BigEndian.Uint64(data), nil
}

// reset replaces the log by the snapshot whose state is in the batch, with the hard
// state that comes with it, and syncs: invariant D3 of docs/replset.md, section 5.
func (l *log) reset(b *pebble.Batch, s *pb.Snapshot, hs *pb.HardState, stamp uint64) error {
	meta := s.GetMetadata()
	if hs.GetCommit() < meta.GetIndex() {
		return fmt.Errorf("log: a snapshot up to %d came with the commit index %d", meta.GetIndex(), hs.GetCommit())
	}
	v, err := proto.Marshal(hs)
	if err != nil {
		return err
	}
	if err := b.Set([]byte(metaHard), v, nil); err != nil {
		return err
	}
	if err := b.DeleteRange([]byte{logPrefix}, []byte{logPrefix + 1}, nil); err != nil {
		return err
	}
	if err := l.setFirst(b, meta.GetIndex(), meta.GetTerm()); err != nil {
		return err
	}
	if err := l.setApplied(b, meta.GetIndex(), stamp); err != nil {
		return err
	}
	if err := b.Commit(l.write); err != nil {
		return err
	}
	l.last, l.hard = meta.GetIndex(), hs
	// The mirror keeps no state, only where the log now starts.
	return l.ApplySnapshot(&pb.Snapshot{Metadata: meta})
}
