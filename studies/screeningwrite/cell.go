package screeningwrite

import (
	"fmt"
	"strconv"
	"time"
)

// cell is what the factors of a cell say.
type cell struct {
	target      string // same_study, different_studies or skewed
	reviewers   int
	eligibility bool
	regime      regime
}

// regime is under what circumstances a batch runs. The zero regime is free: reviewers
// are released together and then race; the worker drains between batches.
type regime struct {
	lockstep bool          // all loads of an attempt are done before its first write
	draining bool          // the worker drains during the window
	rtt      time.Duration // added to each round trip of the reviewers' client
	repeat   int           // submissions of each reviewer in a batch; 0 is 1
	library  bool          // the large corpus in the place of ten studies
	fault    string        // that strikes the set in the middle of the batch
}

// The faults.
const (
	faultStepDown = "stepdown"
	faultKill     = "kill"
)

// regimes are those that the protocols name.
func regimes() map[string]regime {
	return map[string]regime{
		"free":      {},
		"lockstep":  {lockstep: true},
		"draining":  {draining: true, repeat: 10},
		"backlog":   {repeat: 20},
		"rtt_500us": {rtt: 500 * time.Microsecond},
		"rtt_2ms":   {rtt: 2 * time.Millisecond},
		"rtt_10ms":  {rtt: 10 * time.Millisecond},
		"library":   {library: true},
		"stepdown":  {repeat: 30, fault: faultStepDown},
		"kill":      {repeat: 30, fault: faultKill},
	}
}

func (g regime) submissions() int { return max(1, g.repeat) }

func parseCell(factors map[string]string) (cell, error) {
	var c cell
	var ok bool
	if c.regime, ok = regimes()[factors["regime"]]; !ok {
		return c, fmt.Errorf("no regime %q", factors["regime"])
	}
	switch c.target = factors["target"]; c.target {
	case targetSame, targetDifferent, targetSkewed:
	default:
		return c, fmt.Errorf("no target %q", c.target)
	}
	if (c.target == targetSkewed) != c.regime.library {
		return c, fmt.Errorf("target %q goes with regime library and only with it", targetSkewed)
	}
	var err error
	if c.reviewers, err = strconv.Atoi(factors["reviewers"]); err != nil || c.reviewers < 1 || c.reviewers > 1000 {
		return c, fmt.Errorf("%q reviewers; it is a number from 1 to 1000", factors["reviewers"])
	}
	if c.target == targetDifferent && c.reviewers > smallStudies {
		return c, fmt.Errorf("%d reviewers cannot each have one of %d studies", c.reviewers, smallStudies)
	}
	switch factors["eligibility"] {
	case "on":
		c.eligibility = true
	case "off":
	default:
		return c, fmt.Errorf("eligibility is %q; it is on or off", factors["eligibility"])
	}
	return c, nil
}

// The targets of a batch's submissions.
const (
	targetSame      = "same_study"
	targetDifferent = "different_studies"
	targetSkewed    = "skewed" // drawn, some studies much more often than others
)

// smallStudies is how many studies the project of a cell has (PS-WRITE-01).
const smallStudies = 10

// lockstepCounts are the conflicts and exhausted submissions of one batch of n
// reviewers in lockstep on one study: each attempt saves exactly one of those that are
// left, and a submission has three.
func lockstepCounts(target string, n int) (conflicts, exhausted int) {
	if target != targetSame {
		return 0, 0
	}
	const attempts = 3
	for k := 1; k <= attempts; k++ {
		conflicts += max(0, n-k)
	}
	return conflicts, max(0, n-attempts)
}
