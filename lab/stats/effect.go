package stats

import "math"

// CohenD returns the difference of means in units of the pooled SD: 0.2 is
// commonly called small, 0.5 medium, 0.8 large. Zero means equal means; when
// the pooled SD is zero and the means differ it is plus or minus infinity. It
// is NaN when an arm has fewer than two values or a moment is NaN.
//
// Source: Cohen, Statistical Power Analysis for the Behavioral Sciences (1988).
func CohenD(ref, treat Moments) float64 {
	if ref.N < 2 || treat.N < 2 {
		return math.NaN()
	}
	df := float64(ref.N + treat.N - 2)
	wr, wt := float64(ref.N-1)/df, float64(treat.N-1)/df
	pooled := math.Hypot(math.Sqrt(wr)*ref.SD, math.Sqrt(wt)*treat.SD)
	return inUnitsOf(pooled, treat.Mean-ref.Mean)
}

// HedgesG returns CohenD times the exact correction for the upward bias of d
// in small samples, J = Γ(df/2) / (sqrt(df/2) Γ((df-1)/2)) with df the total
// number of values minus two. Zero, infinite and NaN results are those of
// CohenD.
//
// Source: Hedges, Journal of Educational Statistics 6 (1981).
func HedgesG(ref, treat Moments) float64 {
	return CohenD(ref, treat) * hedgesJ(float64(ref.N+treat.N-2))
}

func hedgesJ(df float64) float64 {
	if df > 1e5 {
		// The gamma functions would cancel all but a few digits here, where
		// Hedges' own approximation is off by less than 1e-11.
		return 1 - 3/(4*df-1)
	}
	upper, _ := math.Lgamma(df / 2)
	lower, _ := math.Lgamma((df - 1) / 2)
	return math.Exp(upper-lower) / math.Sqrt(df/2)
}

// PairedDz returns the mean of the differences treat[i]-ref[i] in units of
// their SD, which is the effect size that decides the power of Paired. It is
// zero when the mean is zero, plus or minus infinity when the differences are
// all equal but not zero, and NaN when the lengths differ, there are fewer than
// two rounds, or a value is NaN or infinite.
//
// Source: Cohen, Statistical Power Analysis for the Behavioral Sciences (1988).
func PairedDz(ref, treat []float64) float64 {
	if len(ref) != len(treat) {
		return math.NaN()
	}
	d := MomentsOf(differences(ref, treat))
	return inUnitsOf(d.SD, d.Mean)
}

// inUnitsOf returns diff/sd with 0/0 taken as no effect.
func inUnitsOf(sd, diff float64) float64 {
	if sd == 0 && diff == 0 {
		return 0
	}
	return diff / sd
}
