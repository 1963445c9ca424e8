package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

var disks sync.Map // database to its file system

// move makes the state of a store that of another one.
func move(t *testing.T, from, to *Store, visible uint64) {
	t.Helper()
	take(t, from.Freeze(), to, visible)
}

func take(t *testing.T, f *Frozen, to *Store, visible uint64) {
	t.Helper()
	a := arrive(t, to)
	for _, piece := range pieces(t, f) {
		if err := a.Take(piece); err != nil {
			t.Fatal(err)
		}
	}
	adopt(t, a, visible)
}

func arrive(t *testing.T, s *Store) *Arriving {
	t.Helper()
	fs, _ := disks.Load(s.db)
	if err := errors.Join(fs.(vfs.FS).RemoveAll("arriving"), fs.(vfs.FS).MkdirAll("arriving", 0o755)); err != nil {
		t.Fatal(err)
	}
	return s.Arrive(fs.(vfs.FS), "arriving")
}

func pieces(t *testing.T, f *Frozen) (out [][]byte) {
	t.Helper()
	for {
		piece, err := f.Next()
		if err == io.EOF {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, piece)
	}
}

func adopt(t *testing.T, a *Arriving, visible uint64) {
	t.Helper()
	paths, err := a.Tables()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Adopt(), a.s.db.Ingest(t.Context(), paths)); err != nil {
		t.Fatal(err)
	}
	a.s.Visible(visible)
}

// contents are all keys of the state, with their values.
func contents(t *testing.T, s *Store) (out []string) {
	t.Helper()
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		if bytes.IndexByte(stateKinds, it.Key()[0]) >= 0 {
			out = append(out, string(it.Key())+"\x00"+string(it.Value()))
		}
	}
	return out
}

// TestAStateOfManyPieces moves into a store that has something else, while that is read, and what
// is not of the state stays.
func TestAStateOfManyPieces(t *testing.T) {
	s, other := open(t), open(t)
	big := bytes.Repeat([]byte("x"), 100<<10)
	for i := range 150 {
		e := &Effects{Changes: []Change{{Collection: collection, Key: binary.BigEndian.AppendUint16(nil, uint16(i)), Document: append(slices.Clone(big), byte(i))}}}
		e.Sessions = []SessionRecord{{ID: binary.BigEndian.AppendUint16(nil, uint16(i)), Record: big[:1000]}}
		apply(t, s, uint64(i+1), e)
	}
	for i := range 5 {
		apply(t, other, uint64(i+1), &Effects{Changes: []Change{change(i, -1, i)}, Sessions: []SessionRecord{{[]byte{byte(i)}, []byte("r")}}})
	}
	log := []byte("m\x00applied")
	if err := other.db.Set(log, []byte("stays"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	frozen := s.Freeze()
	apply(t, s, 151, &Effects{Changes: []Change{{Collection: collection, Key: []byte("later"), Document: doc(1)}}})
	reader := other.db.NewSnapshot()
	got := pieces(t, frozen)
	if len(got) < 10 {
		t.Fatalf("%d pieces", len(got))
	}
	a := arrive(t, other)
	for _, piece := range got {
		if err := a.Take(piece); err != nil {
			t.Fatal(err)
		}
		if d, _, err := other.Get(collection, key(3), Latest); err != nil || number32(d) != 3 {
			t.Fatalf("while the state comes in, the old one has %v, %v", d, err)
		}
	}
	adopt(t, a, 150)
	want := slices.DeleteFunc(contents(t, s), func(kv string) bool {
		return strings.HasPrefix(kv, string(documentPrefix(collection, []byte("later")))) || strings.HasPrefix(kv, string(historyKey(151)))
	})
	if !slices.Equal(contents(t, other), want) {
		t.Errorf("there are %d keys, want %d", len(contents(t, other)), len(want))
	}
	if v, closer, err := other.db.Get(log); err != nil || string(v) != "stays" {
		t.Errorf("what is the log's is %q, %v", v, err)
	} else {
		closer.Close()
	}
	if h, err := readHorizon(other.db); err != nil || h != 150 {
		t.Errorf("the horizon is %d, %v", h, err)
	}
	v, closer, err := reader.Get(versionKey(documentPrefix(collection, key(3)), 4))
	if err != nil || v[0] != live {
		t.Errorf("who reads the state before finds %q, %v", v, err)
	} else {
		closer.Close()
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAStateThatIsEmpty leaves nothing of the one before.
func TestAStateThatIsEmpty(t *testing.T) {
	s, other := open(t), open(t)
	apply(t, other, 1, &Effects{Changes: []Change{change(1, -1, 1)}, Sessions: []SessionRecord{{[]byte("s"), []byte("r")}}})
	move(t, s, other, 1)
	if left := contents(t, other); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
}

// TestAPieceThatIsNone is refused.
func TestAPieceThatIsNone(t *testing.T) {
	record := func(kv ...string) (out []byte) {
		for _, s := range kv {
			out = append(binary.AppendUvarint(out, uint64(len(s))), s...)
		}
		return out
	}
	begin := make([]byte, stampSize)
	doc := string(documents)
	for what, in := range map[string][][]byte{
		"no beginning":           {[]byte("short")},
		"a length without bytes": {begin, {5, 'd'}},
		"a key without a value":  {begin, record(doc + "k")},
		"an endless length":      {begin, bytes.Repeat([]byte{0xff}, 12)},
		"a key of the log":       {begin, record("m\x00applied", "1")},
		"a key of nobody":        {begin, record("z", "1")},
		"an empty key":           {begin, record("", "1")},
		"keys out of order":      {begin, record(doc+"b", "1"), record(doc+"a", "1")},
		"the same key again":     {begin, record(doc+"b", "1"), record(doc+"b", "1")},
		"kinds out of order":     {begin, record(string(indexes)+"b", "1"), record(doc+"a", "1")},
		"no catalogue":           {begin, record(string(catalogues)+"\x00\x00\x00\x01", "garbage")},
	} {
		a := arrive(t, open(t))
		var err error
		for _, piece := range in {
			if err = a.Take(piece); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("%s was taken", what)
		}
		a.Abandon()
	}
	a := arrive(t, open(t))
	if _, err := a.Tables(); err == nil {
		t.Error("nothing at all was a state")
	}
	a.Abandon()
}

// TestASweepOfTheStateBefore writes nothing into the one that has come: not the horizon, which is
// lower, nor how far back the history reaches.
func TestASweepOfTheStateBefore(t *testing.T) {
	s, other := open(t), open(t)
	for i := range uint64(20) {
		apply(t, s, i+1, &Effects{Changes: []Change{{Collection: collection, Key: key(1), Document: doc(int(i))}}})
	}
	for i := range uint64(5) {
		apply(t, other, i+1, &Effects{Changes: []Change{{Collection: collection, Key: key(1), Document: doc(int(i))}}})
	}
	todo := other.sweepable(3)
	if len(todo.noted) == 0 {
		t.Fatal("nothing to sweep")
	}
	move(t, s, other, 20)
	if _, err := other.sweep(&todo); !errors.Is(err, errReplaced) {
		t.Errorf("it ended with %v", err)
	}
	if h, err := readHorizon(other.db); err != nil || h != 20 {
		t.Errorf("the horizon is %d, %v", h, err)
	}
	if got, want := contents(t, other), contents(t, s); !slices.Equal(got, want) {
		t.Errorf("there are %d keys, want %d", len(got), len(want))
	}
	if _, ok := other.PinAt(3); ok {
		t.Error("a timestamp before the state can be read")
	}
}

// TestAStateThatIsOlderThanWhatWasSwept is refused.
func TestAStateThatIsOlderThanWhatWasSwept(t *testing.T) {
	s, other := open(t), open(t)
	apply(t, s, 1, &Effects{Changes: []Change{change(1, -1, 1)}})
	for i := range uint64(5) {
		apply(t, other, i+1, &Effects{Changes: []Change{{Collection: collection, Key: key(1), Document: doc(int(i))}}})
	}
	if _, err := other.Sweep(4); err != nil {
		t.Fatal(err)
	}
	a := arrive(t, other)
	for _, piece := range pieces(t, s.Freeze()) {
		if err := a.Take(piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Tables(); err != nil {
		t.Fatal(err)
	}
	if err := a.Adopt(); err == nil {
		t.Error("it was adopted")
	}
}
