package consensus

import (
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/assaylab/assay/internal/wal"
)

// What a record of the log says.
const (
	recordEntry = wal.First + iota // key: index, term, type; value: data
	recordHard                     // value: term, vote, commit index
)

const (
	entryHead = 8 + 8 + 1
	hardSize  = 3 * 8
)

func entryRecord(e *pb.Entry) wal.Op {
	var head [entryHead]byte
	binary.BigEndian.PutUint64(head[:], e.GetIndex())
	binary.BigEndian.PutUint64(head[8:], e.GetTerm())
	head[16] = byte(e.GetType())
	return wal.Op{Type: recordEntry, Key: string(head[:]), Val: e.GetData()}
}

// readEntry returns an entry that shares nothing with the record.
func readEntry(op *wal.Op) (*pb.Entry, error) {
	if len(op.Key) != entryHead {
		return nil, fmt.Errorf("an entry with a head of %d bytes", len(op.Key))
	}
	head := []byte(op.Key)
	e := &pb.Entry{
		Index: proto.Uint64(binary.BigEndian.Uint64(head)), Term: proto.Uint64(binary.BigEndian.Uint64(head[8:])),
		Type: pb.EntryType(head[16]).Enum(),
	}
	if len(op.Val) > 0 {
		e.Data = slices.Clone(op.Val)
	}
	return e, nil
}

func appendHard(b []byte, hs *pb.HardState) []byte {
	b = binary.BigEndian.AppendUint64(b, hs.GetTerm())
	b = binary.BigEndian.AppendUint64(b, hs.GetVote())
	return binary.BigEndian.AppendUint64(b, hs.GetCommit())
}

func readHard(b []byte) (*pb.HardState, error) {
	if len(b) != hardSize {
		return nil, fmt.Errorf("a hard state of %d bytes", len(b))
	}
	return &pb.HardState{
		Term: proto.Uint64(binary.BigEndian.Uint64(b)), Vote: proto.Uint64(binary.BigEndian.Uint64(b[8:])),
		Commit: proto.Uint64(binary.BigEndian.Uint64(b[16:])),
	}, nil
}

// hardState is the hard state that a write carries, empty if it carries none.
func hardState(m *pb.Message) *pb.HardState {
	if m.GetTerm() == 0 && m.GetVote() == 0 && m.GetCommit() == 0 {
		return &pb.HardState{}
	}
	return &pb.HardState{Term: proto.Uint64(m.GetTerm()), Vote: proto.Uint64(m.GetVote()), Commit: proto.Uint64(m.GetCommit())}
}

// mustSync says whether a write holds anything that a member may be held to: entries, or
// another term or vote than before.
func mustSync(m *pb.Message, before *pb.HardState) bool {
	hs := hardState(m)
	return len(m.GetEntries()) > 0 || !raft.IsEmptyHardState(hs) && raft.MustSync(hs, before, 0)
}

// begin is where a member's log begins, and whose log it is. It is kept in the state.
type begin struct {
	member  uint64
	voters  []uint64
	index   uint64 // of the last entry that is not in the log any more
	term    uint64 // of that one
	covered uint64 // records up to this number say nothing any more
	hard    *pb.HardState
}

const beginVersion = 2 // 1 had the log in the state's database

func (b *begin) encode() []byte {
	out := []byte{beginVersion}
	for _, n := range []uint64{b.member, b.index, b.term, b.covered} {
		out = binary.BigEndian.AppendUint64(out, n)
	}
	out = appendHard(out, b.hard)
	for _, id := range b.voters {
		out = binary.BigEndian.AppendUint64(out, id)
	}
	return out
}

func decodeBegin(b []byte) (*begin, error) {
	const fixed = 1 + 4*8 + hardSize
	if len(b) < fixed || (len(b)-fixed)%8 != 0 {
		return nil, fmt.Errorf("the record of the log's beginning has %d bytes", len(b))
	}
	if b[0] != beginVersion {
		return nil, fmt.Errorf("the log has version %d, this program reads %d", b[0], beginVersion)
	}
	out := &begin{}
	for i, n := range []*uint64{&out.member, &out.index, &out.term, &out.covered} {
		*n = binary.BigEndian.Uint64(b[1+8*i:])
	}
	var err error
	if out.hard, err = readHard(b[fixed-hardSize : fixed]); err != nil {
		return nil, err
	}
	for rest := b[fixed:]; len(rest) > 0; rest = rest[8:] {
		out.voters = append(out.voters, binary.BigEndian.Uint64(rest))
	}
	return out, nil
}
