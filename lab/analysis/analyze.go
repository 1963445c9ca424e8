package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
	"github.com/assaylab/assay/lab/trial"
)

// CompletedCheck is the check that every run has: that each trial that should
// have run did, and ended well. An arm that fails is never a figure.
const CompletedCheck = "completed"

// Resamples of the bootstraps. Enough for two stable digits of an interval's
// end, and few enough for a million samples in a second.
const (
	ratioResamples  = 2000
	pooledResamples = 1000
)

// detectPower is the power at which the report says what the plan could find.
const detectPower = 0.8

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
	cells := collect(run, p)
	r.countTrials(run, p, cells)
	clearance := r.judgeChecks(run, p)
	r.summariseHost(run, p)
	r.compare(clearance, p, cells)
	return r
}

func (r *Results) countTrials(run *ledger.Run, p *protocol.Protocol, cells []*cellData) {
	warm := map[[2]string]int{}
	for _, rec := range run.Records {
		if rec.Trial != nil && rec.Trial.Warmup {
			warm[[2]string{rec.Trial.Cell, rec.Trial.Arm}]++
		}
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
				r.Complete = false
				r.Missing = append(r.Missing, fmt.Sprintf("cell %s, arm %s: %d of %d rounds ran", cd.cell.Name, ad.arm, ran, tc.Planned))
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
		s = s[:most] + "…"
	}
	return s
}

// judgeChecks merges what the checks said. For every trial, round and cell that
// a check covers there must be a result: one that is not there is unchecked.
func (r *Results) judgeChecks(run *ledger.Run, p *protocol.Protocol) check.Clearance {
	var results []check.Result
	seen := map[string]bool{}
	key := func(name, scope, cell string, round int, arm string) string {
		return fmt.Sprintf("%s\x00%s\x00%s\x00%d\x00%s", name, scope, cell, round, arm)
	}
	completed := check.Result{Name: CompletedCheck, Verdict: check.Pass}
	for _, rec := range run.Records {
		switch {
		case rec.Trial != nil:
			o := rec.Trial
			completed.Operations++
			if o.Status != trial.StatusOK {
				completed.Verdict = check.Unknown
				if len(completed.Examples) < 3 {
					completed.Examples = append(completed.Examples, fmt.Sprintf("arm %s, cell %s, %s", o.Arm, o.Cell, explain(o)))
				}
			}
			for _, c := range o.Checks {
				if decl := p.Check(c.Name); decl == nil || decl.Scope != protocol.ScopeTrial {
					// An arm may report more than was declared; a failure counts anyway.
					if c.Verdict == check.Fail {
						results = append(results, c)
					}
					continue
				}
				seen[key(c.Name, protocol.ScopeTrial, o.Cell, o.Round, o.Arm)] = true
				results = append(results, c)
			}
		case rec.Check != nil:
			j := rec.Check
			seen[key(j.Result.Name, j.Scope, j.Cell, j.Round, "")] = true
			results = append(results, j.Result)
		}
	}
	if completed.Verdict != check.Pass {
		completed.Message = r.failedTrials()
	}
	if completed.Operations == 0 {
		completed.Verdict, completed.Message = check.Unknown, "no trial ran"
	}
	results = append(results, completed)

	unchecked := func(c *protocol.Check, format string, args ...any) {
		results = append(results, check.Result{Name: c.Name, Message: "not checked: " + fmt.Sprintf(format, args...)})
	}
	for i := range p.Checks {
		c := &p.Checks[i]
		if c.Scope == protocol.ScopeRun {
			if !seen[key(c.Name, c.Scope, "", 0, "")] {
				unchecked(c, "the run")
			}
			continue
		}
		for _, round := range trial.Schedule(p) {
			cell, _ := p.Cell(round.Cell)
			switch {
			case !c.Cells.Match(cell):
			case c.Scope == protocol.ScopeCell:
				if last := cell.Warmup + cell.Rounds - 1; round.Round == last && !seen[key(c.Name, c.Scope, cell.Name, 0, "")] {
					unchecked(c, "cell %s", cell.Name)
				}
			case c.Scope == protocol.ScopeRound:
				if !seen[key(c.Name, c.Scope, cell.Name, round.Round, "")] {
					unchecked(c, "cell %s, round %d", cell.Name, round.Round)
				}
			default:
				for _, s := range round.Slots {
					if c.Covers(s.Arm, cell) && !seen[key(c.Name, c.Scope, cell.Name, round.Round, s.Arm)] {
						unchecked(c, "cell %s, round %d, arm %s", cell.Name, round.Round, s.Arm)
					}
				}
			}
		}
	}
	required := []string{CompletedCheck}
	for _, c := range p.Checks {
		required = append(required, c.Name)
	}
	clearance, merged := check.Clear(required, results)
	r.Checks = merged
	for _, res := range results {
		if !slices.Contains(required, res.Name) && res.Verdict == check.Fail {
			r.Checks = append(r.Checks, res)
		}
	}
	r.Clear = clearance.Valid()
	return clearance
}

func (r *Results) failedTrials() string {
	s := ""
	for _, t := range r.Trials {
		bad := 0
		for st, n := range t.Status {
			if st != string(trial.StatusOK) {
				bad += n
			}
		}
		if bad > 0 {
			if s != "" {
				s += "; "
			}
			s += fmt.Sprintf("arm %s failed in %d of %d rounds of cell %s", t.Arm, bad, t.Planned, t.Cell)
		}
	}
	if s == "" {
		return "a warm-up trial failed"
	}
	return s
}

// compare fills in the figures. It takes the clearance, so that no effect can
// be computed for a run whose checks have not all passed.
func (r *Results) compare(c check.Clearance, p *protocol.Protocol, cells []*cellData) {
	if !c.Valid() {
		r.Note = "Figures are withheld: no effect is computed before every check has passed. The raw data is in the ledger."
		return
	}
	level := 1 - p.Primary.Alpha
	for _, cd := range cells {
		cell := Cell{Name: cd.cell.Name, Class: cd.cell.Class, Rounds: cd.cell.Rounds}
		pooled := poolQuantiles(cd, p, level)
		for i := range p.Metrics {
			cell.Metrics = append(cell.Metrics, compareMetric(cd, p, &p.Metrics[i], level, pooled))
		}
		cell.Samples = summariseSamples(cd)
		r.Cells = append(r.Cells, cell)
		cd.samples = map[*trial.Observation]map[string][]int64{}
	}
	r.family(p)
}

func compareMetric(cd *cellData, p *protocol.Protocol, m *protocol.Metric, level float64, pooled map[pooledKey]stats.QuantileEffect) CellMetric {
	cm := CellMetric{Metric: m.Name, Unit: m.Unit}
	var ref []float64
	for i := range cd.arms {
		ad := &cd.arms[i]
		vals, missing := cd.values(m, ad)
		present := slices.DeleteFunc(slices.Clone(vals), math.IsNaN)
		s := stats.Summarize(present)
		sum := ArmSummary{
			Arm: ad.arm, N: s.N, Mean: Number(s.Mean), SD: Number(s.SD), Median: Number(s.Median), Min: Number(s.Min), Max: Number(s.Max),
			Sum: Number(sumOf(present)), Missing: missing,
		}
		for _, v := range vals {
			sum.Values = append(sum.Values, Number(v))
		}
		if missing == nil {
			if slope, pv, err := stats.Drift(vals); err == nil {
				sum.Drift = &Drift{Number(slope), Number(pv)}
			}
		}
		if i == 0 {
			ref = vals
		} else {
			cmp := compareArms(cd, m, &cd.arms[0], ad, ref, vals, level, p.Design.Seed)
			if e, ok := pooled[pooledKey{ad.arm, m.Name}]; ok {
				cmp.Pooled = &Pooled{
					Ref: Number(e.Ref), Treat: Number(e.Treat), Diff: Number(e.Diff), DiffCI: *interval(e.DiffCI),
					Ratio: Number(e.Ratio), RatioCI: *interval(e.RatioCI),
				}
				refPooled, treatPooled := Number(e.Ref), Number(e.Treat)
				cm.Arms[0].Pooled, sum.Pooled = &refPooled, &treatPooled
			}
			cm.Comparisons = append(cm.Comparisons, cmp)
		}
		cm.Arms = append(cm.Arms, sum)
	}
	return cm
}

func sumOf(xs []float64) float64 {
	s := 0.0
	for _, x := range xs {
		s += x
	}
	return s
}

// compareArms compares an arm with the reference over the rounds in which both
// have a value. What a test cannot say becomes a note.
func compareArms(cd *cellData, m *protocol.Metric, refArm, arm *armData, refVals, vals []float64, level float64, seed uint64) Comparison {
	c := Comparison{Arm: arm.arm, Diff: nan, Change: nan, Ratio: nan, D: nan, G: nan, Dz: nan}
	var ref, treat []float64
	var refSlot, slot []int
	for i := range vals {
		if math.IsNaN(vals[i]) || math.IsNaN(refVals[i]) {
			continue
		}
		ref, treat = append(ref, refVals[i]), append(treat, vals[i])
		refSlot, slot = append(refSlot, refArm.rounds[i].Slot), append(slot, arm.rounds[i].Slot)
	}
	c.N = len(ref)
	if gap := len(vals) - c.N; gap > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of %d rounds lack a value", gap, len(vals)))
	}
	if c.N == 0 {
		return c
	}
	note := func(what string, notes []string, err error) bool {
		if err != nil {
			c.Notes = append(c.Notes, what+": "+err.Error())
			return false
		}
		for _, n := range notes {
			if !slices.Contains(c.Notes, n) {
				c.Notes = append(c.Notes, n)
			}
		}
		return true
	}
	rm, tm := stats.MomentsOf(ref), stats.MomentsOf(treat)
	c.Diff = Number(tm.Mean - rm.Mean)
	if rm.Mean != 0 {
		c.Change, c.Ratio = c.Diff/Number(math.Abs(rm.Mean)), Number(tm.Mean/rm.Mean)
	}
	gain := float64(c.Diff)
	if m.Better == "lower" {
		gain = -gain
	}
	c.Better, c.Worse = gain > 0, gain < 0
	if c.N < 2 {
		c.Notes = append(c.Notes, "one round only: no test")
		return c
	}
	if t, err := stats.PairedSlots(ref, treat, refSlot, slot, level); note("paired t", t.Notes, err) {
		c.Paired, c.DiffCI = tTest(t), interval(t.CI)
	}
	if t, err := stats.Welch(rm, tm, level); note("Welch t", t.Notes, err) {
		c.Welch = tTest(t)
	}
	if t, err := stats.MannWhitney(ref, treat); note("Mann-Whitney", t.Notes, err) {
		c.MannWhitney = &RankTest{Number(t.U), Number(t.P), t.Exact}
	}
	if s, err := stats.HodgesLehmann(ref, treat, level); note("Hodges-Lehmann", s.Notes, err) {
		c.Shift = &Shift{Number(s.Estimate), *interval(s.CI)}
	}
	c.D, c.G, c.Dz = Number(stats.CohenD(rm, tm)), Number(stats.HedgesG(rm, tm)), Number(stats.PairedDz(ref, treat))
	if est, ci, err := stats.BootstrapMeanRatio(ref, treat, level, ratioResamples, seed); err == nil {
		c.Ratio, c.RatioCI = Number(est), interval(ci)
	}
	diffs, first := make([]float64, c.N), make([]bool, c.N)
	for i := range diffs {
		diffs[i], first[i] = treat[i]-ref[i], slot[i] < refSlot[i]
	}
	if t, err := stats.OrderEffect(diffs, first, level); err == nil {
		c.Order = tTest(t)
	}
	return c
}

var nan = Number(math.NaN())

func tTest(t stats.TTest) *TTest {
	return &TTest{T: Number(t.T), DF: Number(t.DF), P: Number(t.P), Diff: Number(t.Diff), CI: *interval(t.CI)}
}

type pooledKey struct{ arm, metric string }

// poolQuantiles bootstraps the quantiles of all sample metrics, once per arm
// and set of samples, since metrics usually share them.
func poolQuantiles(cd *cellData, p *protocol.Protocol, level float64) map[pooledKey]stats.QuantileEffect {
	out := map[pooledKey]stats.QuantileEffect{}
	byKey := map[string][]*protocol.Metric{}
	for i := range p.Metrics {
		if m := &p.Metrics[i]; m.Source == protocol.SourceSamples {
			byKey[m.Key] = append(byKey[m.Key], m)
		}
	}
	for name, metrics := range byKey {
		ref, ok := cd.rounds(name, &cd.arms[0])
		if !ok {
			continue
		}
		qs := make([]float64, len(metrics))
		for i, m := range metrics {
			qs[i] = *m.Quantile
		}
		for i := range cd.arms[1:] {
			ad := &cd.arms[i+1]
			treat, ok := cd.rounds(name, ad)
			if !ok {
				continue
			}
			effects, err := stats.BootstrapQuantiles(ref, treat, qs, level, pooledResamples, p.Design.Seed)
			if err != nil {
				continue
			}
			for j, m := range metrics {
				out[pooledKey{ad.arm, m.Name}] = effects[j]
			}
		}
	}
	return out
}

// family gathers the confirmatory comparisons, corrects them by Holm and picks
// the cell that speaks for them: one that is significantly worse if there is
// any, else the one with the largest p.
func (r *Results) family(p *protocol.Protocol) {
	q := p.Primary
	m := p.Metric(q.Metric)
	pr := &Primary{Metric: q.Metric, Treatment: q.Treatment, Test: q.Test, Alpha: Number(q.Alpha)}
	cells := p.PrimaryCells()
	ps := make([]float64, len(cells))
	for i, c := range cells {
		pc := PrimaryCell{Cell: c.Name, P: nan, AdjustedP: nan, Diff: nan, CI: Interval{nan, nan, nan}}
		ps[i] = math.NaN()
		cmp := r.Cell(c.Name).Metric(m.Name).Against(q.Treatment)
		switch {
		case cmp == nil:
			pc.Missing = "no comparison"
		case cmp.N < c.Rounds:
			pc.N = cmp.N
			pc.Missing = fmt.Sprintf("%d of %d rounds lack a value of %s", c.Rounds-cmp.N, c.Rounds, m.Name)
		default:
			pc.N, pc.Diff = cmp.N, cmp.Diff
			pc.P, pc.CI, pc.Missing = cmp.test(q.Test)
			ps[i] = float64(pc.P)
		}
		pr.Cells = append(pr.Cells, pc)
	}
	adjusted := stats.Holm(ps)
	for i := range pr.Cells {
		pr.Cells[i].AdjustedP = Number(adjusted[i])
	}
	pr.Weakest = r.weakest(pr)
	n := cells[0].Rounds
	for _, c := range cells {
		n = min(n, c.Rounds)
	}
	alpha := q.Alpha / float64(len(cells))
	note := &PowerNote{Scale: "d"}
	d, err := stats.DetectableWelch(n, detectPower, alpha)
	if q.Test == protocol.TestPaired {
		note.Scale = "dz"
		d, err = stats.DetectablePaired(n, detectPower, alpha)
	}
	if err == nil {
		note.Detectable = Number(d)
		pr.Power = note
	}
	r.Primary = pr
}

func (r *Results) weakest(pr *Primary) string {
	worse := func(c PrimaryCell) bool {
		cmp := r.Cell(c.Cell).Metric(pr.Metric).Against(pr.Treatment)
		return cmp != nil && cmp.Worse && c.AdjustedP < pr.Alpha
	}
	rank := func(c PrimaryCell) float64 {
		switch {
		case math.IsNaN(float64(c.AdjustedP)):
			return 3 // a missing comparison is the weakest of all
		case worse(c):
			return 2
		}
		return float64(c.AdjustedP)
	}
	weakest := slices.MaxFunc(pr.Cells, func(a, b PrimaryCell) int { return cmp.Compare(rank(a), rank(b)) })
	return weakest.Cell
}

// test picks the frozen test out of those computed.
func (c *Comparison) test(name string) (p Number, ci Interval, missing string) {
	none := Interval{nan, nan, nan}
	switch name {
	case protocol.TestWelch:
		if c.Welch != nil {
			return c.Welch.P, c.Welch.CI, ""
		}
	case protocol.TestMannWhitney:
		if c.MannWhitney != nil && c.Shift != nil {
			return c.MannWhitney.P, c.Shift.CI, ""
		}
	case protocol.TestPaired:
		if c.Paired != nil {
			return c.Paired.P, c.Paired.CI, ""
		}
	}
	return nan, none, "the " + name + " test could not be computed"
}

func (r *Results) summariseHost(run *ledger.Run, p *protocol.Protocol) {
	sums := map[string]*HostSummary{}
	breaches := map[[2]string]*HostBreach{}
	var order [][2]string
	for _, rec := range run.Records {
		if rec.Host == nil {
			continue
		}
		for _, rd := range rec.Host.Readings {
			s := sums[rd.Probe]
			if s == nil {
				s = &HostSummary{Probe: rd.Probe, Unit: rd.Unit, Min: nan, Max: nan}
				sums[rd.Probe] = s
			}
			if !rd.Available() {
				s.Unavailable++
				if s.Detail == "" {
					s.Detail = rd.Detail
				}
				continue
			}
			if s.Readings == 0 || rd.Value < float64(s.Min) {
				s.Min = Number(rd.Value)
			}
			if s.Readings == 0 || rd.Value > float64(s.Max) {
				s.Max = Number(rd.Value)
			}
			s.Readings++
		}
		for _, b := range rec.Host.Breaches {
			k := [2]string{b.Limit.Probe, b.Action}
			if breaches[k] == nil {
				breaches[k] = &HostBreach{Probe: b.Limit.Probe, Action: b.Action, First: b.String()}
				order = append(order, k)
			}
			breaches[k].Times++
		}
	}
	for _, k := range order {
		r.Host.Breaches = append(r.Host.Breaches, *breaches[k])
		r.Host.Worst = worseAction(r.Host.Worst, breaches[k].Action)
	}
	for _, name := range protocol.Probes {
		if s := sums[name]; s != nil {
			r.Host.Probes = append(r.Host.Probes, *s)
		}
	}
	// A limit that no reading was ever taken for has not been kept.
	for _, l := range p.Host {
		if s := sums[l.Probe]; s == nil || s.Readings+s.Unavailable == 0 {
			if run.Ended() {
				b := host.Judge(nil, []protocol.Limit{l}, "run")
				for _, x := range b {
					r.Host.Breaches = append(r.Host.Breaches, HostBreach{Probe: l.Probe, Action: x.Action, Times: 1, First: x.String()})
					r.Host.Worst = worseAction(r.Host.Worst, x.Action)
				}
			}
		}
	}
	sort.SliceStable(r.Host.Breaches, func(i, j int) bool {
		return worseAction(r.Host.Breaches[j].Action, r.Host.Breaches[i].Action) != r.Host.Breaches[j].Action
	})
}
