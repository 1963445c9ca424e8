package check

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// The words of StaleRead.Status.
const (
	ReadOK      = "ok"      // answered
	ReadRefused = "refused" // the system said that it could not answer
)

// StaleWrite is one write. Times are durations since an origin that all
// operations of the history share.
type StaleWrite struct {
	Key      string        `json:"key"`
	Revision int64         `json:"revision"` // 1 or more; chosen by the writer, so it is known after a timeout too
	Start    time.Duration `json:"start_ns"` // before the write was sent
	Acked    time.Duration `json:"acked_ns,omitempty"`
	Maybe    bool          `json:"maybe,omitempty"` // never acknowledged: may have taken effect, or not; Acked is ignored
}

// StaleRead is one read, on the same time axis.
type StaleRead struct {
	Key      string        `json:"key"`
	Start    time.Duration `json:"start_ns"` // before the read was sent
	End      time.Duration `json:"end_ns"`   // after its answer was there
	Revision int64         `json:"revision"` // 0 says that the key was not there
	Status   string        `json:"status"`   // ReadOK or ReadRefused
}

// StaleHistory is all writes and reads of a run, in any order. A write that is
// left out makes reads of it look invented, so writes that timed out must be
// in.
type StaleHistory struct {
	Writes []StaleWrite `json:"writes"`
	Reads  []StaleRead  `json:"reads"`
}

// The classes of finding of Staleness.
const (
	foundStale    = "stale"
	foundInvented = "invented"
	foundFuture   = "future"
)

// The kinds that Staleness counts.
const (
	kindWrite   = "write"
	kindRead    = "read"
	kindBound   = "bound"
	kindRefused = "refused"
)

// Staleness checks that no read went back in time. Each key holds a revision
// that only grows. It reports reads that are
//
//   - stale: the read began after a higher revision had been acknowledged;
//   - invented: nobody wrote that revision to the key;
//   - future: the write of that revision began after the read had ended.
//
// Equal times are taken as overlapping, in favour of the system: a read that
// begins at the moment of an acknowledgement need not see it, and one that ends
// at the moment a write begins may.
//
// Assumed: all times come from one clock, taken outside the call they stand
// for. Writes of a key take effect in the order of their revisions or not at
// all. Where the record shows otherwise (a revision written twice, or a lower one
// begun after a higher one had been acknowledged), that key is not judged. A
// read whose record contradicts itself is not judged either. The result is
// then Unknown, or Fail if any other read is wrong.
//
// A pass needs at least one bound read: one that was answered and began after
// an acknowledged write of its key. Kinds counts writes acknowledged (write)
// or not (maybe), and reads answered (read), answered and bound (bound), or
// refused. A refused read is never a violation.
//
// Not for: blind writes that may take effect after a later one, which look
// stale; keys that are deleted, unless the deletion leaves a revision that
// reads return; and not a proof of linearizability, since it does not compare
// reads with one another. For that use [Linearizable].
func Staleness(name string, h StaleHistory) Result {
	res := Result{Name: name, Verdict: Pass, Operations: len(h.Writes) + len(h.Reads), Kinds: map[string]int{}}
	keys := map[string]*revisions{}
	at := func(key string) *revisions {
		if keys[key] == nil {
			keys[key] = &revisions{begun: map[int64]time.Duration{}}
		}
		return keys[key]
	}
	for _, w := range h.Writes {
		at(w.Key).write(w)
		if w.Maybe {
			res.Kinds[kindMaybe]++
		} else {
			res.Kinds[kindWrite]++
		}
	}
	var doubts []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if k := keys[key]; k.seal() != "" {
			doubts = append(doubts, fmt.Sprintf("key %s is not judged: %s", show(key), k.broken))
		}
	}

	all := newFindings(foundStale, foundInvented, foundFuture)
	for i, r := range h.Reads {
		if err := r.malformed(); err != nil {
			doubts = append(doubts, fmt.Sprintf("read %d is not judged: %v", i, err))
			continue
		}
		k := at(r.Key)
		switch {
		case r.Status == ReadRefused:
			res.Kinds[kindRefused]++
		case k.broken == "":
			res.Kinds[kindRead]++
			if k.judge(r, all) {
				res.Kinds[kindBound]++
			}
		}
	}

	if !all.empty() {
		res.Verdict, res.Message, res.Examples = Fail, all.summary(), all.list()
	}
	if len(doubts) > 0 {
		return res.doubt(fmt.Sprintf("%s (%d such)", doubts[0], len(doubts)))
	}
	if res.Verdict == Pass && res.Kinds[kindBound] == 0 {
		return res.doubt("no answered read began after an acknowledged write of its key: none could have been stale")
	}
	return res
}

func (r StaleRead) malformed() error {
	if r.Status != ReadOK && r.Status != ReadRefused {
		return fmt.Errorf("status %q is neither %s nor %s", r.Status, ReadOK, ReadRefused)
	}
	if r.End < r.Start {
		return fmt.Errorf("it ended at %v, before it began at %v", r.End, r.Start)
	}
	return nil
}
