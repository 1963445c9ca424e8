package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
	"github.com/assaylab/assay/lab/trial"
)

// Value reads a metric from an observation. missing says why there is none.
// To add a metric source, add its word to the protocol and its case here.
func Value(m *protocol.Metric, o *trial.Observation, samples func(name string) ([]int64, error)) (v float64, missing string) {
	if m.Source == protocol.SourceExit {
		if o.Exit < 0 {
			return math.NaN(), "the trial has no exit status: " + string(o.Status)
		}
		return float64(o.Exit), ""
	}
	if o.Status != trial.StatusOK {
		return math.NaN(), "the trial ended with status " + string(o.Status)
	}
	scale := m.Scale()
	switch m.Source {
	case protocol.SourceWall:
		return o.Usage.Wall.Seconds() / scale, ""
	case protocol.SourceUser:
		return o.Usage.User.Seconds() / scale, ""
	case protocol.SourceSystem:
		return o.Usage.System.Seconds() / scale, ""
	case protocol.SourceCPU:
		return (o.Usage.User + o.Usage.System).Seconds() / scale, ""
	case protocol.SourcePeakMemory:
		if o.Usage.PeakMemory <= 0 {
			return math.NaN(), "peak memory is not the trial's own"
		}
		return float64(o.Usage.PeakMemory) / scale, ""
	case protocol.SourceSwitches:
		return float64(o.Usage.Switches), ""
	case protocol.SourceJSON:
		if v, ok := o.Values[m.Key]; ok {
			return v, ""
		}
		return math.NaN(), fmt.Sprintf("the arm reported no number under the key %q", m.Key)
	case protocol.SourceGoBench:
		if v, ok := o.Bench[m.Key+" "+m.Unit]; ok {
			return v, ""
		}
		return math.NaN(), fmt.Sprintf("no benchmark line %s with the unit %s", m.Key, m.Unit)
	case protocol.SourceSamples:
		s, err := samples(m.Key)
		if err != nil {
			return math.NaN(), err.Error()
		}
		if len(s) == 0 {
			return math.NaN(), fmt.Sprintf("the arm reported no samples %q", m.Key)
		}
		return stats.QuantileInt(s, *m.Quantile), ""
	}
	return math.NaN(), "unknown source " + m.Source
}

// armData is everything measured of an arm in a cell, rounds in order.
type armData struct {
	arm    string
	rounds []*trial.Observation // measured; nil where the trial did not run
}

// cellData is a cell's measured trials.
type cellData struct {
	cell    protocol.Cell
	arms    []armData
	run     *ledger.Run
	samples map[*trial.Observation]map[string][]int64 // sorted
}

func (c *cellData) arm(name string) *armData {
	for i := range c.arms {
		if c.arms[i].arm == name {
			return &c.arms[i]
		}
	}
	return nil
}

// sorted returns a trial's samples of a name in ascending order.
func (c *cellData) sorted(o *trial.Observation, name string) ([]int64, error) {
	if s, ok := c.samples[o][name]; ok {
		return s, nil
	}
	var all []int64
	for _, ref := range o.Samples {
		if ref.Name == name {
			s, err := c.run.Samples(ref)
			if err != nil {
				return nil, err
			}
			all = append(all, s...)
		}
	}
	slices.Sort(all)
	if c.samples[o] == nil {
		c.samples[o] = map[string][]int64{}
	}
	c.samples[o][name] = all
	return all, nil
}

// trials are the run's trials in the order of the schedule. A trial that the
// schedule does not have, or that stands there already, is a stray: no figure
// is read from it, and whoever finds one cannot trust the others.
func trials(run *ledger.Run, schedule []trial.Round) (planned, strays []*trial.Observation) {
	type place struct {
		cell   string
		round  int
		arm    string
		warmup bool
	}
	at := map[place]int{}
	for _, r := range schedule {
		for _, s := range r.Slots {
			at[place{s.Cell, s.Round, s.Arm, s.Warmup}] = len(at)
		}
	}
	planned = make([]*trial.Observation, len(at))
	for _, rec := range run.Records {
		o := rec.Trial
		if o == nil {
			continue
		}
		if i, ok := at[place{o.Cell, o.Round, o.Arm, o.Warmup}]; ok && planned[i] == nil {
			planned[i] = o
		} else {
			strays = append(strays, o)
		}
	}
	return slices.DeleteFunc(planned, func(o *trial.Observation) bool { return o == nil }), strays
}

// judgements are the results of the wider scopes in the order of the schedule.
func judgements(run *ledger.Run, schedule []trial.Round) []*ledger.Judgement {
	at := map[string]int{}
	for i, r := range schedule {
		if _, ok := at[r.Cell]; !ok {
			at[r.Cell] = i
		}
	}
	var all []*ledger.Judgement
	for _, rec := range run.Records {
		if rec.Check != nil {
			all = append(all, rec.Check)
		}
	}
	slices.SortStableFunc(all, func(a, b *ledger.Judgement) int {
		return cmp.Or(cmp.Compare(at[a.Cell], at[b.Cell]), cmp.Compare(a.Round, b.Round))
	})
	return all
}

// collect sorts measured trials by cell, arm and round.
func collect(run *ledger.Run, p *protocol.Protocol, planned []*trial.Observation) []*cellData {
	var cells []*cellData
	byName := map[string]*cellData{}
	for _, c := range p.Cells() {
		cd := &cellData{cell: c, run: run, samples: map[*trial.Observation]map[string][]int64{}}
		for _, a := range c.Arms {
			cd.arms = append(cd.arms, armData{arm: a, rounds: make([]*trial.Observation, c.Rounds)})
		}
		cells = append(cells, cd)
		byName[c.Name] = cd
	}
	for _, o := range planned {
		if !o.Warmup {
			cd := byName[o.Cell]
			cd.arm(o.Arm).rounds[o.Round-cd.cell.Warmup] = o
		}
	}
	return cells
}

// values reads a metric over the rounds of an arm; NaN where it is missing.
func (c *cellData) values(m *protocol.Metric, ad *armData) (vals []float64, missing map[string]int) {
	vals = make([]float64, len(ad.rounds))
	for i, o := range ad.rounds {
		why := ""
		if o == nil {
			vals[i], why = math.NaN(), "the trial did not run"
		} else {
			vals[i], why = Value(m, o, func(name string) ([]int64, error) { return c.sorted(o, name) })
			if why == "" && (math.IsNaN(vals[i]) || math.IsInf(vals[i], 0)) {
				vals[i], why = math.NaN(), "the value is not a finite number"
			}
		}
		if why != "" {
			if missing == nil {
				missing = map[string]int{}
			}
			missing[why]++
		}
	}
	return vals, missing
}

// rounds are the samples of an arm per round, for pooled quantiles; ok is false
// where a round has none.
func (c *cellData) rounds(name string, ad *armData) (out stats.Rounds, ok bool) {
	for _, o := range ad.rounds {
		if o == nil || o.Status != trial.StatusOK {
			return nil, false
		}
		s, err := c.sorted(o, name)
		if err != nil || len(s) == 0 {
			return nil, false
		}
		out = append(out, s)
	}
	return out, len(out) > 0
}

// sampleNames are the names of all bulk samples that the cell's arms reported.
func (c *cellData) sampleNames() []string {
	seen := map[string]bool{}
	for _, ad := range c.arms {
		for _, o := range ad.rounds {
			if o == nil {
				continue
			}
			for _, ref := range o.Samples {
				seen[ref.Name] = true
			}
		}
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
