package radix

import (
	"fmt"
	"sync/atomic"
)

// Check verifies the structure of the whole tree and counts its keys: kinds,
// counts, order, no node that stands for one thing only, no address below a
// node that is being built, no address on a small leaf. src.Read fetches.
func Check(slot *Ref, src *Source) (keys int64, err error) {
	p, err := src.peek(slot)
	if err != nil || p == nil {
		return 0, err
	}
	return check(p, src, nil)
}

func check(p Ref, src *Source, path []byte) (keys int64, err error) {
	fail := func(format string, args ...any) (int64, error) {
		return 0, fmt.Errorf("node at %q: %s", path, fmt.Sprintf(format, args...))
	}
	if isLeaf(p) {
		at, r, v := leafLens(p)
		if big := leafHead+r+v > maxLeaf; big != (kindOf(p) == kindBig) {
			return fail("leaf of %d bytes has kind %d", at+r+v, kindOf(p))
		}
		return 1, nil
	}
	if !isInner(p) || kindOf(p) > kind256 {
		return fail("kind %d", kindOf(p))
	}
	h := (*head)(p)
	if h.plen > maxPrefix {
		return fail("prefix of %d bytes", h.plen)
	}
	if int(h.n) > capacity(h.kind) {
		return fail("%d children in a node of %d", h.n, capacity(h.kind))
	}
	path = append(path, h.prefix[:h.plen]...)
	if v := atomic.LoadPointer(&h.val); v != nil {
		if v, err = src.peek(&h.val); err != nil {
			return 0, err
		}
		if !isLeaf(v) || leafRest(v) != "" {
			return fail("the value slot holds kind %d with rest %q", kindOf(v), leafRest(v))
		}
		keys++
	}
	if h.n == 0 {
		return fail("no children")
	}
	last, n, only := -1, 0, Ref(nil)
	h.each(func(c byte, s *Ref) bool {
		if int(c) <= last {
			_, err = fail("child %d after %d", c, last)
			return false
		}
		last = int(c)
		n++
		var child Ref
		if child, err = src.peek(s); err != nil {
			return false
		}
		if child == nil {
			_, err = fail("empty child under %d", c)
			return false
		}
		only = child
		var k int64
		k, err = check(child, src, append(path, c))
		keys += k
		return err == nil
	})
	if err != nil {
		return 0, err
	}
	if n != int(h.n) {
		return fail("counts %d children, has %d", h.n, n)
	}
	if n == 1 && atomic.LoadPointer(&h.val) == nil {
		if isLeaf(only) || int(h.plen)+1+int((*head)(only).plen) <= maxPrefix {
			return fail("stands for its only child")
		}
	}
	return keys, nil
}
