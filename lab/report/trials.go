package report

import (
	"slices"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// sampler reads the samples of one trial after the other. It keeps those of
// the last trial only: metrics share them, trials do not.
type sampler struct {
	s      *Source
	of     *trial.Observation
	sorted map[string][]int64
}

// value is the metric of the trial as the analysis reads it.
func (l *sampler) value(m *protocol.Metric, o *trial.Observation) (v float64, missing string) {
	if l.of != o {
		l.of, l.sorted = o, map[string][]int64{}
	}
	return analysis.Value(m, o, l.samples)
}

func (l *sampler) samples(name string) ([]int64, error) {
	if s, ok := l.sorted[name]; ok {
		return s, nil
	}
	var all []int64
	for _, ref := range l.of.Samples {
		if ref.Name != name {
			continue
		}
		part, err := l.s.Run.Samples(ref)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	slices.Sort(all)
	l.sorted[name] = all
	return all, nil
}

// trials are the recorded ones, in the order in which they ran.
func (s *Source) trials() []*trial.Observation {
	var all []*trial.Observation
	for _, rec := range s.Run.Records {
		if rec.Trial != nil {
			all = append(all, rec.Trial)
		}
	}
	return all
}

// measured are the trials that the analysis reads: those of measured rounds, in
// the order of the rounds, and within a round in the order of the protocol's
// arms. Where a trial ran again after a stop, the later one counts. Trials that
// did not end well are among them.
func (s *Source) measured() []*trial.Observation {
	type place struct {
		cell  string
		round int
		arm   string
	}
	last := map[place]*trial.Observation{}
	for _, o := range s.trials() {
		if !o.Warmup {
			last[place{o.Cell, o.Round, o.Arm}] = o
		}
	}
	var all []*trial.Observation
	for _, r := range trial.Schedule(s.Run.Protocol) {
		if r.Warmup {
			continue
		}
		for _, a := range s.Run.Protocol.Arms {
			if o := last[place{r.Cell, r.Round, a.Name}]; o != nil {
				all = append(all, o)
			}
		}
	}
	return all
}
