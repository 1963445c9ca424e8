package history

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is what an operation on a register does.
type Kind int

const (
	Read  Kind = iota // of value and number
	Write             // of Value; the number grows by one
	Swap              // of Expect for Value; where it does not find Expect nothing changes
)

func (k Kind) String() string { return [...]string{"read", "write", "swap"}[k] }

// Op is one operation on a register. Times are of one clock.
type Op struct {
	Client       int
	Key          string
	Kind         Kind
	Value        int64 // written; of a read, what it found
	Expect       int64 // of a swap
	Number       int64 // of a read: the number found. Of a swap that did: its number afterwards
	Swapped      bool  // of a swap that is OK
	Outcome      Outcome
	Call, Return time.Duration
}

func (o Op) String() string {
	switch {
	case o.Kind == Read:
		return fmt.Sprintf("client %d reads %d (number %d) of %s", o.Client, o.Value, o.Number, o.Key)
	case o.Kind == Write:
		return fmt.Sprintf("client %d writes %d to %s: %v", o.Client, o.Value, o.Key, o.Outcome)
	}
	return fmt.Sprintf("client %d swaps %d for %d in %s: %v %v, number %d", o.Client, o.Expect, o.Value, o.Key, o.Outcome, o.Swapped, o.Number)
}

// state of a register; the zero value is how all begin.
type state struct{ value, number int64 }

// step says whether an operation can happen in a state, and what comes after.
// An open one is asked whether it can happen; that it need not is the search's.
func step(s state, o Op) (bool, state) {
	next := state{o.Value, s.number + 1}
	switch o.Kind {
	case Read:
		return s == state{o.Value, o.Number}, s
	case Write:
		return true, next
	}
	found := s.value == o.Expect
	switch {
	case o.Outcome == Maybe && found, o.Outcome == OK && o.Swapped && found && o.Number == next.number:
		return true, next
	case o.Outcome == Maybe, o.Outcome == OK && !o.Swapped && !found:
		return true, s
	}
	return false, s
}

// ErrEmpty: there is nothing to judge.
var ErrEmpty = errors.New("history: this shows nothing")

// Registers checks linearizability, key by key. Reads that are not OK, and what failed,
// are left out. The error names a key that has no order, or for which none was found
// within the limit: no answer is no pass. So it is with a history in which nothing was
// read or swapped.
func Registers(ops []Op, limit time.Duration) error {
	byKey := map[string][]porcupine.Operation{}
	tells := 0
	for _, o := range ops {
		if o.Outcome == Failed || o.Kind == Read && o.Outcome != OK {
			continue
		}
		end := int64(o.Return)
		if o.Outcome == Maybe {
			end = math.MaxInt64
		} else if o.Kind != Write {
			tells++
		}
		byKey[o.Key] = append(byKey[o.Key], porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Call), Output: o, Return: end})
	}
	if tells == 0 {
		return fmt.Errorf("%w: of %d operations none was answered with a value", ErrEmpty, len(ops))
	}
	model := porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, _, out any) (bool, any) { return step(s.(state), out.(Op)) },
	}
	for key, part := range byKey {
		switch porcupine.CheckOperationsTimeout(model, part, limit) {
		case porcupine.Illegal:
			return fmt.Errorf("history: %d operations on %s have no order that agrees with real time:\n%s", len(part), key, show(part))
		case porcupine.Unknown:
			return fmt.Errorf("history: no order of %d operations on %s was found within %v", len(part), key, limit)
		}
	}
	return nil
}

func show(part []porcupine.Operation) (out string) {
	for _, p := range part {
		o := p.Input.(Op)
		out += fmt.Sprintf("  %v to %v: %v\n", o.Call, o.Return, o)
	}
	return out
}

// Sessions checks what a client was promised that reads by majority in a causally
// consistent session of its own: numbers of a key never go back, and no read is older
// than a swap that the client made before. Ops are those of all clients, in each
// client's order; reads are of that concern. It returns how many reads were compared
// with something.
func Sessions(ops []Op) (compared int, err error) {
	type place struct {
		client int
		key    string
	}
	seen := map[place]Op{}
	for _, o := range ops {
		if o.Outcome != OK || o.Kind == Write || o.Kind == Swap && !o.Swapped {
			continue
		}
		p := place{o.Client, o.Key}
		if was, ok := seen[p]; ok {
			compared++
			if o.Number < was.Number || o.Number == was.Number && o.Value != was.Value {
				return compared, fmt.Errorf("history: within a session, after %v came %v", was, o)
			}
		}
		seen[p] = o
	}
	return compared, nil
}

// Sources checks that every value read was written by an operation that may have
// happened by then.
func Sources(reads, writes []Op) error {
	by := map[string]map[int64]Op{}
	for _, w := range writes {
		if w.Kind == Read {
			continue
		}
		if by[w.Key] == nil {
			by[w.Key] = map[int64]Op{}
		}
		by[w.Key][w.Value] = w
	}
	for _, r := range reads {
		if r.Kind != Read || r.Outcome != OK || r.Value == 0 && r.Number == 0 {
			continue
		}
		w, ok := by[r.Key][r.Value]
		switch {
		case !ok:
			return fmt.Errorf("history: %v, which nobody wrote", r)
		case w.Outcome == Failed, w.Kind == Swap && w.Outcome == OK && !w.Swapped:
			return fmt.Errorf("history: %v, of %v", r, w)
		case w.Call > r.Return:
			return fmt.Errorf("history: %v, before %v", r, w)
		}
	}
	return nil
}
