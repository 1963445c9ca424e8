// Package analysis turns a ledger into results: which checks passed, and, only
// if all did, what each metric was in each cell and how the arms compare.
//
// It computes and must never know what a rule asks: no threshold is looked at
// here. It is a function of the run folder alone, so that the same folder gives
// the same bytes on every machine and at any time.
package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
)

// SchemaVersion is the version of results.json.
const SchemaVersion = 1

// Number is a float64 that JSON can carry whatever its value: NaN is null, and
// the infinities are text.
type Number float64

// MarshalJSON writes the shortest form that reads back as the same value.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	switch {
	case math.IsNaN(f):
		return []byte("null"), nil
	case math.IsInf(f, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-inf"`), nil
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(b []byte) error {
	switch s := string(b); s {
	case "null":
		*n = Number(math.NaN())
	case `"inf"`:
		*n = Number(math.Inf(1))
	case `"-inf"`:
		*n = Number(math.Inf(-1))
	default:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("not a number: %s", s)
		}
		*n = Number(f)
	}
	return nil
}

// Interval is a two-sided interval.
type Interval struct {
	Low   Number `json:"low"`
	High  Number `json:"high"`
	Level Number `json:"level"`
}

func interval(i stats.Interval) *Interval {
	return &Interval{Number(i.Lower), Number(i.Upper), Number(i.Level)}
}

// Results is everything that is computed from a run.
type Results struct {
	Schema      int      `json:"schema"`
	Name        string   `json:"name"`
	Question    string   `json:"question"`
	Lock        string   `json:"lock"` // digest
	Version     int      `json:"version"`
	Exploratory []string `json:"exploratory,omitempty"` // why it decides nothing
	Complete    bool     `json:"complete"`
	Missing     []string `json:"missing,omitempty"` // what did not run

	Trials []TrialCount   `json:"trials"`
	Checks []check.Result `json:"checks"` // one per declared check, merged, and "completed"
	Clear  bool           `json:"clear"`  // every check passed; without it there is nothing below but the host

	Cells   []Cell   `json:"cells,omitempty"`
	Primary *Primary `json:"primary,omitempty"`

	Host Host `json:"host"`

	Note string `json:"note,omitempty"`
}

// TrialCount counts how the trials of an arm in a cell ended, warm-up apart.
type TrialCount struct {
	Cell    string         `json:"cell"`
	Arm     string         `json:"arm"`
	Planned int            `json:"planned"`
	Warmup  int            `json:"warmup"`
	Status  map[string]int `json:"status"`            // of the measured trials
	Example string         `json:"example,omitempty"` // what the first failure said
}

// Cell is one combination of factor levels.
type Cell struct {
	Name    string       `json:"name"`
	Class   string       `json:"class"`
	Rounds  int          `json:"rounds"`
	Metrics []CellMetric `json:"metrics"`
	Samples []SampleSet  `json:"samples,omitempty"`
}

// CellMetric is one metric in one cell.
type CellMetric struct {
	Metric      string       `json:"metric"`
	Unit        string       `json:"unit"`
	Arms        []ArmSummary `json:"arms"`
	Comparisons []Comparison `json:"comparisons,omitempty"` // each other arm with the reference
}

// ArmSummary describes an arm's rounds.
type ArmSummary struct {
	Arm     string         `json:"arm"`
	N       int            `json:"n"`
	Mean    Number         `json:"mean"`
	SD      Number         `json:"sd"`
	Median  Number         `json:"median"`
	Min     Number         `json:"min"`
	Max     Number         `json:"max"`
	Sum     Number         `json:"sum"`
	Drift   *Drift         `json:"drift,omitempty"`
	Pooled  *Number        `json:"pooled,omitempty"` // quantile of all samples of all rounds
	Missing map[string]int `json:"missing,omitempty"`
	Values  []Number       `json:"values"` // per measured round in order; null where missing
}

// Drift is the trend of an arm's values over the rounds.
type Drift struct {
	PerRound Number `json:"per_round"`
	P        Number `json:"p"`
}

// Comparison is one arm against the reference. Differences are arm minus
// reference; a ratio is arm over reference.
type Comparison struct {
	Arm         string    `json:"arm"`
	N           int       `json:"n"` // rounds in which both have a value
	Diff        Number    `json:"diff"`
	DiffCI      *Interval `json:"diff_ci,omitempty"` // paired
	Change      Number    `json:"change"`            // diff over the reference's mean
	Ratio       Number    `json:"ratio"`             // of the means, where the reference's is positive
	RatioCI     *Interval `json:"ratio_ci,omitempty"`
	Better      bool      `json:"better"` // the direction only
	Worse       bool      `json:"worse"`
	Paired      *TTest    `json:"paired,omitempty"`
	Welch       *TTest    `json:"welch,omitempty"`
	MannWhitney *RankTest `json:"mann_whitney,omitempty"`
	D           Number    `json:"d"`        // Cohen's, pooled
	G           Number    `json:"hedges_g"` // d corrected for small samples
	Dz          Number    `json:"dz"`       // of the paired differences
	Shift       *Shift    `json:"hodges_lehmann,omitempty"`
	Order       *TTest    `json:"order_effect,omitempty"` // does it matter who went first
	Pooled      *Pooled   `json:"pooled,omitempty"`
	Notes       []string  `json:"notes,omitempty"`

	// Contradiction says why the means cannot be relied on: they point one way
	// and the paired test, significantly, another.
	Contradiction string `json:"contradiction,omitempty"`
}

// TTest is a two-sided t test.
type TTest struct {
	T    Number   `json:"t"`
	DF   Number   `json:"df"`
	P    Number   `json:"p"`
	Diff Number   `json:"diff"`
	CI   Interval `json:"ci"`
}

// RankTest is a two-sided Mann-Whitney test.
type RankTest struct {
	U     Number `json:"u"`
	P     Number `json:"p"`
	Exact bool   `json:"exact"`
}

// Shift is the Hodges-Lehmann estimate.
type Shift struct {
	Estimate Number   `json:"estimate"`
	CI       Interval `json:"ci"`
}

// Pooled compares a quantile of all samples, with bootstrap intervals over
// rounds.
type Pooled struct {
	Ref     Number   `json:"ref"`
	Treat   Number   `json:"treat"`
	Diff    Number   `json:"diff"`
	DiffCI  Interval `json:"diff_ci"`
	Ratio   Number   `json:"ratio"`
	RatioCI Interval `json:"ratio_ci"`
}

// SampleSet summarises an arm's bulk samples of one name, warm-up left out.
type SampleSet struct {
	Name      string     `json:"name"`
	Arm       string     `json:"arm"`
	Count     int        `json:"count"`
	Min       Number     `json:"min"`
	Max       Number     `json:"max"`
	Mean      Number     `json:"mean"`
	Quantiles []Quantile `json:"quantiles"`
}

// Quantile is one point of a distribution.
type Quantile struct {
	Q Number `json:"q"`
	V Number `json:"v"`
}

// Primary is the confirmatory family and what the decision sees of it.
type Primary struct {
	Metric    string        `json:"metric"`
	Treatment string        `json:"treatment"`
	Test      string        `json:"test"`
	Alpha     Number        `json:"alpha"`
	Cells     []PrimaryCell `json:"cells"`
	Weakest   string        `json:"weakest"` // the cell that speaks for the family
	Power     *PowerNote    `json:"power,omitempty"`
}

// PrimaryCell is one member of the confirmatory family.
type PrimaryCell struct {
	Cell      string   `json:"cell"`
	P         Number   `json:"p"`
	AdjustedP Number   `json:"adjusted_p"` // by Holm
	Diff      Number   `json:"diff"`       // the test's own estimate, which CI encloses
	CI        Interval `json:"ci"`
	Better    bool     `json:"better"` // the test's estimate and the means agree on it
	Worse     bool     `json:"worse"`  // either says so
	N         int      `json:"n"`
	Missing   string   `json:"missing,omitempty"` // why there is no p
}

// PowerNote says what a null result is worth.
type PowerNote struct {
	Detectable Number `json:"detectable"` // smallest standardised effect found with power 0.8
	Scale      string `json:"scale"`      // d or dz
}

// Host is what the probes said about the run.
type Host struct {
	Worst    string        `json:"worst,omitempty"` // block, provisional, warn or empty
	Breaches []HostBreach  `json:"breaches,omitempty"`
	Probes   []HostSummary `json:"probes,omitempty"`
}

// HostBreach is a limit that was broken, and how often.
type HostBreach struct {
	Probe  string `json:"probe"`
	Action string `json:"action"`
	Times  int    `json:"times"`
	First  string `json:"first"` // the first one in words
}

// HostSummary is the range of a probe's readings over the run.
type HostSummary struct {
	Probe       string `json:"probe"`
	Unit        string `json:"unit"`
	Readings    int    `json:"readings"`
	Unavailable int    `json:"unavailable"`
	Min         Number `json:"min"`
	Max         Number `json:"max"`
	Detail      string `json:"detail,omitempty"`
}

// Cell returns the cell of that name, nil if there is none.
func (r *Results) Cell(name string) *Cell {
	for i := range r.Cells {
		if r.Cells[i].Name == name {
			return &r.Cells[i]
		}
	}
	return nil
}

// Metric returns the metric of that name, nil if there is none.
func (c *Cell) Metric(name string) *CellMetric {
	if c == nil {
		return nil
	}
	for i := range c.Metrics {
		if c.Metrics[i].Metric == name {
			return &c.Metrics[i]
		}
	}
	return nil
}

// Arm returns the arm's summary, nil if there is none.
func (m *CellMetric) Arm(name string) *ArmSummary {
	if m == nil {
		return nil
	}
	for i := range m.Arms {
		if m.Arms[i].Arm == name {
			return &m.Arms[i]
		}
	}
	return nil
}

// Against returns the comparison of the arm with the reference, nil if there
// is none.
func (m *CellMetric) Against(arm string) *Comparison {
	if m == nil {
		return nil
	}
	for i := range m.Comparisons {
		if m.Comparisons[i].Arm == arm {
			return &m.Comparisons[i]
		}
	}
	return nil
}

// Bytes is results.json.
func (r *Results) Bytes() []byte {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		panic("analysis: " + err.Error())
	}
	return append(b, '\n')
}

// worseAction orders what follows from a broken limit.
func worseAction(a, b string) string {
	order := []string{"", protocol.ActionWarn, protocol.ActionProvisional, protocol.ActionBlock}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}
