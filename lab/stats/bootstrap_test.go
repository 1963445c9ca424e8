package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// quantileOf is BootstrapQuantiles for a single quantile.
func quantileOf(ref, treat Rounds, q, level float64, resamples int, seed uint64) (QuantileEffect, error) {
	effects, err := BootstrapQuantiles(ref, treat, []float64{q}, level, resamples, seed)
	if err != nil {
		return QuantileEffect{}, err
	}
	return effects[0], nil
}

// latencies returns rounds of lognormal nanoseconds, each round with a
// disturbance of its own. size gives the number of samples of round i.
func latencies(seed uint64, rounds int, size func(i int) int) Rounds {
	r := rand.New(rand.NewPCG(seed, 0))
	arm := make(Rounds, rounds)
	for i := range arm {
		level := 12 + 0.1*r.NormFloat64()
		arm[i] = make([]int64, size(i))
		for j := range arm[i] {
			arm[i][j] = int64(math.Exp(level + 0.5*r.NormFloat64()))
		}
	}
	return arm
}

// naiveQuantile writes the resample out and sorts it.
func naiveQuantile(arm Rounds, times []uint64, q float64) float64 {
	var all []int64
	for r, n := range times {
		for range n {
			all = append(all, arm[r]...)
		}
	}
	slices.Sort(all)
	return QuantileInt(all, q)
}

func TestBootstrapQuantilesAgainstNaive(t *testing.T) {
	fixed := func(n int) func(int) int { return func(int) int { return n } }
	growing := func(i int) int { return 1 + i*i }
	ties := Rounds{{1, 2, 2, 3}, {2, 2}, {3, 3, 3, 1, 0}, {2}}
	signed := Rounds{{-1 << 60, -3, 7}, {1 << 60, 5}, {-3, 4, 300, -70000}}
	for _, tt := range []struct {
		name       string
		ref, treat Rounds
	}{
		{"paired", latencies(1, 12, fixed(150)), latencies(2, 12, fixed(150))},
		{"unpaired", latencies(3, 6, fixed(100)), latencies(4, 9, fixed(70))},
		{"unequal sizes", latencies(5, 30, growing), latencies(6, 30, fixed(40))},
		{"many small rounds", latencies(7, 700, fixed(2)), latencies(8, 700, fixed(1))},
		{"two rounds", latencies(9, 2, fixed(3)), latencies(10, 2, fixed(1))},
		{"ties", ties, ties},
		{"signed", signed, signed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			qs := []float64{0, 0.001, 0.25, 0.5, 0.9, 0.99, 1}
			const resamples, level, seed = 40, 0.9, 99
			got, err := BootstrapQuantiles(tt.ref, tt.treat, qs, level, resamples, seed)
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range qs {
				var naive quantileReplicates
				draw := newResampler(len(tt.ref), len(tt.treat), seed)
				for range resamples {
					draw.next()
					naive.add(naiveQuantile(tt.ref, draw.ref, q), naiveQuantile(tt.treat, draw.treat, q))
				}
				want := naive.effect(QuantileInt(slices.Sorted(slices.Values(slices.Concat(tt.ref...))), q),
					QuantileInt(slices.Sorted(slices.Values(slices.Concat(tt.treat...))), q), level)
				want.Q, want.Notes = q, got[i].Notes
				if math.IsNaN(want.Ratio) {
					if !math.IsNaN(got[i].Ratio) || !math.IsNaN(got[i].RatioCI.Lower) || !slices.Contains(got[i].Notes, noteNoRatio) {
						t.Errorf("q=%v: ratio is %v %v", q, got[i].Ratio, got[i].RatioCI)
					}
					got[i].Ratio, got[i].RatioCI = 0, Interval{}
					want.Ratio, want.RatioCI = 0, Interval{}
				}
				if !reflect.DeepEqual(got[i], want) {
					t.Errorf("q=%v: got %+v, want %+v", q, got[i], want)
				}
				alone, err := quantileOf(tt.ref, tt.treat, q, level, resamples, seed)
				if err != nil || alone.RefCI != got[i].RefCI || alone.DiffCI != got[i].DiffCI {
					t.Errorf("q=%v alone: got %+v, %v", q, alone, err)
				}
			}
		})
	}
}

func TestBootstrapNotes(t *testing.T) {
	one := func(int) int { return 1 }
	for _, tt := range []struct {
		ref, treat int
		want       []string
	}{
		{10, 10, nil},
		{9, 9, []string{noteFewRounds}},
		{12, 11, []string{noteIndependent}},
		{9, 30, []string{noteIndependent, noteFewRounds}},
	} {
		got, err := quantileOf(latencies(1, tt.ref, one), latencies(2, tt.treat, one), 0.5, 0.95, 10, 1)
		if err != nil || !slices.Equal(got.Notes, tt.want) {
			t.Errorf("%d and %d rounds: got %q, %v", tt.ref, tt.treat, got.Notes, err)
		}
	}
}

// Paired rounds cancel what they share: a constant slowdown of noisy rounds is
// known exactly.
func TestBootstrapPairsRounds(t *testing.T) {
	ref := latencies(1, 20, func(int) int { return 50 })
	treat := make(Rounds, len(ref))
	means, doubled := make([]float64, len(ref)), make([]float64, len(ref))
	for i, samples := range ref {
		for _, v := range samples {
			treat[i] = append(treat[i], 2*v)
			means[i] += float64(v) / 50
		}
		doubled[i] = 2 * means[i]
	}
	got, err := quantileOf(ref, treat, 0.9, 0.95, 200, 7)
	if err != nil || got.Ratio != 2 || got.RatioCI != (Interval{2, 2, 0.95}) || got.RefCI.Lower == got.RefCI.Upper {
		t.Errorf("got %+v, %v", got, err)
	}
	est, ci, err := BootstrapMeanRatio(means, doubled, 0.95, 200, 7)
	if err != nil || est != 2 || ci != (Interval{2, 2, 0.95}) {
		t.Errorf("got %v %v, %v", est, ci, err)
	}
}

// Reports quote intervals by their seed, so these figures may never change.
func TestBootstrapIsPinned(t *testing.T) {
	ref := Rounds{{10, 12, 11}, {20, 22, 25}, {14, 18, 13}, {9, 8, 12}}
	treat := Rounds{{11, 12, 13}, {26, 22, 28}, {19, 18, 13}, {10, 8, 15}}
	got, err := quantileOf(ref, treat, 0.75, 0.9, 100, 42)
	if err != nil {
		t.Fatal(err)
	}
	want := QuantileEffect{
		Q:   0.75,
		Ref: 18.5, RefCI: Interval{12, 22, 0.9},
		Treat: 19.75, TreatCI: Interval{13.5, 26, 0.9},
		Diff: 1.25, DiffCI: Interval{1.2374999999999998, 4, 0.9},
		Ratio: 1.0675675675675675, RatioCI: Interval{1.0675675675675675, 1.2857142857142858, 0.9},
		Notes: []string{noteFewRounds},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
	est, ci, err := BootstrapMeanRatio([]float64{1, 2.5, 3.25, 4}, []float64{2, 3.5, 3, 5.75}, 0.9, 100, 42)
	if err != nil || est != 1.3255813953488371 || ci != (Interval{1.0727272727272728, 1.5588235294117647, 0.9}) {
		t.Errorf("got %v %v, %v", est, ci, err)
	}
}

func TestBootstrapErrors(t *testing.T) {
	ok := Rounds{{1, 2}, {3}}
	for _, tt := range []struct {
		name       string
		ref, treat Rounds
		q, level   float64
		resamples  int
		want       error
	}{
		{"no rounds", nil, ok, 0.5, 0.95, 10, ErrTooFew},
		{"one round", ok, Rounds{{1}}, 0.5, 0.95, 10, ErrTooFew},
		{"empty round", ok, Rounds{{1}, {}}, 0.5, 0.95, 10, ErrTooFew},
		{"quantile in percent", ok, ok, 99, 0.95, 10, ErrOutOfRange},
		{"quantile NaN", ok, ok, nan, 0.95, 10, ErrOutOfRange},
		{"level", ok, ok, 0.5, 1, 10, ErrOutOfRange},
		{"resamples", ok, ok, 0.5, 0.95, 0, ErrOutOfRange},
	} {
		if _, err := quantileOf(tt.ref, tt.treat, tt.q, tt.level, tt.resamples, 1); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

func BenchmarkBootstrapQuantile(b *testing.B) {
	full := func(int) int { return 20000 }
	ref, treat := latencies(1, 24, full), latencies(2, 24, full)
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if _, err := quantileOf(ref, treat, 0.5, 0.95, 1000, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("four", func(b *testing.B) {
		for b.Loop() {
			if _, err := BootstrapQuantiles(ref, treat, []float64{0.5, 0.9, 0.99, 0.999}, 0.95, 1000, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}
