package analysis

import (
	"runtime"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/trial"
)

// BenchmarkAnalyze is the run that the project's bar is about: 16 cells, 3
// arms, 100 rounds and a million latency samples are to take at most 2 s and
// 300 MiB.
func BenchmarkAnalyze(b *testing.B) {
	p := plan(b, `
assay: 1
name: bar
question: How long does the analysis take?
arms:
  - {name: old, shell: "true"}
  - {name: new, shell: "true"}
  - {name: odd, shell: "true"}
factors: [{name: size, levels: [1, 2, 3, 4]}, {name: keys, levels: [a, b, c, d]}]
design: {rounds: 100, warmup: 2, seed: 7}
metrics:
  - {name: wall, unit: ms, better: lower, source: wall}
  - {name: ops, better: higher, source: json}
  - {name: p50, unit: ns, better: lower, source: samples, key: lat, quantile: 0.5}
  - {name: p99, unit: ns, better: lower, source: samples, key: lat, quantile: 0.99}
  - {name: p999, unit: ns, better: lower, source: samples, key: lat, quantile: 0.999}
checks:
  - {name: each, scope: trial, shell: "true"}
  - {name: round, scope: round, shell: "true"}
  - {name: run, scope: run, shell: "true"}
primary: {metric: ops}
decision: {preset: four-branch}
`)
	const perTrial = 1_000_000/(16*3*100) + 1
	run := measure(b, p, func(s trial.Slot, i int, o *trial.Observation) {
		o.Usage.Wall = time.Duration(1e9 + 1e7*noise(armNo(s), i, 1))
		o.Values = map[string]float64{"ops": 1000 + noise(armNo(s), i, 2)}
		if s.Warmup {
			return
		}
		lat := make([]int64, perTrial)
		for j := range lat {
			lat[j] = latency(armNo(s), i, len(s.Cell), j)
		}
		o.Bulk = map[string][]int64{"lat": lat}
	})
	peak := watchHeap()
	for b.Loop() {
		if r := Analyze(run); !r.Clear || r.Primary == nil {
			b.Fatal("no figures")
		}
	}
	b.ReportMetric(float64(peak())/(1<<20), "peak-MiB")
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N), "s/run")
}

// watchHeap samples how much memory the process has taken from the system and
// not given back, until the function it returns is called for the most.
func watchHeap() func() uint64 {
	runtime.GC()
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		var top uint64
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			top = max(top, m.Sys-m.HeapReleased)
			select {
			case <-stop:
				most <- top
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { close(stop); return <-most }
}
