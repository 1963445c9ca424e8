package authorityreads

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/assaylab/assay/authority"
	"github.com/assaylab/assay/lab/check"
)

// The checks that arms report.
const (
	checkSupported = "supported"
	checkDeadline  = "bounded_deadline"
	checkStale     = "no_stale_allow"
	checkOrder     = "linearizable_history"
	checkRecovered = "recovered"
	checkDual      = "dual_primary_refused"
	checkTornDown  = "torn_down"
)

// history is what readers and writers saw of the hot people in a trial, all of whom
// were at revision 1 when it began.
type history struct {
	people int
	reads  []read
	writes []write
}

// stale judges that no read that began after a change was acknowledged shows an
// earlier revision, and that no record was torn.
func (h history) stale() check.Result {
	var s check.StaleHistory
	for i := range h.people {
		s.Writes = append(s.Writes, check.StaleWrite{Key: strconv.Itoa(i), Revision: 1})
	}
	for _, w := range h.writes {
		if w.outcome == authority.Conflict {
			continue // changed nothing
		}
		s.Writes = append(s.Writes, check.StaleWrite{Key: strconv.Itoa(w.person), Revision: w.revision, Start: w.start, Acked: w.end, Maybe: w.outcome == authority.Unknown})
	}
	torn := 0
	for _, r := range h.reads {
		if r.torn {
			torn++
		}
		if r.person < 0 {
			continue
		}
		status := check.ReadOK
		if r.failed() {
			status = check.ReadRefused
		}
		s.Reads = append(s.Reads, check.StaleRead{Key: strconv.Itoa(int(r.person)), Start: r.start, End: r.end, Revision: int64(r.revision), Status: status})
	}
	res := check.Staleness(checkStale, s)
	if res.Verdict == check.Pass && !slices.ContainsFunc(h.writes, func(w write) bool { return w.outcome == authority.Applied }) {
		res.Verdict, res.Message = check.Unknown, "no change was acknowledged, so that nothing could be stale"
	}
	if torn > 0 {
		res.Verdict = check.Fail
		res.Message = fmt.Sprintf("%d records whose roles do not fit their revision, or of somebody else; %s", torn, res.Message)
	}
	return res
}

// The bounds of the search for an order, whose time and memory grow exponentially with
// the number of reads of one person that overlap. Leaving reads out can hide a
// violation and cannot make one up. Nothing is hidden here: inOrder looks at all reads.
const (
	mostReadsPerPerson = 1500
	mostAtOnce         = 6
	searchTime         = 20 * time.Second
)

// linearizable judges that reads and changes of each person fit one order, twice: all
// of them by what holds for revisions that only grow, and as many as can be searched
// by porcupine, which knows nothing of that.
func (h history) linearizable(seed uint64) check.Result {
	perPerson := make([][]read, h.people)
	for _, r := range h.reads {
		if r.person >= 0 && !r.failed() {
			perPerson[r.person] = append(perPerson[r.person], r)
		}
	}
	backward := inOrder(perPerson)
	rng := rand.New(rand.NewPCG(seed, 0x5a))
	var ops []check.Op
	all := 0
	for person, reads := range perPerson {
		all += len(reads)
		for _, r := range thinned(reads, rng) {
			ops = append(ops, check.Op{
				Kind: check.KindRead, Key: strconv.Itoa(person), Value: strconv.Itoa(int(r.revision)), Outcome: check.OutcomeOK, Call: r.start, Return: r.end,
			})
		}
	}
	searched := len(ops)
	for _, w := range h.writes {
		op := check.Op{
			Kind: check.KindCAS, Key: strconv.Itoa(w.person), Expect: strconv.FormatInt(w.revision-1, 10), Value: strconv.FormatInt(w.revision, 10),
			Outcome: check.OutcomeMaybe, Call: w.start, Return: w.end,
		}
		switch w.outcome {
		case authority.Applied:
			op.Outcome = check.OutcomeOK
		case authority.Conflict:
			op.Outcome = check.OutcomeFailed
		}
		ops = append(ops, op)
	}
	res := check.LinearizableOps(checkOrder, check.Register("1"), ops, searchTime)
	if res.Verdict == check.Pass && searched == 0 {
		res.Verdict, res.Message = check.Unknown, "no read of a person who changes was answered"
	}
	if searched < all && res.Message == "" {
		res.Message = fmt.Sprintf("%d reads are in order; %d of them were drawn by lot and searched", all, searched)
	}
	if len(backward) > 0 {
		res.Verdict, res.Examples = check.Fail, backward
		res.Message = "reads went back behind an earlier read; " + res.Message
	}
	return res
}

// inOrder finds reads that began after another read of the same person had ended and
// show an earlier revision. With what stale finds (against changes) this is all that
// can be wrong with a history of revisions that only grow: sorted by revision, each
// change before its reads, it is a legal order, and it agrees with time unless some pair
// is the wrong way round.
func inOrder(perPerson [][]read) (backward []string) {
	for person, reads := range perPerson {
		byEnd := slices.SortedFunc(slices.Values(reads), func(a, b read) int { return cmp.Compare(a.end, b.end) })
		slices.SortFunc(reads, func(a, b read) int { return cmp.Compare(a.start, b.start) })
		next, highest := 0, read{}
		for _, r := range reads {
			for ; next < len(byEnd) && byEnd[next].end < r.start; next++ {
				if byEnd[next].revision > highest.revision {
					highest = byEnd[next]
				}
			}
			if r.revision < highest.revision && len(backward) < 3 {
				backward = append(backward, fmt.Sprintf("person %d: a read that began at %s shows revision %d; one that had ended at %s showed %d", person, r.start, r.revision, highest.end, highest.revision))
			}
		}
	}
	return backward
}

// thinned are reads of one person that can be searched: so many, and so many at once.
func thinned(reads []read, rng *rand.Rand) []read {
	if len(reads) > mostReadsPerPerson {
		reads = slices.Clone(reads)
		rng.Shuffle(len(reads), func(i, j int) { reads[i], reads[j] = reads[j], reads[i] })
		reads = reads[:mostReadsPerPerson]
	}
	slices.SortFunc(reads, func(a, b read) int { return cmp.Compare(a.start, b.start) })
	var out []read
	var open [mostAtOnce]time.Duration // ends of reads that were taken
	for _, r := range reads {
		if i := slices.IndexFunc(open[:], func(end time.Duration) bool { return end < r.start }); i >= 0 {
			open[i] = r.end
			out = append(out, r)
		}
	}
	return out
}

// bounded judges that no read outlived its deadline.
func bounded(reads []read, hangs int, deadline time.Duration) check.Result {
	res := check.Result{Name: checkDeadline, Verdict: check.Pass, Operations: len(reads)}
	over := 0
	for _, r := range reads {
		if took := r.end - r.start; took > deadline+tolerance {
			if over++; len(res.Examples) < 3 {
				res.Examples = append(res.Examples, fmt.Sprintf("a read that began at %s ended after %s as %q", r.start, took, r.reason))
			}
		}
	}
	if over > 0 || hangs > 0 {
		res.Verdict = check.Fail
		res.Message = fmt.Sprintf("%d reads hung (still running %s after the deadline of %s), %d ended more than %s late", hangs, hangAfter, deadline, over, tolerance)
	}
	return res
}

// supported judges that without a fault every read is answered.
func supported(reads []read) check.Result {
	res := check.Result{Name: checkSupported, Verdict: check.Pass, Operations: len(reads)}
	failed := 0
	for _, r := range reads {
		if r.failed() {
			if failed++; len(res.Examples) < 3 {
				res.Examples = append(res.Examples, fmt.Sprintf("a read that began at %s was refused as %q after %s", r.start, r.reason, r.end-r.start))
			}
		}
	}
	if failed > 0 {
		res.Verdict, res.Message = check.Fail, fmt.Sprintf("%d of %d reads were refused without a fault", failed, len(reads))
	}
	return res
}

// failover is what a fault did to reads. Times are since the fault was asked for, so
// they are upper bounds.
type failover struct {
	failed  int
	longest time.Duration // of any read
	denied  time.Duration // when the last failed read ended; 0 for none
	first   time.Duration // when the first read after that succeeded; -1 for none
	stalled time.Duration // the longest time after the fault without a success
}

func failoverOf(reads []read, fault time.Duration) failover {
	f := failover{first: -1}
	for _, r := range reads {
		f.longest = max(f.longest, r.end-r.start)
		if r.failed() {
			f.failed++
			f.denied = max(f.denied, r.end-fault)
		}
	}
	for _, r := range reads {
		if since := r.end - fault; !r.failed() && since > f.denied && since > 0 && (f.first < 0 || since < f.first) {
			f.first = since
		}
	}
	var successes []time.Duration
	for _, r := range reads {
		if !r.failed() && r.end >= fault {
			successes = append(successes, r.end)
		}
	}
	slices.Sort(successes)
	last := fault
	for _, at := range successes {
		f.stalled = max(f.stalled, at-last)
		last = at
	}
	return f
}

// recovered judges that reads succeed again by themselves and go on to: of the last
// quarter of the time after the fault, each second must have successes, and no read
// that began in it may have failed.
func recovered(reads []read, fault, end time.Duration, name string, fired bool) check.Result {
	res := check.Result{Name: checkRecovered, Verdict: check.Pass, Operations: len(reads), Faults: map[string]int{}}
	if !fired {
		res.Verdict, res.Message = check.Unknown, "the fault did not happen"
		return res
	}
	res.Faults[name] = 1
	from := end - (end-fault)/4
	success, failed := 0, 0
	for _, r := range reads {
		switch {
		case r.start < from:
		case r.failed():
			failed++
		default:
			success++
		}
	}
	if success == 0 || failed > 0 {
		res.Verdict = check.Fail
		res.Message = fmt.Sprintf("of the reads that began in the last %s of the run, %s after the fault, %d succeeded and %d were refused", end-from, from-fault, success, failed)
	}
	return res
}

// perSecond are the reads that ended in each second, answered and refused.
func perSecond(reads []read, until time.Duration) (answered, refused []int64) {
	n := int((until + time.Second - 1) / time.Second)
	answered, refused = make([]int64, n), make([]int64, n)
	for _, r := range reads {
		if i := int(r.end / time.Second); i < n {
			if r.failed() {
				refused[i]++
			} else {
				answered[i]++
			}
		}
	}
	return answered, refused
}

// reasons are the refusals by reason, for a note.
func reasons(reads []read) string {
	n := map[authority.Reason]int{}
	for _, r := range reads {
		if r.failed() {
			n[r.reason]++
		}
	}
	var out []string
	for reason, count := range n {
		out = append(out, fmt.Sprintf("%s %d", reason, count))
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}
