package radix

import (
	"strings"
	"sync/atomic"
	"unsafe"
)

// Walk calls f for every key of the tree that begins with prefix, in order of
// bytes, until f returns false. Key and value are good only until f returns.
// What is not in memory is fetched through src.Fault.
func Walk(slot *Ref, prefix string, src *Source, f func(key, val []byte) bool) error {
	w := walker{enter: src.keep, f: f}
	_, err := w.seek(slot, make([]byte, 0, 64), prefix)
	return err
}

// Scan is Walk that fetches through src.Read and so keeps nothing in memory.
func Scan(slot *Ref, prefix string, src *Source, f func(key, val []byte) bool) error {
	w := walker{enter: src.peek, f: f}
	_, err := w.seek(slot, make([]byte, 0, 64), prefix)
	return err
}

type walker struct {
	enter func(*Ref) (Ref, error)
	f     func(key, val []byte) bool
	sink  uint8
}

// seek goes down to where rest ends and walks from there. more is false when f
// has had enough.
func (w *walker) seek(slot *Ref, key []byte, rest string) (more bool, err error) {
	for {
		p, err := w.enter(slot)
		if err != nil || p == nil {
			return true, err
		}
		if isLeaf(p) {
			if r := leafRest(p); strings.HasPrefix(r, rest) {
				return w.f(append(key, r...), leafVal(p)), nil
			}
			return true, nil
		}
		h := (*head)(p)
		pfx := h.pfx()
		if len(rest) <= len(pfx) {
			if pfx[:len(rest)] != rest {
				return true, nil
			}
			return w.inner(h, key)
		}
		if rest[:len(pfx)] != pfx {
			return true, nil
		}
		c := rest[len(pfx)]
		if slot = find(h, c); slot == nil {
			return true, nil
		}
		key = append(append(key, pfx...), c)
		rest = rest[len(pfx)+1:]
	}
}

func (w *walker) walk(slot *Ref, key []byte) (bool, error) {
	p, err := w.enter(slot)
	if err != nil || p == nil {
		return err == nil, err
	}
	if isLeaf(p) {
		return w.f(append(key, leafRest(p)...), leafVal(p)), nil
	}
	return w.inner((*head)(p), key)
}

func (w *walker) inner(h *head, key []byte) (bool, error) {
	key = append(key, h.prefix[:h.plen]...)
	if more, err := w.walk(&h.val, key); !more || err != nil {
		return more, err
	}
	switch h.kind {
	case kind48:
		n := (*node48)(Ref(h))
		for c, i := range n.idx {
			if i != 0 {
				if more, err := w.walk(&n.ch[i-1], append(key, byte(c))); !more || err != nil {
					return more, err
				}
			}
		}
	case kind256:
		n := (*node256)(Ref(h))
		for c := range n.ch {
			if more, err := w.walk(&n.ch[c], append(key, byte(c))); !more || err != nil {
				return more, err
			}
		}
	default:
		keys, ch := h.array()
		ch = ch[:h.n]
		w.sink |= glance(ch)
		for i := range ch {
			if more, err := w.walk(&ch[i], append(key, keys[i])); !more || err != nil {
				return more, err
			}
		}
	}
	return true, nil
}

// glance looks at all children together: one after the other they are one cache miss
// after the other, like this their misses overlap.
func glance(ch []Ref) (sink uint8) {
	if len(ch) > 2 {
		for i := range ch {
			sink |= kindOf(atomic.LoadPointer(&ch[i]))
		}
	}
	return sink
}

// Weigh is the memory of what is in memory below p, p included, in bytes.
func Weigh(p Ref) int64 {
	switch {
	case p == nil:
		return 0
	case isLeaf(p):
		return leafSize(p)
	case kindOf(p) == kindStub:
		return stubSize
	case isBlock(p):
		return blockSize(p)
	}
	h := (*head)(p)
	n := innerSize(h.kind) + Weigh(atomic.LoadPointer(&h.val))
	h.each(func(_ byte, s *Ref) bool { n += Weigh(atomic.LoadPointer(s)); return true })
	return n
}

// Arena keeps the bytes of many keys and values in few allocations. What it
// returned stays good for ever.
type Arena struct{ chunk []byte }

const arenaChunk = 4096

func (a *Arena) take(b []byte) []byte {
	if len(b) > cap(a.chunk)-len(a.chunk) {
		if len(b) > arenaChunk/4 {
			return append([]byte(nil), b...)
		}
		// The first chunk is small: most prefix scans are.
		a.chunk = make([]byte, 0, min(arenaChunk, max(256, 2*cap(a.chunk), len(b))))
	}
	n := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return a.chunk[n:len(a.chunk):len(a.chunk)]
}

// String keeps a copy of b and returns it as a string.
func (a *Arena) String(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(unsafe.SliceData(a.take(b)), len(b))
}

// Bytes keeps a copy of b and returns it; nil for none.
func (a *Arena) Bytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return a.take(b)
}
