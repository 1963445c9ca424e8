package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// # Sweeping
//
// A version is noted when a newer one replaces it (replaced), and removed when no reader
// can ask for it any more: when the newer one is at or below the horizon, which no pin is
// below. What was noted is in the order of the log. All that was noted of one document goes
// in one pass over its versions:
//
//  1. From the newest noted one down, that one stays and all below it go. If it is a removal
//     it goes too, of a document only if nothing is above it.
//  2. The pass ends at the first version below all that were noted: it is the one that
//     the last pass has left, and what was below it went then. So a pass costs
//     what it removes, and not what is removed already and not yet merged away.
//  3. That is so only for versions that were noted since this process began: a restart, and a
//     snapshot of another member, forget what was noted. Below them the pass goes on
//     to the end.
//  4. Keys of indexes are noted when they are removed and not when they are added: below a
//     removal there is one addition at most, unless 3 has it otherwise.
//
// Rejected: a pass for every version that was noted, each over all versions of its document. Where 200
// documents are written 5,000 times a second and kept for 30 s, that is 750 versions for each one
// removed, and took the processors from everybody once a second.

// Pin keeps versions at and above a timestamp from being removed.
type Pin struct{ s *Store }

// Pin pins the state that is visible now and returns its timestamp.
func (s *Store) Pin() (*Pin, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Pin{s}
	at := s.visible.Load()
	s.pins[p] = at
	return p, at
}

// PinAt pins the state at a timestamp; ok is false when versions that it needs
// may be gone already.
func (s *Store) PinAt(at uint64) (p *Pin, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at < s.horizon {
		return nil, false
	}
	p = &Pin{s}
	s.pins[p] = at
	return p, true
}

// Release ends the pin. It may be called more than once.
func (p *Pin) Release() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.pins, p)
}

// old is a version that replaced another one.
type old struct {
	stamp  uint64
	prefix []byte // of all versions
}

func (s *Store) replaced(stamp uint64, key []byte) {
	prefix, _ := splitVersion(key)
	s.mu.Lock()
	s.trash = append(s.trash, old{stamp, bytes.Clone(prefix)})
	s.mu.Unlock()
}

// passed is what was noted of one document or key of an index.
type passed struct {
	prefix      string
	first, last uint64
}

// sweepKeys is how many versions are removed in one batch, about.
const sweepKeys = 500

// Sweep removes versions that nobody at or above the horizon can read, the
// pinned ones kept. It returns how many replaced versions it has dealt with; after an error
// it deals with them again.
func (s *Store) Sweep(horizon uint64) (int, error) {
	todo := s.sweepable(horizon)
	if _, err := s.sweep(&todo); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.epoch == todo.epoch {
			s.trash = append(todo.noted, s.trash...)
		}
		return 0, err
	}
	return len(todo.noted), nil
}

// sweepable is what may go.
type sweepable struct {
	noted   []old
	horizon uint64
	began   uint64
	epoch   int
}

func (s *Store) sweepable(horizon uint64) sweepable {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.pins {
		horizon = min(horizon, at)
	}
	horizon = min(horizon, s.visible.Load())
	s.horizon = max(s.horizon, horizon)
	n := 0
	for n < len(s.trash) && s.trash[n].stamp <= horizon {
		n++
	}
	todo := sweepable{noted: s.trash[:n:n], horizon: s.horizon, began: s.began, epoch: s.epoch}
	s.trash = s.trash[n:]
	return todo
}

func (s *Store) sweep(todo *sweepable) (stats pebble.IteratorStats, err error) {
	b := s.db.NewBatch()
	defer b.Close()
	if len(todo.noted) > 0 {
		// With what it removes, so that a restart does not promise more than there is.
		if err := setHorizon(b, todo.horizon); err != nil {
			return stats, err
		}
	}
	if err := s.trimHistory(b); err != nil {
		return stats, err
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return stats, err
	}
	defer it.Close()
	for _, p := range gather(todo.noted) {
		if err := sweepKey(b, it, p, todo.began); err != nil {
			return stats, err
		}
		if b.Count() < sweepKeys {
			continue
		}
		if err := s.commitSweep(b, todo.epoch); err != nil {
			return stats, err
		}
		b.Reset()
		runtime.Gosched()
	}
	if !b.Empty() {
		err = s.commitSweep(b, todo.epoch)
	}
	return it.Stats(), err
}

// errReplaced is returned where the state that was being swept is not there any more.
var errReplaced = errors.New("the state was replaced")

// commitSweep commits what was found in the state of an epoch, if that is in use still.
func (s *Store) commitSweep(b *pebble.Batch, epoch int) error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.mu.Lock()
	now := s.epoch
	s.mu.Unlock()
	if now != epoch {
		return errReplaced
	}
	return b.Commit(pebble.NoSync)
}

// gather brings together what was noted of each document or key, in the order of their places.
func gather(todo []old) []passed {
	all := make(map[string]passed, len(todo))
	for _, t := range todo {
		p, again := all[string(t.prefix)]
		if !again {
			p = passed{string(t.prefix), t.stamp, t.stamp}
		}
		p.last = t.stamp
		all[p.prefix] = p
	}
	return slices.SortedFunc(maps.Values(all), func(a, b passed) int { return cmp.Compare(a.prefix, b.prefix) })
}

// sweepKey makes the pass over one document or key.
func sweepKey(b *pebble.Batch, it *pebble.Iterator, p passed, began uint64) error {
	prefix := []byte(p.prefix)
	it.SetBounds(versionKey(bytes.Clone(prefix), Latest), append(versionKey(bytes.Clone(prefix), 0), 0))
	last := versionKey(bytes.Clone(prefix), p.last)
	more := it.SeekGE(last)
	if more && bytes.Equal(it.Key(), last) {
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if v[0] == gone && (prefix[0] == indexes || it.First() && bytes.Equal(it.Key(), last)) {
			if err := b.Delete(last, nil); err != nil {
				return err
			}
		}
		more = it.SeekGE(last) && it.Next()
	}
	for ; more; more = it.Next() {
		if err := b.Delete(it.Key(), nil); err != nil {
			return err
		}
		if _, stamp := splitVersion(it.Key()); stamp < p.first && stamp > began {
			break
		}
	}
	return it.Error()
}

func setHorizon(b *pebble.Batch, stamp uint64) error {
	return b.Set([]byte{horizons}, binary.BigEndian.AppendUint64(nil, stamp), nil)
}

func readHorizon(db *pebble.DB) (uint64, error) {
	v, closer, err := db.Get([]byte{horizons})
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	if len(v) != stampSize {
		return 0, fmt.Errorf("the horizon has %d bytes", len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}
