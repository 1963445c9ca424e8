package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Txn is a transaction on lists.
type Txn struct {
	Client       int
	Outcome      Outcome // Failed: aborted, or nothing of it was ever sent to commit
	Steps        []Step
	Call, Return time.Duration
}

// Step is a read of a list or an append to it. What is appended is unique.
type Step struct {
	Key    string
	Append int64 // 0 is a read
	Read   []int64
}

func (s Step) String() string {
	if s.Append != 0 {
		return fmt.Sprintf("append(%s, %d)", s.Key, s.Append)
	}
	return fmt.Sprintf("read(%s, %v)", s.Key, s.Read)
}

// Anomaly is a violation that was found.
type Anomaly struct {
	Name string // Adya's, where he has one
	Text string
}

func (a Anomaly) String() string { return a.Name + ": " + a.Text }

// Names of anomalies.
const (
	Internal     = "internal"      // a transaction contradicts itself
	Garbage      = "garbage"       // a value that nobody appended
	Duplicate    = "duplicate"     // one append took effect twice
	Incompatible = "incompatible"  // two reads do not agree on an order
	Lost         = "lost"          // an acknowledged append is gone
	G1a          = "G1a"           // read of an aborted transaction
	G1b          = "G1b"           // read of an intermediate state
	G0           = "G0"            // cycle of writes
	G1c          = "G1c"           // cycle of writes and reads
	GSingle      = "G-single"      // cycle with one anti-dependency: lost update, read skew
	GNonadjacent = "G-nonadjacent" // several, no two in a row
	Stale        = "stale"         // as G-single or G1c, by real time: a writer began after another had returned and did not see it
	Empty        = "empty"         // nothing to judge
)

// Lists judges transactions by snapshot isolation. final are the lists when everything
// was over; it must have every key. An empty result is a pass.
func Lists(txns []Txn, final map[string][]int64) []Anomaly {
	h := &lists{txns: txns, final: final, writer: map[int64]int{}, order: map[string][]int64{}}
	h.index()
	h.internal()
	h.orders()
	h.reads()
	h.lost()
	if len(h.found) == 0 {
		// Edges mean something only where the order of writes is known.
		h.cycles()
	}
	return h.found
}

type lists struct {
	txns   []Txn
	final  map[string][]int64
	writer map[int64]int      // value to transaction
	order  map[string][]int64 // key to all values, in the order of their writes
	found  []Anomaly
}

func (h *lists) report(name, format string, args ...any) {
	h.found = append(h.found, Anomaly{name, fmt.Sprintf(format, args...)})
}

func (h *lists) index() {
	reads, appends := 0, 0
	for i, t := range h.txns {
		for _, s := range t.Steps {
			if s.Append == 0 {
				if t.Outcome == OK {
					reads++
				}
				continue
			}
			if _, twice := h.writer[s.Append]; twice {
				h.report(Garbage, "the history itself appends %d twice", s.Append)
			}
			h.writer[s.Append] = i
			if t.Outcome == OK {
				appends++
			}
		}
	}
	if reads == 0 || appends == 0 {
		h.report(Empty, "%d reads and %d appends were acknowledged; this shows nothing", reads, appends)
	}
}

// internal: a transaction sees its own appends, behind what it read before.
func (h *lists) internal() {
	for i, t := range h.txns {
		know := map[string][]int64{} // what a list must begin or end with
		whole := map[string]bool{}   // know is the whole list
		for _, s := range t.Steps {
			if s.Append != 0 {
				know[s.Key] = append(know[s.Key], s.Append)
				continue
			}
			k := know[s.Key]
			ok := slices.Equal(s.Read, k)
			if !whole[s.Key] {
				ok = len(s.Read) >= len(k) && slices.Equal(s.Read[len(s.Read)-len(k):], k)
			}
			if !ok {
				h.report(Internal, "transaction %d knows %v of %s and reads %v", i, k, s.Key, s.Read)
			}
			know[s.Key], whole[s.Key] = slices.Clone(s.Read), true
		}
	}
}

// orders: the longest list read is the order, and all others are prefixes of it.
func (h *lists) orders() {
	longest := func(key string, read []int64) {
		if len(read) > len(h.order[key]) {
			h.order[key] = read
		}
	}
	each := func(f func(key string, read []int64, own func(int64) bool)) {
		for key, list := range h.final {
			f(key, list, func(int64) bool { return false })
		}
		for i, t := range h.txns {
			if t.Outcome != OK {
				continue // what it read need not have been committed with
			}
			for _, s := range t.Steps {
				if s.Append == 0 {
					f(s.Key, s.Read, func(v int64) bool { return h.writer[v] == i })
				}
			}
		}
	}
	each(func(key string, read []int64, _ func(int64) bool) { longest(key, read) })
	each(func(key string, read []int64, _ func(int64) bool) {
		if !slices.Equal(read, h.order[key][:len(read)]) {
			h.report(Incompatible, "%s was read as %v and as %v", key, read, h.order[key])
		}
	})
	for key, list := range h.order {
		seen := map[int64]bool{}
		for _, v := range list {
			if seen[v] {
				h.report(Duplicate, "%s has %d twice", key, v)
			}
			seen[v] = true
			w, known := h.writer[v]
			if !known {
				h.report(Garbage, "%s has %d, which nobody appended", key, v)
			} else if !slices.ContainsFunc(h.txns[w].Steps, func(s Step) bool { return s.Append == v && s.Key == key }) {
				h.report(Garbage, "%s has %d, which was appended to another list", key, v)
			}
		}
	}
}

// reads: nothing that was aborted, and nothing half done.
func (h *lists) reads() {
	check := func(who, key string, read []int64, self int) {
		for n, v := range read {
			w, known := h.writer[v]
			if !known || w == self {
				continue
			}
			if h.txns[w].Outcome == Failed {
				h.report(G1a, "%s read %d of %s, appended by transaction %d, which was aborted", who, v, key, w)
			}
			// What follows in the same transaction must be there as well.
			rest := h.after(w, key, v)
			if len(rest) > 0 && !slices.Contains(read[n+1:], rest[0]) {
				h.report(G1b, "%s read %d of %s without %d, which transaction %d appended after it", who, v, key, rest[0], w)
			}
		}
	}
	for i, t := range h.txns {
		if t.Outcome != OK {
			continue
		}
		for _, s := range t.Steps {
			if s.Append == 0 {
				check(fmt.Sprintf("transaction %d", i), s.Key, s.Read, i)
			}
		}
	}
	for key, list := range h.final {
		check("the end", key, list, -1)
	}
}

// after are the values that a transaction appended to a list after v.
func (h *lists) after(w int, key string, v int64) (out []int64) {
	past := false
	for _, s := range h.txns[w].Steps {
		if s.Key == key && s.Append != 0 {
			if past {
				out = append(out, s.Append)
			}
			past = past || s.Append == v
		}
	}
	return out
}

func (h *lists) lost() {
	for i, t := range h.txns {
		for _, s := range t.Steps {
			if t.Outcome != OK {
				continue
			}
			list, ok := h.final[s.Key]
			if !ok {
				h.report(Lost, "there is no final state of %s", s.Key)
			} else if s.Append != 0 && !slices.Contains(list, s.Append) {
				h.report(Lost, "transaction %d appended %d to %s, which ended as %v", i, s.Append, s.Key, list)
			}
		}
	}
}

func (h *lists) show(i int) string {
	var steps []string
	for _, s := range h.txns[i].Steps {
		steps = append(steps, s.String())
	}
	return fmt.Sprintf("transaction %d (client %d, %v to %v): %s", i, h.txns[i].Client, h.txns[i].Call, h.txns[i].Return, strings.Join(steps, ", "))
}
