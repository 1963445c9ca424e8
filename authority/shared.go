package authority

import (
	"context"
	"slices"
	"sync"
	"time"
)

// SharedReader lets requests for the same person share linearizable reads: one read
// serves every request that began before it was sent, and none that began later.
//
// Why that keeps the guarantee. A linearizable read takes effect at some moment after
// it was sent and before its answer came. A request that joined before the read was
// sent, and returns after the answer came, spans that moment; so the read is a
// linearizable read of each such request's own.
//
// Invariants, all under mu:
//
//   - S1: a request joins only a group that is not sealed.
//   - S2: a group is sealed before its read is sent, once, and never opened again.
//   - S3: a request returns only the answer of the group it joined, after that answer
//     came, or a refusal of its own.
//   - S4: at most one group per person is open.
//   - S5: a group's read belongs to no request: it ends with its own deadline or when
//     every request of the group has left.
//
// A read is sent at once when none is under way for the person. Otherwise requests
// gather until the read under way has ended, or for the patience, so that a read that
// hangs on a dead server does not hold up the next.
//
// The usual way to join calls, as golang.org/x/sync/singleflight does, lets a request
// ride a read that is under way. It breaks S1: the read may have taken effect before
// a revocation that the request began after. It is rejected, and a test shows that
// it is caught.
type SharedReader struct {
	read     func(context.Context, ID) (Record, error)
	deadline time.Duration
	patience time.Duration

	mu     sync.Mutex
	people map[ID]*person // those with a read under way or a group open
}

// patience is how long a group waits for the read before it.
const patience = 100 * time.Millisecond

// person is one person's reads.
type person struct {
	id       ID
	underWay int
	open     *group // nil where nobody waits
}

// group are the requests that one read serves.
type group struct {
	ctx     context.Context // of the read
	cancel  context.CancelFunc
	late    *time.Timer // sends it when patience ends
	sealed  bool
	waiting int

	done   chan struct{} // closed when record and err are there
	record Record
	err    error
}

// Shared makes a reader that shares the reads of r. Requests share where they have
// the same SharedReader.
func (r *Reader) Shared() *SharedReader { return share(r.Read, r.deadline, patience) }

func share(read func(context.Context, ID) (Record, error), deadline, patience time.Duration) *SharedReader {
	return &SharedReader{read: read, deadline: deadline, patience: patience, people: map[ID]*person{}}
}

// Read is Reader.Read, possibly by a read that is shared. The deadline and the
// cancellation of ctx are this request's alone: they neither end nor fail the read for
// others.
func (s *SharedReader) Read(ctx context.Context, id ID) (Record, error) {
	bounded, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	if err := bounded.Err(); err != nil {
		return Record{}, refuse(ctx, err)
	}
	g := s.join(id)
	select {
	case <-g.done:
	case <-bounded.Done():
		s.leave(id, g)
		return Record{}, refuse(ctx, bounded.Err())
	}
	r := g.record
	r.Roles = slices.Clone(r.Roles)
	return r, g.err
}

// join puts a request into the person's open group, which is sent if nothing is.
func (s *SharedReader) join(id ID) *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.people[id]
	if p == nil {
		p = &person{id: id}
		s.people[id] = p
	}
	g := p.open
	if g == nil {
		g = &group{done: make(chan struct{})}
		g.ctx, g.cancel = context.WithCancel(context.Background())
		p.open = g
		if p.underWay > 0 {
			g.late = time.AfterFunc(s.patience, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.send(p, g)
			})
		}
	}
	g.waiting++
	if p.underWay == 0 {
		s.send(p, g)
	}
	return g
}

// send seals a group and sends its read; mu is held. A group that was sealed, or that
// everybody left, is not sent.
func (s *SharedReader) send(p *person, g *group) {
	if g.sealed || p.open != g {
		return
	}
	g.sealed, p.open = true, nil
	p.underWay++
	if g.late != nil {
		g.late.Stop()
	}
	go s.carryOut(p, g)
}

// carryOut reads for a group, and sends the group that gathered meanwhile.
func (s *SharedReader) carryOut(p *person, g *group) {
	g.record, g.err = s.read(g.ctx, p.id)
	g.cancel()
	close(g.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.underWay--
	if p.open != nil {
		s.send(p, p.open)
	}
	s.forget(p)
}

// leave takes a request out of its group. The last one ends the group's read, or takes
// the group away before it was sent.
func (s *SharedReader) leave(id ID, g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.waiting--
	if g.waiting > 0 {
		return
	}
	g.cancel()
	if p := s.people[id]; p != nil && p.open == g {
		p.open = nil
		g.late.Stop()
		s.forget(p)
	}
}

func (s *SharedReader) forget(p *person) {
	if p.underWay == 0 && p.open == nil {
		delete(s.people, p.id)
	}
}
