package consensus

import (
	"encoding/binary"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/assaylab/assay/internal/wal"
)

// replay builds the log from its records.
type replay struct {
	begin   *begin
	applied uint64
	entries []*pb.Entry
	numbers []uint64      // of their records
	hard    *pb.HardState // of the last record that has one
	stamp   uint64
}

func (r *replay) last() (index, term uint64) {
	if n := len(r.entries); n > 0 {
		return r.entries[n-1].GetIndex(), r.entries[n-1].GetTerm()
	}
	return r.begin.index, r.begin.term
}

func (r *replay) take(op *wal.Op) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("record %d: %w", op.LSN, fmt.Errorf(format, args...))
	}
	switch op.Type {
	case recordHard:
		hs, err := readHard(op.Val)
		if err != nil {
			return fail("%w", err)
		}
		if hs.GetTerm() < r.hard.GetTerm() || hs.GetCommit() < r.hard.GetCommit() {
			return fail("term %d and commit index %d, after %d and %d", hs.GetTerm(), hs.GetCommit(), r.hard.GetTerm(), r.hard.GetCommit())
		}
		r.hard = hs
		return nil
	case recordEntry:
	default:
		return fail("it is of an unknown kind, %d", op.Type)
	}
	e, err := readEntry(op)
	if err != nil {
		return fail("%w", err)
	}
	last, _ := r.last()
	switch settled := max(r.begin.index, r.hard.GetCommit()); {
	case e.GetIndex() > last+1:
		return fail("entry %d is missing, the next is %d", last+1, e.GetIndex())
	case e.GetIndex() <= settled && e.GetIndex() <= last:
		return fail("entry %d is replaced, and entries up to %d were committed", e.GetIndex(), settled)
	case e.GetIndex() <= last:
		keep := e.GetIndex() - r.begin.index - 1
		r.entries, r.numbers = r.entries[:keep], r.numbers[:keep]
	}
	if _, term := r.last(); e.GetTerm() < term {
		return fail("entry %d has term %d, after %d", e.GetIndex(), e.GetTerm(), term)
	}
	r.entries, r.numbers = append(r.entries, e), append(r.numbers, op.LSN)
	if len(e.GetData()) >= stampHeader {
		r.stamp = max(r.stamp, binary.BigEndian.Uint64(e.GetData()))
	}
	return nil
}

// end is the hard state, or why this cannot be the log that the state was made from.
func (r *replay) end() (*pb.HardState, error) {
	last, term := r.last()
	if r.applied > last {
		return nil, fmt.Errorf("entries up to %d were applied and it ends at %d", r.applied, last)
	}
	if r.applied < r.begin.index {
		return nil, fmt.Errorf("entries up to %d were applied and it begins behind %d", r.applied, r.begin.index)
	}
	// begin may be younger than the last record: it has commit indexes that are in none.
	newer := r.hard
	if b := r.begin.hard; b.GetTerm() > newer.GetTerm() || b.GetTerm() == newer.GetTerm() && newer.GetVote() == 0 {
		newer = b
	}
	hs := &pb.HardState{
		Term: proto.Uint64(newer.GetTerm()), Vote: proto.Uint64(newer.GetVote()),
		Commit: proto.Uint64(max(r.hard.GetCommit(), r.begin.hard.GetCommit(), r.applied)),
	}
	if hs.GetCommit() > last {
		return nil, fmt.Errorf("committed up to %d, where entries %d to %d are there and %d were applied", hs.GetCommit(), r.begin.index+1, last, r.applied)
	}
	if term > hs.GetTerm() {
		// The front of a write (1). Who takes in an entry has taken in its term.
		hs.Term, hs.Vote = proto.Uint64(term), proto.Uint64(0)
	}
	return hs, nil
}
