package authority

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/singleflight"
)

// store is a register that is read and written as a linearizable one may be at worst:
// an operation takes effect at any moment between its call and its return.
type store struct {
	rng *lockedRand

	mu       sync.Mutex
	revision int64
	reads    int
}

type lockedRand struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (l *lockedRand) upTo(d time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.r.Int64N(int64(d)))
}

func (l *lockedRand) oneIn(n int) bool { return l.upTo(time.Duration(n)) == 0 }

// pause waits in the bubble's own time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *store) read(ctx context.Context, id ID) (Record, error) {
	if err := pause(ctx, s.rng.upTo(10*time.Millisecond)); err != nil {
		return Record{}, refuse(ctx, err)
	}
	s.mu.Lock()
	s.reads++
	rev := s.revision
	s.mu.Unlock()
	if err := pause(ctx, s.rng.upTo(10*time.Millisecond)); err != nil {
		return Record{}, refuse(ctx, err)
	}
	return Record{ID: id, Found: true, Revision: rev, Roles: []string{fmt.Sprint(rev)}}, nil
}

func (s *store) write(ctx context.Context) int64 {
	_ = pause(ctx, s.rng.upTo(3*time.Millisecond))
	s.mu.Lock()
	s.revision++
	rev := s.revision
	s.mu.Unlock()
	_ = pause(ctx, s.rng.upTo(3*time.Millisecond))
	return rev
}

// operation is a write of a revision, or a read of one.
type operation struct {
	write    bool
	revision int64
}

// register is the model that every history is checked against: a write sets the
// revision, a read returns it.
var register = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		op := input.(operation)
		if op.write {
			return true, op.revision
		}
		return output.(int64) == state.(int64), state
	},
}

// history lets several requests read through a sharing rule while a writer writes,
// all in the time of a bubble, and gives what each of them saw.
func history(t *testing.T, seed uint64, rule func(*store) func(context.Context, ID) (Record, error)) (ops []porcupine.Operation, reads, answers, refusals int) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{rng: &lockedRand{r: rand.New(rand.NewPCG(seed, 1))}}
		read, origin := rule(s), time.Now()
		var mu sync.Mutex
		add := func(client int, op operation, out any, call time.Time) {
			mu.Lock()
			defer mu.Unlock()
			ops = append(ops, porcupine.Operation{ClientId: client, Input: op, Output: out, Call: int64(call.Sub(origin)), Return: int64(time.Since(origin))})
		}
		var all sync.WaitGroup
		all.Go(func() {
			for range 12 {
				call := time.Now()
				rev := s.write(context.Background())
				add(0, operation{write: true, revision: rev}, nil, call)
				_ = pause(context.Background(), s.rng.upTo(15*time.Millisecond))
			}
		})
		for client := 1; client <= 6; client++ {
			all.Go(func() {
				for range 10 {
					_ = pause(context.Background(), s.rng.upTo(15*time.Millisecond))
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					if s.rng.oneIn(4) { // somebody in a hurry, who may leave the others behind
						cancel()
						ctx, cancel = context.WithTimeout(context.Background(), s.rng.upTo(12*time.Millisecond))
					}
					call := time.Now()
					rec, err := read(ctx, ID{1})
					cancel()
					mu.Lock()
					if err != nil {
						refusals++
					} else {
						answers++
					}
					mu.Unlock()
					if err == nil {
						add(client, operation{revision: rec.Revision}, rec.Revision, call)
					} else if ctx.Err() == nil {
						t.Errorf("seed %d: a request whose time had not ended was refused: %v", seed, err)
					}
				}
			})
		}
		all.Wait()
		synctest.Wait() // reads that everybody left end too
		s.mu.Lock()
		reads = s.reads
		s.mu.Unlock()
	})
	return ops, reads, answers, refusals
}

const histories = 150

func TestSharedReadsAreLinearizable(t *testing.T) {
	reads, answers, refusals := 0, 0, 0
	for seed := range uint64(histories) {
		ops, r, a, f := history(t, seed, func(s *store) func(context.Context, ID) (Record, error) {
			return share(s.read, DefaultDeadline, 8*time.Millisecond).Read
		})
		if !porcupine.CheckOperations(register, ops) {
			t.Fatalf("seed %d: no order explains what the requests saw", seed)
		}
		reads, answers, refusals = reads+r, answers+a, refusals+f
	}
	if answers <= reads {
		t.Fatalf("%d answers from %d reads: nothing was shared, so nothing was shown", answers, reads)
	}
	if refusals == 0 {
		t.Fatal("nobody left early, so nothing was shown about those who stay")
	}
	t.Logf("%d answers from %d reads, %d left early", answers, reads, refusals)
}

// TestALateRiderIsCaught is the proof that the check above can fail: joining a read
// that is under way, as singleflight does, serves revoked roles.
func TestALateRiderIsCaught(t *testing.T) {
	caught := 0
	for seed := range uint64(histories) {
		ops, _, _, _ := history(t, seed, func(s *store) func(context.Context, ID) (Record, error) {
			var group singleflight.Group
			return func(ctx context.Context, id ID) (Record, error) {
				if err := ctx.Err(); err != nil {
					return Record{}, err
				}
				v, err, _ := group.Do(id.String(), func() (any, error) { return s.read(context.Background(), id) })
				rec, _ := v.(Record)
				return rec, err
			}
		})
		if !porcupine.CheckOperations(register, ops) {
			caught++
		}
	}
	if caught == 0 {
		t.Fatalf("none of %d histories shows the defect: the check is worth nothing", histories)
	}
	t.Logf("caught in %d of %d histories", caught, histories)
}

// scripted is a source whose reads wait to be answered.
type scripted struct {
	mu    sync.Mutex
	calls []*scriptedRead
}

type scriptedRead struct {
	ctx    context.Context
	answer chan error
}

func (s *scripted) read(ctx context.Context, id ID) (Record, error) {
	call := &scriptedRead{ctx: ctx, answer: make(chan error, 1)}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	n := len(s.calls)
	s.mu.Unlock()
	select {
	case err := <-call.answer:
		return Record{ID: id, Found: true, Revision: int64(n), Roles: []string{"admin"}}, err
	case <-ctx.Done():
		return Record{}, refuse(ctx, ctx.Err())
	}
}

func (s *scripted) sent() []*scriptedRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*scriptedRead(nil), s.calls...)
}

type answered struct {
	rec Record
	err error
}

// ask starts a request and gives where its answer will be.
func ask(ctx context.Context, s *SharedReader) chan answered {
	out := make(chan answered, 1)
	go func() {
		rec, err := s.Read(ctx, ID{1})
		out <- answered{rec, err}
	}()
	return out
}

func TestALateRequestWaitsForTheNextRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &scripted{}
		s := share(src.read, DefaultDeadline, time.Hour)
		first := ask(t.Context(), s)
		synctest.Wait()
		late := []chan answered{ask(t.Context(), s), ask(t.Context(), s), ask(t.Context(), s)}
		synctest.Wait()
		if n := len(src.sent()); n != 1 {
			t.Fatalf("%d reads sent", n)
		}
		src.sent()[0].answer <- nil
		if a := <-first; a.err != nil || a.rec.Revision != 1 {
			t.Fatalf("%+v", a)
		}
		synctest.Wait()
		if n := len(src.sent()); n != 2 {
			t.Fatalf("%d reads for those who came late; want one more", n)
		}
		src.sent()[1].answer <- nil
		var records []Record
		for _, l := range late {
			a := <-l
			if a.err != nil || a.rec.Revision != 2 {
				t.Fatalf("a late request got %+v", a)
			}
			records = append(records, a.rec)
		}
		records[0].Roles[0] = "changed"
		if records[1].Roles[0] != "admin" {
			t.Fatal("requests share one slice of roles")
		}
		synctest.Wait()
		if len(s.people) != 0 {
			t.Fatal("people nobody asks for are kept")
		}
	})
}

func TestLeavingFailsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &scripted{}
		s := share(src.read, DefaultDeadline, time.Hour)
		leader, leave := context.WithCancel(t.Context())
		first := ask(leader, s)
		synctest.Wait()
		second, third := ask(leader, s), ask(t.Context(), s)
		synctest.Wait()
		leave()
		for _, gone := range []chan answered{first, second} {
			a := <-gone
			refused(t, a.err, Canceled)
			if a.rec.Found {
				t.Fatal("a refusal came with a record")
			}
		}
		// The first read had one request and ends; the second has one left, and is sent.
		synctest.Wait()
		if n := len(src.sent()); n != 2 || src.sent()[0].ctx.Err() == nil || src.sent()[1].ctx.Err() != nil {
			t.Fatalf("%d reads sent; the first must be cancelled and the second not", n)
		}
		src.sent()[1].answer <- nil
		if a := <-third; a.err != nil {
			t.Fatalf("whoever stayed got %v", a.err)
		}
	})
}

func TestWhenAllLeaveNothingIsSentOrKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &scripted{}
		s := share(src.read, DefaultDeadline, time.Hour)
		first := ask(t.Context(), s)
		synctest.Wait()
		crowd, leave := context.WithCancel(t.Context())
		waiting := []chan answered{ask(crowd, s), ask(crowd, s)}
		synctest.Wait()
		leave()
		for _, w := range waiting {
			refused(t, (<-w).err, Canceled)
		}
		src.sent()[0].answer <- nil
		<-first
		synctest.Wait()
		if n := len(src.sent()); n != 1 || len(s.people) != 0 {
			t.Fatalf("%d reads sent, %d people kept", n, len(s.people))
		}
	})
}

func TestASharedReadsErrorIsEverybodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &scripted{}
		s := share(src.read, DefaultDeadline, time.Hour)
		first := ask(t.Context(), s)
		synctest.Wait()
		riders := []chan answered{ask(t.Context(), s), ask(t.Context(), s)}
		synctest.Wait()
		src.sent()[0].answer <- nil
		<-first
		synctest.Wait()
		src.sent()[1].answer <- &Refusal{NotPrimary, errors.New("stepped down")}
		for _, r := range riders {
			refused(t, (<-r).err, NotPrimary)
		}
	})
}

// TestAHangingReadHoldsUpNobodyForLong: the next read goes out after the patience,
// and each request keeps its own deadline.
func TestAHangingReadHoldsUpNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &scripted{}
		s := share(src.read, DefaultDeadline, 100*time.Millisecond)
		began := time.Now()
		hanging := ask(t.Context(), s)
		synctest.Wait()
		next := ask(t.Context(), s)
		_ = pause(t.Context(), 101*time.Millisecond)
		synctest.Wait()
		if n := len(src.sent()); n != 2 {
			t.Fatalf("%d reads sent after the patience", n)
		}
		src.sent()[1].answer <- nil
		if a := <-next; a.err != nil || a.rec.Revision != 2 {
			t.Fatalf("%+v", a)
		}
		refused(t, (<-hanging).err, Deadline)
		if took := time.Since(began); took != DefaultDeadline {
			t.Fatalf("the hanging request ended after %s", took)
		}
	})
}
