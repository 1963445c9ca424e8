package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }

func open(t *testing.T) *Store {
	t.Helper()
	return openIn(t, vfs.NewMem())
}

func openIn(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	db, err := pebble.Open("db", &pebble.Options{FS: fs, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	disks.Store(db, fs)
	t.Cleanup(func() { db.Close() })
	s, err := New(db)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apply goes through the encoding, as an entry does.
func apply(t *testing.T, s *Store, stamp uint64, e *Effects) {
	t.Helper()
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeEffects(data)
	if err != nil {
		t.Fatal(err)
	}
	b := s.db.NewBatch()
	if err := s.Apply(b, stamp, back); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	s.Visible(stamp)
}

func doc(n int) bsoncore.Document {
	return bsoncore.NewDocumentBuilder().AppendInt32("n", int32(n)).Build()
}

func number32(d bsoncore.Document) int {
	if d == nil {
		return -1
	}
	return int(d.Lookup("n").Int32())
}

// key is prefix-free, as document keys are.
func key(n int) []byte { return []byte{byte('a' + n), 0} }

const (
	collection = 7
	index      = 9
)

// model is the history of a small collection with an index on n mod 4.
type model []map[int]int // by timestamp: document to n

func (m model) at(stamp uint64) map[int]int { return m[min(stamp, uint64(len(m)-1))] }

func indexKey(n int) []byte { return []byte{byte(n % 4), 0} }

func change(k, was, is int) Change {
	c := Change{Collection: collection, Key: key(k)}
	if is >= 0 {
		c.Document = doc(is)
	}
	if was >= 0 && (is < 0 || was%4 != is%4) {
		c.Remove = []IndexKey{{index, indexKey(was)}}
	}
	if is >= 0 && (was < 0 || was%4 != is%4) {
		c.Add = []IndexKey{{index, indexKey(is)}}
	}
	return c
}

func TestEveryTimestampCanBeReadWhilePinned(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := open(t)
	pin, _ := s.Pin()
	m := model{{}}
	for stamp := uint64(1); stamp <= 300; stamp++ {
		state := map[int]int{}
		for k, v := range m.at(stamp - 1) {
			state[k] = v
		}
		var e Effects
		for range 1 + r.IntN(3) {
			k := r.IntN(6)
			was, ok := state[k]
			if !ok {
				was = -1
			}
			if slices.ContainsFunc(e.Changes, func(c Change) bool { return bytes.Equal(c.Key, key(k)) }) {
				continue
			}
			is := r.IntN(100) - 30
			if is < 0 {
				is = -1
				delete(state, k)
			} else {
				state[k] = is
			}
			e.Changes = append(e.Changes, change(k, was, is))
		}
		apply(t, s, stamp, &e)
		m = append(m, state)
		if r.IntN(10) == 0 {
			if _, err := s.Sweep(stamp); err != nil {
				t.Fatal(err)
			}
		}
	}
	compare(t, s, m, 0)

	// With the pin gone the old versions go, and nothing at the horizon does.
	pin.Release()
	const horizon = 250
	if _, err := s.Sweep(horizon); err != nil {
		t.Fatal(err)
	}
	compare(t, s, m, horizon)

	other := open(t)
	move(t, s, other, 300)
	compare(t, other, m, horizon)
}

func compare(t *testing.T, s *Store, m model, from uint64) {
	t.Helper()
	for stamp := from; stamp < uint64(len(m)); stamp++ {
		want := m.at(stamp)
		for k := range 6 {
			d, _, err := s.Get(collection, key(k), stamp)
			if err != nil {
				t.Fatal(err)
			}
			w, ok := want[k]
			if !ok {
				w = -1
			}
			if number32(d) != w {
				t.Fatalf("at %d document %d is %d, want %d", stamp, k, number32(d), w)
			}
		}
		for _, reverse := range []bool{false, true} {
			sc, err := s.Documents(collection, Range{}, stamp, reverse)
			if err != nil {
				t.Fatal(err)
			}
			n := drain(t, sc, reverse, func(f Found) {
				if w := want[int(f.Key[0]-'a')]; number32(f.Document) != w {
					t.Fatalf("at %d the scan found %d, want %d", stamp, number32(f.Document), w)
				}
			})
			if n != len(want) {
				t.Fatalf("at %d the scan (reverse %v) found %d documents, want %d", stamp, reverse, n, len(want))
			}
		}
		for mod := range 4 {
			r := Range{Low: indexKey(mod), High: indexKey(mod)}
			sc, err := s.Entries(index, r, stamp, false)
			if err != nil {
				t.Fatal(err)
			}
			expect := 0
			for _, v := range want {
				if v%4 == mod {
					expect++
				}
			}
			n := drain(t, sc, false, func(f Found) {
				if !bytes.Equal(f.Entry, indexKey(mod)) || want[int(f.Key[0]-'a')]%4 != mod {
					t.Fatalf("at %d the index has %v for document %s", stamp, f.Entry, f.Key)
				}
			})
			if n != expect {
				t.Fatalf("at %d the index has %d documents under %d, want %d", stamp, n, mod, expect)
			}
		}
	}
}

func drain(t *testing.T, sc *Scan, reverse bool, each func(Found)) int {
	t.Helper()
	defer sc.Close()
	var last []byte
	for n := 0; ; n++ {
		f, ok, err := sc.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return n
		}
		place := append(bytes.Clone(f.Entry), f.Key...)
		if last != nil && (bytes.Compare(last, place) > 0) != reverse {
			t.Fatalf("out of order: %x after %x", place, last)
		}
		last = place
		each(f)
	}
}

func TestCatalogueSurvivesReopening(t *testing.T) {
	s := open(t)
	col := &Collection{ID: 3, Name: "db.c", UUID: bson.Binary{Subtype: 4, Data: make([]byte, 16)}, Indexes: []IndexRecord{{ID: 4, Name: "_id_", Spec: bson.Raw(doc(1))}}}
	apply(t, s, 1, &Effects{Put: []*Collection{col}, Changes: []Change{{Collection: 3, Key: key(0), Document: doc(1)}}})
	if got := s.Catalogue().NextID(); got != 5 {
		t.Errorf("the next number is %d, want 5", got)
	}
	again := reopen(t, s, 1)
	if c := again.Catalogue().Collection("db.c"); c == nil || c.ID != 3 || len(c.Indexes) != 1 {
		t.Errorf("after reopening the collection is %+v", c)
	}
	apply(t, s, 2, &Effects{Drop: []uint32{3}})
	if c := s.Catalogue().Collection("db.c"); c != nil {
		t.Error("a dropped collection is still there")
	}
	if d, _, _ := s.Get(3, key(0), Latest); d != nil {
		t.Error("a dropped collection still has documents")
	}
}

func TestACollectionCanTakeTheNameOfOneThatIsDropped(t *testing.T) {
	s := open(t)
	old := &Collection{ID: 3, Name: "db.c", UUID: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}
	apply(t, s, 1, &Effects{Put: []*Collection{old}})
	fresh := &Collection{ID: 4, Name: "db.c", UUID: old.UUID}
	apply(t, s, 2, &Effects{Put: []*Collection{fresh}, Drop: []uint32{3}})
	if c := s.Catalogue().Collection("db.c"); c == nil || c.ID != 4 {
		t.Errorf("the name stands for %+v", c)
	}
}

func TestAnIndexStaysMultikey(t *testing.T) {
	s := open(t)
	x := IndexRecord{ID: 4, Name: "x_1", Spec: bson.Raw(doc(1))}
	many := x
	many.Multikey = true
	col := Collection{ID: 3, Name: "db.c", UUID: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}
	for stamp, r := range []IndexRecord{x, many, x} {
		c := col
		c.Indexes = []IndexRecord{r}
		apply(t, s, uint64(stamp+1), &Effects{Put: []*Collection{&c}})
	}
	if got := s.Catalogue().Collection("db.c").Indexes[0]; !got.Multikey || got.Since != 1 {
		t.Errorf("the index is %+v", got)
	}
}

func TestDamagedEffectsAreRefused(t *testing.T) {
	e := &Effects{
		Changes:  []Change{{Collection: 1, Key: key(0), Document: doc(1), Add: []IndexKey{{2, key(1)}}, Remove: []IndexKey{{2, key(2)}}}},
		Sessions: []SessionRecord{{[]byte("s"), []byte("r")}}, Drop: []uint32{4}, DropIndexes: []uint32{5},
	}
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) {
		if _, err := DecodeEffects(data[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were taken for effects", n, len(data))
		}
	}
	if _, err := DecodeEffects(append(bytes.Clone(data), 0)); err == nil {
		t.Error("effects with a byte too many were accepted")
	}
}

func FuzzDecodeEffects(f *testing.F) {
	data, _ := (&Effects{Changes: []Change{{Collection: 1, Key: key(0), Document: doc(1)}}}).Encode()
	f.Add(data)
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEffects(b)
		if err != nil {
			return
		}
		again, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeEffects(again); err != nil {
			t.Fatalf("what was decoded cannot be read again: %v", err)
		}
	})
}

func TestARestartPromisesNoMoreThanThereIs(t *testing.T) {
	s := open(t)
	for stamp := uint64(1); stamp <= 9; stamp++ {
		apply(t, s, stamp, &Effects{Changes: []Change{{Collection: 1, Key: key(0), Document: doc(int(stamp))}}})
	}
	pin, ok := s.PinAt(3)
	if !ok {
		t.Fatal("nothing was swept yet, and 3 cannot be read")
	}
	pin.Release()
	if _, err := s.Sweep(6); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s, 9)
	if _, ok := s.PinAt(5); ok {
		t.Error("after a restart a timestamp can be read whose versions are gone")
	}
	if _, ok := s.PinAt(9); !ok {
		t.Error("after a restart the newest state cannot be read")
	}
	other := open(t)
	move(t, s, other, 9)
	other = reopen(t, other, 9)
	if _, ok := other.PinAt(8); ok {
		t.Error("a member that was restored promises what the other may have swept")
	}
}

func reopen(t *testing.T, s *Store, visible uint64) *Store {
	t.Helper()
	again, err := New(s.db)
	if err != nil {
		t.Fatal(err)
	}
	again.Visible(visible)
	return again
}

func TestSessionRecordsGoByAnEntry(t *testing.T) {
	s := open(t)
	for i := range 4 {
		apply(t, s, uint64(i+1), &Effects{Sessions: []SessionRecord{{[]byte{byte(i)}, []byte("r")}}})
	}
	stale, err := s.StaleSessions(3, 10)
	if err != nil || len(stale) != 2 {
		t.Fatalf("stale are %v, %v; want two", stale, err)
	}
	if stale, _ := s.StaleSessions(3, 1); len(stale) != 1 {
		t.Errorf("at most one gave %v", stale)
	}
	apply(t, s, 5, &Effects{Sessions: []SessionRecord{{ID: stale[0]}}})
	if r, _, err := s.Session(stale[0]); r != nil || err != nil {
		t.Errorf("a record that was removed is %q, %v", r, err)
	}
	if r, at, err := s.Session(stale[1]); string(r) != "r" || at != 2 || err != nil {
		t.Errorf("another record is %q of %d, %v", r, at, err)
	}
}

func TestNumbersAreNotUsedAgain(t *testing.T) {
	s := open(t)
	col := &Collection{ID: 3, Name: "db.c", UUID: bson.Binary{Subtype: 4, Data: make([]byte, 16)}, Indexes: []IndexRecord{{ID: 7, Name: "x_1", Spec: bson.Raw(doc(1))}}}
	apply(t, s, 1, &Effects{Put: []*Collection{col}})
	apply(t, s, 2, &Effects{Drop: []uint32{3}, DropIndexes: []uint32{7}})
	other := open(t)
	move(t, s, other, 2)
	for who, s := range map[string]*Store{"this member": s, "after a restart": reopen(t, s, 2), "after a snapshot": other} {
		if got := s.Catalogue().NextID(); got != 8 {
			t.Errorf("%s: the next number is %d, want 8", who, got)
		}
	}
}
