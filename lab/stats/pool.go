package stats

// pool answers quantiles of resampled rounds without building the resamples. It
// holds all samples of an arm in ascending order, with a table of how many of
// each round come before every chunk-th of them. The number of samples of any
// resample before such a point is then a sum over rounds, which a binary search
// follows to the one chunk that holds the quantile.
type pool struct {
	values []int64
	round  []uint32
	rounds int
	chunk  int
	// before[c*rounds+r] counts the samples of round r in the first c chunks.
	// The last row counts all of them.
	before []uint64
}

func newPool(rounds Rounds) *pool {
	total := 0
	for _, samples := range rounds {
		total += len(samples)
	}
	tagged := make([]sample, 0, total)
	for r, samples := range rounds {
		for _, v := range samples {
			tagged = append(tagged, sample{orderedInt(v), uint32(r)})
		}
	}
	tagged = sortSamples(tagged)

	// At least as many samples to a chunk as there are rounds keeps the table
	// no larger than the pool.
	p := &pool{
		values: make([]int64, total),
		round:  make([]uint32, total),
		rounds: len(rounds),
		chunk:  max(256, len(rounds)),
	}
	count := make([]uint64, len(rounds))
	for i, s := range tagged {
		if i%p.chunk == 0 {
			p.before = append(p.before, count...)
		}
		p.values[i], p.round[i] = fromOrderedInt(s.key), s.round
		count[s.round]++
	}
	p.before = append(p.before, count...)
	return p
}

// quantile returns the q quantile, as QuantileInt defines it, of the multiset
// in which every sample of round r occurs times[r] times. At least one sample
// must occur.
func (p *pool) quantile(times []uint64, q float64) float64 {
	last := len(p.before)/p.rounds - 1
	rank, frac, _ := quantilePosition(int(p.samplesBefore(last, times)), q)

	lo, hi := 0, last
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if p.samplesBefore(mid, times) <= uint64(rank) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	seen := p.samplesBefore(lo, times)
	at := lo*p.chunk - 1
	advance := func(rank int) float64 {
		for seen <= uint64(rank) {
			at++
			seen += times[p.round[at]]
		}
		return float64(p.values[at])
	}
	lower := advance(rank)
	if frac == 0 {
		return lower
	}
	return interpolate(lower, advance(rank+1), frac)
}

// samplesBefore returns how many samples the first chunks hold when every
// sample of round r occurs times[r] times.
func (p *pool) samplesBefore(chunks int, times []uint64) uint64 {
	row := p.before[chunks*p.rounds:][:len(times)]
	var n uint64
	for r, t := range times {
		n += t * row[r]
	}
	return n
}
