package consensus

import "time"

// company decides when the proposals that have come in are handed to raft, so that many
// travel and are synced together.
//
// To hand each over at once would give every entry messages and syncs of its own on
// every member, whose cost grows with the load. So while a batch is under way the next
// one gathers. That alone is not enough: those who were answered come again soon, and the
// first one back would have a round of its own, for which all the others wait before they
// have theirs. Rounds would alternate between one and all the rest, and everybody
// would wait for two of them. So those who come first wait for company:
//
//  1. As many are expected as the last batch had and as came in while it was under way.
//     A client alone expects nobody and never waits.
//  2. The wait ends when they are there, and otherwise when it costs more than it can
//     bring: with p here and m missing, after companyFactor × m / p rounds since the last batch
//     was applied: p lose that time, and m would lose most of a round, and all of them
//     again, while rounds alternate.
//  3. It never lasts longer than companyMost rounds, nor than batchWait.
//  4. A wait that brought nobody makes the next rounds go without, each time twice as
//     many. So who is expected and does not come costs little in the long run.
//
// Rejected: to wait for half a round whoever is missing, which brings one of three, because
// what a client does between two writes takes about a round; and to wait however
// few are missing, which costs 64 clients 7 % of what they do.
type company struct {
	size   int           // of the batch that was handed over last
	since  time.Time     // when
	under  bool          // it is under way
	round  time.Duration // that a batch takes to be applied, smoothed
	expect int           // how many the next one should have
	from   time.Time     // when the last one was applied
	first  int           // how many were here when the wait began; 0 is that none has
	skip   int           // rounds without a wait
	misses int           // waits in a row that brought nobody
}

const (
	companyFactor = 6
	companyMost   = 3
	// roundShare is how much of its last duration a round's smoothed one takes in.
	roundShare = 8
	// mostMisses bounds the rounds without a wait: 2 to this power, less one.
	mostMisses = 6
	// batchWait is for how long at most entries wait for a majority to have those before
	// them, or for company: several times what a round takes on a fast disk, and less than
	// one sync of a slow one.
	batchWait = 2 * time.Millisecond
)

// handOver notes that a batch is given to raft.
func (c *company) handOver(now time.Time, size int) {
	switch {
	case c.first == 0:
	case size > c.first:
		c.misses = 0
	default:
		c.misses = min(c.misses+1, mostMisses)
		c.skip = 1<<c.misses - 1
	}
	c.size, c.since, c.under, c.expect, c.first = size, now, true, 0, 0
}

// applied notes that nothing is under way any more, and how many have come in meanwhile.
func (c *company) applied(now time.Time, here int) {
	if !c.under {
		return
	}
	c.under = false
	c.round += (now.Sub(c.since) - c.round) / roundShare
	if c.skip > 0 {
		c.skip--
		return
	}
	c.expect, c.from = c.size+here, now
}

// wait is how much longer those who are here wait, one at least; 0 is not at all.
func (c *company) wait(now time.Time, here int) time.Duration {
	if c.under {
		return max(batchWait-now.Sub(c.since), 0)
	}
	if here >= c.expect {
		return 0
	}
	limit := c.round * time.Duration(companyFactor*(c.expect-here)) / time.Duration(here)
	left := min(limit, companyMost*c.round, batchWait) - now.Sub(c.from)
	if left <= 0 {
		return 0
	}
	if c.first == 0 {
		c.first = here
	}
	return left
}

// forget is for when leadership is lost: nobody is expected.
func (c *company) forget() { *c = company{} }
