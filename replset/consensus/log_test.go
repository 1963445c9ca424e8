package consensus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/assaylab/assay/internal/wal"
)

// shelf is a log with its state, and what must be in them.
type shelf struct {
	t   *testing.T
	fs  *vfs.MemFS
	o   Options
	log *log

	entries map[uint64]*pb.Entry // as raft has them
	last    uint64
	hard    *pb.HardState
}

func newShelf(t *testing.T, keep uint64) *shelf {
	s := &shelf{t: t, fs: vfs.NewCrashableMem(), entries: map[uint64]*pb.Entry{}, hard: &pb.HardState{}}
	s.o = Options{ID: 1, Members: []uint64{1, 2, 3}, Dir: "data/log", SegmentBytes: 4 << 10, KeepEntries: keep}
	s.open()
	t.Cleanup(s.close)
	return s
}

func (s *shelf) open() {
	s.t.Helper()
	if err := s.tryOpen(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelf) tryOpen() error {
	db, err := pebble.Open("data/state", &pebble.Options{FS: s.fs, Logger: quiet{}, DisableWAL: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.o.DB, s.o.FS = db, s.fs
	if s.log, err = openLog(&s.o); err != nil {
		_ = db.Close()
	}
	return err
}

func (s *shelf) close() {
	if s.log == nil {
		return
	}
	if err := s.log.close(false); err != nil {
		s.t.Error(err)
	}
	if err := s.o.DB.Close(); err != nil {
		s.t.Error(err)
	}
	s.log = nil
}

// write appends entries from an index on, in a term, with a commit index, as one write.
func (s *shelf) write(from uint64, count int, term, commit uint64, size int) {
	s.t.Helper()
	m := &pb.Message{Term: proto.Uint64(term), Vote: proto.Uint64(term%3 + 1), Commit: proto.Uint64(commit)}
	for i := range count {
		e := &pb.Entry{Index: proto.Uint64(from + uint64(i)), Term: proto.Uint64(term), Type: pb.EntryNormal.Enum()}
		e.Data = bytes.Repeat([]byte{byte(from) + byte(i)}, size)
		m.Entries = append(m.Entries, e)
		s.entries[e.GetIndex()] = e
		s.last = e.GetIndex()
	}
	s.hard = hardState(m)
	numbers, err := s.log.append([]*pb.Message{m})
	if err == nil {
		err = s.log.mirror(m, numbers[0])
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// apply applies up to an index, and cuts the log.
func (s *shelf) apply(index uint64) {
	s.t.Helper()
	b := s.o.DB.NewBatch()
	defer b.Close()
	err := b.Set(stateKey(index), make([]byte, 300), nil)
	if err == nil {
		err = s.log.setApplied(b, index, index)
	}
	if err == nil {
		err = b.Commit(pebble.NoSync)
	}
	if err == nil {
		err = s.log.compact(func() uint64 { return index })
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// compare looks whether the log has what it must have, and nothing else.
func (s *shelf) compare(settled *pb.HardState) error {
	first, _ := s.log.FirstIndex()
	last, _ := s.log.LastIndex()
	if last != s.last {
		return fmt.Errorf("it ends at %d, want %d", last, s.last)
	}
	if first <= last {
		got, err := s.log.Entries(first, last+1, 1<<30)
		if err != nil {
			return err
		}
		for _, e := range got {
			if !proto.Equal(e, s.entries[e.GetIndex()]) {
				return fmt.Errorf("entry %d is %v, want %v", e.GetIndex(), e, s.entries[e.GetIndex()])
			}
		}
	}
	hs, _, err := s.log.InitialState()
	if err != nil {
		return err
	}
	if hs.GetTerm() != settled.GetTerm() || hs.GetVote() != settled.GetVote() || hs.GetCommit() > s.hard.GetCommit() {
		return fmt.Errorf("hard state %v, want %v", hs, settled)
	}
	if s.log.applied > hs.GetCommit() || s.log.applied < first-1 {
		return fmt.Errorf("applied up to %d, of entries from %d and a commit index of %d", s.log.applied, first, hs.GetCommit())
	}
	return nil
}

// TestALogComesBack drives log and state as raft does, with leaders that lose, cuts,
// flushes, snapshots and crashes in between.
func TestALogComesBack(t *testing.T) {
	const rounds = 40
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	crashes, snapshots, losers, reclaimed := 0, 0, 0, 0
	for range rounds {
		s := newShelf(t, 8)
		term, commit := uint64(1), uint64(0)
		for range 60 {
			switch r.IntN(12) {
			default:
				s.write(s.last+1, 1+r.IntN(4), term, commit, 1+r.IntN(600))
			case 0, 1, 2:
				commit += r.Uint64N(s.last - commit + 1)
				m := &pb.Message{Term: proto.Uint64(term), Vote: proto.Uint64(term%3 + 1), Commit: proto.Uint64(commit)}
				if !mustSync(m, s.log.hard) {
					s.log.note(m)
				} else if _, err := s.log.append([]*pb.Message{m}); err != nil {
					t.Fatal(err)
				}
				s.hard = hardState(m)
				if err := s.log.mirror(m, 0); err != nil {
					t.Fatal(err)
				}
			case 3:
				if s.log.applied < commit {
					s.apply(s.log.applied + 1 + r.Uint64N(commit-s.log.applied))
				}
			case 4: // a leader that lost
				if term++; s.last > commit {
					losers++
					s.write(commit+1+r.Uint64N(s.last-commit), 1+r.IntN(4), term, commit, 1+r.IntN(300))
				}
			case 5:
				if err := s.log.flush(nil); err != nil {
					t.Fatal(err)
				}
			case 6:
				if r.IntN(8) > 0 {
					break
				}
				snapshots++
				index := s.last + 1 + r.Uint64N(20)
				term++
				commit, s.last = index, index
				s.hard = &pb.HardState{Term: proto.Uint64(term), Vote: proto.Uint64(0), Commit: proto.Uint64(index)}
				snap := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: proto.Uint64(index), Term: proto.Uint64(term)}}
				if err := s.log.reset(nil, "data", snap, s.hard, index, nil); err != nil {
					t.Fatal(err)
				}
			case 7:
				crashes++
				left := s.fs.CrashClone(loss(r))
				was := s.log.wal.Last()
				s.close()
				s.fs = left
				s.open()
				if err := s.compare(s.hard); err != nil {
					t.Fatalf("after a crash: %v (seed %d)", err, seed)
				}
				if s.log.wal.Last() > was {
					t.Fatal("there are records that nobody has written")
				}
				// A commit index that was not on disk is heard of again.
				s.log.note(&pb.Message{Term: s.hard.Term, Vote: s.hard.Vote, Commit: s.hard.Commit})
				if err := s.log.SetHardState(s.hard); err != nil {
					t.Fatal(err)
				}
			case 8:
				s.close()
				s.open()
				if err := s.compare(s.hard); err != nil {
					t.Fatalf("after closing: %v (seed %d)", err, seed)
				}
				s.log.note(&pb.Message{Term: s.hard.Term, Vote: s.hard.Vote, Commit: s.hard.Commit})
				if err := s.log.SetHardState(s.hard); err != nil {
					t.Fatal(err)
				}
			}
		}
		if names, _ := s.fs.List("data/log"); len(names) > 0 && !strings.HasSuffix(names[0], "00000001") {
			reclaimed++
		}
		s.close()
	}
	if crashes < rounds || snapshots == 0 || losers == 0 || reclaimed == 0 {
		t.Errorf("%d crashes, %d snapshots, %d leaders that lost, %d logs that gave up segments: this shows too little", crashes, snapshots, losers, reclaimed)
	}
}

// TestATornWrite cuts a write at each of its records: nothing that was promised before
// is missing, and there is no promise that was not made whole.
func TestATornWrite(t *testing.T) {
	s := newShelf(t, 100)
	s.write(1, 3, 1, 1, 100)
	kept := s.log.wal.Last()
	s.write(3, 4, 2, 2, 100) // replaces 3
	whole := s.log.wal.Last()
	name := "data/log/log-00000001"
	sound := contents(t, s.fs, name)
	// The records of the second write, from the back: cut before each.
	var ends []int
	for at := 64; at < len(sound); {
		n := int(binary.LittleEndian.Uint32(sound[at+4:]))
		if n == 0 {
			break
		}
		if number := binary.LittleEndian.Uint64(sound[at+8:]); number > kept && number <= whole {
			ends = append(ends, at)
		}
		at += (n + 7) / 8 * 8
	}
	if len(ends) != 5 {
		t.Fatalf("%d records in the second write, want 4 entries and a hard state", len(ends))
	}
	for i, at := range ends {
		torn := bytes.Clone(sound)
		clear(torn[at:])
		s.close()
		s.fs = vfs.NewCrashableMem()
		s.open()
		s.write(1, 3, 1, 1, 100)
		s.close()
		put(t, s.fs, name, torn)
		s.open()
		last, _ := s.log.LastIndex()
		hs, _, _ := s.log.InitialState()
		wantLast, wantTerm := uint64(2+i), uint64(2)
		if i == 0 {
			wantLast, wantTerm = 3, 1
		}
		if last != wantLast || hs.GetTerm() != wantTerm || hs.GetCommit() != 1 {
			t.Errorf("cut before record %d: it ends at %d with %v, want %d in term %d", i, last, hs, wantLast, wantTerm)
		}
		if vote := hs.GetVote(); i > 0 && vote != 0 || i == 0 && vote != 2 {
			t.Errorf("cut before record %d: a vote for %d", i, vote)
		}
	}
}

func contents(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := files{fs}.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	n, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := files{fs}.Open(name)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsNoLogOfThisMemberIsRefused takes away or exchanges what belongs together.
func TestWhatIsNoLogOfThisMemberIsRefused(t *testing.T) {
	for what, c := range map[string]struct {
		damage func(t *testing.T, s *shelf)
		want   string
	}{
		"another member":     {func(_ *testing.T, s *shelf) { s.o.ID = 2 }, "of member 1, and this is member 2"},
		"no log":             {func(t *testing.T, s *shelf) { must(t, s.fs.RemoveAll("data/log"), s.fs.MkdirAll("data/log", 0o755)) }, "it is gone"},
		"no folder":          {func(t *testing.T, s *shelf) { must(t, s.fs.RemoveAll("data/log")) }, "data/log"},
		"no state":           {func(t *testing.T, s *shelf) { must(t, s.fs.RemoveAll("data/state")) }, "the state is not there"},
		"a segment too few":  {func(t *testing.T, s *shelf) { must(t, s.fs.Remove("data/log/log-00000002")) }, "log-0000000"},
		"a state of another": {stateOfAnother, "were applied and it ends at"},
		"a later version":    {func(t *testing.T, s *shelf) { rewrite(t, s, func(b []byte) { b[0] = 9 }) }, "version 9"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShelf(t, 100)
			for range 20 {
				s.write(s.last+1, 1, 1, s.last, 500)
			}
			s.close()
			c.damage(t, s)
			if err := s.tryOpen(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("gave %v, want %q", err, c.want)
			}
			s.log = nil
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// stateOfAnother leaves a state that is ahead of the log.
func stateOfAnother(t *testing.T, s *shelf) {
	s.open()
	b := s.o.DB.NewBatch()
	must(t, s.log.setApplied(b, 1000, 1000), b.Commit(pebble.NoSync), s.log.flush(nil))
	s.close()
}

// rewrite changes the record of the log's beginning.
func rewrite(t *testing.T, s *shelf, change func([]byte)) {
	s.open()
	b := s.log.begin.encode()
	change(b)
	must(t, s.o.DB.Set([]byte(metaBegin), b, pebble.NoSync), s.log.flush(nil))
	s.close()
}

// TestRecordsThatCannotBeAreRefused has their checksums right.
func TestRecordsThatCannotBeAreRefused(t *testing.T) {
	entry := func(index, term uint64) wal.Op {
		return entryRecord(&pb.Entry{Index: proto.Uint64(index), Term: proto.Uint64(term)})
	}
	hard := func(term, commit uint64) wal.Op {
		return wal.Op{Type: recordHard, Val: appendHard(nil, &pb.HardState{Term: proto.Uint64(term), Commit: proto.Uint64(commit)})}
	}
	for what, c := range map[string]struct {
		ops  []wal.Op
		want string
	}{
		"a gap":                      {[]wal.Op{entry(1, 1), entry(3, 1)}, "entry 2 is missing"},
		"a committed entry replaced": {[]wal.Op{entry(1, 1), entry(2, 1), hard(1, 2), entry(2, 2)}, "entry 2 is replaced"},
		"a term that goes back":      {[]wal.Op{entry(1, 2), entry(2, 1)}, "term 1, after 2"},
		"a commit that goes back":    {[]wal.Op{entry(1, 1), entry(2, 1), hard(1, 2), hard(1, 1)}, "commit index 1, after 1 and 2"},
		"a commit of nothing":        {[]wal.Op{entry(1, 1), hard(1, 5)}, "committed up to 5"},
		"an unknown kind":            {[]wal.Op{{Type: wal.Last}}, "unknown kind"},
		"half a hard state":          {[]wal.Op{{Type: recordHard, Val: []byte{1}}}, "hard state of 1 bytes"},
		"half an entry":              {[]wal.Op{{Type: recordEntry, Key: "x"}}, "head of 1 bytes"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShelf(t, 100)
			var refs []*wal.Op
			for i := range c.ops {
				refs = append(refs, &c.ops[i])
			}
			must(t, s.log.wal.Append(refs), s.log.wal.Sync())
			s.close()
			if err := s.tryOpen(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("gave %v, want %q", err, c.want)
			}
			s.log = nil
		})
	}
}

// TestALogOfLargeEntriesIsCut keeps by bytes what it would keep by number, but not what a
// follower that is there still lacks.
func TestALogOfLargeEntriesIsCut(t *testing.T) {
	s := newShelf(t, 4096)
	s.close()
	s.o.SegmentBytes = 0
	s.fs = vfs.NewCrashableMem()
	s.open()
	const size = 2 << 20
	held := uint64(3)
	needed := func() uint64 { return held }
	for i := uint64(1); i <= 2*keepBytes/size+4; i++ {
		s.write(i, 1, 1, i, size)
		s.log.applied = i
		must(t, s.log.compact(needed))
	}
	if first, _ := s.log.FirstIndex(); first != held+1 {
		t.Errorf("it begins with entry %d; a follower has entries up to %d only", first, held)
	}
	held = s.last
	must(t, s.log.compact(needed))
	first, _ := s.log.FirstIndex()
	if kept := (s.last - first + 1) * size; kept > keepBytes || kept < keepBytes/2 {
		t.Errorf("%d MiB are kept, want %d", kept>>20, keepBytes>>20)
	}
	held = 0 // a follower that lacks too much gets a snapshot
	for range lagBytes/size + 1 {
		s.write(s.last+1, 1, 1, s.last+1, size)
		s.log.applied = s.last
		must(t, s.log.compact(needed))
	}
	if first, _ := s.log.FirstIndex(); (s.last-first+1)*size > lagBytes {
		t.Errorf("entries %d to %d are kept, which is more than %d MiB", first, s.last, lagBytes>>20)
	}
}
