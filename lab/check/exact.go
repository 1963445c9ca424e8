package check

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// The classes of finding of SetExact and MapExact.
const (
	foundLost        = "lost"
	foundResurrected = "resurrected"
	foundUnexpected  = "unexpected"
	foundOutdated    = "outdated"
	foundWrong       = "wrong"
	foundDuplicate   = "duplicate"
	foundTorn        = "torn"
)

const (
	kindDelete = "delete"
	kindMaybe  = "maybe"
)

type exactHistory[K cmp.Ordered, V comparable] struct {
	acked, maybe []MapOp[K, V]
	found        []Entry[K, V]
}

// slot is what one key holds. The zero slot holds nothing.
type slot[V comparable] struct {
	value   V
	present bool
}

// change is one key's part in operation op.
type change[V comparable] struct {
	op int
	to slot[V]
}

// keyHistory is all that happened to one key.
type keyHistory[V comparable] struct {
	acked []change[V] // in order of effect; the last one is what the key must hold
	maybe []change[V]
	found slot[V]
	seen  int // how often the scan returned the key
}

// settled is what the key holds if no operation in flight took effect.
func (k *keyHistory[V]) settled() slot[V] {
	if len(k.acked) == 0 {
		return slot[V]{}
	}
	return k.acked[len(k.acked)-1].to
}

// explained says whether the acknowledged operations, or one in flight other
// than except, can have left what was found. An except of -1 excludes none.
func (k *keyHistory[V]) explained(except int) bool {
	return k.found == k.settled() || slices.ContainsFunc(k.maybe, func(c change[V]) bool {
		return c.op != except && c.to == k.found
	})
}

func judgeExact[K cmp.Ordered, V comparable](name, insertKind string, h exactHistory[K, V]) Result {
	res := Result{Name: name, Verdict: Pass, Operations: len(h.acked) + len(h.maybe), Kinds: map[string]int{kindMaybe: len(h.maybe)}}
	for _, op := range h.acked {
		if len(op.Put) > 0 {
			res.Kinds[insertKind]++
		}
		if len(op.Delete) > 0 {
			res.Kinds[kindDelete]++
		}
	}
	if err := h.malformed(); err != nil {
		return res.doubt(err.Error())
	}

	all := newFindings(foundLost, foundResurrected, foundUnexpected, foundOutdated, foundWrong, foundDuplicate, foundTorn)
	keys := h.byKey()
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		keys[key].judge(show(key), all)
	}
	for i := range h.maybe {
		h.judgeTorn(i, keys, all)
	}
	for _, e := range h.found {
		if !reflexive(e.Key) {
			all.add(foundUnexpected, "%s is there, and no operation put it there", show(e.Key))
		}
	}
	if !all.empty() {
		res.Verdict, res.Message, res.Examples = Fail, all.summary(), all.list()
		return res
	}
	if res.Kinds[insertKind] == 0 {
		return res.doubt(fmt.Sprintf("no acknowledged %s: nothing could have been lost", insertKind))
	}
	return res
}

// malformed refuses a history whose record contradicts itself.
func (h exactHistory[K, V]) malformed() error {
	for i, op := range h.acked {
		if err := op.malformed(); err != nil {
			return fmt.Errorf("malformed history: acknowledged operation %d %w", i, err)
		}
		if op.After != 0 {
			return fmt.Errorf("malformed history: acknowledged operation %d says After, which only one in flight may", i)
		}
	}
	for i, op := range h.maybe {
		if err := op.malformed(); err != nil {
			return fmt.Errorf("malformed history: operation %d in flight %w", i, err)
		}
		if op.After < 0 || op.After > len(h.acked) {
			return fmt.Errorf("malformed history: operation %d in flight came after %d of %d acknowledged ones", i, op.After, len(h.acked))
		}
	}
	return nil
}

func (op MapOp[K, V]) malformed() error {
	touched := map[K]bool{}
	for key := range op.changes() {
		if !reflexive(key) {
			return errors.New("has a key that is not equal to itself")
		}
		if touched[key] {
			return fmt.Errorf("changes %s twice", show(key))
		}
		touched[key] = true
	}
	return nil
}

// reflexive is false for NaN, which no map can find again.
func reflexive[K comparable](key K) bool { return key == key }

// changes yields each key that the operation touches with what it then holds.
func (op MapOp[K, V]) changes() iter.Seq2[K, slot[V]] {
	return func(yield func(K, slot[V]) bool) {
		for _, key := range op.Delete {
			if !yield(key, slot[V]{}) {
				return
			}
		}
		for _, e := range op.Put {
			if !yield(e.Key, slot[V]{value: e.Value, present: true}) {
				return
			}
		}
	}
}

func (h exactHistory[K, V]) byKey() map[K]*keyHistory[V] {
	keys := map[K]*keyHistory[V]{}
	at := func(key K) *keyHistory[V] {
		if keys[key] == nil {
			keys[key] = &keyHistory[V]{}
		}
		return keys[key]
	}
	for i, op := range h.acked {
		for key, to := range op.changes() {
			at(key).acked = append(at(key).acked, change[V]{op: i, to: to})
		}
	}
	for i, op := range h.maybe {
		for key, to := range op.changes() {
			at(key).maybe = append(at(key).maybe, change[V]{op: i, to: to})
		}
	}
	for _, e := range h.found {
		if !reflexive(e.Key) {
			continue
		}
		k := at(e.Key)
		if k.seen++; k.seen == 1 {
			k.found = slot[V]{value: e.Value, present: true}
		}
	}
	return keys
}

// judge says what is wrong with one key taken by itself.
func (k *keyHistory[V]) judge(key string, all *findings) {
	if k.seen > 1 {
		all.add(foundDuplicate, "%s was found %d times", key, k.seen)
	}
	if k.explained(-1) {
		return
	}
	settled := k.settled()
	before := slices.ContainsFunc(k.acked, func(c change[V]) bool { return c.to == k.found })
	switch {
	case !k.found.present:
		all.add(foundLost, "%s was acknowledged by operation %d and is not there", key, k.acked[len(k.acked)-1].op)
	case settled.present && before:
		all.add(foundOutdated, "%s holds %s, overwritten by operation %d with %s", key, show(k.found.value), k.acked[len(k.acked)-1].op, show(settled.value))
	case settled.present:
		all.add(foundWrong, "%s holds %s, acknowledged was %s", key, show(k.found.value), show(settled.value))
	case before:
		all.add(foundResurrected, "%s was deleted by operation %d and is there", key, k.acked[len(k.acked)-1].op)
	default:
		all.add(foundUnexpected, "%s is there, and no operation put it there", key)
	}
}

// judgeTorn says whether operation i in flight took effect in part. It looks
// for one change that only this operation explains, and one that shows it did
// not happen. Keys that are wrong by themselves say nothing about it.
func (h exactHistory[K, V]) judgeTorn(i int, keys map[K]*keyHistory[V], all *findings) {
	var done, missing []string
	for key, to := range h.maybe[i].changes() {
		k := keys[key]
		switch {
		case !k.explained(-1):
		case k.found == to && !k.explained(i):
			done = append(done, show(key))
		case k.found != to && !k.overwritten(h.maybe[i].After):
			missing = append(missing, show(key))
		}
	}
	if len(done) > 0 && len(missing) > 0 {
		all.add(foundTorn, "operation %d in flight took effect on %s and not on %s", i, done[0], missing[0])
	}
}

// overwritten says whether a later change can have covered the traces of an
// operation in flight, called once the first after acknowledged operations had
// been acknowledged. What was found is explained, and not by that operation.
func (k *keyHistory[V]) overwritten(after int) bool {
	if n := len(k.acked); n > 0 && k.acked[n-1].op >= after {
		return true
	}
	return slices.ContainsFunc(k.maybe, func(c change[V]) bool { return c.to == k.found })
}
