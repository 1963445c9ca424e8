package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/internal/tables"
)

// # Moving a state to another member
//
// A state moves in pieces: keys and values with their lengths in front, in the order of the
// keys, and the timestamp at which it was visible before all.
//
//  1. Freeze holds the state as it is. It is read piece by piece, so that the member who has it
//     never has more than a piece of it in memory.
//  2. Arrive writes the pieces into tables beside the state that is in use, which goes on as if there
//     were none.
//  3. Adopt exchanges what the store knows in memory. Whoever calls it must then make the tables
//     part of the database, in one step, and call Visible.
//  4. From Adopt on no sweep that began before it writes anything: what it read is replaced, and the
//     horizon that it would note is lower than the one that came with the tables.

// Frozen is a state that does not change any more.
type Frozen struct {
	snap  *pebble.Snapshot
	stamp uint64
	begun bool
	kinds []byte           // that are still to come
	it    *pebble.Iterator // over the first of them; nil: not begun
}

// pieceBytes is how large a piece is, about.
const pieceBytes = 1 << 20

// stateKinds are all kinds of keys that move, in their order.
var stateKinds = []byte{catalogues, documents, history, indexes, sessions}

// Freeze holds the state as it is visible now. It must be closed.
func (s *Store) Freeze() *Frozen {
	return &Frozen{snap: s.db.NewSnapshot(), stamp: s.visible.Load(), kinds: stateKinds}
}

// Next returns the next piece, or io.EOF after the last one.
func (f *Frozen) Next() ([]byte, error) {
	var piece []byte
	if !f.begun {
		piece = binary.BigEndian.AppendUint64(piece, f.stamp)
		f.begun = true
	}
	for len(f.kinds) > 0 && len(piece) < pieceBytes {
		more, err := f.step()
		if err != nil {
			return nil, err
		}
		if !more {
			f.kinds = f.kinds[1:]
			continue
		}
		v, err := f.it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		if piece == nil {
			piece = make([]byte, 0, pieceBytes+pieceBytes/8)
		}
		piece = append(binary.AppendUvarint(piece, uint64(len(f.it.Key()))), f.it.Key()...)
		piece = append(binary.AppendUvarint(piece, uint64(len(v))), v...)
	}
	if len(piece) == 0 {
		return nil, io.EOF
	}
	return piece, nil
}

// step goes to the next key of the first kind and says whether there is one.
func (f *Frozen) step() (bool, error) {
	if f.it != nil {
		if f.it.Next() {
			return true, nil
		}
		err := errors.Join(f.it.Error(), f.it.Close())
		f.it = nil
		return false, err
	}
	it, err := f.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{f.kinds[0]}, UpperBound: []byte{f.kinds[0] + 1}})
	if err != nil {
		return false, err
	}
	if it.First() {
		f.it = it
		return true, nil
	}
	return false, errors.Join(it.Error(), it.Close())
}

// Close lets the state go.
func (f *Frozen) Close() error {
	var err error
	if f.it != nil {
		err = f.it.Close()
		f.it = nil
	}
	return errors.Join(err, f.snap.Close())
}

// Arriving is another member's state as it comes in.
type Arriving struct {
	s         *Store
	low, high *tables.Writer // on both sides of the keys of the log
	stamp     uint64
	begun     bool
	ended     bool // the horizon is written
	catalogue *Catalogue
	past      past
}

// Arrive begins to take in the state that another member has frozen, in tables in a folder that
// is there and empty. Tables or Abandon must follow.
func (s *Store) Arrive(fs vfs.FS, dir string) *Arriving {
	return &Arriving{
		s: s, catalogue: newCatalogue(),
		low:  tables.New(s.db, fs, fs.PathJoin(dir, "low"), stateKinds[:1], []byte{indexes + 1}),
		high: tables.New(s.db, fs, fs.PathJoin(dir, "high"), []byte{sessions}, []byte{sessions + 1}),
	}
}

// Take takes in the next piece.
func (a *Arriving) Take(piece []byte) error {
	if !a.begun {
		if len(piece) < stampSize {
			return fmt.Errorf("a state that begins with %d bytes", len(piece))
		}
		a.stamp, piece, a.begun = binary.BigEndian.Uint64(piece), piece[stampSize:], true
		a.catalogue.floor = a.stamp
	}
	part := func() ([]byte, error) {
		n, w := binary.Uvarint(piece)
		if w <= 0 || n > uint64(len(piece)-w) {
			return nil, errors.New("a piece of a state that ends in the middle")
		}
		p := piece[w : w+int(n)]
		piece = piece[w+int(n):]
		return p, nil
	}
	for len(piece) > 0 {
		key, err := part()
		if err != nil {
			return err
		}
		value, err := part()
		if err != nil {
			return err
		}
		if err := a.set(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (a *Arriving) set(key, value []byte) error {
	if len(key) == 0 || !slices.Contains(stateKinds, key[0]) {
		return fmt.Errorf("a state with the key %x", key)
	}
	switch key[0] {
	case catalogues:
		if err := a.catalogue.load(key, value); err != nil {
			return err
		}
	case history:
		a.past.note(key, value)
	case sessions:
		return a.high.Set(key, value)
	}
	if key[0] > horizons {
		if err := a.noteHorizon(); err != nil {
			return err
		}
	}
	return a.low.Set(key, value)
}

// noteHorizon adds the horizon where it belongs. What the other member had swept is not known;
// nothing older than the state is promised.
func (a *Arriving) noteHorizon() error {
	if a.ended {
		return nil
	}
	a.ended = true
	return a.low.Set([]byte{horizons}, binary.BigEndian.AppendUint64(nil, a.stamp))
}

// Tables ends the state and returns the paths of its tables.
func (a *Arriving) Tables() ([]string, error) {
	if !a.begun {
		return nil, errors.New("a state without a beginning")
	}
	if err := a.noteHorizon(); err != nil {
		return nil, err
	}
	low, err := a.low.Close()
	if err != nil {
		return nil, err
	}
	high, err := a.high.Close()
	return slices.Concat(low, high), err
}

// Abandon gives up what has come in.
func (a *Arriving) Abandon() {
	a.low.Abandon()
	a.high.Abandon()
}

// Adopt makes the state this store's own, but for what is in the database. It must not be called
// beside Apply.
func (a *Arriving) Adopt() error {
	s := a.s
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.stamp < s.horizon {
		return fmt.Errorf("a state as of %d, and this member has swept up to %d", a.stamp, s.horizon)
	}
	s.epoch++
	s.next = a.catalogue
	s.recent.stageAll()
	s.trash, s.began, s.horizon = nil, a.stamp, a.stamp
	a.past.limit = s.past.limit
	s.past = a.past
	return nil
}
