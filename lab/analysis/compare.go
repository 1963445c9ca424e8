package analysis

import (
	"fmt"
	"math"
	"slices"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
	"github.com/assaylab/assay/lab/trial"
)

// Resamples of the bootstraps. Enough for two stable digits of an interval's
// end, and few enough for a million samples in a second.
const (
	ratioResamples  = 2000
	pooledResamples = 1000
)

// compare fills in the figures. It takes the clearance, so that no effect can
// be computed for a run whose checks have not all passed.
func (r *Results) compare(c check.Clearance, p *protocol.Protocol, cells []*cellData) {
	if !c.Valid() {
		r.Note = "Figures are withheld: no effect is computed before every check has passed. The raw data is in the ledger."
		return
	}
	level := 1 - p.Primary.Alpha
	for _, cd := range cells {
		cell := Cell{Name: cd.cell.Name, Class: cd.cell.Class, Rounds: cd.cell.Rounds}
		pooled := poolQuantiles(cd, p, level)
		for i := range p.Metrics {
			cell.Metrics = append(cell.Metrics, compareMetric(cd, p, &p.Metrics[i], level, pooled))
		}
		cell.Samples = summariseSamples(cd)
		r.Cells = append(r.Cells, cell)
		cd.samples = map[*trial.Observation]map[string][]int64{}
	}
	r.family(p)
}

func compareMetric(cd *cellData, p *protocol.Protocol, m *protocol.Metric, level float64, pooled map[pooledKey]stats.QuantileEffect) CellMetric {
	cm := CellMetric{Metric: m.Name, Unit: m.Unit}
	var ref []float64
	for i := range cd.arms {
		ad := &cd.arms[i]
		vals, missing := cd.values(m, ad)
		present := slices.DeleteFunc(slices.Clone(vals), math.IsNaN)
		s := stats.Summarize(present)
		sum := ArmSummary{
			Arm: ad.arm, N: s.N, Mean: Number(s.Mean), SD: Number(s.SD), Median: Number(s.Median), Min: Number(s.Min), Max: Number(s.Max),
			Sum: Number(sumOf(present)), Missing: missing,
		}
		for _, v := range vals {
			sum.Values = append(sum.Values, Number(v))
		}
		if missing == nil {
			if slope, pv, err := stats.Drift(vals); err == nil {
				sum.Drift = &Drift{Number(slope), Number(pv)}
			}
		}
		if i == 0 {
			ref = vals
		} else {
			cmp := compareArms(cd, m, &cd.arms[0], ad, ref, vals, level, p.Design.Seed)
			if e, ok := pooled[pooledKey{ad.arm, m.Name}]; ok {
				cmp.Pooled = &Pooled{
					Ref: Number(e.Ref), Treat: Number(e.Treat), Diff: Number(e.Diff), DiffCI: *interval(e.DiffCI),
					Ratio: Number(e.Ratio), RatioCI: *interval(e.RatioCI),
				}
				refPooled, treatPooled := Number(e.Ref), Number(e.Treat)
				cm.Arms[0].Pooled, sum.Pooled = &refPooled, &treatPooled
				for _, n := range e.Notes {
					cmp.Notes = append(cmp.Notes, "pooled: "+n)
				}
			}
			cm.Comparisons = append(cm.Comparisons, cmp)
		}
		cm.Arms = append(cm.Arms, sum)
	}
	return cm
}

func sumOf(xs []float64) float64 {
	s := 0.0
	for _, x := range xs {
		s += x
	}
	return s
}

// compareArms compares an arm with the reference over the rounds in which both
// have a value. What a test cannot say becomes a note.
func compareArms(cd *cellData, m *protocol.Metric, refArm, arm *armData, refVals, vals []float64, level float64, seed uint64) Comparison {
	c := Comparison{Arm: arm.arm, Diff: nan, Change: nan, Ratio: nan, D: nan, G: nan, Dz: nan}
	var ref, treat []float64
	var refSlot, slot []int
	for i := range vals {
		if math.IsNaN(vals[i]) || math.IsNaN(refVals[i]) {
			continue
		}
		ref, treat = append(ref, refVals[i]), append(treat, vals[i])
		refSlot, slot = append(refSlot, refArm.rounds[i].Slot), append(slot, arm.rounds[i].Slot)
	}
	c.N = len(ref)
	if gap := len(vals) - c.N; gap > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of %d rounds lack a value", gap, len(vals)))
	}
	if c.N == 0 {
		return c
	}
	note := func(what string, notes []string, err error) bool {
		if err != nil {
			c.Notes = append(c.Notes, what+": "+err.Error())
			return false
		}
		for _, n := range notes {
			if !slices.Contains(c.Notes, n) {
				c.Notes = append(c.Notes, n)
			}
		}
		return true
	}
	rm, tm := stats.MomentsOf(ref), stats.MomentsOf(treat)
	c.Diff = Number(tm.Mean - rm.Mean)
	if rm.Mean != 0 {
		c.Change = c.Diff / Number(math.Abs(rm.Mean))
	}
	if rm.Mean > 0 {
		// Over a negative reference more is less, and a bound on the ratio would
		// hold for what it is to keep out.
		c.Ratio = Number(tm.Mean / rm.Mean)
	}
	c.Better, c.Worse = direction(m, float64(c.Diff))
	if c.N < 2 {
		c.Notes = append(c.Notes, "one round only: no test")
		return c
	}
	if t, err := stats.PairedSlots(ref, treat, refSlot, slot, level); note("paired t", t.Notes, err) {
		c.Paired, c.DiffCI = tTest(t), interval(t.CI)
		if noise := 1e-9 * max(math.Abs(rm.Mean), math.Abs(tm.Mean)); t.P < 1-level && math.Abs(t.Diff) > noise && t.Diff*float64(c.Diff) <= 0 {
			c.Contradiction = fmt.Sprintf("the means differ by %.4g, but %.4g with the effect of the order taken out (p %.2g): the order was not balanced enough", float64(c.Diff), t.Diff, t.P)
			c.Notes = append(c.Notes, c.Contradiction)
		}
	}
	if t, err := stats.Welch(rm, tm, level); note("Welch t", t.Notes, err) {
		c.Welch = tTest(t)
	}
	if t, err := stats.MannWhitney(ref, treat); note("Mann-Whitney", t.Notes, err) {
		c.MannWhitney = &RankTest{Number(t.U), Number(t.P), t.Exact}
	}
	if s, err := stats.HodgesLehmann(ref, treat, level); note("Hodges-Lehmann", s.Notes, err) {
		c.Shift = &Shift{Number(s.Estimate), *interval(s.CI)}
	}
	c.D, c.G, c.Dz = Number(stats.CohenD(rm, tm)), Number(stats.HedgesG(rm, tm)), Number(stats.PairedDz(ref, treat))
	if rm.Mean > 0 {
		if est, ci, err := stats.BootstrapMeanRatio(ref, treat, level, ratioResamples, seed); err == nil {
			c.Ratio, c.RatioCI = Number(est), interval(ci)
		}
	}
	diffs, first := make([]float64, c.N), make([]bool, c.N)
	for i := range diffs {
		diffs[i], first[i] = treat[i]-ref[i], slot[i] < refSlot[i]
	}
	if t, err := stats.OrderEffect(diffs, first, level); err == nil {
		c.Order = tTest(t)
	}
	return c
}

// direction says whether a difference, arm minus reference, is a gain or a
// loss.
func direction(m *protocol.Metric, diff float64) (better, worse bool) {
	if m.Better == "lower" {
		diff = -diff
	}
	return diff > 0, diff < 0
}

var nan = Number(math.NaN())

func tTest(t stats.TTest) *TTest {
	return &TTest{T: Number(t.T), DF: Number(t.DF), P: Number(t.P), Diff: Number(t.Diff), CI: *interval(t.CI)}
}

// poolQuantiles bootstraps the quantiles of all sample metrics, once per arm
// and set of samples, since metrics usually share them.
func poolQuantiles(cd *cellData, p *protocol.Protocol, level float64) map[pooledKey]stats.QuantileEffect {
	out := map[pooledKey]stats.QuantileEffect{}
	byKey := map[string][]*protocol.Metric{}
	for i := range p.Metrics {
		if m := &p.Metrics[i]; m.Source == protocol.SourceSamples {
			byKey[m.Key] = append(byKey[m.Key], m)
		}
	}
	for name, metrics := range byKey {
		ref, ok := cd.rounds(name, &cd.arms[0])
		if !ok {
			continue
		}
		qs := make([]float64, len(metrics))
		for i, m := range metrics {
			qs[i] = *m.Quantile
		}
		for i := range cd.arms[1:] {
			ad := &cd.arms[i+1]
			treat, ok := cd.rounds(name, ad)
			if !ok {
				continue
			}
			effects, err := stats.BootstrapQuantiles(ref, treat, qs, level, pooledResamples, p.Design.Seed)
			if err != nil {
				continue
			}
			for j, m := range metrics {
				out[pooledKey{ad.arm, m.Name}] = effects[j]
			}
		}
	}
	return out
}
