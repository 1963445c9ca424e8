package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// head begins every protocol of these tests; sections are added to it.
const head = `
assay: 1
name: kit
question: May the new one be used?
arms:
  - {name: old, shell: "true"}
  - {name: new, shell: "true"}
decision: {preset: four-branch}
`

// simple is a whole protocol with one cell and one metric.
const simple = head + `
design: {rounds: 10, warmup: 2, seed: 7}
metrics:
  - {name: ops, better: higher, source: json}
primary: {metric: ops}
`

func plan(t testing.TB, text string) *protocol.Protocol {
	t.Helper()
	p, faults := protocol.Parse("kit.yaml", []byte(text), nil)
	if len(faults) > 0 {
		t.Fatalf("the test's protocol has faults:\n%v", faults)
	}
	return p
}

// arms stand in for the programs under test: they fill in what a trial yields.
// i counts measured rounds from 0 and is negative in a warm-up.
type arms func(s trial.Slot, i int, o *trial.Observation)

// reports is an arm that reports one number.
func reports(key string, value func(s trial.Slot, i int) float64) arms {
	return func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{key: value(s, i)}
	}
}

// measure is a run that ended, as the flow would have recorded it: every trial
// was ok and every check passed, but for what f makes of it.
func measure(t testing.TB, p *protocol.Protocol, f arms) *ledger.Run {
	t.Helper()
	run := &ledger.Run{Protocol: p, Lock: &protocol.Lock{Digest: "d1", Version: 1}}
	add := func(rec ledger.Record) { run.Records = append(run.Records, rec) }
	add(ledger.Record{Kind: ledger.KindBegin, Begin: &ledger.Begin{Schema: 1}})
	var samples []byte
	judge := func(scope, cell string, round int) {
		for _, c := range p.Checks {
			if at, _ := p.Cell(cell); c.Scope == scope && (scope == protocol.ScopeRun || c.Cells.Match(at)) {
				add(ledger.Record{Kind: ledger.KindCheck, Check: &ledger.Judgement{
					Scope: scope, Cell: cell, Round: round, Result: check.Result{Name: c.Name, Verdict: check.Pass, Operations: 1},
				}})
			}
		}
	}
	for _, round := range trial.Schedule(p) {
		cell, _ := p.Cell(round.Cell)
		for _, s := range round.Slots {
			o := &trial.Observation{
				Cell: s.Cell, Round: s.Round, Warmup: s.Warmup, Slot: s.Slot, Arm: s.Arm, Seed: s.Seed, Status: trial.StatusOK,
			}
			for _, c := range p.Checks {
				if c.Scope == protocol.ScopeTrial && c.Covers(s.Arm, cell) {
					o.Checks = append(o.Checks, check.Result{Name: c.Name, Verdict: check.Pass, Operations: 1})
				}
			}
			if f != nil {
				f(s, s.Round-cell.Warmup, o)
			}
			for name, values := range o.Bulk {
				b := trial.EncodeSamples(values)
				sum := sha256.Sum256(b)
				o.Samples = append(o.Samples, trial.SampleRef{Name: name, Offset: int64(len(samples)), Count: len(values), SHA256: hex.EncodeToString(sum[:])})
				samples = append(samples, b...)
			}
			o.Bulk = nil
			add(ledger.Record{Kind: ledger.KindTrial, Trial: o})
		}
		judge(protocol.ScopeRound, round.Cell, round.Round)
		if round.Round == cell.Warmup+cell.Rounds-1 {
			judge(protocol.ScopeCell, round.Cell, 0)
		}
	}
	judge(protocol.ScopeRun, "", 0)
	add(ledger.Record{Kind: ledger.KindEnd, End: &ledger.End{}})
	if len(samples) > 0 {
		run.Dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(run.Dir, ledger.SamplesFile), samples, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// without leaves out the records that match.
func without(run *ledger.Run, match func(ledger.Record) bool) *ledger.Run {
	less := *run
	less.Records = nil
	for _, rec := range run.Records {
		if !match(rec) {
			less.Records = append(less.Records, rec)
		}
	}
	return &less
}

// noise is a value in [-1, 1) that depends on its arguments only.
func noise(parts ...int) float64 {
	x := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		x = (x ^ uint64(p+1)) * 0xbf58476d1ce4e5b9
		x ^= x >> 29
	}
	return float64(x>>11)/(1<<52) - 1
}

// armNo tells the arms' noise apart.
func armNo(s trial.Slot) int { return int(s.Arm[0]) }

func checkNamed(t testing.TB, r *Results, name string) check.Result {
	t.Helper()
	var found []check.Result
	for _, c := range r.Checks {
		if c.Name == name {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d results of check %s in %+v", len(found), name, r.Checks)
	}
	return found[0]
}

func comparison(t testing.TB, r *Results, cell, metric, arm string) *Comparison {
	t.Helper()
	c := r.Cell(cell).Metric(metric).Against(arm)
	if c == nil {
		t.Fatalf("no comparison of %s in %s with %s; note %q, checks %+v", metric, cell, arm, r.Note, r.Checks)
	}
	return c
}

func near(a Number, b, tolerance float64) bool {
	return math.Abs(float64(a)-b) <= tolerance*max(math.Abs(b), 1)
}

func wantContains(t testing.TB, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s is %q, which does not say %q", what, got, want)
	}
}
