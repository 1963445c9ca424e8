package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Exchange lets members ask each other and be answered over links, which promise
// nothing: a question or its answer may be lost, and a member that was asked may die,
// sleep, or be cut off in one direction only.
//
//   - X1 A question is carried out at most once: it is sent once, no link delivers a
//     message twice, and no number is used twice, also not after a restart, since the
//     first is drawn at random.
//   - X2 Who asks waits no longer than the other end lives. Both ends say at every
//     beat that they are still there; who has heard nothing for silence beats gives up, and so
//     does who hears that the other end knows of no such question: it has started anew, or has
//     answered, and the answer was lost. What becomes of the question then is open.
//   - X3 Nobody works for somebody who no longer waits: the work's context ends when
//     the asker has left, or has not been heard of for silence beats.
//   - X4 Beats are counted and not time, so that a process that was stopped does not
//     take its own sleep for the silence of others.
//
// Rejected: to send a question again until it is answered. Then the other end would
// have to remember what it has carried out, also through a restart, and whoever asks
// here must live with an open fate anyhow, because primaries die.
type Exchange struct {
	send  func(to uint64, msg []byte)
	serve func(ctx context.Context, from uint64, question []byte) (answer []byte)
	most  int // bytes of a question

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	next   uint64
	asked  map[uint64]*talk // by number
	served map[served]*talk
}

// beat is how often both ends of a question say that they are there. After so many
// beats without a word the other end counts as gone: 5 s, for a machine that is busy.
const (
	beat    = 500 * time.Millisecond
	silence = 10
)

var (
	// ErrSilent is returned when the other end has not been heard of. The question may
	// have been carried out, or may be yet.
	ErrSilent = errors.New("the other member does not answer")
	// ErrTooLarge is returned for a question that no link carries. It was not sent.
	ErrTooLarge = errors.New("too large for a message between members")

	errClosed = errors.New("this member has ended")
	errLeft   = errors.New("whoever asked has given up")
)

// talk is one question under way, at either end.
type talk struct {
	heard  chan struct{}
	answer chan []byte
	end    context.CancelCauseFunc
}

type served struct{ from, number uint64 }

// Kinds of messages. Each is followed by the question's number, and by the question or
// the answer.
const (
	kindAsk     = 1 + iota // asker: the question
	kindWait               // asker: still here
	kindLeave              // asker: no longer here
	kindWork               // asked: still at it
	kindAnswer             // asked: the answer
	kindUnknown            // asked: there is no such question here
)

const talkHeader = 1 + 8

func newExchange(send func(to uint64, msg []byte), serve func(ctx context.Context, from uint64, question []byte) []byte) *Exchange {
	x := &Exchange{
		send: send, serve: serve, most: maxMessage - talkHeader,
		next: rand.Uint64(), asked: map[uint64]*talk{}, served: map[served]*talk{},
	}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// Ask sends a question and returns its answer. Where ctx ends first the error is its
// cause, and the other end is told.
func (x *Exchange) Ask(ctx context.Context, to uint64, question []byte) ([]byte, error) {
	if len(question) > x.most {
		return nil, fmt.Errorf("%d bytes: %w", len(question), ErrTooLarge)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	x.mu.Lock()
	number := x.next
	x.next++
	t, err := x.begin(ctx, end, func() { x.tell(to, kindWait, number, nil) })
	if err == nil {
		x.asked[number] = t
	}
	x.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.asked, number)
	}()
	x.tell(to, kindAsk, number, question)
	select {
	case answer := <-t.answer:
		return answer, nil
	case <-ctx.Done():
		x.tell(to, kindLeave, number, nil)
		return nil, context.Cause(ctx)
	case <-x.ctx.Done():
		return nil, errClosed
	}
}

// begin makes a talk and keeps it up until ctx ends. It is called under the lock.
func (x *Exchange) begin(ctx context.Context, end context.CancelCauseFunc, say func()) (*talk, error) {
	if x.closed {
		return nil, errClosed
	}
	t := &talk{heard: make(chan struct{}, 1), answer: make(chan []byte, 1), end: end}
	x.group.Go(func() { x.keepUp(ctx, t, say) })
	return t, nil
}

// keepUp says at every beat that this end is there, and ends the talk when the other
// one is not.
func (x *Exchange) keepUp(ctx context.Context, t *talk, say func()) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for missed := 0; ; {
		select {
		case <-t.heard:
			missed = 0
		case <-tick.C:
			if missed++; missed > silence {
				t.end(ErrSilent)
				return
			}
			say()
		case <-ctx.Done():
			return
		case <-x.ctx.Done():
			return
		}
	}
}

func (x *Exchange) tell(to uint64, kind byte, number uint64, body []byte) {
	b := make([]byte, talkHeader, talkHeader+len(body))
	b[0] = kind
	binary.BigEndian.PutUint64(b[1:], number)
	x.send(to, append(b, body...))
}

// receive takes in what another member's exchange has sent. What is no message of one
// is a lost message.
func (x *Exchange) receive(from uint64, msg []byte) {
	if len(msg) < talkHeader {
		return
	}
	number, body := binary.BigEndian.Uint64(msg[1:]), msg[talkHeader:]
	x.mu.Lock()
	defer x.mu.Unlock()
	switch kind := msg[0]; kind {
	case kindAsk:
		x.carryOut(served{from, number}, body)
	case kindWait, kindLeave:
		if t := x.served[served{from, number}]; t != nil {
			if t.hear(); kind == kindLeave {
				t.end(errLeft)
			}
		} else if kind == kindWait {
			x.tell(from, kindUnknown, number, nil)
		}
	case kindUnknown:
		if t := x.asked[number]; t != nil {
			t.end(ErrSilent)
		}
	case kindWork, kindAnswer:
		if t := x.asked[number]; t != nil {
			if t.hear(); kind == kindAnswer {
				select {
				case t.answer <- body:
				default: // a second answer is none
				}
			}
		}
	}
}

func (t *talk) hear() {
	select {
	case t.heard <- struct{}{}:
	default:
	}
}

// carryOut answers a question on a goroutine of its own. It is called under the lock.
func (x *Exchange) carryOut(q served, question []byte) {
	if x.served[q] != nil {
		return
	}
	ctx, end := context.WithCancelCause(x.ctx)
	t, err := x.begin(ctx, end, func() { x.tell(q.from, kindWork, q.number, nil) })
	if err != nil {
		end(err)
		return
	}
	x.served[q] = t
	x.group.Go(func() {
		defer end(nil)
		answer := x.serve(ctx, q.from, question)
		x.mu.Lock()
		delete(x.served, q)
		x.mu.Unlock()
		x.tell(q.from, kindAnswer, q.number, answer)
	})
}

// Close gives up everything that is under way and waits until nothing of the exchange
// runs any more.
func (x *Exchange) Close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.cancel()
	x.group.Wait()
}
