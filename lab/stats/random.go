package stats

import "math/bits"

// random is the SplitMix64 generator of Steele, Lea and Flood (OOPSLA 2014). It
// is written out here because published intervals must be reproducible from
// their seed for good, and no library promises its stream for that long.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns an unbiased integer in [0, n), by the multiplication method of
// Lemire, ACM Transactions on Modeling and Computer Simulation 29 (2019). n
// must not be zero.
func (r *random) below(n uint64) uint64 {
	hi, lo := bits.Mul64(r.next(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(r.next(), n)
		}
	}
	return hi
}

// resample draws len(times) rounds with replacement and sets times[i] to how
// often round i was drawn.
func (r *random) resample(times []uint64) {
	clear(times)
	for range times {
		times[r.below(uint64(len(times)))]++
	}
}
