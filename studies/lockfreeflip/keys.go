package lockfreeflip

import (
	"encoding/binary"
	"fmt"
)

// seed is the golden ratio in 64 bits, from which all keys follow.
const seed = 0x9E3779B97F4A7C15

// splitMix64 is the finalised step of SplitMix64 (Steele, Lea, Flood 2014).
func splitMix64(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// disjointKey is a key of a range that one writer has to itself. Its end is not
// ASCII, so that multi-byte keys are on the path.
func disjointKey(base uint64) string {
	return fmt.Sprintf("ngram-%016x-語%d", splitMix64(base^seed), base)
}

// hotKey is a key under the prefix that all writers share.
func hotKey(base uint64) string {
	return fmt.Sprintf("hot-prefix-fixed/%08x", splitMix64(base^seed))
}

// roundKeys are the keys of one round, by writer, in the order of writing.
func roundKeys(pattern string, writers, each int) [][]string {
	key := disjointKey
	if pattern == patternHot {
		key = hotKey
	}
	all := make([][]string, writers)
	for w := range all {
		all[w] = make([]string, each)
		for i := range all[w] {
			all[w][i] = key(uint64(w*each + i))
		}
	}
	return all
}

// startBase is where the numbers of the keys at the start begin, above those
// of any round.
const startBase = 1 << 40

// startKey is one of the keys that are there before the round.
func startKey(i int) string { return disjointKey(startBase + uint64(i)) }

// coldParts is into how many subtrees the cold keys fall; one of them is evicted
// after each checkpoint.
const coldParts = 40

func coldPrefix(part int) string { return fmt.Sprintf("cold-%02x/", part%coldParts) }

// coldKey is a key of a subtree that is evicted during the round.
func coldKey(i int) string {
	return fmt.Sprintf("%s%016x", coldPrefix(i%coldParts), splitMix64(uint64(i)^seed))
}

// coldValue is what a cold key holds: a wrong block shows in it.
func coldValue(i int) []byte {
	return binary.LittleEndian.AppendUint64(nil, splitMix64(^uint64(i)))
}

// fingerprint stands for a set of entries, whatever their order: their number and
// two sums of hashes. Two sets that nobody made for it do not have the same one
// but by a chance of about 2^-128.
type fingerprint struct {
	Entries   int    `json:"entries"`
	Sum, Sum2 uint64 // modulo 2^64, of two hashes of each entry
}

func (f *fingerprint) add(key string, val []byte) {
	h := uint64(0xcbf29ce484222325) // FNV-1a
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 0x100000001b3
	}
	h = (h ^ 0xff) * 0x100000001b3 // a byte that is in no UTF-8 key: where it ends
	for _, b := range val {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	f.Entries++
	f.Sum += splitMix64(h)
	f.Sum2 += splitMix64(^h) * (2*uint64(len(key)) + 1)
}
