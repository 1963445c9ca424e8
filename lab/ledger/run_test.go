package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// long turns the forms of the tests on that take minutes.
func long() bool { return os.Getenv("ASSAY_LONG") != "" }

// underRace is set where the race detector makes everything ten times slower.
var underRace bool

const asked = `
assay: 1
name: ledger-test
question: Does the ledger keep what it is given?
arms:
  - {name: control, command: ["true"]}
  - {name: treatment, command: ["true"]}
design: {rounds: 2, warmup: 1, seed: 7}
metrics:
  - {name: wall, source: wall, better: lower}
checks:
  - {name: sound, scope: trial, shell: "true"}
primary: {metric: wall}
decision: {preset: four-branch}
`

var (
	begin   = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	machine = &host.Provenance{OS: "linux", Arch: "amd64", Kernel: "6.12.1", CPUs: 8}

	madeResults = []byte("{\n \"results\": 1\n}\n")
	madeVerdict = []byte("{\n \"verdict\": \"go\"\n}\n")
)

func frozen(t testing.TB, text string) (*protocol.Lock, *protocol.Protocol) {
	t.Helper()
	p, faults := protocol.Parse("exp.yaml", []byte(text), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	lock, err := protocol.Freeze(p, protocol.Evidence{Tool: "v0.1.0", Now: begin, Source: "exp.yaml", Exploratory: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	return lock, p
}

// seeded is a random source whose seed is told with a failure.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("ASSAY_TEST_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with: ASSAY_TEST_SEED=%d go test -run '^%s$' ./lab/ledger", seed, t.Name())
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

func create(t testing.TB, dir string) *Writer {
	t.Helper()
	lock, p := frozen(t, asked)
	w, err := Create(dir, lock, p, machine, begin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.chain.Close()
		w.samples.Close()
	})
	return w
}

func observed(slot trial.Slot, n int, samples int) *trial.Observation {
	o := &trial.Observation{
		Cell: slot.Cell, Round: slot.Round, Warmup: slot.Warmup, Slot: slot.Slot, Arm: slot.Arm, Seed: slot.Seed,
		Start: begin.Add(time.Duration(n) * time.Second), Status: trial.StatusOK,
		Usage:  trial.Usage{Wall: time.Duration(1e6 + n), User: 7e5, System: 1e5, PeakMemory: 9 << 20},
		Values: map[string]float64{"ops": float64(n), "hits": 0.5},
		Checks: []check.Result{{Name: "sound", Verdict: check.Pass, Operations: 1 + n}},
	}
	if samples > 0 {
		o.Bulk = map[string][]int64{}
		for i := range samples {
			o.Bulk["latency"] = append(o.Bulk["latency"], int64(1000*n+i))
			o.Bulk["queue"] = append(o.Bulk["queue"], int64(i%3))
		}
	}
	return o
}

func add(t testing.TB, w *Writer, rec Record) {
	t.Helper()
	if err := w.Append(rec); err != nil {
		t.Fatal(err)
	}
}

func addTrial(t testing.TB, w *Writer, n, samples int) {
	t.Helper()
	add(t, w, Record{Kind: KindTrial, Trial: observed(trial.Slot{Cell: "all", Round: n / 2, Slot: n % 2, Arm: []string{"control", "treatment"}[n%2]}, n, samples)})
}

func mark(t testing.TB, w *Writer, round int, force bool) {
	t.Helper()
	if err := w.EndRound(RoundMark{Cell: "all", Round: round}, force); err != nil {
		t.Fatal(err)
	}
}

func closed(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// finished makes a sealed run with a page.
func finished(t testing.TB, dir string) *Run {
	t.Helper()
	w := create(t, dir)
	n := 0
	for _, rd := range trial.Schedule(w.run.Protocol) {
		for _, slot := range rd.Slots {
			add(t, w, Record{Kind: KindTrial, Trial: observed(slot, n, 5)})
			n++
		}
		add(t, w, Record{Kind: KindCheck, Check: &Judgement{Scope: "round", Cell: rd.Cell, Round: rd.Round, Result: check.Result{Name: "same", Verdict: check.Pass, Operations: 2}}})
		if err := w.EndRound(RoundMark{Cell: rd.Cell, Round: rd.Round, Warmup: rd.Warmup}, false); err != nil {
			t.Fatal(err)
		}
	}
	add(t, w, Record{Kind: KindHost, Host: &HostWindow{When: "after", Time: begin, Readings: []host.Reading{{Probe: "load_per_cpu", Value: 0.25}}}})
	add(t, w, Record{Kind: KindEnd, End: &End{Time: begin.Add(time.Hour)}})
	closed(t, w)
	if err := w.Run().Finish(madeResults, madeVerdict); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, ReportFile), []byte("<!doctype html>\n")); err != nil {
		t.Fatal(err)
	}
	intact(t, dir)
	return w.Run()
}

func intact(t testing.TB, dir string) *Run {
	t.Helper()
	run, problems, err := Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("intact folder: %s", p)
	}
	if t.Failed() {
		t.FailNow()
	}
	return run
}

func slurp(t testing.TB, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spit replaces a file in place: emptying it first would make some file systems
// write it out, thousands of times.
func spit(t testing.TB, dir, name string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, 0)
	if err := errors.Join(err, f.Truncate(int64(len(b))), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func lines(b []byte) [][]byte {
	return bytes.SplitAfter(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
}

// chainLines are the lines of the chain, each with its newline.
func chainLines(t testing.TB, dir string) [][]byte {
	all := lines(slurp(t, dir, ObservationsFile))
	last := &all[len(all)-1]
	*last = append(bytes.Clone(*last), '\n')
	return all
}
