package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPairwiseAgainstSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		ref, treat := make([]float64, 2+r.IntN(20)), make([]float64, 2+r.IntN(20))
		draw := r.NormFloat64
		if trial%2 == 0 {
			draw = func() float64 { return float64(r.IntN(5) - 2) }
		}
		for i := range ref {
			ref[i] = draw()
		}
		for i := range treat {
			treat[i] = draw()
		}
		var all []float64
		for _, x := range ref {
			for _, y := range treat {
				all = append(all, y-x)
			}
		}
		slices.Sort(all)
		pairs := pairwise{sortedCopy(ref), sortedCopy(treat)}
		for k := 1; k <= pairs.len(); k++ {
			if got := pairs.ranked(k); got != all[k-1] || got == 0 && math.Signbit(got) {
				t.Fatalf("rank %d of %v against %v: got %v, want %v", k, treat, ref, got, all[k-1])
			}
		}
		shift, err := HodgesLehmann(ref, treat, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if want := Quantile(all, 0.5); shift.Estimate != want {
			t.Fatalf("estimate is %v, want %v", shift.Estimate, want)
		}
	}
}

func BenchmarkHodgesLehmann(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	ref, treat := make([]float64, 2000), make([]float64, 2000)
	for i := range ref {
		ref[i], treat[i] = r.NormFloat64(), r.NormFloat64()
	}
	for b.Loop() {
		if _, err := HodgesLehmann(ref, treat, 0.95); err != nil {
			b.Fatal(err)
		}
	}
}
