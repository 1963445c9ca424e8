package lockfreeflip

import (
	"bytes"
	"fmt"

	"github.com/assaylab/assay/artrie"
	"github.com/assaylab/assay/lab/check"
)

// maxExamples is how many counter-examples a result carries.
const maxExamples = 5

// judge gathers what one check finds.
type judge struct{ res check.Result }

func newJudge(name string) *judge {
	return &judge{check.Result{Name: name, Verdict: check.Pass, Kinds: map[string]int{}}}
}

// looked counts an operation that the check looked at.
func (j *judge) looked(kind string) {
	j.res.Operations++
	j.res.Kinds[kind]++
}

// wrong is a violation. The first one is the message.
func (j *judge) wrong(message, format string, args ...any) {
	j.res.Verdict = check.Fail
	if j.res.Message == "" {
		j.res.Message = message
	}
	if format != "" && len(j.res.Examples) < maxExamples {
		j.res.Examples = append(j.res.Examples, fmt.Sprintf(format, args...))
	}
}

// unknown is something without which nothing can be said.
func (j *judge) unknown(format string, args ...any) {
	if j.res.Verdict == check.Pass {
		j.res.Verdict, j.res.Message = check.Unknown, fmt.Sprintf(format, args...)
	}
}

// readsExact: what was acknowledged is found, and cold keys have their values.
func (r *round) readsExact() check.Result {
	j := newJudge("reads_exact")
	for n := range readers {
		j.res.Operations += r.exact[n]
		j.res.Kinds["read"] += r.exact[n]
		j.res.Kinds["cold"] += r.coldOK[n]
		for _, w := range r.wrong[n] {
			j.wrong("a reader got a wrong answer", "%s", w)
		}
	}
	if r.evict == evictionFaultIn && j.res.Kinds["cold"] == 0 {
		j.unknown("no cold key was read")
	}
	return j.res
}

// places are the numbers of the log writes that have the round's keys, by writer
// and index; 0 where no write has the key.
func (r *round) places() [][]int64 {
	type place struct{ w, i int }
	where := make(map[string]place, writers*r.each)
	at := make([][]int64, writers)
	shortest, longest := 1<<30, 0
	for w := range r.keys {
		at[w] = make([]int64, r.each)
		for i, k := range r.keys[w] {
			where[k] = place{w, i}
			shortest, longest = min(shortest, len(k)), max(longest, len(k))
		}
	}
	head := []byte(disjointKey(0)[:6])
	if r.pattern == patternHot {
		head = []byte(hotKey(0)[:17])
	}
	l := &r.disk.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, b := range l.writes {
		for {
			i := bytes.Index(b, head)
			if i < 0 {
				break
			}
			b = b[i:]
			// A key's end is not marked in the bytes, so the longest one counts.
			for size := min(longest, len(b)); size >= shortest; size-- {
				if p, ok := where[string(b[:size])]; ok {
					at[p.w][p.i] = int64(n + 1)
					break
				}
			}
			b = b[len(head):]
		}
	}
	return at
}

// acknowledgedIsDurable is P4.
func (r *round) acknowledgedIsDurable(at [][]int64) check.Result {
	j := newJudge("acknowledged_is_durable")
	for w := range r.keys {
		for i, mark := range r.marks[w] {
			if at[w][i] == 0 {
				j.unknown("the key %q is in no write to the log; has its format changed?", r.keys[w][i])
				continue
			}
			j.looked("acknowledged")
			if at[w][i] > mark {
				j.wrong("a write was acknowledged before it was durable", "%q is in write %d of the log; when it was acknowledged, syncs covered %d", r.keys[w][i], at[w][i], mark)
			}
		}
	}
	return j.res
}

// seenIsDurable is P5.
func (r *round) seenIsDurable(at [][]int64) check.Result {
	j := newJudge("seen_is_durable")
	for n := range r.sights {
		for _, s := range r.sights[n] {
			place := at[s.writer][s.index]
			if place == 0 {
				j.unknown("the key %q was seen and is in no write to the log", r.keys[s.writer][s.index])
				continue
			}
			j.looked("seen")
			if s.early {
				j.res.Kinds["seen before acknowledged"]++
			}
			if place > s.mark {
				j.wrong("a reader saw what was not durable", "%q is in write %d of the log; after it was seen, syncs covered %d", r.keys[s.writer][s.index], place, s.mark)
			}
		}
	}
	return j.res
}

// syncsPerWrite: under Immediate a write waits for a sync of its own, no more
// and no less; under Group for one that it may share.
func (r *round) syncsPerWrite() check.Result {
	j := newJudge("syncs_per_write")
	acked, syncs := writers*r.each, len(r.syncs)
	j.res.Operations, j.res.Kinds["write"], j.res.Kinds["sync"] = acked, acked, syncs
	say := fmt.Sprintf("%d syncs of the log for %d acknowledged writes", syncs, acked)
	switch {
	case r.turns > 0:
		j.unknown("%s, and %d segments were begun: the syncs cannot be told apart", say, r.turns)
	case r.options.Durability == artrie.Immediate && syncs != acked:
		j.wrong("not one sync per write: "+say, "")
	case r.options.Durability == artrie.Group && (syncs == 0 || syncs > acked):
		j.wrong("syncs that no write waited for, or none: "+say, "")
	}
	return j.res
}

// regimeHeld: what the cell says of eviction is what happened.
func (r *round) regimeHeld() check.Result {
	j := newJudge("regime_held")
	faults := int(r.after.Faults - r.before.Faults)
	all := int(r.after.Evicted - r.before.Evicted)
	j.res.Operations = r.checks
	j.res.Kinds["evicted"], j.res.Kinds["faulted in"] = r.evicted, faults
	bad := func(why string) {
		j.wrong(fmt.Sprintf("%s: %d subtrees were evicted and %d brought back, in %d checkpoints", why, all, faults, r.checks), "")
	}
	moves := r.moves()
	switch {
	case !moves && (all != 0 || faults != 0):
		bad("nothing may leave memory here")
	case moves && r.evicted == 0:
		bad("nothing was reclaimed")
	case r.evict == evictionCold && faults != 0:
		bad("what nobody touches came back")
	case r.evict == evictionFaultIn && faults == 0:
		bad("nothing came back")
	}
	return j.res
}

// reopensExactly opens what the power failure left and compares all of it with
// what was there at the start and what was acknowledged.
func (r *round) reopensExactly(dir string, begin *start) check.Result {
	name := "reopen_exact"
	fail := func(format string, args ...any) check.Result {
		return check.Result{Name: name, Verdict: check.Fail, Message: fmt.Sprintf(format, args...), Operations: 1}
	}
	t, err := artrie.Open(dir, &artrie.Options{SegmentBytes: segmentBytes, CheckpointBytes: -1})
	if err != nil {
		return fail("after the power failure the store does not open: %v", err)
	}
	defer t.Close()
	mine := map[string]bool{}
	h := check.SetHistory[string]{}
	for w := range r.keys {
		for i, k := range r.keys[w] {
			mine[k] = true
			op := check.SetOp[string]{Insert: []string{k}}
			if i < int(r.acked[w].Load()) {
				h.Acked = append(h.Acked, op)
			} else {
				h.Maybe = append(h.Maybe, op)
			}
		}
	}
	var rest fingerprint
	for k, v := range t.All() {
		if mine[k] {
			h.Found = append(h.Found, k)
		} else {
			rest.add(k, v)
		}
	}
	if err := t.Err(); err != nil {
		return fail("after the power failure the store cannot be read: %v", err)
	}
	res := check.SetExact(name, h)
	if rest != begin.Set && res.Verdict != check.Fail {
		return fail("after the power failure the content of the start is another: %d keys and not %d", rest.Entries, begin.Set.Entries)
	}
	if n := t.Len(); int(n) != len(h.Found)+rest.Entries && res.Verdict != check.Fail {
		return fail("after the power failure the store counts %d keys and has %d", n, len(h.Found)+rest.Entries)
	}
	res.Operations += rest.Entries
	return res
}
