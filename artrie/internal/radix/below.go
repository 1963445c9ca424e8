package radix

import (
	"math"
	"strings"
	"sync/atomic"
)

// SweepBelow evicts what is on disk under prefix, touched or not, and returns
// what that freed. gen and owner are as for Clock.Sweep. The root stays.
func SweepBelow(slot *Ref, prefix string, gen uint64, owner Ref) (freed int64, subtrees int) {
	s := sweep{gen: gen, owner: owner, want: math.MaxInt64, force: true}
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
				s.inner(h, nil, nil)
			default:
				s.slot(slot, nil, nil)
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
			s.slot(slot, nil, nil)
			return s.freed, s.subtrees
		}
	}
}
