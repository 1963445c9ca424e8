package ledger

import (
	"testing"

	"github.com/assaylab/assay/lab/trial"
)

// BenchmarkVerifyChain is the slow half of verify: trials without samples.
func BenchmarkVerifyChain(b *testing.B) { benchmarkVerify(b, 40_000, 0) }

// BenchmarkVerifySamples is a run whose samples outweigh its records, as in any
// study of latency.
func BenchmarkVerifySamples(b *testing.B) { benchmarkVerify(b, 4_000, 1000) }

func benchmarkVerify(b *testing.B, trials, samples int) {
	dir := b.TempDir()
	w := create(b, dir)
	for n := range trials {
		add(b, w, Record{Kind: KindTrial, Trial: observed(trial.Slot{Cell: "size=16,keys=hot", Round: n / 2, Slot: n % 2, Arm: "control", Seed: uint64(n) << 32}, n, samples)})
		if n%2 == 1 {
			if err := w.EndRound(RoundMark{Cell: "size=16,keys=hot", Round: n / 2}, false); err != nil {
				b.Fatal(err)
			}
		}
	}
	add(b, w, Record{Kind: KindEnd, End: &End{Time: begin}})
	closed(b, w)
	if err := w.Run().Finish(madeResults, madeVerdict); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(w.run.chainBytes + w.run.sampleBytes)
	b.ReportMetric(float64(w.run.chainBytes)/(1<<20), "chainMB")
	for b.Loop() {
		if _, problems, err := Verify(dir); err != nil || len(problems) > 0 {
			b.Fatal(problems, err)
		}
	}
}
