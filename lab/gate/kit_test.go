package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

func plan(t testing.TB, text string) *protocol.Protocol {
	t.Helper()
	p, faults := protocol.Parse("kit.yaml", []byte(text), nil)
	if len(faults) > 0 {
		t.Fatalf("the test's protocol has faults:\n%v\n%s", faults, text)
	}
	return p
}

// arms stand in for the programs under test: they fill in what a trial yields.
// i counts measured rounds from 0.
type arms func(s trial.Slot, i int, o *trial.Observation)

// fataler is what both testing.TB and a property test can do.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// measure is a run that ended, as the flow would have recorded it: every trial
// was ok and every check passed, but for what f makes of it. Samples are kept
// in dir.
func measure(t fataler, p *protocol.Protocol, dir string, f arms) *ledger.Run {
	t.Helper()
	run := &ledger.Run{Dir: dir, Protocol: p, Lock: &protocol.Lock{Digest: "d1", Version: 1}}
	var samples []byte
	pass := func(name string) check.Result { return check.Result{Name: name, Verdict: check.Pass, Operations: 1} }
	for _, round := range trial.Schedule(p) {
		cell, _ := p.Cell(round.Cell)
		for _, s := range round.Slots {
			o := &trial.Observation{Cell: s.Cell, Round: s.Round, Warmup: s.Warmup, Slot: s.Slot, Arm: s.Arm, Seed: s.Seed, Status: trial.StatusOK}
			for _, c := range p.Checks {
				if c.Scope == protocol.ScopeTrial && c.Covers(s.Arm, cell) {
					o.Checks = append(o.Checks, pass(c.Name))
				}
			}
			f(s, s.Round-cell.Warmup, o)
			for name, values := range o.Bulk {
				b := trial.EncodeSamples(values)
				sum := sha256.Sum256(b)
				o.Samples = append(o.Samples, trial.SampleRef{Name: name, Offset: int64(len(samples)), Count: len(values), SHA256: hex.EncodeToString(sum[:])})
				samples = append(samples, b...)
			}
			run.Records = append(run.Records, ledger.Record{Kind: ledger.KindTrial, Trial: o})
		}
	}
	for _, c := range p.Checks {
		if c.Scope == protocol.ScopeRun {
			run.Records = append(run.Records, ledger.Record{Kind: ledger.KindCheck, Check: &ledger.Judgement{Scope: c.Scope, Result: pass(c.Name)}})
		}
	}
	run.Records = append(run.Records, ledger.Record{Kind: ledger.KindEnd, End: &ledger.End{}})
	if len(samples) > 0 {
		if err := os.WriteFile(filepath.Join(dir, ledger.SamplesFile), samples, 0o644); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return run
}

// insert puts a record before the end of the run.
func insert(run *ledger.Run, rec ledger.Record) {
	run.Records = slices.Insert(run.Records, len(run.Records)-1, rec)
}

func decide(run *ledger.Run) *Verdict { return Decide(run.Protocol, analysis.Analyze(run)) }

// scores are 30 values of mean 0 and standard deviation 1, in an order that
// depends on which. A mean plus so many of them is a sample with exactly that
// mean and standard deviation.
func scores(which int) []float64 {
	z := make([]float64, 30)
	sum, squares := 0.0, 0.0
	for i := range z {
		z[i] = math.Erfinv((2*float64(i)+1)/30 - 1)
		sum += z[i]
		squares += z[i] * z[i]
	}
	sd := math.Sqrt((squares - sum*sum/30) / 29)
	out := make([]float64, 30)
	step := []int{1, 7, 11, 13, 17, 19, 23, 29}[which%8]
	for i := range out {
		out[i] = (z[(i*step+which)%30] - sum/30) / sd
	}
	return out
}

// step is the trace's step of that outcome.
func step(t testing.TB, v *Verdict, outcome string) Step {
	t.Helper()
	for _, s := range v.Trace {
		if s.Outcome == outcome {
			return s
		}
	}
	t.Fatalf("no step %s in %+v", outcome, v.Trace)
	return Step{}
}

// words are consulted values as "name=value", for comparing.
func words(values []Value) string {
	var out []string
	for _, v := range values {
		if v.Bool != nil {
			out = append(out, fmt.Sprintf("%s=%v", v.Name, *v.Bool))
		} else {
			out = append(out, fmt.Sprintf("%s=%.6g", v.Name, float64(v.Num)))
		}
	}
	return strings.Join(out, " ")
}

// ends asserts how a decision ended, and that class and exit status agree.
func ends(t testing.TB, what string, v *Verdict, outcome string, class Class) {
	t.Helper()
	if v.Outcome != outcome || v.Class != class || v.Exit != class.ExitCode() {
		t.Errorf("%s: %s (%s, exit %d), want %s (%s)\nwhy: %s", what, v.Outcome, v.Class, v.Exit, outcome, class, v.Why)
	}
}
