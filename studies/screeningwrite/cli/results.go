package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/studies/screeningwrite"
)

// results is a finished run, looked at by cells and arms.
type results struct {
	o     *flow.Outcome
	cells []cell
}

// cell is one cell of the run in which trials were measured.
type cell struct {
	protocol.Cell
	target, regime string
	reviewers      int
	eligibility    bool
	arms           []armed
}

// armed is an arm in a cell.
type armed struct {
	name    string
	sums    map[string]float64 // of what the measured trials reported
	trials  map[string]int     // how many reported it
	largest float64
	sets    map[string]*analysis.SampleSet
}

// The arms as the protocol names them.
const (
	sourceOnly    = "source_only"
	fold          = "fold"
	transactional = "transactional"
)

// newResults refuses a run of another study, and one whose checks have not all passed:
// its figures do not count.
func newResults(o *flow.Outcome) (*results, error) {
	if !strings.HasPrefix(o.Run.Protocol.Name, screeningwrite.Name) {
		return nil, fmt.Errorf("it is a run of %s, not of %s", o.Run.Protocol.Name, screeningwrite.Name)
	}
	if !o.Results.Clear {
		return nil, errors.New("not all checks of the run have passed, so that no figure of it counts; see its report")
	}
	r := &results{o: o}
	for _, c := range o.Run.Protocol.Cells() {
		n, err := strconv.Atoi(c.Level("reviewers"))
		if err != nil {
			return nil, fmt.Errorf("cell %s: %w", c.Name, err)
		}
		k := cell{Cell: c, target: c.Level("target"), regime: c.Level("regime"), reviewers: n, eligibility: c.Level("eligibility") == "on"}
		for _, name := range c.Arms {
			k.arms = append(k.arms, r.arm(c.Name, name))
		}
		r.cells = append(r.cells, k)
	}
	return r, nil
}

func (r *results) arm(cell, name string) armed {
	a := armed{name: name, sums: map[string]float64{}, trials: map[string]int{}, sets: map[string]*analysis.SampleSet{}}
	for _, rec := range r.o.Run.Records {
		t := rec.Trial
		if t == nil || t.Warmup || t.Cell != cell || t.Arm != name {
			continue
		}
		for key, v := range t.Values {
			a.sums[key] += v
			a.trials[key]++
		}
		a.largest = max(a.largest, t.Values["largest_document"])
	}
	if c := r.o.Results.Cell(cell); c != nil {
		for i := range c.Samples {
			if c.Samples[i].Arm == name {
				a.sets[c.Samples[i].Name] = &c.Samples[i]
			}
		}
	}
	return a
}

func (c *cell) arm(name string) *armed {
	i := slices.IndexFunc(c.arms, func(a armed) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &c.arms[i]
}

// key is the cell's name as earlier measurements had it; what they did not have is
// added behind it.
func (c *cell) key() string {
	s := fmt.Sprintf("%s_%d_reviewers", c.target, c.reviewers)
	if c.regime != "free" {
		s += "_" + c.regime
	}
	if c.eligibility {
		s += "_eligibility"
	}
	return s
}

func suffix(arm string) string {
	if arm == transactional {
		return "materialized"
	}
	return arm
}

// quantile is the quantile of all samples of the arm in ms, NaN where there are none or
// not enough of them.
func (a *armed) quantile(samples string, q float64) float64 {
	if a != nil && a.sets[samples] != nil {
		for _, p := range a.sets[samples].Quantiles {
			if float64(p.Q) == q {
				return float64(p.V) / 1e6
			}
		}
	}
	return math.NaN()
}

// mean is the mean over the trials that reported it, NaN where none did.
func (a *armed) mean(key string) float64 {
	if a == nil || a.trials[key] == 0 {
		return math.NaN()
	}
	return a.sums[key] / float64(a.trials[key])
}

func (a *armed) commands() (total float64, counted bool) {
	return a.sums["commands"], a.trials["commands"] > 0
}

// byName are the commands by name, sorted.
func (a *armed) byName() []string {
	var names []string
	for key := range a.sums {
		if name, ok := strings.CutPrefix(key, "commands_"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// rule is what the verdict says of a rule in a cell, nil where it says nothing.
func (r *results) rule(name, cell string) *gate.RuleResult {
	for i := range r.o.Verdict.Gates {
		if g := &r.o.Verdict.Gates[i]; g.Rule == name && g.Cell == cell {
			return g
		}
	}
	return nil
}

// gateB is the answer of gate (b) in a cell of the matrix.
type gateB struct {
	latency string // PASS, FAIL, STRESS, or MISSING where there is no figure
	judged  bool   // latency is judged
	clean   bool   // no conflict and no exhaustion was caused by statistics
	known   bool   // whether it is clean
	pooled  *analysis.Pooled
}

func (g gateB) verdict() string {
	switch {
	case !g.known || g.latency == "MISSING":
		return "MISSING"
	case !g.clean:
		return "FAIL"
	}
	return g.latency
}

func (r *results) gateB(c *cell) gateB {
	g := gateB{latency: "MISSING", clean: true, known: true}
	for _, name := range []string{"no_statistics_conflicts", "no_statistics_exhaustion"} {
		rule := r.rule(name, c.Name)
		if rule == nil || rule.State == gate.Missing {
			g.known = false
		} else if rule.State != gate.Holds {
			g.clean = false
		}
	}
	for _, name := range []string{"fold_latency_different", "fold_latency_alone", "fold_latency_stress", "fold_latency_elsewhere"} {
		rule := r.rule(name, c.Name)
		if rule == nil {
			continue
		}
		g.judged = rule.Judged
		switch {
		case !rule.Judged:
			g.latency = "STRESS"
		case rule.State == gate.Holds:
			g.latency = "PASS"
		case rule.State == gate.Broken:
			g.latency = "FAIL"
		}
	}
	g.pooled = r.pooled(c.Name, fold)
	return g
}

// pooled is the comparison of the p95 of all submissions with the reference.
func (r *results) pooled(cell, arm string) *analysis.Pooled {
	if k := r.o.Results.Cell(cell).Metric("p95").Against(arm); k != nil {
		return k.Pooled
	}
	return nil
}
