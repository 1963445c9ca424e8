package radix

import "sync/atomic"

// Clock evicts subtrees that are on disk and were not touched since it came by
// last. It goes round the tree in key order and remembers where it was.
// See docs/artrie.md, section 7.
type Clock struct {
	hand []byte // the bytes of the slots down to where the last sweep ended
}

// maxVisits bounds the slots that one sweep looks at: whoever waits for the sweep
// must not wait for a walk over a tree in which nothing can go.
const maxVisits = 4096

// Sweep evicts from the tree in slot until want bytes are free, it has looked at
// maxVisits slots or it has gone round to the end of the tree. gen is the current generation and owner its file.
// It returns what it freed and whether the end was reached. The root stays. With force a touched subtree goes too.
func (c *Clock) Sweep(slot *Ref, gen uint64, owner Ref, want int64, force bool) (freed int64, subtrees int, end bool) {
	p := atomic.LoadPointer(slot)
	if p == nil || !isInner(p) {
		c.hand = nil
		return 0, 0, true
	}
	s := sweep{gen: gen, owner: owner, want: want, force: force, visits: maxVisits}
	from := c.hand
	c.hand = nil
	if !s.inner((*head)(p), from, nil) {
		c.hand = s.stopped
		return s.freed, s.subtrees, false
	}
	return s.freed, s.subtrees, true
}

type sweep struct {
	gen      uint64
	owner    Ref
	want     int64
	force    bool
	visits   int // left
	freed    int64
	subtrees int
	stopped  []byte
}

// inner sweeps the children of h from the slot named by from on. It returns
// false when enough is freed.
func (s *sweep) inner(h *head, from, path []byte) bool {
	if len(from) == 0 && !s.slot(&h.val, nil, path) {
		return false
	}
	return h.each(func(c byte, slot *Ref) bool {
		var below []byte
		if len(from) > 0 {
			if c < from[0] {
				return true
			}
			if c == from[0] {
				below = from[1:]
			}
		}
		return s.slot(slot, below, append(path, c))
	})
}

func (s *sweep) slot(slot *Ref, from, path []byte) bool {
	p := atomic.LoadPointer(slot)
	if p == nil {
		return true
	}
	st := stateOf(p)
	if st == nil || kindOf(p) == kindStub {
		return true
	}
	if s.freed >= s.want || s.visits == 0 {
		s.stopped = append([]byte(nil), path...)
		return false
	}
	s.visits--
	w := load(st)
	if onDisk(w) && SameGeneration(w, s.gen) {
		if w&touchBit == 0 || s.force {
			if atomic.CompareAndSwapPointer(slot, p, NewStub(w, s.owner)) {
				s.freed += Weigh(p) - stubSize
				s.subtrees++
			}
			return true
		}
		atomic.AndUint64(st, ^uint64(touchBit))
	}
	if !isInner(p) {
		return true
	}
	return s.inner((*head)(p), from, path)
}
