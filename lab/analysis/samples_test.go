package analysis

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/stats"
	"github.com/assaylab/assay/lab/trial"
)

const latencies = head + `
design: {rounds: 10, warmup: 1, seed: 7}
metrics:
  - {name: p50, unit: ns, better: lower, source: samples, key: lat, quantile: 0.5}
  - {name: p99, unit: ns, better: lower, source: samples, key: lat, quantile: 0.99}
  - {name: wait, unit: ns, better: lower, source: samples, quantile: 0.9}
primary: {metric: p99}
`

// latency is a long-tailed sample in nanoseconds.
func latency(parts ...int) int64 {
	return int64(20_000 * math.Exp(2*noise(parts...)*noise(append(parts, 1)...)))
}

// draws is a run with n samples of each name in each trial; those of a warm-up
// are far too large.
func draws(t testing.TB, n int) (*ledger.Run, map[string]stats.Rounds) {
	kept := map[string]stats.Rounds{}
	run := measure(t, plan(t, latencies), func(s trial.Slot, i int, o *trial.Observation) {
		o.Bulk = map[string][]int64{}
		for no, name := range []string{"lat", "wait"} {
			for j := range n {
				v := latency(armNo(s), i, no, j)
				if s.Arm == "new" {
					v += v / 4
				}
				if s.Warmup {
					v = 1 << 50
				}
				o.Bulk[name] = append(o.Bulk[name], v)
			}
			if !s.Warmup {
				kept[s.Arm+" "+name] = append(kept[s.Arm+" "+name], slices.Clone(o.Bulk[name]))
			}
		}
	})
	return run, kept
}

func TestATrialsValueIsTheQuantileOfItsOwnSamples(t *testing.T) {
	run, kept := draws(t, 101)
	r := Analyze(run)
	for _, m := range run.Protocol.Metrics {
		for _, arm := range []string{"old", "new"} {
			for i, v := range r.Cell("all").Metric(m.Name).Arm(arm).Values {
				own := slices.Sorted(slices.Values(kept[arm+" "+m.Key][i]))
				if want := stats.QuantileInt(own, *m.Quantile); float64(v) != want {
					t.Errorf("%s, %s, round %d: %v, want %v", m.Name, arm, i, v, want)
				}
			}
		}
	}
}

func TestPooledQuantilesAreThoseOfTheBlockBootstrap(t *testing.T) {
	run, kept := draws(t, 101)
	r := Analyze(run)
	for _, m := range run.Protocol.Metrics {
		effects, err := stats.BootstrapQuantiles(kept["old "+m.Key], kept["new "+m.Key], []float64{*m.Quantile}, 0.95, pooledResamples, 7)
		if err != nil {
			t.Fatal(err)
		}
		want := effects[0]
		cm := r.Cell("all").Metric(m.Name)
		got := cm.Against("new").Pooled
		if got == nil || float64(got.Ref) != want.Ref || float64(got.Treat) != want.Treat || float64(got.Diff) != want.Diff || float64(got.Ratio) != want.Ratio ||
			got.DiffCI != *interval(want.DiffCI) || got.RatioCI != *interval(want.RatioCI) {
			t.Errorf("%s: %+v, want %+v", m.Name, got, want)
		}
		if float64(*cm.Arm("old").Pooled) != want.Ref || float64(*cm.Arm("new").Pooled) != want.Treat {
			t.Errorf("%s: the arms have %v and %v", m.Name, *cm.Arm("old").Pooled, *cm.Arm("new").Pooled)
		}
	}
}

func TestPooledNotesTravelWithTheComparison(t *testing.T) {
	p := plan(t, head+"design: {rounds: 4, warmup: 0, seed: 7}\nmetrics: [{name: lat, better: lower, source: samples, quantile: 0.5}]\nprimary: {metric: lat}\n")
	c := comparison(t, Analyze(measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		o.Bulk = map[string][]int64{"lat": {0, int64(i), 10}}
	})), "all", "lat", "new")
	var few, ratio bool
	for _, n := range c.Notes {
		few = few || n == "pooled: few rounds: a percentile interval from fewer than 10 rounds tends to be too narrow"
		ratio = ratio || n == "pooled: no ratio: the reference quantile is not positive in every resample"
	}
	if !few || !ratio || !math.IsNaN(float64(c.Pooled.Ratio)) {
		t.Errorf("notes %q, pooled %+v", c.Notes, c.Pooled)
	}
}

func TestSummaryOfSamples(t *testing.T) {
	run, kept := draws(t, 101)
	sets := Analyze(run).Cell("all").Samples
	if len(sets) != 4 {
		t.Fatalf("%d sets", len(sets))
	}
	for _, set := range sets {
		all := slices.Sorted(slices.Values(slices.Concat(kept[set.Arm+" "+set.Name]...)))
		if set.Count != 1010 || float64(set.Min) != float64(all[0]) || float64(set.Max) != float64(all[1009]) {
			t.Errorf("%s of %s: %d from %v to %v", set.Name, set.Arm, set.Count, set.Min, set.Max)
		}
		sum := 0.0
		for _, v := range all {
			sum += float64(v)
		}
		if !near(set.Mean, sum/1010, 1e-12) {
			t.Errorf("mean %v, want %v", set.Mean, sum/1010)
		}
		shown := map[Number]bool{}
		for _, q := range set.Quantiles {
			shown[q.Q] = true
			if want := stats.QuantileInt(all, float64(q.Q)); float64(q.V) != want {
				t.Errorf("quantile %v is %v, want %v", q.Q, q.V, want)
			}
		}
		// 1010 samples have one beyond 0.999 and none beyond 0.9999.
		if !shown[0.999] || shown[0.9999] || !shown[1] || !shown[0] {
			t.Errorf("shown %v", shown)
		}
	}
}

func TestARoundWithoutSamplesLeavesNoPooledFigure(t *testing.T) {
	p := plan(t, latencies)
	r := Analyze(measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		o.Bulk = map[string][]int64{"lat": {10, 20 + int64(i)}, "wait": {5, 6}}
		if s.Arm == "new" && i == 3 {
			o.Bulk["lat"] = nil
		}
	}))
	cell := r.Cell("all")
	if c := cell.Metric("p50").Against("new"); c.Pooled != nil || c.N != 9 {
		t.Errorf("p50: %+v", c)
	}
	if c := cell.Metric("wait").Against("new"); c.Pooled == nil {
		t.Error("the other samples have no pooled figure either")
	}
	for _, set := range cell.Samples {
		if set.Name == "lat" && set.Arm == "new" {
			t.Errorf("a summary of %d samples, a round of which is missing", set.Count)
		}
	}
	if pc := r.Primary.Cells[0]; pc.Missing == "" {
		t.Errorf("the primary comparison is %+v", pc)
	}
}

func TestChangedSamplesAreMissingValues(t *testing.T) {
	run, _ := draws(t, 10)
	path := filepath.Join(run.Dir, ledger.SamplesFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	r := Analyze(run)
	found := 0
	for _, m := range r.Cell("all").Metrics {
		for _, a := range m.Arms {
			for why, n := range a.Missing {
				found += n
				wantContains(t, "the reason", why, "were changed")
			}
		}
	}
	if found != 1 && found != 2 {
		t.Errorf("%d values are missing", found)
	}
}

func TestSamplesReportedInPartsAreOneSet(t *testing.T) {
	p := plan(t, head+"design: {rounds: 4, warmup: 0, seed: 7}\nmetrics: [{name: lat, better: lower, source: samples, quantile: 1}]\nprimary: {metric: lat}\n")
	run := measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		o.Bulk = map[string][]int64{"lat": {1, 2, 3}, "later": {9}}
	})
	for _, rec := range run.Records {
		if rec.Trial != nil {
			for i := range rec.Trial.Samples {
				rec.Trial.Samples[i].Name = "lat"
			}
		}
	}
	r := Analyze(run)
	if a := r.Cell("all").Metric("lat").Arm("old"); a.Max != 9 || a.N != 4 || r.Cell("all").Samples[0].Count != 16 {
		t.Errorf("got %+v, %d samples", a, r.Cell("all").Samples[0].Count)
	}
}
