package stats

import "testing"

// The first outputs for this seed as published with other implementations of
// SplitMix64. A change here changes every interval ever published.
func TestRandomStreamIsPinned(t *testing.T) {
	r := random{1234567}
	for i, want := range []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423,
		4593380528125082431, 16408922859458223821,
	} {
		if got := r.next(); got != want {
			t.Errorf("output %d: got %d, want %d", i, got, want)
		}
	}
}

func TestBelowIsUniform(t *testing.T) {
	r := random{1}
	const n, draws = 7, 70000
	var counts [n]int
	for range draws {
		counts[r.below(n)]++
	}
	for i, c := range counts {
		// Five SDs of a binomial count.
		if c < draws/n-465 || c > draws/n+465 {
			t.Errorf("%d drawn %d times", i, c)
		}
	}
	// Nearly a third of all draws are rejected for this bound.
	const large = 1<<63 - 1<<61
	for range 1000 {
		if x := r.below(large); x >= large {
			t.Fatalf("%d is not below %d", x, uint64(large))
		}
	}
}
