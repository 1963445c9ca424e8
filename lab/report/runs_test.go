package report

import (
	"fmt"
	"hash/fnv"
	"math"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// The runs of these tests are made the way real ones are, from a protocol
// through the ledger to the verdict; only the trials are invented.

var begun = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

var machine = &host.Provenance{
	OS: "linux", Arch: "amd64", Distribution: "Example Linux 12", Kernel: "6.12.1", CPUModel: "Example CPU @ 3.00GHz", CPUs: 8, MaxMHz: 3000,
	MemoryBytes: 16 << 30, ScratchFS: "ext4", Container: "none detected", GoVersion: "go1.26.0", GOMAXPROCS: 8, ToolVersion: "v0.1.0",
}

// made is how a run is made: what differs from a sound and complete one.
type made struct {
	exploratory string
	until       int // trials that ran; 0 is all
	windows     []ledger.HostWindow
	deviations  []protocol.Deviation
	trial       func(slot trial.Slot, o *trial.Observation)
}

// noise is between 0 and 1 and always the same for the same place.
func noise(parts ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, parts...)
	x := h.Sum64()
	x ^= x >> 31
	x *= 0x9E3779B97F4A7C15
	x ^= x >> 29
	return float64(x>>11) / (1 << 53)
}

func makeRun(t testing.TB, yaml string, m made) *Source {
	t.Helper()
	p, faults := protocol.Parse("protocol.yaml", []byte(yaml), nil)
	if len(faults) > 0 {
		t.Fatal(faults.Error())
	}
	return makeRunOf(t, p, m)
}

func makeRunOf(t testing.TB, p *protocol.Protocol, m made) *Source {
	t.Helper()
	lock, err := protocol.Freeze(p, protocol.Evidence{
		Tool: "v0.1.0", Now: begun.Add(-time.Hour), Source: "protocol.yaml", Exploratory: m.exploratory,
		Receipts: []protocol.Receipt{{Arm: p.Arms[0].Name, Program: "bench", SHA256: "aa11", Version: "1.4"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lock.Deviations = m.deviations
	w, err := ledger.Create(t.TempDir(), lock, p, machine, begun)
	if err != nil {
		t.Fatal(err)
	}
	add := func(r ledger.Record) {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	whole := true
	for _, r := range trial.Schedule(p) {
		for _, slot := range r.Slots {
			if n++; m.until > 0 && n > m.until {
				whole = false
				continue
			}
			o := &trial.Observation{
				Cell: slot.Cell, Round: slot.Round, Warmup: slot.Warmup, Slot: slot.Slot, Arm: slot.Arm, Seed: slot.Seed,
				Start: begun.Add(time.Duration(n) * time.Second), Status: trial.StatusOK, Values: map[string]float64{},
			}
			m.trial(slot, o)
			add(ledger.Record{Kind: ledger.KindTrial, Trial: o})
		}
	}
	for i := range m.windows {
		add(ledger.Record{Kind: ledger.KindHost, Host: &m.windows[i]})
	}
	if whole {
		add(ledger.Record{Kind: ledger.KindEnd, End: &ledger.End{Time: begun.Add(time.Hour)}})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := &Source{Run: w.Run(), Env: machine}
	s.Results = analysis.Analyze(s.Run)
	s.Verdict = gate.Decide(p, s.Results)
	return s
}

const writePath = `
assay: 1
name: write-path
question: May the statistics of a project be kept up to date on the write path?
hypotheses: [Keeping them costs at most a tenth of the throughput., It costs more.]
expectation: A small cost, since the fold is one command.
asymmetries: [The treatment writes one document more per save.]
arms:
  - {name: control, command: [bench, off]}
  - {name: treatment, command: [bench, on]}
design: {rounds: 12, warmup: 2, seed: 7}
metrics:
  - {name: wall, source: wall, better: lower}
  - {name: commands, source: json, better: lower, count: true}
  - {name: retries, source: json, better: lower, count: true}
  - {name: p99, source: samples, key: latency, quantile: 0.99, unit: ns, better: lower}
  - {name: throughput, source: json, unit: saves/s, better: higher, summarise: median}
checks:
  - {name: conserved, scope: trial, reported: true}
primary: {metric: wall, floor: {dz: 0.8}}
vetoes:
  - {name: tail, metric: p99, statistic: pooled, require: ratio_high <= 1.25, because: users notice a slow save}
gates:
  - {name: no_retries, metric: retries, statistic: sum, require: treat <= 3}
decision: {preset: four-branch}
host:
  - {probe: psi_cpu, max: 20, action: warn}
`

// writePathTrial is a treatment that does the work in less time, or in more.
func writePathTrial(factor float64) func(trial.Slot, *trial.Observation) {
	return func(slot trial.Slot, o *trial.Observation) {
		ms := 12.3 + 0.8*noise("round", slot.Round) + 0.3*noise(slot.Arm, slot.Round)
		commands := 3.0
		if slot.Arm == "treatment" {
			ms, commands = ms*factor, 2
		}
		o.Usage = trial.Usage{Wall: time.Duration(ms * 1e6), User: time.Duration(ms * 7e5), System: time.Duration(ms * 1e5), PeakMemory: 9 << 20}
		o.Values["commands"] = commands
		o.Values["retries"] = 0
		o.Values["throughput"] = math.Round(1e6 / ms)
		for i := range 200 {
			o.Bulk = bulk(o.Bulk, "latency", int64(ms*1e4*(1+noise(slot.Arm, slot.Round, i))))
		}
		o.Checks = []check.Result{{Name: "conserved", Verdict: check.Pass, Operations: 1000}}
	}
}

func bulk(m map[string][]int64, name string, v int64) map[string][]int64 {
	if m == nil {
		m = map[string][]int64{}
	}
	m[name] = append(m[name], v)
	return m
}

func goRun(t testing.TB) *Source {
	return makeRun(t, writePath, made{trial: writePathTrial(0.82), windows: []ledger.HostWindow{busy(31)}})
}

func noGoRun(t testing.TB) *Source {
	return makeRun(t, writePath, made{trial: func(slot trial.Slot, o *trial.Observation) {
		writePathTrial(1.31)(slot, o)
		if slot.Arm == "treatment" && slot.Round%5 == 0 {
			o.Values["retries"] = 2
		}
	}})
}

func abortRun(t testing.TB) *Source {
	return makeRun(t, writePath, made{trial: func(slot trial.Slot, o *trial.Observation) {
		writePathTrial(0.82)(slot, o)
		switch {
		case slot.Arm == "treatment" && slot.Round == 4:
			o.Checks[0] = check.Result{Name: "conserved", Verdict: check.Fail, Operations: 1000, Message: "2 lost",
				Examples: []string{`lost: key "a" was acknowledged at 17 and never read`, `lost: key "b" was acknowledged at 21 and never read`}}
		case slot.Arm == "control" && slot.Round == 9:
			o.Status, o.Exit, o.Stderr, o.Checks = trial.StatusFailed, 3, "bench: connection refused", nil
		}
	}})
}

const compareYAML = `
assay: 1
name: compare
question: Which is faster?
arms:
  - {name: sort-v1, command: [sort-v1, big.txt]}
  - {name: sort-v2, command: [sort-v2, big.txt]}
design: {rounds: 10, warmup: 1, seed: 1}
metrics:
  - {name: wall, source: wall, better: lower}
  - {name: user, source: user, better: lower}
  - {name: system, source: system, better: lower}
  - {name: peak_memory, source: peak_memory, better: lower}
primary: {metric: wall}
decision: {preset: four-branch}
`

func exploratoryRun(t testing.TB) *Source {
	return makeRun(t, compareYAML, made{exploratory: "assay compare measures without a frozen protocol", trial: func(slot trial.Slot, o *trial.Observation) {
		ms := 210 + 14*noise(slot.Arm, slot.Round)
		if slot.Arm == "sort-v2" {
			ms = 171 + 9*noise(slot.Arm, slot.Round)
		}
		o.Usage = trial.Usage{Wall: time.Duration(ms * 1e6), User: time.Duration(ms * 8e5), System: time.Duration(ms * 1.2e5), PeakMemory: int64(5+slot.Slot) << 20}
	}})
}

const matrix = `
assay: 1
name: matrix
question: Is the fold as good in every cell?
arms:
  - {name: control, command: [bench, off]}
  - {name: fold, command: [bench, fold]}
  - {name: unsafe-2, command: [bench, unsafe], class: reported}
factors:
  - {name: size, levels: [1, 16]}
  - {name: keys, levels: [hot, uniform-8]}
overrides:
  - {cells: {size: 16, keys: hot}, class: stress}
design: {rounds: 8, seed: 3}
metrics:
  - {name: latency, source: json, unit: ms, better: lower}
  - {name: conflicts, source: json, better: lower, count: true}
checks:
  - {name: conserved, scope: trial, reported: true}
primary: {metric: latency, treatment: fold, floor: {change: 0.02}}
gates:
  - {name: conflicts, metric: conflicts, require: ratio <= 1.1}
  - {name: unsafe_too, metric: latency, arm: unsafe-2, require: ratio <= 1.5, class: stress}
decision: {preset: four-branch}
`

func matrixTrial(slot trial.Slot, o *trial.Observation) {
	ms := 4 + noise(slot.Cell, slot.Round) + 0.3*noise(slot.Cell, slot.Round, slot.Arm)
	conflicts := 40 + math.Floor(4*noise(slot.Arm, slot.Round))
	switch slot.Arm {
	case "fold":
		ms *= 0.9
	case "unsafe-2":
		ms *= 0.5
		conflicts = 0
	}
	if slot.Cell == "size=1,keys=hot" && slot.Arm == "fold" {
		conflicts += 9
	}
	o.Values["latency"], o.Values["conflicts"] = ms, conflicts
	o.Usage.Wall = time.Duration(ms * 1e9)
	o.Checks = []check.Result{{Name: "conserved", Verdict: check.Pass, Operations: 10}}
}

func matrixRun(t testing.TB) *Source { return makeRun(t, matrix, made{trial: matrixTrial}) }

func busy(percent float64) ledger.HostWindow {
	limit := protocol.Limit{Probe: "psi_cpu", Action: protocol.ActionWarn, Unavailable: protocol.ActionWarn}
	most := 20.0
	limit.Max = &most
	r := host.Reading{Probe: "psi_cpu", State: host.Bad, Value: percent, Unit: "%"}
	return ledger.HostWindow{When: "during", Time: begun, Readings: []host.Reading{r}, Breaches: host.Judge([]host.Reading{r}, []protocol.Limit{limit}, "during round 3")}
}
