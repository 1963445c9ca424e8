package radix

import "sync/atomic"

// Source fetches what is not in memory.
type Source struct {
	// Fault returns the node or block that the stub in slot stands for and may leave
	// it there. It never returns a stub. key is what is being looked up, if a single key is.
	Fault func(slot *Ref, stub Ref, key string) (Ref, error)
	// Read returns the same and leaves the slot alone.
	Read func(stub Ref) (Ref, error)
	// Touch has Get mark the nodes it passes as used.
	Touch bool
}

// enter is what slot holds, fetched and kept if need be: a leaf, an inner node or a block.
func (s *Source) enter(slot *Ref) (Ref, error) { return s.at(slot, "") }

// keep is enter with the nodes of a block, which stays what it is.
func (s *Source) keep(slot *Ref) (Ref, error) {
	p, err := s.enter(slot)
	return nodes(p), err
}

// peek is what slot holds, fetched if need be and not kept: a leaf or an inner node.
func (s *Source) peek(slot *Ref) (p Ref, err error) {
	if p = atomic.LoadPointer(slot); p != nil && kindOf(p) == kindStub {
		p, err = s.Read(p)
	}
	return nodes(p), err
}

// nodes is p, or what it encodes if it is a block.
func nodes(p Ref) Ref {
	if p != nil && isBlock(p) {
		return unfolded(p, 0)
	}
	return p
}

// Get looks key up. The value lies in the tree's memory: it must not be changed.
func Get(slot *Ref, key string, src *Source) (val []byte, found bool, err error) {
	d := 0
	for {
		p := atomic.LoadPointer(slot)
		if p == nil {
			return nil, false, nil
		}
		k := kindOf(p)
		if k == kindStub {
			if p, err = src.Fault(slot, p, key); err != nil || p == nil {
				return nil, false, err
			}
			k = kindOf(p)
		}
		if k <= kindBig {
			if k == kindBig && src.Touch {
				touch(stateOf(p))
			}
			if leafRest(p) != key[d:] {
				return nil, false, nil
			}
			return leafVal(p), true, nil
		}
		if k == kindBlock {
			if src.Touch {
				touch(stateOf(p))
			}
			val, found = search(encoded(p), key[d:])
			return val, found, nil
		}
		h := (*head)(p)
		if src.Touch {
			touch(&h.state)
		}
		if n := int(h.plen); n > 0 {
			if len(key)-d < n || key[d:d+n] != h.pfx() {
				return nil, false, nil
			}
			d += n
		}
		if d == len(key) {
			slot = &h.val
			continue
		}
		if slot = find(h, key[d]); slot == nil {
			return nil, false, nil
		}
		d++
	}
}

// Warm fetches what an edit of key will pass through: the path, and for a removal
// what the last node on it may have to merge with.
func Warm(slot *Ref, key string, removal bool, src *Source) error {
	for d := 0; ; {
		p, err := src.at(slot, key[:d])
		if err != nil || p == nil || !isInner(p) {
			return err
		}
		h := (*head)(p)
		c := commonLen(h.pfx(), key[d:])
		d += c
		if c < int(h.plen) {
			if h.n > 1 {
				return nil
			}
			return src.children(h, key[:d-c]+h.pfx())
		}
		if removal && h.n <= 2 {
			if err := src.children(h, key[:d]); err != nil {
				return err
			}
		}
		if d == len(key) {
			return nil
		}
		if slot = find(h, key[d]); slot == nil {
			return nil
		}
		d++
	}
}

// at is enter for a slot at the end of path.
func (s *Source) at(slot *Ref, path string) (Ref, error) {
	p := atomic.LoadPointer(slot)
	if p != nil && kindOf(p) == kindStub {
		return s.Fault(slot, p, path)
	}
	return p, nil
}

// children fetches the children and the value of h, which is at the end of path.
func (s *Source) children(h *head, path string) (err error) {
	if _, err = s.at(&h.val, path); err != nil {
		return err
	}
	h.each(func(c byte, slot *Ref) bool {
		_, err = s.at(slot, path+string([]byte{c}))
		return err == nil
	})
	return err
}

// Locate finds the slot on the way to key that holds the given stub; nil if none
// does. It fetches nothing.
func Locate(slot *Ref, key string, stub Ref) *Ref {
	for slot != nil {
		p := atomic.LoadPointer(slot)
		if p == stub {
			return slot
		}
		if p == nil || !isInner(p) {
			return nil
		}
		h := (*head)(p)
		n := int(h.plen)
		if len(key) < n || key[:n] != h.pfx() {
			return nil
		}
		if key = key[n:]; key == "" {
			slot = &h.val
			continue
		}
		slot, key = find(h, key[0]), key[1:]
	}
	return nil
}
