package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset/store"
	"github.com/assaylab/assay/replset/wire"
)

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }

// stuck is a server on which every proposal is under way for ever, and the number
// of proposals.
func stuck(t *testing.T) (*Server, *atomic.Int64) {
	t.Helper()
	db, err := pebble.Open("db", &pebble.Options{FS: vfs.NewMem(), Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	st, err := store.New(db)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "v", Value: 0}})
	if err != nil {
		t.Fatal(err)
	}
	b := db.NewBatch()
	err = st.Apply(b, 1, &store.Effects{
		Put:     []*store.Collection{{ID: 1, Name: "db.c", UUID: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}},
		Changes: []store.Change{{Collection: 1, Key: documentKey(doc), Document: doc}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	st.Visible(1)
	begun := &atomic.Int64{}
	s := New(Member{
		Store: st, Hosts: []string{"h:1"},
		Begin: func(context.Context, uint64, []byte) (func(context.Context) (Applied, error), error) {
			begun.Add(1)
			return func(ctx context.Context) (Applied, error) {
				<-ctx.Done()
				return Applied{}, ctx.Err()
			}, nil
		},
	}, Options{})
	s.SetRole(Role{Term: 1, Primary: 0, Writable: true})
	return s, begun
}

// TestAClosingServerFreesNoLatch: a write whose entry is under way keeps its
// document to itself even when the server closes, since the entry may still be
// applied. (A probe with kills found two writes on one version.)
func TestAClosingServerFreesNoLatch(t *testing.T) {
	s, begun := stuck(t)
	cmd := mustDoc(t, bson.D{
		{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.M{"_id": 1, "v": 0}}, {Key: "update", Value: bson.M{"v": 1}}, {Key: "$db", Value: "db"},
	})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { s.dispatch(&conn{ctx: s.ctx}, &wire.Request{Body: cmd, Database: "db"}) })
	}
	key := docLatch(1, documentKey(mustDoc(t, bson.M{"_id": 1})))
	state := func() (held bool, waiting int) {
		s.latches.mu.Lock()
		defer s.latches.mu.Unlock()
		l := s.latches.held[key]
		return l != nil && l.exclusive != nil, lenQueue(l)
	}
	deadline := time.After(20 * time.Second)
	for waiting := 0; waiting < 3; _, waiting = state() {
		select {
		case <-deadline:
			t.Fatal("nobody waits for the document")
		case <-time.After(time.Millisecond):
		}
	}
	s.Close()
	group.Wait()
	if held, _ := state(); !held || begun.Load() != 1 {
		t.Errorf("after closing, the document's latch is held: %v, and %d writes were proposed on one version", held, begun.Load())
	}
}

func lenQueue(l *latch) int {
	if l == nil {
		return 0
	}
	return len(l.queue)
}

func mustDoc(t *testing.T, v any) document {
	t.Helper()
	b, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
