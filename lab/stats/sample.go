package stats

// sample is one value of the pool with the round it came from.
type sample struct {
	key   uint64
	round uint32
}

// orderedInt maps an int64 to a uint64 that sorts as the int64 does.
func orderedInt(v int64) uint64 { return uint64(v) ^ 1<<63 }

func fromOrderedInt(key uint64) int64 { return int64(key ^ 1<<63) }

// sortSamples sorts by key, byte by byte from the lowest, and skips the bytes
// that all keys share, of which latencies have many. It may reuse samples as
// working space; only the result is sorted.
func sortSamples(samples []sample) []sample {
	var counts [8][256]int
	for _, s := range samples {
		for b := range counts {
			counts[b][byte(s.key>>(8*b))]++
		}
	}
	spare := make([]sample, len(samples))
	for b := range counts {
		shift := 8 * b
		if len(samples) == 0 || counts[b][byte(samples[0].key>>shift)] == len(samples) {
			continue
		}
		start := 0
		for d, n := range counts[b] {
			counts[b][d] = start
			start += n
		}
		for _, s := range samples {
			d := byte(s.key >> shift)
			spare[counts[b][d]] = s
			counts[b][d]++
		}
		samples, spare = spare, samples
	}
	return samples
}
