package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
	"github.com/assaylab/assay/lab/trial"
)

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

// judgeChecks merges what the checks said. For every trial, round and cell that
// a check covers there must be a result: one that is not there is unchecked.
// Results are taken in the order of the schedule, so that messages do not
// depend on the order in which cells ran.
func (r *Results) judgeChecks(run *ledger.Run, p *protocol.Protocol, schedule []trial.Round, planned, strays []*trial.Observation) check.Clearance {
	type place struct {
		check, scope, cell string
		round              int
		arm                string
	}
	results := []check.Result{r.completed(planned, strays)}
	seen := map[place]bool{}
	// What made a pass non-vacuous when it was judged is asked again: the
	// ledger may have been written by another program.
	judged := func(c check.Result) {
		if d := p.Check(c.Name); d != nil {
			c = c.Require(check.Requirement{Operations: d.Operations, Kinds: d.Kinds, Faults: d.Faults})
		}
		results = append(results, c)
	}
	for _, o := range slices.Concat(planned, strays) {
		for _, c := range o.Checks {
			if decl := p.Check(c.Name); decl == nil || decl.Scope != protocol.ScopeTrial {
				// An arm may report more than was declared; a failure counts anyway.
				if c.Verdict == check.Fail {
					results = append(results, c)
				}
				continue
			}
			seen[place{c.Name, protocol.ScopeTrial, o.Cell, o.Round, o.Arm}] = true
			judged(c)
		}
	}
	cells := map[string]protocol.Cell{}
	for _, c := range p.Cells() {
		cells[c.Name] = c
	}
	for _, j := range judgements(run, schedule) {
		seen[place{j.Result.Name, j.Scope, j.Cell, j.Round, ""}] = true
		judged(j.Result)
	}

	for i := range p.Checks {
		c := &p.Checks[i]
		need := func(cell string, round int, arm, format string, args ...any) {
			if !seen[place{c.Name, c.Scope, cell, round, arm}] {
				results = append(results, check.Result{Name: c.Name, Message: "not checked: " + fmt.Sprintf(format, args...)})
			}
		}
		if c.Scope == protocol.ScopeRun {
			need("", 0, "", "the run")
			continue
		}
		for _, round := range schedule {
			cell := cells[round.Cell]
			switch {
			case !c.Cells.Match(cell):
			case c.Scope == protocol.ScopeCell:
				if round.Round == cell.Warmup+cell.Rounds-1 {
					need(cell.Name, 0, "", "cell %s", cell.Name)
				}
			case c.Scope == protocol.ScopeRound:
				need(cell.Name, round.Round, "", "cell %s, round %d", cell.Name, round.Round)
			default:
				for _, s := range round.Slots {
					if c.Covers(s.Arm, cell) {
						need(cell.Name, round.Round, s.Arm, "cell %s, round %d, arm %s", cell.Name, round.Round, s.Arm)
					}
				}
			}
		}
	}
	required := []string{protocol.CompletedCheck}
	for _, c := range p.Checks {
		required = append(required, c.Name)
	}
	clearance, merged := check.Clear(required, results)
	r.Checks = append(merged, undeclared(required, results)...)
	r.Clear = clearance.Valid()
	return clearance
}

// undeclared are the failures under names that no check has, merged by name.
func undeclared(required []string, results []check.Result) []check.Result {
	failed := map[string]bool{}
	for _, res := range results {
		if res.Verdict == check.Fail && !slices.Contains(required, res.Name) {
			failed[res.Name] = true
		}
	}
	_, merged := check.Clear(slices.Sorted(maps.Keys(failed)), results)
	return merged
}

// completed judges the trials themselves: each that was planned ran, ran once,
// and ended well.
func (r *Results) completed(planned, strays []*trial.Observation) check.Result {
	res := check.Result{Name: protocol.CompletedCheck, Verdict: check.Pass, Operations: len(planned) + len(strays)}
	var why []string
	if len(planned) == 0 {
		res.Verdict, why = check.Unknown, append(why, "no trial ran")
	} else if len(r.Missing) > 0 {
		res.Verdict, why = check.Unchecked, append(why, "not every planned trial ran")
	}
	example := func(o *trial.Observation, what string) {
		if res.Verdict = check.Unknown; len(res.Examples) < 3 {
			res.Examples = append(res.Examples, fmt.Sprintf("arm %s, cell %s, %s", o.Arm, o.Cell, what))
		}
	}
	failed := false
	for _, o := range slices.Concat(planned, strays) {
		if o.Status != trial.StatusOK {
			failed = true
			example(o, explain(o))
		}
	}
	if failed {
		why = append(why, r.failedTrials())
	}
	for _, o := range strays {
		example(o, fmt.Sprintf("round %d: not in the schedule, or there already", o.Round))
	}
	if len(strays) > 0 {
		why = append(why, fmt.Sprintf("%d trials are in the ledger that the schedule does not have", len(strays)))
	}
	res.Message = strings.Join(why, "; ")
	return res
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
		return "a trial that is not measured failed"
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
				for _, n := range e.Notes {
					cmp.Notes = append(cmp.Notes, "pooled: "+n)
				}
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
		c.Change = c.Diff / Number(math.Abs(rm.Mean))
	}
	if rm.Mean > 0 {
		// Over a negative reference more is less, and a bound on the ratio would
		// hold for what it is to keep out.
		c.Ratio = Number(tm.Mean / rm.Mean)
	}
	c.Better, c.Worse = direction(m, float64(c.Diff))
	if c.N < 2 {
		c.Notes = append(c.Notes, "one round only: no test")
		return c
	}
	if t, err := stats.PairedSlots(ref, treat, refSlot, slot, level); note("paired t", t.Notes, err) {
		c.Paired, c.DiffCI = tTest(t), interval(t.CI)
		if noise := 1e-9 * max(math.Abs(rm.Mean), math.Abs(tm.Mean)); t.P < 1-level && math.Abs(t.Diff) > noise && t.Diff*float64(c.Diff) <= 0 {
			c.Contradiction = fmt.Sprintf("the means differ by %.4g, but %.4g with the effect of the order taken out (p %.2g): the order was not balanced enough", float64(c.Diff), t.Diff, t.P)
			c.Notes = append(c.Notes, c.Contradiction)
		}
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
	if rm.Mean > 0 {
		if est, ci, err := stats.BootstrapMeanRatio(ref, treat, level, ratioResamples, seed); err == nil {
			c.Ratio, c.RatioCI = Number(est), interval(ci)
		}
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

// direction says whether a difference, arm minus reference, is a gain or a
// loss.
func direction(m *protocol.Metric, diff float64) (better, worse bool) {
	if m.Better == "lower" {
		diff = -diff
	}
	return diff > 0, diff < 0
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
		case cmp.Contradiction != "":
			pc.N, pc.Missing = cmp.N, cmp.Contradiction
		default:
			pc.N = cmp.N
			pc.P, pc.Diff, pc.CI, pc.Missing = cmp.test(q.Test)
			ps[i] = float64(pc.P)
			better, worse := direction(m, float64(pc.Diff))
			pc.Better, pc.Worse = better && cmp.Better, worse || cmp.Worse
		}
		pr.Cells = append(pr.Cells, pc)
	}
	adjusted := stats.Holm(ps)
	for i := range pr.Cells {
		pr.Cells[i].AdjustedP = Number(adjusted[i])
	}
	pr.Weakest = pr.weakest()
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

func (pr *Primary) weakest() string {
	rank := func(c PrimaryCell) float64 {
		switch {
		case math.IsNaN(float64(c.AdjustedP)):
			return 3 // a missing comparison is the weakest of all
		case c.Worse && c.AdjustedP < pr.Alpha:
			return 2
		}
		return float64(c.AdjustedP)
	}
	weakest := slices.MaxFunc(pr.Cells, func(a, b PrimaryCell) int { return cmp.Compare(rank(a), rank(b)) })
	return weakest.Cell
}

// test picks the frozen test out of those computed: its p, its own estimate of
// the difference, and that one's interval.
func (c *Comparison) test(name string) (p, diff Number, ci Interval, missing string) {
	switch name {
	case protocol.TestWelch:
		if c.Welch != nil {
			return c.Welch.P, c.Welch.Diff, c.Welch.CI, ""
		}
	case protocol.TestMannWhitney:
		if c.MannWhitney != nil && c.Shift != nil {
			return c.MannWhitney.P, c.Shift.Estimate, c.Shift.CI, ""
		}
	case protocol.TestPaired:
		if c.Paired != nil {
			return c.Paired.P, c.Paired.Diff, c.Paired.CI, ""
		}
	}
	return nan, nan, Interval{nan, nan, nan}, "the " + name + " test could not be computed"
}

func (r *Results) summariseHost(run *ledger.Run, p *protocol.Protocol) {
	sums := map[string]*HostSummary{}
	add := func(b host.Breach) {
		// An action that this version does not know counts as block.
		action := host.Worst([]host.Breach{b})
		i := slices.IndexFunc(r.Host.Breaches, func(x HostBreach) bool { return x.Probe == b.Limit.Probe && x.Action == action })
		if i < 0 {
			i = len(r.Host.Breaches)
			r.Host.Breaches = append(r.Host.Breaches, HostBreach{Probe: b.Limit.Probe, Action: action, First: b.String()})
		}
		r.Host.Breaches[i].Times++
		r.Host.Worst = worseAction(r.Host.Worst, action)
	}
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
			add(b)
		}
	}
	for _, name := range protocol.Probes {
		if s := sums[name]; s != nil {
			r.Host.Probes = append(r.Host.Probes, *s)
		}
	}
	// A limit that no reading was ever taken for has not been kept.
	for _, l := range p.Host {
		if sums[l.Probe] == nil && run.Ended() {
			for _, b := range host.Judge(nil, []protocol.Limit{l}, "run") {
				add(b)
			}
		}
	}
	sort.SliceStable(r.Host.Breaches, func(i, j int) bool {
		return worseAction(r.Host.Breaches[j].Action, r.Host.Breaches[i].Action) != r.Host.Breaches[j].Action
	})
}
