package radix

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Match is a key within some edit distance of a pattern.
type Match struct {
	Key      string
	Val      []byte
	Distance int
}

// Fuzzy finds the keys within the given Levenshtein distance of pattern, counted
// in code points, ordered by distance, then key. A byte that is not UTF-8 counts
// as one code point, U+FFFD, as in a Go conversion to []rune.
//
// The walk runs a Levenshtein automaton over the tree: its state after some code
// points is the row of distances to every prefix of the pattern, cut at the
// limit; a state without an entry within the limit is dead, and so is the subtree.
func Fuzzy(slot *Ref, pattern string, distance int, src *Source) ([]Match, error) {
	a := automaton{src: src, limit: distance, pattern: []rune(pattern)}
	row := make([]int, len(a.pattern)+1)
	for i := range row {
		row[i] = i
	}
	if distance < 0 {
		return nil, nil
	}
	if err := a.node(slot, nil, 0, row); err != nil {
		return nil, err
	}
	slices.SortStableFunc(a.found, func(x, y Match) int {
		return cmp.Or(cmp.Compare(x.Distance, y.Distance), strings.Compare(x.Key, y.Key))
	})
	return a.found, nil
}

type automaton struct {
	src     *Source
	pattern []rune
	limit   int
	found   []Match
	arena   Arena
}

// step is the state after one more code point, and whether it is alive.
func (a *automaton) step(row []int, r rune) (next []int, alive bool) {
	next = make([]int, len(row))
	next[0] = row[0] + 1
	alive = next[0] <= a.limit
	for i, p := range a.pattern {
		d := row[i]
		if p != r {
			d = 1 + min(d, row[i+1], next[i])
		}
		next[i+1] = d
		alive = alive || d <= a.limit
	}
	return next, alive
}

// feed consumes the whole code points of key from byte done on, or all bytes at
// the end of the key. A code point may begin in one node and end in another.
func (a *automaton) feed(key []byte, done int, row []int, end bool) (int, []int, bool) {
	for alive := true; done < len(key) && (end || utf8.FullRune(key[done:])); {
		r, n := utf8.DecodeRune(key[done:])
		done += n
		if row, alive = a.step(row, r); !alive {
			return done, row, false
		}
	}
	return done, row, true
}

func (a *automaton) node(slot *Ref, key []byte, done int, row []int) error {
	p, err := a.src.peek(slot)
	if err != nil || p == nil {
		return err
	}
	if isLeaf(p) {
		a.accept(append(key, leafRest(p)...), leafVal(p), done, row)
		return nil
	}
	h := (*head)(p)
	key = append(key, h.prefix[:h.plen]...)
	done, row, alive := a.feed(key, done, row, false)
	if !alive {
		return nil
	}
	if err := a.node(&h.val, key, done, row); err != nil {
		return err
	}
	h.each(func(c byte, s *Ref) bool {
		k := append(key, c)
		if d, r, alive := a.feed(k, done, row, false); alive {
			err = a.node(s, k, d, r)
		}
		return err == nil
	})
	return err
}

func (a *automaton) accept(key, val []byte, done int, row []int) {
	_, row, alive := a.feed(key, done, row, true)
	if d := row[len(row)-1]; alive && d <= a.limit {
		a.found = append(a.found, Match{Key: a.arena.String(key), Val: a.arena.Bytes(val), Distance: d})
	}
}
