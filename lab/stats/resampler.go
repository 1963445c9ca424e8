package stats

import "fmt"

// fewRounds is the number of rounds below which the bootstrap warns. In
// simulations with normal noise, intervals at level 0.95 held the truth in 72%
// of cases with 3 rounds, 86% with 5, 91% with 10 and 93% with 20.
const fewRounds = 10

const (
	noteFewRounds   = "few rounds: a percentile interval from fewer than 10 rounds tends to be too narrow"
	noteIndependent = "unpaired: the arms have different numbers of rounds and were resampled independently"
)

// resampler draws the rounds of both arms for one resample after another.
type resampler struct {
	random random
	// ref[i] and treat[i] are how often round i of each arm was drawn. They
	// are the same slice when the rounds are paired.
	ref, treat []uint64
	paired     bool
}

func newResampler(nRef, nTreat int, seed uint64) *resampler {
	r := &resampler{random: random{seed}, ref: make([]uint64, nRef), paired: nRef == nTreat}
	r.treat = r.ref
	if !r.paired {
		r.treat = make([]uint64, nTreat)
	}
	return r
}

func (r *resampler) next() {
	r.random.resample(r.ref)
	if !r.paired {
		r.random.resample(r.treat)
	}
}

func (r *resampler) notes() []string {
	var notes []string
	if !r.paired {
		notes = append(notes, noteIndependent)
	}
	if min(len(r.ref), len(r.treat)) < fewRounds {
		notes = append(notes, noteFewRounds)
	}
	return notes
}

func needResampling(level float64, resamples int) error {
	if resamples < 1 {
		return fmt.Errorf("%w: %d resamples, need at least 1", ErrOutOfRange, resamples)
	}
	return needProbability("level", level)
}
