package report

import (
	"encoding/json"
	"io"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
	"github.com/assaylab/assay/lab/trial"
)

type hyperfinePage struct {
	Results []hyperfineResult `json:"results"`
}

// hyperfineResult is what hyperfine writes for a command. Times are in
// seconds; user and system are means.
type hyperfineResult struct {
	Command    string            `json:"command"`
	Mean       analysis.Number   `json:"mean"`
	StdDev     analysis.Number   `json:"stddev"` // null for one round
	Median     analysis.Number   `json:"median"`
	User       analysis.Number   `json:"user"`
	System     analysis.Number   `json:"system"`
	Min        analysis.Number   `json:"min"`
	Max        analysis.Number   `json:"max"`
	Times      []float64         `json:"times"`
	Memory     []int64           `json:"memory_usage_byte,omitempty"` // where each trial had memory of its own
	ExitCodes  []int             `json:"exit_codes"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Hyperfine writes the wall clock of every arm in every cell, for scripts that
// read what hyperfine --export-json writes. There is nothing in it before
// every check has passed: those scripts compare means.
//
// The summaries are of the clock that every trial has, whether or not the
// protocol makes it a metric, so they are worked out here.
func Hyperfine(w io.Writer, s *Source) error {
	page := hyperfinePage{Results: []hyperfineResult{}}
	if s.Results.Clear {
		measured := s.measured()
		for _, c := range s.Run.Protocol.Cells() {
			for _, a := range s.Run.Protocol.Arms {
				var trials []*trial.Observation
				for _, o := range measured {
					if o.Cell == c.Name && o.Arm == a.Name && o.Status == trial.StatusOK {
						trials = append(trials, o)
					}
				}
				if len(trials) > 0 {
					page.Results = append(page.Results, hyperfineOf(c, a.Name, trials))
				}
			}
		}
	}
	b, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func hyperfineOf(c protocol.Cell, arm string, trials []*trial.Observation) hyperfineResult {
	r := hyperfineResult{Command: oneLine(arm)}
	if c.Name != protocol.NoFactors {
		// Plots label their axis with the command alone.
		r.Command += " " + oneLine(c.Name)
		r.Parameters = map[string]string{}
		for _, f := range c.Factors() {
			r.Parameters[f] = c.Level(f)
		}
	}
	var user, system []float64
	for _, o := range trials {
		r.Times = append(r.Times, o.Usage.Wall.Seconds())
		user, system = append(user, o.Usage.User.Seconds()), append(system, o.Usage.System.Seconds())
		r.ExitCodes = append(r.ExitCodes, o.Exit)
		if o.Usage.PeakMemory > 0 {
			r.Memory = append(r.Memory, o.Usage.PeakMemory)
		}
	}
	if len(r.Memory) < len(trials) {
		r.Memory = nil
	}
	wall := stats.Summarize(r.Times)
	n := func(x float64) analysis.Number { return analysis.Number(x) }
	r.Mean, r.StdDev, r.Median, r.Min, r.Max = n(wall.Mean), n(wall.SD), n(wall.Median), n(wall.Min), n(wall.Max)
	r.User, r.System = n(stats.MomentsOf(user).Mean), n(stats.MomentsOf(system).Mean)
	return r
}
