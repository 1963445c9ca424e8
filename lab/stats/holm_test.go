package stats

import (
	"math"
	"slices"
	"testing"
)

func TestHolmFailsClosed(t *testing.T) {
	ps := []float64{0.01, nan, 0.02, -0.1, 1.5}
	got := Holm(ps)
	want := []float64{0.05, nan, 0.08, nan, nan}
	for i := range want {
		if math.IsNaN(want[i]) != math.IsNaN(got[i]) || math.Abs(got[i]-want[i]) > 1e-15 {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if !slices.Equal(ps[2:4], []float64{0.02, -0.1}) {
		t.Error("changed its argument")
	}
	if got := Holm(nil); len(got) != 0 {
		t.Errorf("empty: got %v", got)
	}
}
