package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/trial"
)

// finished is a run of a study that was carried out as it was frozen and to its end.
type finished struct {
	results *analysis.Results
	verdict *gate.Verdict
	env     *host.Provenance
	began   time.Time
	took    time.Duration
	others  float64 // mean share of the processors that others used, NaN if not known
}

// variable is the environment variable that names finished runs of the study.
func (s *source) variable() string {
	return "ASSAY_BARS_" + strings.ToUpper(strings.ReplaceAll(s.study, "-", "_"))
}

// given are the folders of finished runs that the environment names.
func (s *source) given() []string {
	if s.study == "" {
		return nil
	}
	return filepath.SplitList(os.Getenv(s.variable()))
}

// open reads a run folder, checks every hash of it, and refuses what is no full run.
func open(dir, study string) (*finished, error) {
	_, problems, err := flow.Verify(dir)
	if err != nil {
		return nil, fmt.Errorf("a run of %s cannot be read: %w", study, err)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("a run of %s is not what was recorded: %s: %s", study, problems[0].File, problems[0].Message)
	}
	o, err := flow.Load(dir)
	if err != nil {
		return nil, err
	}
	if !o.Run.Ended() {
		return nil, fmt.Errorf("a run of %s has not ended", study)
	}
	f := &finished{results: o.Results, verdict: o.Verdict, others: others(o.Run)}
	if f.env, err = o.Run.Environment(); err != nil {
		return nil, err
	}
	f.began = o.Run.Begin().Time
	f.took = o.Run.Records[len(o.Run.Records)-1].End.Time.Sub(f.began)
	return f, f.whole(study)
}

// whole says why figures of the run are not those of the study.
func (f *finished) whole(study string) error {
	switch r := f.results; {
	case r.Name != study:
		return fmt.Errorf("a run of %s was given as one of %s", r.Name, study)
	case len(r.Exploratory) > 0:
		return fmt.Errorf("the run of %s is exploratory: %s", study, strings.Join(r.Exploratory, "; "))
	case !r.Complete:
		return fmt.Errorf("the run of %s is not complete: %s", study, strings.Join(r.Missing, ", "))
	case !r.Clear:
		return fmt.Errorf("the run of %s ended in %s: %s", study, f.verdict.Outcome, f.verdict.Why)
	}
	return nil
}

// others is the mean over the stretches in which the machine was looked at.
func others(run *ledger.Run) float64 {
	sum, n := 0.0, 0
	for _, rec := range run.Records {
		if rec.Host == nil {
			continue
		}
		for _, r := range rec.Host.Readings {
			if r.Probe == "foreign_cpu" && r.Available() {
				sum, n = sum+r.Value, n+1
			}
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

func (f *finished) outcome() string { return f.verdict.Outcome }

// line is what identifies the run.
func (f *finished) line() string {
	return fmt.Sprintf("lock %.12s, %s: %s, %s", f.results.Lock, f.began.UTC().Format("2006-01-02 15:04"), f.verdict.Outcome, took(f.took))
}

// arm is the summary of an arm's metric in a cell.
func (f *finished) arm(cell, metric, arm string) (*analysis.ArmSummary, error) {
	a := f.results.Cell(cell).Metric(metric).Arm(arm)
	if a == nil || a.N == 0 {
		return nil, fmt.Errorf("the run has no %s of %s in %s", metric, arm, cell)
	}
	if len(a.Missing) > 0 {
		return nil, fmt.Errorf("%s of %s in %s is missing in some rounds", metric, arm, cell)
	}
	return a, nil
}

func (f *finished) ratio(cell, metric, arm string) (float64, error) {
	c := f.results.Cell(cell).Metric(metric).Against(arm)
	if c == nil {
		return 0, fmt.Errorf("the run does not compare %s of %s in %s", metric, arm, cell)
	}
	return float64(c.Ratio), nil
}

// pooled is the quantile of all samples of an arm.
func (f *finished) pooled(cell, metric, arm string) (float64, error) {
	a, err := f.arm(cell, metric, arm)
	if err != nil {
		return 0, err
	}
	if a.Pooled == nil {
		return 0, fmt.Errorf("the run has no pooled %s of %s in %s", metric, arm, cell)
	}
	return float64(*a.Pooled), nil
}

// sum adds up a metric of arms over cells.
func (f *finished) sum(cells []string, metric string, arms ...string) (total float64, err error) {
	for _, cell := range cells {
		for _, arm := range arms {
			a, err := f.arm(cell, metric, arm)
			if err != nil {
				return 0, err
			}
			total += float64(a.Sum)
		}
	}
	return total, nil
}

// unpassed counts the checks of these names that did not pass.
func (f *finished) unpassed(names ...string) (float64, error) {
	n, seen := 0, 0
	for _, c := range f.results.Checks {
		for _, name := range names {
			if c.Name == name {
				seen++
				if c.Verdict != check.Pass {
					n++
				}
			}
		}
	}
	if seen != len(names) {
		return 0, fmt.Errorf("the run has not each of the checks %s once", strings.Join(names, ", "))
	}
	return float64(n), nil
}

// trials counts the trials of an arm in a cell that ended well.
func (f *finished) trials(cell, arm string) (float64, error) {
	for _, t := range f.results.Trials {
		if t.Cell == cell && t.Arm == arm {
			return float64(t.Status[string(trial.StatusOK)]), nil
		}
	}
	return 0, fmt.Errorf("the run has no trials of %s in %s", arm, cell)
}

// broken counts the judged answers of gates that are anything but kept.
func (f *finished) broken(want func(rule string) bool) (float64, error) {
	n, seen := 0, 0
	for _, g := range f.verdict.Gates {
		if g.Judged && want(g.Rule) {
			seen++
			if g.State != gate.Holds {
				n++
			}
		}
	}
	if seen == 0 {
		return 0, errors.New("the run's verdict has no such gate")
	}
	return float64(n), nil
}

func minutes(f *finished) (float64, error) { return f.took.Minutes(), nil }
