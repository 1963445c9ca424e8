package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// pageCounts are the metrics that count work exactly: what may be quoted even
// from a loaded machine, and so what is shown ahead of any timing.
type pageCounts struct {
	About, CellHead string
	Arms            []string
	Rows            []pageCount
	Zero            []string // metrics that are zero wherever they were counted
	More            string
}

type pageCount struct {
	Metric, Cell string
	First        bool // the row that names the metric
	Arms         []pageWork
}

// pageWork is what one arm did; the zero pageWork has no figures.
type pageWork struct{ Total, PerRound, Change string }

func newPageCounts(s *Source, names *cellNames) *pageCounts {
	v := &pageCounts{CellHead: names.head}
	for _, a := range s.Run.Protocol.Arms {
		v.Arms = append(v.Arms, a.Name)
	}
	rest := 0
	for i := range s.Run.Protocol.Metrics {
		m := &s.Run.Protocol.Metrics[i]
		if !m.Count {
			continue
		}
		if zero, silent := zeroEverywhere(s, m); zero {
			name := m.Name
			if silent > 0 {
				name += " (no value in " + counted(silent, "cell") + ")"
			}
			v.Zero = append(v.Zero, name)
			continue
		}
		first := len(v.Rows)
		for j := range s.Results.Cells {
			cell := &s.Results.Cells[j]
			if len(v.Rows) >= pageRows {
				rest++
				continue
			}
			row := pageCount{Metric: m.Name, Cell: names.of(cell.Name), First: len(v.Rows) == first}
			for _, arm := range v.Arms {
				row.Arms = append(row.Arms, newPageWork(cell, m, arm))
			}
			v.Rows = append(v.Rows, row)
		}
	}
	if len(v.Rows)+len(v.Zero) == 0 {
		return nil
	}
	counts := 0
	for i := range s.Run.Protocol.Metrics {
		if s.Run.Protocol.Metrics[i].Count {
			counts++
		}
	}
	v.About = counted(counts, "metric") + " that may be quoted from any machine"
	v.More = leftOut(rest, "row")
	return v
}

// zeroEverywhere says whether every arm counted zero in every round of every cell,
// but for cells in which nobody counted: a line each would say nothing more.
func zeroEverywhere(s *Source, m *protocol.Metric) (zero bool, silent int) {
	for i := range s.Results.Cells {
		cm := s.Results.Cells[i].Metric(m.Name)
		if valueless(cm) {
			silent++
			continue
		}
		for k := range cm.Arms {
			if a := &cm.Arms[k]; a.N < max(len(a.Values), 1) || a.Min != 0 || a.Max != 0 {
				return false, 0
			}
		}
		zero = true
	}
	return zero, silent
}

func newPageWork(cell *analysis.Cell, m *protocol.Metric, arm string) pageWork {
	cm := cell.Metric(m.Name)
	a := cm.Arm(arm)
	if a == nil {
		return pageWork{}
	}
	w := pageWork{Total: withUnit(float64(a.Sum), m.Unit), PerRound: num(float64(a.Min)) + " … " + num(float64(a.Max)) + " per round"}
	switch {
	case a.N == 0:
		w.Total, w.PerRound = none, "no value"
	case a.N == 1 && len(a.Values) == 1:
		w.PerRound = "" // which is the total
	case a.Min == 0 && a.Max == 0:
		w.PerRound = ""
	case a.Min == a.Max:
		w.PerRound = num(float64(a.Min)) + " in every round"
	}
	if a.N > 0 && a.N < len(a.Values) {
		w.PerRound = strings.TrimPrefix(w.PerRound+fmt.Sprintf(", in %d of %d rounds", a.N, len(a.Values)), ", ")
	}
	if c := cm.Against(arm); c != nil && a.N > 0 && !(a.Sum == 0 && c.Diff == 0) {
		f := figure{metric: m, ref: &cm.Arms[0], treat: a, cmp: c}
		w.Change = strings.TrimSpace(f.change() + " " + f.towards())
	}
	return w
}

// pageTrials is how the trials ended, and what the system counted of them.
type pageTrials struct {
	CellHead string
	Statuses []string
	Usage    bool // figures may be shown
	Summary  string
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

func newPageTrials(s *Source, names *cellNames) *pageTrials {
	v := &pageTrials{CellHead: names.head, Usage: len(withheld(s)) == 0}
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
	ran, ok := 0, 0
	for i, t := range s.Results.Trials {
		for _, n := range t.Status {
			ran += n
		}
		ok += t.Status[string(trial.StatusOK)]
		if t.Example != "" {
			v.Failures = append(v.Failures, "arm "+t.Arm+", cell "+names.of(t.Cell)+", "+t.Example)
		}
		if i >= pageRows {
			continue
		}
		row := pageTrial{Cell: names.of(t.Cell), Arm: t.Arm, Planned: t.Planned, Warmup: t.Warmup}
		for _, st := range v.Statuses {
			row.Ended = append(row.Ended, strconv.Itoa(t.Status[st]))
		}
		u := used[[2]string{t.Cell, t.Arm}]
		row.User, row.System = withUnit(u.User.Seconds(), "s"), withUnit(u.System.Seconds(), "s")
		row.Switches, row.Faults = num(float64(u.Switches)), num(float64(u.Faults))
		v.Rows = append(v.Rows, row)
	}
	v.Summary = fmt.Sprintf("%s measured, %s ended well", counted(ran, "trial"), thousands(strconv.Itoa(ok)))
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
		u.Switches += o.Usage.Switches
		u.Faults += o.Usage.Faults
		all[k] = u
	}
	return all
}
