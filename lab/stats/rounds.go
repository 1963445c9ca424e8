package stats

import "fmt"

// Rounds holds the samples of one arm, one slice for each round, in any order.
// The unit is up to the caller; nanoseconds are usual.
type Rounds [][]int64

// needRounds checks that arm can be resampled.
func needRounds(arm Rounds) error {
	if len(arm) < 2 {
		return fmt.Errorf("%w: have %d rounds, need 2", ErrTooFew, len(arm))
	}
	for i, samples := range arm {
		if len(samples) == 0 {
			return fmt.Errorf("%w: round %d is empty", ErrTooFew, i)
		}
	}
	return nil
}
