package radix

import "sync/atomic"

// Edit is a change to a tree. Nodes that carry its ID are its own and changed
// in place; all others are copied (N1). One Edit per commit makes a transient
// edit of an immutable tree; one Edit for ever makes a mutable tree.
//
// An operation that returns an error has changed nothing.
type Edit struct {
	ID  uint64  // unique, above 0 and below 1<<61
	Src *Source // fetches what the edit passes through

	Bytes int64 // memory of the tree, difference made by this edit
	Dead  int64 // bytes of blocks on disk that this edit made unreachable
	Keys  int64 // number of keys, difference made by this edit
}

// Put sets key to val. Without replace a key that is there keeps its value.
// Added says whether the key is new.
func (e *Edit) Put(root *Ref, key string, val []byte, replace bool) (added bool, err error) {
	p, how, err := e.put(root, key, val, replace)
	if err != nil || how == same {
		return false, err
	}
	*root = p
	if how == added_ {
		e.Keys++
	}
	return how == added_, nil
}

// Delete removes key and says whether it was there.
func (e *Edit) Delete(root *Ref, key string) (removed bool, err error) {
	p, removed, err := e.del(root, key)
	if err != nil || !removed {
		return false, err
	}
	*root = p
	e.Keys--
	return true, nil
}

type outcome uint8

const (
	same outcome = iota
	replaced
	added_
)

func (e *Edit) leaf(rest string, val []byte) Ref {
	p := newLeaf(rest, val, e.ID)
	e.Bytes += leafSize(p)
	return p
}

func (e *Edit) inner(kind uint8) *head {
	e.Bytes += innerSize(kind)
	return newInner(kind, e.ID)
}

// drop accounts for a leaf, inner node or block that leaves the tree, without what is below it.
func (e *Edit) drop(p Ref) {
	switch {
	case isLeaf(p):
		e.Bytes -= leafSize(p)
	case isBlock(p):
		e.Bytes -= blockSize(p)
	default:
		e.Bytes -= innerSize(kindOf(p))
	}
	s := stateOf(p)
	if s == nil {
		return
	}
	if w := load(s); w&diskBit != 0 {
		e.Dead += blockLength(p, w)
	}
}

// unfold gives nodes of the edit's own for a block that it is certain to change.
func (e *Edit) unfold(p Ref) Ref {
	q := unfolded(p, e.ID)
	e.Bytes += Weigh(q)
	e.drop(p)
	return q
}

// resize copies h into a node of the given kind that belongs to the edit.
func (e *Edit) resize(h *head, kind uint8) *head {
	g := e.inner(kind)
	g.plen, g.prefix = h.plen, h.prefix
	g.val = atomic.LoadPointer(&h.val)
	h.copyTo(g)
	e.drop(Ref(h))
	return g
}

// own is h itself if the edit made it, else a copy.
func (e *Edit) own(h *head) *head {
	if load(&h.state) == e.ID {
		return h
	}
	return e.resize(h, h.kind)
}

// copyTo copies the children of h into the empty node g, which has room.
func (h *head) copyTo(g *head) {
	switch {
	case g.kind == kind256:
		to := (*node256)(Ref(g))
		h.each(func(c byte, s *Ref) bool { to.ch[c] = atomic.LoadPointer(s); return true })
	case g.kind == kind48 && h.kind == kind48:
		from, to := (*node48)(Ref(h)), (*node48)(Ref(g))
		to.idx = from.idx
		for i := range from.ch[:from.n] {
			to.ch[i] = atomic.LoadPointer(&from.ch[i])
		}
	case g.kind == kind48:
		to, i := (*node48)(Ref(g)), 0
		h.each(func(c byte, s *Ref) bool {
			to.ch[i] = atomic.LoadPointer(s)
			i++
			to.idx[c] = byte(i)
			return true
		})
	case h.kind <= kind16:
		fk, fc := h.array()
		tk, tc := g.array()
		copy(tk, fk[:h.n])
		for i := range fc[:h.n] {
			tc[i] = atomic.LoadPointer(&fc[i])
		}
	default:
		keys, ch := g.array()
		i := 0
		h.each(func(c byte, s *Ref) bool {
			keys[i], ch[i] = c, atomic.LoadPointer(s)
			i++
			return true
		})
	}
	g.n = h.n
}

// add puts a child under c, which is free. It returns the node to use from now
// on: h, a copy or a larger node.
func (e *Edit) add(h *head, c byte, child Ref) *head {
	if int(h.n) == capacity(h.kind) {
		h = e.resize(h, h.kind+1)
	} else {
		h = e.own(h)
	}
	switch h.kind {
	case kind48:
		n := (*node48)(Ref(h))
		n.ch[n.n] = child
		n.idx[c] = byte(n.n + 1)
	case kind256:
		(*node256)(Ref(h)).ch[c] = child
	default:
		keys, ch := h.array()
		i := int(h.n)
		for ; i > 0 && keys[i-1] > c; i-- {
			keys[i], ch[i] = keys[i-1], ch[i-1]
		}
		keys[i], ch[i] = c, child
	}
	h.n++
	return h
}

// remove takes out the child under c and shrinks the node when that pays.
func (e *Edit) remove(h *head, c byte) *head {
	h = e.own(h)
	switch h.kind {
	case kind48:
		n := (*node48)(Ref(h))
		i, last := n.idx[c]-1, byte(n.n-1)
		n.idx[c] = 0
		if i != last {
			for k, j := range n.idx {
				if j == last+1 {
					n.idx[k] = i + 1
				}
			}
			n.ch[i] = n.ch[last]
		}
		n.ch[last] = nil
	case kind256:
		(*node256)(Ref(h)).ch[c] = nil
	default:
		keys, ch := h.array()
		i := 0
		for keys[i] != c {
			i++
		}
		last := int(h.n) - 1
		copy(keys[i:last], keys[i+1:])
		copy(ch[i:last], ch[i+1:])
		keys[last], ch[last] = 0, nil
	}
	h.n--
	// One child of slack keeps a node from growing and shrinking in turn.
	if k := fit(int(h.n) + 1); h.kind > kind4 && k < h.kind {
		h = e.resize(h, k)
	}
	return h
}

// fork makes the nodes for a common prefix of any length. It returns the top
// one and the slot in its parent, nil if the bottom is the top.
func (e *Edit) fork(common string) (top, bottom *head, slot *Ref) {
	top = e.inner(kind4)
	for bottom = top; len(common) > maxPrefix; {
		bottom.setPrefix(common[:maxPrefix])
		next := e.inner(kind4)
		slot = find(e.add(bottom, common[maxPrefix], Ref(next)), common[maxPrefix])
		bottom, common = next, common[maxPrefix+1:]
	}
	bottom.setPrefix(common)
	return top, bottom, slot
}

func commonLen[A, B string | []byte](a A, b B) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// place puts a key of the given rest into a node that has room for it.
func (e *Edit) place(h *head, rest string, val []byte) {
	if rest == "" {
		h.val = e.leaf("", val)
		return
	}
	e.add(h, rest[0], e.leaf(rest[1:], val))
}

func (e *Edit) put(slot *Ref, key string, val []byte, replace bool) (Ref, outcome, error) {
	p, err := e.Src.enter(slot)
	if err != nil {
		return nil, same, err
	}
	if p == nil {
		return e.leaf(key, val), added_, nil
	}
	if isLeaf(p) {
		return e.putLeaf(p, key, val, replace)
	}
	if isBlock(p) {
		if q, how, ok := e.putBlock(p, key, val, replace); ok {
			return q, how, nil
		}
		if !replace {
			if _, found := search(encoded(p), key); found {
				return p, same, nil
			}
		}
		p = e.unfold(p)
	}
	h := (*head)(p)
	pfx := h.pfx()
	if c := commonLen(pfx, key); c < len(pfx) {
		if h.n == 1 {
			// A link of a chain gets shorter and may take in the next one.
			var err error
			h.each(func(_ byte, s *Ref) bool { _, err = e.Src.enter(s); return true })
			if err != nil {
				return nil, same, err
			}
		}
		n := e.inner(kind4)
		n.setPrefix(pfx[:c])
		branch, rest := pfx[c], string([]byte(pfx[c+1:]))
		o := e.own(h)
		o.setPrefix(rest)
		e.add(n, branch, e.collapse(o))
		e.place(n, key[c:], val)
		return Ref(n), added_, nil
	}
	key = key[len(pfx):]
	if key == "" {
		v, how, err := e.put(&h.val, "", val, replace)
		if how != same {
			h = e.own(h)
			h.val = v
		}
		return Ref(h), how, err
	}
	s := find(h, key[0])
	if s == nil {
		return Ref(e.add(h, key[0], e.leaf(key[1:], val))), added_, nil
	}
	child, how, err := e.put(s, key[1:], val, replace)
	if how != same {
		if load(&h.state) != e.ID {
			h = e.own(h)
			s = find(h, key[0])
		}
		*s = child
		if h.n == 1 {
			// The next link of a chain was split: what is left of it may fit in here.
			return e.collapse(h), how, err
		}
	}
	return Ref(h), how, err
}

func (e *Edit) putLeaf(p Ref, key string, val []byte, replace bool) (Ref, outcome, error) {
	rest := leafRest(p)
	if rest == key {
		if !replace {
			return p, same, nil
		}
		n := e.leaf(key, val)
		e.drop(p)
		return n, replaced, nil
	}
	c := commonLen(rest, key)
	top, bottom, _ := e.fork(key[:c])
	e.place(bottom, rest[c:], leafVal(p))
	e.place(bottom, key[c:], val)
	e.drop(p)
	return Ref(top), added_, nil
}

func (e *Edit) del(slot *Ref, key string) (Ref, bool, error) {
	p, err := e.Src.enter(slot)
	if err != nil || p == nil {
		return nil, false, err
	}
	if isLeaf(p) {
		if leafRest(p) != key {
			return p, false, nil
		}
		e.drop(p)
		return nil, true, nil
	}
	if isBlock(p) {
		if _, found := search(encoded(p), key); !found {
			return p, false, nil
		}
		p = e.unfold(p)
	}
	h := (*head)(p)
	pfx := h.pfx()
	if commonLen(pfx, key) < len(pfx) {
		return p, false, nil
	}
	key = key[len(pfx):]
	s := &h.val
	if key != "" {
		if s = find(h, key[0]); s == nil {
			return p, false, nil
		}
	}
	child, err := e.Src.enter(s)
	if err != nil || child == nil {
		return p, false, err
	}
	if isLeaf(child) {
		return e.delLeaf(h, key, child)
	}
	child, removed, err := e.del(s, key[1:])
	if !removed || err != nil {
		return p, false, err
	}
	if load(&h.state) != e.ID {
		h = e.own(h)
		s = find(h, key[0])
	}
	*s = child
	// The child may have shrunk to something that this node can take in.
	return e.collapse(h), true, nil
}

// delLeaf removes the leaf under h that holds key, in its value slot if key is
// empty. What the node may have to merge with is fetched first: after the
// change nothing can fail.
func (e *Edit) delLeaf(h *head, key string, leaf Ref) (Ref, bool, error) {
	rest := ""
	if key != "" {
		rest = key[1:]
	}
	if leafRest(leaf) != rest {
		return Ref(h), false, nil
	}
	if h.n <= 2 {
		var err error
		fetch := func(_ byte, s *Ref) bool { _, err = e.Src.enter(s); return err == nil }
		if h.each(fetch) {
			_, err = e.Src.enter(&h.val)
		}
		if err != nil {
			return Ref(h), false, err
		}
	}
	e.drop(leaf)
	if key == "" {
		h = e.own(h)
		h.val = nil
	} else {
		h = e.remove(h, key[0])
	}
	return e.collapse(h), true, nil
}

// collapse replaces a node that the edit owns by what it stands for, if it
// stands for one thing only. A single child that is on disk only is left where
// it is; so is one whose prefix would not fit.
func (e *Edit) collapse(h *head) Ref {
	var only Ref
	var branch string
	switch {
	case h.n == 0:
		only = atomic.LoadPointer(&h.val)
	case h.n == 1 && atomic.LoadPointer(&h.val) == nil:
		h.each(func(c byte, s *Ref) bool { only, branch = atomic.LoadPointer(s), string([]byte{c}); return true })
	default:
		return Ref(h)
	}
	switch {
	case only == nil:
		e.drop(Ref(h))
		return nil
	case isBlock(only):
		if int(h.plen)+1+prefixLen(only) > maxPrefix {
			return Ref(h)
		}
		only = e.unfold(only)
		h.each(func(_ byte, s *Ref) bool { *s = only; return true })
		return e.collapse(h)
	case isLeaf(only):
		l := e.leaf(h.pfx()+branch+leafRest(only), leafVal(only))
		e.drop(only)
		e.drop(Ref(h))
		return l
	case isInner(only):
		c := (*head)(only)
		if int(h.plen)+1+int(c.plen) > maxPrefix {
			return Ref(h)
		}
		pfx := h.pfx() + branch + c.pfx()
		c = e.own(c)
		c.setPrefix(pfx)
		e.drop(Ref(h))
		return Ref(c)
	}
	return Ref(h)
}
