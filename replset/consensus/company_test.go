package consensus

import (
	"testing"
	"time"
)

const testRound = 400 * time.Microsecond

var testStart = time.Unix(1000, 0)

// accustomed is a company whose rounds take testRound, at the moment when one of size was applied
// with here in waiting.
func accustomed(size, here int) (*company, time.Time) {
	c, now := &company{}, testStart
	for range 100 {
		c.handOver(now, size)
		now = now.Add(testRound)
		c.applied(now, 0)
	}
	c.handOver(now, size)
	now = now.Add(testRound)
	c.applied(now, here)
	return c, now
}

func TestAClientAloneNeverWaits(t *testing.T) {
	c, now := accustomed(1, 0)
	for range 10 {
		if left := c.wait(now, 1); left != 0 {
			t.Fatalf("it waits %v", left)
		}
		c.handOver(now, 1)
		now = now.Add(testRound)
		c.applied(now, 0)
	}
}

func TestNobodyIsHandedOverWhileABatchIsUnderWay(t *testing.T) {
	c := &company{}
	c.handOver(testStart, 1)
	if left := c.wait(testStart.Add(testRound), 5); left != batchWait-testRound {
		t.Errorf("waits %v more, want %v", left, batchWait-testRound)
	}
	if left := c.wait(testStart.Add(batchWait), 5); left != 0 {
		t.Errorf("a batch that is slow keeps the next one for %v more", left)
	}
}

func TestCompanyIsWaitedForAsLongAsItIsWorth(t *testing.T) {
	for _, tt := range []struct {
		size, here, now int // of the last batch; when it was applied; now
		want            time.Duration
	}{
		{8, 0, 8, 0},
		{8, 0, 9, 0},
		{8, 0, 1, companyMost * testRound},
		{8, 2, 6, companyMost * testRound},
		{8, 0, 6, 2 * testRound},
		{8, 0, 7, testRound * 6 / 7},
		{64, 0, 60, testRound * 2 / 5},
		{2, 0, 1, companyMost * testRound},
	} {
		c, now := accustomed(tt.size, tt.here)
		got := c.wait(now, tt.now)
		if got < tt.want-tt.want/50 || got > tt.want+tt.want/50 {
			t.Errorf("%d of %d+%d are here: wait %v, want %v", tt.now, tt.size, tt.here, got, tt.want)
		}
		if got := c.wait(now.Add(tt.want+tt.want/50), tt.now); got != 0 {
			t.Errorf("%d of %d+%d are here, and the time is over: wait %v", tt.now, tt.size, tt.here, got)
		}
	}
}

func TestASlowDiskIsNotWaitedForLonger(t *testing.T) {
	c, now := &company{}, testStart
	for range 100 {
		c.handOver(now, 8)
		now = now.Add(time.Second)
		c.applied(now, 0)
	}
	if left := c.wait(now, 1); left != batchWait {
		t.Errorf("waits %v, want %v", left, batchWait)
	}
}

func TestWhoComesLaterIsNotHeldUpByTheLastRound(t *testing.T) {
	c, now := accustomed(8, 0)
	if left := c.wait(now.Add(time.Minute), 1); left != 0 {
		t.Errorf("waits %v for clients that have gone", left)
	}
}

// TestClientsThatStayAwayAreWaitedForLessAndLess has one client of two go away for good whenever
// somebody waits for it: 100 rounds have 7 waits.
func TestClientsThatStayAwayAreWaitedForLessAndLess(t *testing.T) {
	c, now := accustomed(2, 0)
	waits := 0
	for range 100 {
		if left := c.wait(now, 1); left > 0 {
			waits++
			now = now.Add(left)
		}
		c.handOver(now, 1)
		c.size = 2 // the other was there in between
		now = now.Add(testRound)
		c.applied(now, 0)
	}
	if waits < 5 || waits > 8 {
		t.Errorf("%d waits in vain", waits)
	}
	c.skip = 0
	c.applied(now, 0)
	c.handOver(now, 2)
	now = now.Add(testRound)
	c.applied(now, 0)
	c.wait(now, 1)
	c.handOver(now, 2)
	if c.misses != 0 {
		t.Errorf("company has come, and %d misses are remembered", c.misses)
	}
}

// TestClientsComeToShareRounds lets eight clients write again and again, each between two writes
// for about a round on its own. Without a wait two groups take turns.
func TestClientsComeToShareRounds(t *testing.T) {
	c := &company{}
	next := make([]time.Time, 8) // when a client's next write comes
	for i := range next {
		next[i] = testStart.Add(time.Duration(i) * testRound / 8)
	}
	now, batches, written := testStart, 0, 0
	for range 300 {
		here := 0
		count := func() int {
			here = 0
			for _, at := range next {
				if !at.After(now) {
					here++
				}
			}
			return here
		}
		for count() == 0 || c.wait(now, here) > 0 {
			now = now.Add(testRound / 50)
		}
		c.handOver(now, here)
		was := now
		now = now.Add(testRound)
		for i, at := range next {
			if !at.After(was) {
				next[i] = now.Add(testRound/2 + time.Duration(i)*testRound/8)
			}
		}
		count()
		c.applied(now, here)
		if batches++; batches > 100 {
			written += c.size
		}
	}
	if mean := float64(written) / 200; mean < 6 {
		t.Errorf("batches have %.1f writes of 8 clients", mean)
	}
}

func TestALostLeadershipForgets(t *testing.T) {
	c, now := accustomed(8, 3)
	c.handOver(now, 3)
	c.forget()
	if left := c.wait(now, 1); left != 0 {
		t.Errorf("waits %v", left)
	}
}
