package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// table is two members' exchanges and what lies between them. It runs in a bubble, so
// that beats take no time.
type table struct {
	mu   sync.Mutex
	lost map[byte]bool // kinds that do not arrive
	sent map[byte]int
	a, b *Exchange
}

func newTable(serve func(ctx context.Context, from uint64, question []byte) []byte) *table {
	n := &table{lost: map[byte]bool{}, sent: map[byte]int{}}
	carry := func(from uint64, to **Exchange) func(uint64, []byte) {
		return func(_ uint64, msg []byte) {
			n.mu.Lock()
			n.sent[msg[0]]++
			lost := n.lost[msg[0]]
			n.mu.Unlock()
			if !lost {
				(*to).receive(from, msg)
			}
		}
	}
	n.a = newExchange(carry(1, &n.b), func(context.Context, uint64, []byte) []byte { return nil })
	n.b = newExchange(carry(2, &n.a), serve)
	return n
}

func (n *table) lose(kinds ...byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = map[byte]bool{}
	for _, k := range kinds {
		n.lost[k] = true
	}
}

func (n *table) close() {
	n.a.Close()
	n.b.Close()
}

func TestAQuestionIsAnsweredHoweverLongItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTable(func(ctx context.Context, from uint64, q []byte) []byte {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return fmt.Appendf(nil, "%s to %d", q, from)
		})
		defer n.close()
		var group sync.WaitGroup
		for i := range 10 {
			group.Go(func() {
				got, err := n.a.Ask(t.Context(), 2, fmt.Append(nil, i))
				if want := fmt.Sprintf("%d to 1", i); err != nil || string(got) != want {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			})
		}
		group.Wait()
	})
}

// X2: whatever is lost, Ask ends, and says that the fate is open.
func TestWhoeverAsksDoesNotWaitForSilence(t *testing.T) {
	for what, kinds := range map[string][]byte{
		"the question": {kindAsk}, "the answer": {kindAnswer}, "all that the other end says": {kindAnswer, kindWork},
		"all that this end says": {kindAsk, kindWait, kindLeave},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTable(func(context.Context, uint64, []byte) []byte { return []byte("yes") })
				defer n.close()
				n.lose(kinds...)
				began := time.Now()
				got, err := n.a.Ask(t.Context(), 2, nil)
				if took := time.Since(began); !errors.Is(err, ErrSilent) || took > (silence+1)*beat {
					t.Errorf("got %q, %v after %v", got, err, took)
				}
			})
		})
	}
}

// X2: a member that has started anew says so, and need not be waited for as one that is silent.
func TestAMemberThatKnowsNoSuchQuestionSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTable(func(context.Context, uint64, []byte) []byte { return nil })
		defer n.close()
		n.lose(kindAsk)
		began := time.Now()
		if _, err := n.a.Ask(t.Context(), 2, nil); !errors.Is(err, ErrSilent) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 2*beat {
			t.Errorf("it took %v", took)
		}
	})
}

// X3: the work ends when nobody waits for it, whether or not that could be said.
func TestWorkEndsWhenNobodyWaits(t *testing.T) {
	for what, kinds := range map[string][]byte{"it was said": nil, "it could not be said": {kindLeave, kindWait}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				why := make(chan error, 1)
				n := newTable(func(ctx context.Context, _ uint64, _ []byte) []byte {
					<-ctx.Done()
					why <- context.Cause(ctx)
					return nil
				})
				defer n.close()
				n.lose(kinds...)
				gone := errors.New("enough")
				ctx, leave := context.WithCancelCause(t.Context())
				go func() {
					<-time.After(beat)
					leave(gone)
				}()
				began := time.Now()
				if _, err := n.a.Ask(ctx, 2, nil); !errors.Is(err, gone) {
					t.Errorf("Ask returned %v", err)
				}
				err := <-why
				if took := time.Since(began); len(kinds) == 0 && (err != errLeft || took > beat) || err == nil || took > (silence+1)*beat {
					t.Errorf("the work ended by %v after %v", err, took)
				}
			})
		})
	}
}

// X1: also when a message that a link cannot deliver twice is delivered twice, and when
// the asker's numbers begin anew.
func TestAQuestionIsCarriedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		n := newTable(func(ctx context.Context, _ uint64, _ []byte) []byte {
			ran.Add(1)
			<-ctx.Done()
			return nil
		})
		defer n.close()
		question := append([]byte{kindAsk, 0, 0, 0, 0, 0, 0, 0, 9}, "q"...)
		n.b.receive(1, question)
		n.b.receive(1, question)
		synctest.Wait()
		if ran.Load() != 1 {
			t.Errorf("it ran %d times", ran.Load())
		}
		n.b.receive(3, question) // another member's
		synctest.Wait()
		if ran.Load() != 2 {
			t.Errorf("a question of the same number by another member did not run")
		}
		again := newExchange(func(uint64, []byte) {}, nil)
		defer again.Close()
		if again.next == n.a.next {
			t.Error("two exchanges begin with the same number")
		}
	})
}

func TestCloseEndsBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTable(func(ctx context.Context, _ uint64, _ []byte) []byte {
			<-ctx.Done()
			return nil
		})
		done := make(chan error, 1)
		go func() {
			_, err := n.a.Ask(t.Context(), 2, nil)
			done <- err
		}()
		synctest.Wait()
		n.close()
		if err := <-done; err == nil {
			t.Error("a closed exchange answered")
		}
		if _, err := n.a.Ask(t.Context(), 2, nil); !errors.Is(err, errClosed) {
			t.Errorf("asking afterwards gave %v", err)
		}
		n.b.receive(1, append([]byte{kindAsk}, make([]byte, 8)...)) // must start nothing
	})
}

func TestWhatIsNoMessageIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTable(func(_ context.Context, _ uint64, q []byte) []byte { return bytes.Clone(q) })
		defer n.close()
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		for range 2000 {
			msg := make([]byte, r.IntN(20))
			for i := range msg {
				msg[i] = byte(r.Uint32() % 8)
			}
			n.a.receive(2, msg)
			n.b.receive(1, msg)
		}
		if got, err := n.a.Ask(t.Context(), 2, []byte("still there")); err != nil || string(got) != "still there" {
			t.Errorf("afterwards: %q, %v", got, err)
		}
		n.a.most = 10
		if _, err := n.a.Ask(t.Context(), 2, make([]byte, 11)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a question that is too large gave %v", err)
		}
	})
}
