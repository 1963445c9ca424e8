package server

import (
	"context"
	"encoding/binary"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// topology is the member's role as clients are told it, with the version that
// streaming hellos wait for.
type topology struct {
	process bson.ObjectID

	mu      sync.Mutex
	now     Role
	counter int64
	changed chan struct{} // closed at the next change

	// reign ends when this member stops being the primary that it is now.
	server   context.Context
	reign    context.Context
	endReign context.CancelFunc
}

func newTopology(server context.Context) *topology {
	t := &topology{process: bson.NewObjectID(), now: Role{Primary: -1}, changed: make(chan struct{}), server: server}
	t.reign, t.endReign = context.WithCancel(server)
	return t
}

func (t *topology) set(r Role) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r == t.now {
		return
	}
	if t.now.Writable && (!r.Writable || r.Term != t.now.Term) {
		t.endReign()
		t.reign, t.endReign = context.WithCancel(t.server)
	}
	t.now = r
	t.counter++
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *topology) role() Role {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// writes is the role, and a context that ends with it.
func (t *topology) writes() (Role, context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now, t.reign
}

func (t *topology) version() (Role, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now, t.counter
}

// await waits until the version is another one than known, or ctx ends.
func (t *topology) await(ctx context.Context, known int64) {
	for {
		t.mu.Lock()
		counter, changed := t.counter, t.changed
		t.mu.Unlock()
		if counter != known {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// next is a channel that is closed at the next change.
func (t *topology) next() (Role, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now, t.changed
}

// electionID grows with the term, as drivers compare it.
func electionID(term uint64) bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:], 0x7fffffff)
	binary.BigEndian.PutUint64(id[4:], term)
	return id
}

func (t *topology) appendVersion(b *builder, counter int64) {
	b.AppendDocument("topologyVersion", newDoc().AppendObjectID("processId", t.process).AppendInt64("counter", counter).Build())
}
