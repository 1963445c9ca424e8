package history

import (
	"slices"
	"strings"
)

// edge is a dependency of one transaction on another.
type edge struct {
	to   int
	kind kind
}

type kind int

const (
	ww kind = iota // overwrote what the first wrote
	wr             // read what the first wrote
	rt             // wrote, and began after the first had returned
	rw             // overwrote what the first read: the anti-dependency
)

func (k kind) String() string {
	return [...]string{"write-write", "write-read", "real time", "read-write"}[k]
}

// graph has the edges between transactions that were committed: acknowledged, or open
// and seen by somebody.
func (h *lists) graph() [][]edge {
	out := make([][]edge, len(h.txns))
	add := func(from, to int, k kind) {
		if from != to && !slices.Contains(out[from], edge{to, k}) {
			out[from] = append(out[from], edge{to, k})
		}
	}
	for _, list := range h.order {
		for n := 1; n < len(list); n++ {
			add(h.writer[list[n-1]], h.writer[list[n]], ww)
		}
	}
	for i, t := range h.txns {
		if t.Outcome != OK {
			continue // what it read is of an attempt that may not be the one committed
		}
		for _, s := range t.Steps {
			if s.Append != 0 {
				continue
			}
			if n := len(s.Read); n > 0 {
				add(h.writer[s.Read[n-1]], i, wr)
			}
			for _, v := range h.order[s.Key][len(s.Read):] {
				if w := h.writer[v]; w != i {
					add(i, w, rw)
					break
				}
			}
		}
		if !writes(t) {
			continue
		}
		for j, before := range h.txns {
			if before.Outcome == OK && before.Return < t.Call && writes(before) {
				add(j, i, rt)
			}
		}
	}
	return out
}

func writes(t Txn) bool {
	return slices.ContainsFunc(t.Steps, func(s Step) bool { return s.Append != 0 })
}

// cycles looks for the shortest cycle without two anti-dependencies in a row, by a
// breadth-first search from every transaction. A place of the search is a transaction
// and whether it was reached by an anti-dependency, and so is its end: the last edge
// and the first follow each other too.
func (h *lists) cycles() {
	g := h.graph()
	var best []hop
	for start := range g {
		for _, viaRW := range []bool{false, true} {
			if c := shortest(g, place{start, viaRW}); c != nil && (best == nil || len(c) < len(best)) {
				best = c
			}
		}
	}
	if best == nil {
		return
	}
	count := map[kind]int{}
	var text strings.Builder
	for _, s := range best {
		count[s.kind]++
		text.WriteString("\n  " + h.show(s.from) + "\n    " + s.kind.String())
	}
	name := G0
	switch {
	case count[rt] > 0:
		name = Stale
	case count[rw] > 1:
		name = GNonadjacent
	case count[rw] == 1:
		name = GSingle
	case count[wr] > 0:
		name = G1c
	}
	h.report(name, "a cycle of %d:%s", len(best), text.String())
}

type place struct {
	txn   int
	viaRW bool
}

type hop struct {
	from int
	kind kind
}

func shortest(g [][]edge, start place) []hop {
	type link struct {
		from place
		kind kind
	}
	came := map[place]link{}
	queue := []place{start}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, e := range g[p.txn] {
			if e.kind == rw && p.viaRW {
				continue
			}
			next := place{e.to, e.kind == rw}
			if _, been := came[next]; been {
				continue
			}
			came[next] = link{p, e.kind}
			if next != start {
				queue = append(queue, next)
				continue
			}
			var out []hop
			for at := start; ; {
				l := came[at]
				out = append(out, hop{l.from.txn, l.kind})
				if at = l.from; at == start {
					slices.Reverse(out)
					return out
				}
			}
		}
	}
	return nil
}
