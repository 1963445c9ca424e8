package report

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/trial"
)

// pageCounts are the metrics that count work exactly: what may be quoted even
// from a loaded machine, and so what is shown ahead of any timing.
type pageCounts struct {
	Rows []pageCount
	More string
}

type pageCount struct {
	Metric, Cell, Arm string
	N                 int
	Total, PerRound   string
	Diff, Towards     string
}

func newPageCounts(s *Source) *pageCounts {
	v := &pageCounts{}
	rest := 0
	for i := range s.Run.Protocol.Metrics {
		m := &s.Run.Protocol.Metrics[i]
		if !m.Count {
			continue
		}
		for j := range s.Results.Cells {
			cell := &s.Results.Cells[j]
			cm := cell.Metric(m.Name)
			if cm == nil {
				continue
			}
			if len(v.Rows) >= pageRows {
				rest += len(cm.Arms)
				continue
			}
			for k := range cm.Arms {
				a := &cm.Arms[k]
				row := pageCount{
					Metric: m.Name, Cell: cell.Name, Arm: a.Arm, N: a.N, Total: withUnit(float64(a.Sum), m.Unit),
					PerRound: num(float64(a.Min)) + " to " + num(float64(a.Max)), Diff: "reference",
				}
				if a.Min == a.Max {
					row.PerRound = num(float64(a.Min)) + " in every one"
				}
				if k > 0 {
					f := figure{metric: m, ref: &cm.Arms[0], treat: a, cmp: orNoComparison(cm.Against(a.Arm))}
					row.Diff, row.Towards = f.change(), f.towards()
				}
				v.Rows = append(v.Rows, row)
			}
		}
	}
	if len(v.Rows) == 0 {
		return nil
	}
	v.More = leftOut(rest, "row")
	return v
}

// pageTrials is how the trials ended, and what the system counted of them.
type pageTrials struct {
	Statuses []string
	Usage    bool // figures may be shown
	Rows     []pageTrial
	More     string
	Failures []string
}

type pageTrial struct {
	Cell, Arm        string
	Planned, Warmup  int
	Ended            []string // per status
	User, System     string
	Switches, Faults string
}

func newPageTrials(s *Source) *pageTrials {
	v := &pageTrials{Usage: len(withheld(s)) == 0}
	seen := map[string]bool{}
	for _, t := range s.Results.Trials {
		for status := range t.Status {
			seen[status] = true
		}
	}
	delete(seen, string(trial.StatusOK))
	v.Statuses = append([]string{string(trial.StatusOK)}, slices.Sorted(maps.Keys(seen))...)
	used := map[[2]string]trial.Usage{}
	if v.Usage {
		used = usage(s.Run)
	}
	for i, t := range s.Results.Trials {
		if t.Example != "" {
			v.Failures = append(v.Failures, "arm "+t.Arm+", cell "+t.Cell+", "+t.Example)
		}
		if i >= pageRows {
			continue
		}
		row := pageTrial{Cell: t.Cell, Arm: t.Arm, Planned: t.Planned, Warmup: t.Warmup}
		for _, st := range v.Statuses {
			row.Ended = append(row.Ended, strconv.Itoa(t.Status[st]))
		}
		u := used[[2]string{t.Cell, t.Arm}]
		row.User, row.System = withUnit(u.User.Seconds(), "s"), withUnit(u.System.Seconds(), "s")
		row.Switches, row.Faults = num(float64(u.Switches)), num(float64(u.Faults))
		v.Rows = append(v.Rows, row)
	}
	v.Failures = firstOf(v.Failures, pageItems)
	v.More = leftOut(len(s.Results.Trials)-pageRows, "row")
	return v
}

// usage adds up what the system counted in the measured trials of each cell
// and arm.
func usage(run *ledger.Run) map[[2]string]trial.Usage {
	all := map[[2]string]trial.Usage{}
	for i := range run.Records {
		o := run.Records[i].Trial
		if o == nil || o.Warmup {
			continue
		}
		k := [2]string{o.Cell, o.Arm}
		u := all[k]
		u.User += o.Usage.User
		u.System += o.Usage.System
		u.Wall += max(o.Usage.Wall, time.Duration(0))
		u.Switches += o.Usage.Switches
		u.Faults += o.Usage.Faults
		all[k] = u
	}
	return all
}
