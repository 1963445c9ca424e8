package trial

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/assaylab/assay/lab/protocol"
)

// Slot is one trial to run: one arm in one round of one cell.
type Slot struct {
	Cell   string
	Round  int  // 0-based within the cell; warm-up rounds come first
	Warmup bool // recorded and never analysed
	Slot   int  // 0-based place within the round
	Arm    string
	Seed   uint64 // the same for all arms of a round, so that they get the same work
}

// Round is one pass over all arms of a cell.
type Round struct {
	Cell   string
	Round  int
	Warmup bool
	Slots  []Slot
}

// Schedule lays out every trial of the protocol. It depends on nothing but
// the protocol, so the same seed gives the same schedule on every machine and
// after every resume.
//
// Within a cell the rounds of k arms come in blocks of k: a random order of
// the arms and its k-1 rotations, shuffled. Every arm therefore stands in
// every place equally often per block (a Latin square), which a plain coin
// only reaches on average. A fixed alternation (ABAB) is rejected: where the
// second place is slower it is mistaken for an effect. Warm-up rounds are laid
// out like measured ones but in blocks of their own, and each kind is counted
// from 0 for the trials' seeds, so that changing their number changes neither
// order nor work of the measured ones.
func Schedule(p *protocol.Protocol) []Round {
	var rounds []Round
	for _, c := range p.Cells() {
		lay := func(phase string, n, first int, warmup bool) {
			// Seeded by name, so that leaving a cell out moves no other.
			rng := splitMix(mix(p.Design.Seed, phase, c.Name))
			var block [][]string
			for i := range n {
				if len(block) == 0 {
					block = latinSquare(c.Arms, &rng)
				}
				r := Round{Cell: c.Name, Round: first + i, Warmup: warmup}
				seed := mix(p.Design.Seed, phase+" trial", c.Name, strconv.Itoa(i))
				for s, arm := range block[0] {
					r.Slots = append(r.Slots, Slot{Cell: c.Name, Round: r.Round, Warmup: warmup, Slot: s, Arm: arm, Seed: seed})
				}
				block = block[1:]
				rounds = append(rounds, r)
			}
		}
		lay("warm-up", c.Warmup, 0, true)
		lay("measure", c.Rounds, c.Warmup, false)
	}
	return rounds
}

func latinSquare(arms []string, rng *splitMix) [][]string {
	base := append([]string(nil), arms...)
	rng.shuffle(len(base), func(i, j int) { base[i], base[j] = base[j], base[i] })
	rows := make([][]string, len(base))
	for i := range rows {
		rows[i] = append(append([]string(nil), base[i:]...), base[:i]...)
	}
	rng.shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

// splitMix is the SplitMix64 generator (Steele, Lea, Flood 2014). It is pinned
// here because a schedule must not change with the Go version.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// shuffle is Fisher-Yates. The remainder's bias is below n / 2^64.
func (s *splitMix) shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, int(s.next()%uint64(i+1)))
	}
}

func mix(seed uint64, parts ...string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d", seed)
	for _, p := range parts {
		h.Write([]byte{0})
		h.Write([]byte(p))
	}
	s := splitMix(h.Sum64())
	return s.next()
}
