package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/trial"
)

// Analyze computes the results of a run. What is not there is said to be
// missing; nothing is filled in.
func Analyze(run *ledger.Run) *Results {
	p := run.Protocol
	r := &Results{
		Schema: SchemaVersion, Name: p.Name, Question: p.Question, Lock: run.Lock.Digest, Version: run.Lock.Version,
		Complete: run.Ended(),
	}
	if run.Lock.Exploratory != "" {
		r.Exploratory = append(r.Exploratory, run.Lock.Exploratory)
	}
	for _, rec := range run.Records {
		if rec.Note != nil && rec.Note.Exploratory && !slices.Contains(r.Exploratory, rec.Note.Text) {
			r.Exploratory = append(r.Exploratory, rec.Note.Text)
		}
	}
	schedule := trial.Schedule(p)
	planned, strays := trials(run, schedule)
	cells := collect(run, p, planned)
	r.countTrials(planned, cells)
	clearance := r.judgeChecks(run, p, schedule, planned, strays)
	r.summariseHost(run, p)
	r.compare(clearance, p, cells)
	return r
}

func (r *Results) countTrials(planned []*trial.Observation, cells []*cellData) {
	warm := map[[2]string]int{}
	for _, o := range planned {
		if o.Warmup {
			warm[[2]string{o.Cell, o.Arm}]++
		}
	}
	missing := func(format string, args ...any) {
		r.Complete = false
		r.Missing = append(r.Missing, fmt.Sprintf(format, args...))
	}
	for _, cd := range cells {
		for _, ad := range cd.arms {
			tc := TrialCount{Cell: cd.cell.Name, Arm: ad.arm, Planned: cd.cell.Rounds, Warmup: warm[[2]string{cd.cell.Name, ad.arm}], Status: map[string]int{}}
			ran := 0
			for _, o := range ad.rounds {
				if o == nil {
					continue
				}
				ran++
				tc.Status[string(o.Status)]++
				if o.Status != trial.StatusOK && tc.Example == "" {
					tc.Example = explain(o)
				}
			}
			if ran < tc.Planned {
				missing("cell %s, arm %s: %d of %d rounds ran", cd.cell.Name, ad.arm, ran, tc.Planned)
			}
			if tc.Warmup < cd.cell.Warmup {
				missing("cell %s, arm %s: %d of %d warm-up rounds ran", cd.cell.Name, ad.arm, tc.Warmup, cd.cell.Warmup)
			}
			r.Trials = append(r.Trials, tc)
		}
	}
}

func explain(o *trial.Observation) string {
	s := fmt.Sprintf("round %d: %s", o.Round, o.Status)
	if len(o.Notes) > 0 {
		s += ": " + o.Notes[0]
	}
	if o.Stderr != "" {
		s += ": " + o.Stderr
	}
	const most = 300
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

type pooledKey struct{ arm, metric string }
