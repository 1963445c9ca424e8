package radix

import (
	"strings"
	"sync/atomic"
)

// SweepBelow evicts what is on disk under prefix, touched or not, and returns
// what that freed. gen and owner are as for Clock.Sweep. The root stays.
func SweepBelow(slot *Ref, prefix string, gen uint64, owner Ref) (freed int64, subtrees int) {
	s := below{gen: gen, owner: owner}
	for root := true; ; root = false {
		p := atomic.LoadPointer(slot)
		if p == nil || !isInner(p) {
			return 0, 0
		}
		h := (*head)(p)
		n := int(h.plen)
		if len(prefix) <= n {
			switch {
			case !strings.HasPrefix(h.pfx(), prefix):
			case root:
				s.children(h)
			default:
				s.slot(slot)
			}
			return s.freed, s.subtrees
		}
		if prefix[:n] != h.pfx() {
			return 0, 0
		}
		if slot = find(h, prefix[n]); slot == nil {
			return 0, 0
		}
		if prefix = prefix[n+1:]; prefix == "" {
			s.slot(slot)
			return s.freed, s.subtrees
		}
	}
}

// below evicts whole subtrees.
type below struct {
	gen      uint64
	owner    Ref
	freed    int64
	subtrees int
}

func (s *below) children(h *head) {
	s.slot(&h.val)
	h.each(func(_ byte, slot *Ref) bool {
		s.slot(slot)
		return true
	})
}

func (s *below) slot(slot *Ref) {
	p := atomic.LoadPointer(slot)
	if p == nil || kindOf(p) == kindStub {
		return
	}
	st := stateOf(p)
	if st == nil {
		return
	}
	if w := load(st); onDisk(w) && SameGeneration(w, s.gen) {
		if atomic.CompareAndSwapPointer(slot, p, NewStub(w, s.owner)) {
			s.freed += Weigh(p) - stubSize
			s.subtrees++
		}
		return
	}
	if isInner(p) {
		s.children((*head)(p))
	}
}
