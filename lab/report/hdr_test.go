package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"

	"github.com/assaylab/assay/lab/analysis"
)

const hdrProtocol = `assay: 1
name: latencies
question: How long?
arms:
  - {name: old, shell: "true"}
  - {name: new, shell: "true"}
design: {rounds: 4, warmup: 1, seed: 1}
metrics:
  - {name: p99, unit: ns, better: lower, source: samples, key: op, quantile: 0.99}
primary: {metric: p99}
decision: {outcomes: [{name: NONE, class: inconclusive}]}
`

func TestHDRAgreesWithTheSamples(t *testing.T) {
	p, faults := protocol.Parse("latencies.yaml", []byte(hdrProtocol), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	lock, err := protocol.Freeze(p, protocol.Evidence{Now: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	w, err := ledger.Create(t.TempDir(), lock, p, &host.Provenance{}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]int64{}
	for _, rd := range trial.Schedule(p) {
		for _, s := range rd.Slots {
			o := &trial.Observation{Cell: s.Cell, Round: s.Round, Warmup: s.Warmup, Slot: s.Slot, Arm: s.Arm, Seed: s.Seed, Status: trial.StatusOK, Bulk: map[string][]int64{}}
			for i := range int64(500) {
				v := 1 + (i*7919+int64(rd.Round)*104729)%1_000_000
				if s.Warmup {
					v = 50_000_000
				}
				o.Bulk["op"] = append(o.Bulk["op"], v)
			}
			if !s.Warmup {
				all[s.Arm] = append(all[s.Arm], o.Bulk["op"]...)
			}
			if err := w.Append(ledger.Record{Kind: ledger.KindTrial, Trial: o}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.EndRound(ledger.RoundMark{Cell: rd.Cell, Round: rd.Round, Warmup: rd.Warmup}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Append(ledger.Record{Kind: ledger.KindEnd, End: &ledger.End{}}); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	src := &Source{Run: w.Run(), Results: analysis.Analyze(w.Run())}
	var out bytes.Buffer
	if err := HDR(&out, src); err != nil {
		t.Fatal(err)
	}
	arm := ""
	seen := 0
	for line := range strings.Lines(out.String()) {
		if _, rest, ok := strings.Cut(line, ` arm="`); ok {
			arm, _, _ = strings.Cut(rest, `"`)
		}
		code, ok := strings.CutPrefix(strings.TrimSpace(line), "#[encoded=")
		if !ok {
			continue
		}
		seen++
		h, err := hdrhistogram.Decode([]byte(strings.TrimSuffix(code, "]")))
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Sorted(slices.Values(all[arm]))
		if h.TotalCount() != int64(len(want)) {
			t.Errorf("%s: %d samples in the histogram, want %d", arm, h.TotalCount(), len(want))
		}
		for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
			raw := float64(want[max(int(math.Ceil(q*float64(len(want)))), 1)-1])
			if got := float64(h.ValueAtQuantile(100 * q)); math.Abs(got-raw) > raw/1000+1 {
				t.Errorf("%s: quantile %v is %v in the histogram and %v in the samples", arm, q, got, raw)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d histograms, want one per arm", seen)
	}
}

func TestHDRWithholdsToo(t *testing.T) {
	var out bytes.Buffer
	if err := HDR(&out, abortRun(t)); err != nil || !strings.Contains(out.String(), "withheld") {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if _, err := histogram([]int64{-5, 3}); err == nil {
		t.Error("a negative sample was counted")
	}
}
