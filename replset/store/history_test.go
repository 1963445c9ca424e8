package store

import (
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// written applies one entry for each of n timestamps, every third of them without an
// event.
func written(t *testing.T, s *Store, n uint64) {
	t.Helper()
	apply(t, s, 1, &Effects{Put: []*Collection{{ID: collection, Name: "db.c", UUID: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}},
		Notices: []bsoncore.Document{doc(0)}})
	for stamp := uint64(2); stamp <= n; stamp++ {
		e := &Effects{Sessions: []SessionRecord{{ID: []byte("s"), Record: []byte("r")}}}
		if stamp%3 != 0 {
			c := change(int(stamp%7), -1, int(stamp))
			c.Kind, c.Note, c.Images, c.Before = Updated, doc(int(stamp)+1), stamp%2 == 0, doc(int(stamp)+2)
			e.Changes = []Change{c}
		}
		apply(t, s, stamp, e)
	}
}

// wantHistory checks that exactly what written wrote from one timestamp to another is
// there, in order.
func wantHistory(t *testing.T, s *Store, from, to uint64) {
	t.Helper()
	next := from
	for next <= to {
		records, err := s.History(next, to)
		if err != nil {
			t.Fatalf("from %d: %v", next, err)
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			for next%3 == 0 {
				next++
			}
			if r.Stamp != next || len(r.Events) != 1 {
				t.Fatalf("timestamp %d with %d events, want %d", r.Stamp, len(r.Events), next)
			}
			e := r.Events[0]
			if next == 1 {
				if number32(e.Notice) != 0 {
					t.Fatalf("the notice is %v", e.Notice)
				}
			} else if e.Namespace != "db.c" || e.Kind != Updated || number32(e.Document) != int(next) || number32(e.Note) != int(next)+1 ||
				number32(e.Before) != int(next)+2 || e.Images != (next%2 == 0) || len(e.UUID.Data) != 16 {
				t.Fatalf("timestamp %d: %+v", next, e)
			}
			next++
		}
	}
	if next < to {
		t.Fatalf("the history ends at %d, want %d", next, to)
	}
}

func TestTheHistoryIsEveryEntryWithEventsInOrder(t *testing.T) {
	s := open(t)
	written(t, s, 50)
	wantHistory(t, s, 1, 50)
	wantHistory(t, s, 20, 40)
	if r, err := s.History(51, 60); err != nil || len(r) != 0 {
		t.Errorf("after the end there is %v, %v", r, err)
	}
}

func TestTheHistoryIsInTheSnapshotAndSurvivesReopening(t *testing.T) {
	s, other := open(t), open(t)
	written(t, s, 50)
	frozen := s.Freeze()
	written(t, other, 5)
	take(t, frozen, other, 50)
	wantHistory(t, other, 1, 50)
	again := reopen(t, other, 50)
	wantHistory(t, again, 1, 50)
	if again.past.total != s.past.total || len(again.past.sizes) != len(s.past.sizes) {
		t.Errorf("reopened it counts %d bytes in %d entries, was %d in %d", again.past.total, len(again.past.sizes), s.past.total, len(s.past.sizes))
	}
}

func TestWhatIsOverTheLimitIsGivenUpOldestFirst(t *testing.T) {
	s := open(t)
	written(t, s, 50)
	s.SetHistory(s.past.total / 2)
	if _, err := s.Sweep(0); err != nil {
		t.Fatal(err)
	}
	gone := s.past.gone
	if gone < 10 || gone > 40 || s.past.total > s.past.limit {
		t.Fatalf("gave up all up to %d, left %d of %d bytes", gone, s.past.total, s.past.limit)
	}
	again := reopen(t, s, 50)
	for name, s := range map[string]*Store{"as it is": s, "reopened": again} {
		for _, from := range []uint64{1, gone - 1, gone} {
			if _, err := s.History(from, 50); !errors.Is(err, ErrHistoryLost) {
				t.Errorf("%s: from %d: %v", name, from, err)
			}
		}
		wantHistory(t, s, gone+1, 50)
	}
}

func TestDamagedHistoryIsAnErrorAndNoPanic(t *testing.T) {
	s := open(t)
	written(t, s, 2)
	v, closer, err := s.db.Get(historyKey(2))
	if err != nil {
		t.Fatal(err)
	}
	whole := append([]byte(nil), v...)
	closer.Close()
	for n := range whole {
		if _, err := decodeHistory(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were taken for a record", n, len(whole))
		}
		for _, b := range []byte{0, 0x7f, 0xff} {
			damaged := append([]byte(nil), whole...)
			damaged[n] = b
			_ = fmt.Sprint(decodeHistory(damaged))
		}
	}
}
