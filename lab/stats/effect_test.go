package stats

import (
	"math"
	"testing"
)

func TestEffectSizesWithoutVariation(t *testing.T) {
	still := func(mean float64) Moments { return Moments{5, mean, 0} }
	for _, tt := range []struct{ ref, treat, want float64 }{
		{2, 2, 0}, {1, 2, inf}, {2, 1, -inf},
	} {
		for what, got := range map[string]float64{
			"d":  CohenD(still(tt.ref), still(tt.treat)),
			"g":  HedgesG(still(tt.ref), still(tt.treat)),
			"dz": PairedDz(constant(5, tt.ref), constant(5, tt.treat)),
		} {
			if got != tt.want {
				t.Errorf("%s of %v against %v: got %v", what, tt.treat, tt.ref, got)
			}
		}
	}
}

func TestEffectSizesOfInvalidInput(t *testing.T) {
	ok := Moments{3, 1, 1}
	for what, got := range map[string]float64{
		"d of one value":     CohenD(Moments{1, 2, 0}, ok),
		"d of nothing":       CohenD(ok, Moments{}),
		"d of NaN":           CohenD(ok, Moments{3, nan, 1}),
		"g of one value":     HedgesG(Moments{1, 2, 0}, ok),
		"dz of one round":    PairedDz([]float64{1}, []float64{2}),
		"dz of nothing":      PairedDz(nil, nil),
		"dz of two lengths":  PairedDz([]float64{1, 2}, []float64{2}),
		"dz of infinite":     PairedDz([]float64{1, 2}, []float64{2, inf}),
		"dz of longer treat": PairedDz([]float64{1, 2}, []float64{2, 3, 4}),
	} {
		if !math.IsNaN(got) {
			t.Errorf("%s: got %v", what, got)
		}
	}
}

func TestHedgesCorrectionIsContinuous(t *testing.T) {
	statistic(t, "J(2)", hedgesJ(2), 1/math.Sqrt(math.Pi))
	below, above := hedgesJ(1e5), hedgesJ(1e5+1)
	near(t, "J at the switch", below, above, 1e-9)
}
