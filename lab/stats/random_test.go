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
	// Without rejection half of all draws for this bound would be multiples
	// of three.
	const large = 3 << 62
	threes := 0
	for range draws {
		x := r.below(large)
		if x >= large {
			t.Fatalf("%d is not below %d", x, uint64(large))
		}
		if x%3 == 0 {
			threes++
		}
	}
	if threes < draws/3-620 || threes > draws/3+620 {
		t.Errorf("%d multiples of three", threes)
	}
}
