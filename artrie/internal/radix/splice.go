package radix

// WholeBlock is the largest payload that a store with a memory budget writes as one
// block, and the largest that an edit leaves one, in bytes: such a store then faults
// once where it would fault for the parts, at the price of larger checkpoints.
const WholeBlock = 768

// splice is what one key changes in a payload: with stands for b[from:to], and b[at]
// becomes is.
type splice struct {
	from, to int
	with     []byte
	at       int // -1: none
	is       byte
}

// putBlock is put into a block that stays one: its nodes would take twice the memory
// and many allocations. ok is false for what is left to them.
func (e *Edit) putBlock(p Ref, key string, val []byte, replace bool) (q Ref, how outcome, ok bool) {
	b := encoded(p)
	var room [2 * maxLeaf]byte
	s, how, ok := spliceKey(room[:0], b, key, val, replace)
	if !ok || how == same {
		return p, how, ok
	}
	n := len(b) - (s.to - s.from) + len(s.with)
	if n > WholeBlock {
		return p, same, false
	}
	q, to := makeBlock(n, e.ID)
	copy(to, b[:s.from])
	copy(to[s.from:], s.with)
	copy(to[s.from+len(s.with):], b[s.to:])
	if s.at >= 0 {
		to[s.at] = s.is
	}
	e.Bytes += blockSize(q)
	e.drop(p)
	return q, how, true
}

// spliceKey is the splice that sets key to val in the payload b; its bytes go to w. ok is
// false where a chain begins or what is below its link changes, and for a large leaf.
func spliceKey(w, b []byte, key string, val []byte, replace bool) (s splice, how outcome, ok bool) {
	if leafHead+len(key)+len(val) > maxLeaf {
		return s, same, false
	}
	for i := 0; ; {
		top, tag := i, b[i]
		if tag&3 != tagInner {
			return spliceLeaf(w, b, i, key, val, replace)
		}
		i++
		pfx := b[i : i+int(tag>>2&15)]
		i += len(pfx)
		count, hasVal := i, tag>>2&16 != 0
		if hasVal {
			_, _, count = leafAt(b, i)
		}
		chain := b[count] == 0 && !hasVal
		if c := commonLen(pfx, key); c < len(pfx) {
			if chain {
				return s, same, false
			}
			// The node stays, below a new one that has the common part of its prefix.
			end := skip(b, top, 0)
			old := append([]byte{tag - byte(c+1)<<2}, b[top+1+c+1:end]...)
			return splice{top, end, appendFork(w, pfx[:c], int(pfx[c]), old, key[c:], val), -1, 0}, added_, true
		}
		key = key[len(pfx):]
		if key == "" && hasVal {
			return spliceLeaf(w, b, i, "", val, replace)
		}
		if key == "" {
			return splice{i, i, appendRest(w, "", val), top, tag | 16<<2}, added_, true
		}
		n := int(b[count]) + 1
		for i = count + 1; n > 0 && b[i] < key[0]; n-- {
			i = skip(b, i+1, 0)
		}
		if n == 0 || b[i] != key[0] {
			return splice{i, i, appendRest(append(w, key[0]), key[1:], val), count, b[count] + 1}, added_, true
		}
		if chain {
			return s, same, false
		}
		i, key = i+1, key[1:]
	}
}

// spliceLeaf is spliceKey for the leaf at b[i].
func spliceLeaf(w, b []byte, i int, key string, val []byte, replace bool) (s splice, how outcome, ok bool) {
	rest, was, end := leafAt(b, i)
	if string(rest) == key {
		if !replace {
			return s, same, true
		}
		return splice{i, end, appendRest(w, key, val), -1, 0}, replaced, true
	}
	c := commonLen(rest, key)
	if c > maxPrefix {
		return s, same, false
	}
	var room [maxLeaf]byte
	if c == len(rest) {
		return splice{i, end, appendFork(w, rest, -1, appendRest(room[:0], "", was), key[c:], val), -1, 0}, added_, true
	}
	old := appendRest(room[:0], rest[c+1:], was)
	return splice{i, end, appendFork(w, rest[:c], int(rest[c]), old, key[c:], val), -1, 0}, added_, true
}

// appendFork appends a node with the given prefix and two things below it: key with val,
// and the subtree old under the byte c, or, for c -1, as the value.
func appendFork(w, pfx []byte, c int, old []byte, key string, val []byte) []byte {
	tag := byte(tagInner | len(pfx)<<2)
	if key == "" || c < 0 {
		tag |= 16 << 2
	}
	w = append(append(w, tag), pfx...)
	switch {
	case c < 0:
		w = append(append(w, old...), 0, key[0])
		return appendRest(w, key[1:], val)
	case key == "":
		w = append(appendRest(w, "", val), 0, byte(c))
		return append(w, old...)
	}
	w = append(w, 1)
	if byte(c) < key[0] {
		w = append(append(w, byte(c)), old...)
	}
	w = appendRest(append(w, key[0]), key[1:], val)
	if byte(c) > key[0] {
		w = append(append(w, byte(c)), old...)
	}
	return w
}
