package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/internal/fsys"
	"pgregory.net/rapid"
)

const (
	segBytes = 4096
	magic    = "testlog1"
	put      = First
)

func at(fs fsys.FS) Config { return Config{FS: fs, Dir: "d", Magic: magic, SegmentBytes: segBytes} }

func collect(into *[]Op) func(*Op) error {
	return func(op *Op) error {
		*into = append(*into, Op{op.Type, op.Key, bytes.Clone(op.Val), op.LSN})
		return nil
	}
}

// TestWhatIsAppendedIsRead goes through segments, reopenings and reclaims.
func TestWhatIsAppendedIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := crashfs.New()
		var want, got []Op
		covered := uint64(0)
		l, _, err := Open(at(fs), 0, collect(&got))
		if err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				var ops []*Op
				for range rapid.IntRange(1, 9).Draw(t, "batch") {
					ops = append(ops, &Op{Type: put, Key: rapid.StringN(0, 20, -1).Draw(t, "k"), Val: rapid.SliceOfN(rapid.Byte(), 0, 900).Draw(t, "v")})
				}
				if err := l.Append(ops); err != nil {
					t.Fatal(err)
				}
				for _, op := range ops {
					want = append(want, *op)
				}
			},
			"sync": func(t *rapid.T) {
				if err := l.Sync(); err != nil || l.Durable() != l.Last() {
					t.Fatal(err, l.Durable(), l.Last())
				}
			},
			"reclaim": func(t *rapid.T) {
				covered = l.Last()
				if err := l.Sync(); err != nil {
					t.Fatal(err)
				}
				if err := l.Reclaim(covered); err != nil {
					t.Fatal(err)
				}
			},
			"reopen": func(t *rapid.T) {
				if err := l.Close(false); err != nil {
					t.Fatal(err)
				}
				got = nil
				if l, _, err = Open(at(fs), covered, collect(&got)); err != nil {
					t.Fatal(err)
				}
				if !slices.EqualFunc(got, want[covered:], func(a, b Op) bool {
					return a.LSN == b.LSN && a.Key == b.Key && bytes.Equal(a.Val, b.Val)
				}) {
					t.Fatalf("read %d operations after %d, want %d", len(got), covered, len(want)-int(covered))
				}
			},
		})
		if err := l.Close(false); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTornBatch is the reason for the durable mark: of a batch that was never synced a later
// sector may survive without an earlier one. That is a torn tail and no damage.
func TestTornBatch(t *testing.T) {
	fs := crashfs.New()
	nop := func(*Op) error { return nil }
	l, _, err := Open(at(fs), 0, nop)
	if err != nil {
		t.Fatal(err)
	}
	batch := func(n int) (ops []*Op) {
		for i := range n {
			ops = append(ops, &Op{Type: put, Key: fmt.Sprint("key", i), Val: make([]byte, 300)})
		}
		return ops
	}
	if err := l.Append(batch(1)); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(batch(3)); err != nil {
		t.Fatal(err)
	}
	name := "d/" + segmentName(1)
	b := fs.Contents(name)
	first := segmentHead + endSize + recordSize(batch(1)[0])
	b[first+30] ^= 1 // the first record of the torn batch, not the ones behind it
	fs.Replace(name, b)
	_, rec, err := Open(at(fs), 0, nop)
	if err != nil || rec.Replayed != 1 || !rec.Cut || rec.CutAt != first {
		t.Fatalf("torn batch: %+v, %v", rec, err)
	}
	// Once something later says that it was synced, the same bytes are damage.
	damage := (*DamageError)(nil)
	fs2 := crashfs.New()
	l2, _, err := Open(at(fs2), 0, nop)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3, 1} {
		if err := l2.Append(batch(n)); err != nil {
			t.Fatal(err)
		}
		if err := l2.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	b2 := fs2.Contents(name)
	b2[first+30] ^= 1
	fs2.Replace(name, b2)
	if _, _, err = Open(at(fs2), 0, nop); !errors.As(err, &damage) || damage.Offset != first || damage.First != 2 || damage.Last != 4 {
		t.Fatalf("damage of a synced record: %v", err)
	}
}

// TestTheLogOfAnotherOwnerIsRefused: records of one owner mean something else to another.
func TestTheLogOfAnotherOwnerIsRefused(t *testing.T) {
	fs := crashfs.New()
	c := at(fs)
	nop := func(*Op) error { return nil }
	l, rec, err := Open(c, 0, nop)
	if err != nil || !rec.None {
		t.Fatalf("a new log: %+v, %v", rec, err)
	}
	if err := errors.Join(l.Append([]*Op{{Type: put, Key: "k"}}), l.Close(false)); err != nil {
		t.Fatal(err)
	}
	for _, magic := range []string{"testlog2", "short"} {
		c.Magic = magic
		if _, _, err := Open(c, 0, nop); err == nil || !strings.Contains(err.Error(), strconv.Quote(magic)) {
			t.Errorf("opened as %q it gave %v", magic, err)
		}
	}
	if _, rec, err = Open(at(fs), 0, nop); err != nil || rec.None || rec.Replayed != 1 {
		t.Errorf("opened as itself it gave %+v, %v", rec, err)
	}
}

// TestSizes: the segment that opening makes may be smaller than the others, and as many
// spares wait as were asked for.
func TestSizes(t *testing.T) {
	fs := crashfs.New()
	c := at(fs)
	c.FirstBytes, c.Spares = 1024, 3
	l, _, err := Open(c, 0, func(*Op) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if err := errors.Join(l.Append([]*Op{{Type: put, Val: make([]byte, 900)}}), l.Sync()); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Reclaim(l.Last()); err != nil {
		t.Fatal(err)
	}
	spare := 0
	names, err := fs.List("d")
	for _, name := range names {
		if strings.HasPrefix(name, "spare-") {
			spare++
		}
		if n := len(fs.Contents("d/" + name)); n != segBytes {
			t.Errorf("%s has %d bytes", name, n)
		}
	}
	if err != nil || spare < 2 || spare > 3 {
		t.Errorf("%d spares in %v, %v", spare, names, err)
	}
	if err := l.Close(false); err != nil {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(appendRecord(nil, &Op{Type: put, Key: "k", Val: []byte("v"), LSN: 9}, 3, 7), uint32(3))
	f.Add(appendRecord(nil, &Op{Type: typeStart, LSN: 9}, 3, 9), uint32(3))
	f.Fuzz(func(t *testing.T, b []byte, id uint32) {
		if len(b) > recordHead && len(b) < 1<<16 {
			// Behind the checksum too, which a fuzzer does not get past by itself.
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b[4:], uint32(len(b)))
			binary.LittleEndian.PutUint32(b[16:], id)
			binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], crcTable()))
		}
		p, ok := parse(b, id)
		if !ok {
			return
		}
		again := appendRecord(nil, &p.op, id, p.durable)
		if q, ok := parse(again, id); !ok || q.op.Key != p.op.Key || !bytes.Equal(q.op.Val, p.op.Val) || q.op.LSN != p.op.LSN || q.durable != p.durable {
			t.Fatalf("%+v comes back as %+v", p, q)
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add(header(magic, 7, 4096))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= segmentHead {
			// Behind the checksum too.
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], crcTable()))
		}
		// What is behind the size has no meaning yet.
		if id, size, err := parseHeader(magic, b); err == nil && !bytes.Equal(header(magic, id, size)[:24], b[:24]) {
			t.Fatalf("%x comes back as segment %d of %d bytes", b[:24], id, size)
		}
	})
}
