package gate

import (
	"math"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/trial"
)

// flip is the decision of the lock-free flip, section 8 of its pre-registration:
// thirty rounds, Welch on the disjoint variant, a floor of d 0.8, four vetoes,
// and the tail as the caveat.
const flip = `
assay: 1
name: flip
question: May the trie under a lock be replaced by the lock-free overlay, for good?
arms:
  - {name: control, shell: "true"}
  - {name: treatment, shell: "true"}
factors: [{name: variant, levels: [disjoint, contended]}]
design: {rounds: 30, warmup: 2, seed: 9}
metrics:
  - {name: throughput, unit: ops/s, better: higher, source: json}
  - {name: stall, unit: us, better: lower, source: json}
  - {name: p99, unit: us, better: lower, source: json}
  - {name: rss, unit: KiB, better: lower, source: json}
checks:
  - {name: reopen_exact, scope: trial, shell: "true"}
primary:
  metric: throughput
  cells: {variant: disjoint}
  test: welch
  floor: {d: 0.8}
vetoes:
  - {name: s1, metric: stall, cells: {variant: disjoint}, require: treat <= ref, because: a checkpoint may not stall writers longer}
  - {name: s2_p99, metric: p99, cells: {variant: disjoint}, require: ratio <= 1.10}
  - {name: s2_p999, metric: stall, cells: {variant: disjoint}, require: ratio <= 1.10}
  - {name: s3, metric: rss, cells: {variant: disjoint}, require: ratio <= 1.25}
  - {name: s4, metric: throughput, cells: {variant: contended}, require: p >= 0.05 || diff >= 0}
decision:
  preset: four-branch
  caveat: effect.stall.ratio <= 0.8
`

// moments are a mean and a standard deviation.
type moments struct{ mean, sd float64 }

// published are an arm's figures by metric; "contended" is throughput there.
type published map[string]moments

// published2026 are the figures of the reference's RESULTS, eviction off.
func published2026() (control, treatment published) {
	return published{"throughput": {4560.6, 136.3}, "contended": {5799.6, 191.3}, "stall": {126374, 0}, "p99": {67406, 0}, "rss": {484160, 0}},
		published{"throughput": {18791.9, 792.4}, "contended": {15486.1, 835.0}, "stall": {4533, 0}, "p99": {1955, 0}, "rss": {425088, 0}}
}

// reproduce is a run whose arms have exactly those moments.
func reproduce(t testing.TB, control, treatment published, more ...arms) *analysis.Results {
	run := measure(t, plan(t, flip), "", func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{}
		for which, arm := range []published{control, treatment} {
			if s.Arm != []string{"control", "treatment"}[which] || s.Warmup {
				continue
			}
			for name, m := range arm {
				if name == "contended" || name == "throughput" && s.Cell == "variant=contended" {
					continue
				}
				o.Values[name] = m.mean + m.sd*scores(which)[i]
			}
			if m := arm["contended"]; s.Cell == "variant=contended" {
				o.Values["throughput"] = m.mean + m.sd*scores(which + 2)[i]
			}
		}
		for _, f := range more {
			f(s, i, o)
		}
	})
	return analysis.Analyze(run)
}

// printed says whether x is what was printed, given that its inputs were
// rounded as well.
func printed(x analysis.Number, want, tolerance float64) bool {
	return math.Abs(float64(x)-want) <= tolerance*math.Abs(want)
}

func TestTheReferencesFiguresProceed(t *testing.T) {
	control, treatment := published2026()
	r := reproduce(t, control, treatment)
	v := Decide(plan(t, flip), r)
	ends(t, "eviction off", v, "PROCEED", Go)

	c := r.Cell("variant=disjoint").Metric("throughput").Against("treatment")
	for _, f := range []struct {
		name string
		got  analysis.Number
		want float64
	}{
		{"t", c.Welch.T, 96.9467}, {"df", c.Welch.DF, 30.72}, {"d", c.D, 25.03}, {"difference", c.Diff, 14231.3},
		{"low", c.Welch.CI.Low, 13931.8}, {"high", c.Welch.CI.High, 14530.8}, {"change", c.Change, 3.1205}, {"U", c.MannWhitney.U, 900},
	} {
		if !printed(f.got, f.want, 2e-4) {
			t.Errorf("%s is %v, printed was %v", f.name, f.got, f.want)
		}
	}
	if !printed(c.Welch.P, 9.10e-40, 0.02) {
		t.Errorf("p is %v, printed was 9.10e-40", c.Welch.P)
	}
	s4 := r.Cell("variant=contended").Metric("throughput").Against("treatment")
	for _, f := range []struct {
		name string
		got  analysis.Number
		want float64
	}{
		{"t", s4.Welch.T, 61.94}, {"df", s4.Welch.DF, 32.04}, {"d", s4.D, 15.99}, {"difference", s4.Diff, 9686.5},
		{"low", s4.Welch.CI.Low, 9368.0}, {"high", s4.Welch.CI.High, 10005.1}, {"change", s4.Change, 1.6702},
	} {
		if !printed(f.got, f.want, 3e-4) {
			t.Errorf("S4: %s is %v, printed was %v", f.name, f.got, f.want)
		}
	}
	if !printed(s4.Welch.P, 6.32e-35, 0.02) {
		t.Errorf("S4: p is %v, printed was 6.32e-35", s4.Welch.P)
	}

	for rule, want := range map[string]string{
		"s1": "ref=126374 treat=4533", "s2_p99": "ratio=0.0290034", "s2_p999": "ratio=0.0358697", "s3": "ratio=0.877991",
	} {
		for _, res := range v.Vetoes {
			if res.Rule == rule && (words(res.Values) != want || res.State != Holds || !res.Judged) {
				t.Errorf("%s: %s with %s, want %s", rule, res.State, words(res.Values), want)
			}
		}
	}
	if len(v.Vetoes) != 5 {
		t.Errorf("%d answers of vetoes", len(v.Vetoes))
	}

	regression, proceed := step(t, v, "REGRESSION"), step(t, v, "PROCEED")
	if regression.Result != "false" || words(regression.Values) != "primary.significant=true primary.worse=false veto.any=false" {
		t.Errorf("REGRESSION was %s by %s", regression.Result, words(regression.Values))
	}
	if proceed.Result != "true" || words(proceed.Values) != "primary.better=true primary.meets_floor=true primary.significant=true veto.any=false" {
		t.Errorf("PROCEED was %s by %s", proceed.Result, words(proceed.Values))
	}
	for _, outcome := range []string{"PROCEED-WITH-CAVEAT", "NO-BENEFIT"} {
		if s := step(t, v, outcome); s.Result != "not reached" || s.Values != nil {
			t.Errorf("%s was %s", outcome, s.Result)
		}
	}
	if v.Would != "PROCEED" || v.Why != "The gain is real, large enough to matter, and nothing blocks it." {
		t.Errorf("would %q, why %q", v.Would, v.Why)
	}
}

func TestTheReferencesFiguresWithEvictionProceed(t *testing.T) {
	r := reproduce(t,
		published{"throughput": {2720.1, 401.9}, "contended": {3799.2, 115.2}, "stall": {262004.7, 0}, "p99": {118552.8, 0}, "rss": {3178396, 0}},
		published{"throughput": {17234.8, 2337.3}, "contended": {15204.5, 582.3}, "stall": {7147.1, 0}, "p99": {2395.2, 0}, "rss": {1318888, 0}})
	ends(t, "eviction on", Decide(plan(t, flip), r), "PROCEED", Go)
	c := r.Cell("variant=disjoint").Metric("throughput").Against("treatment")
	if !printed(c.Welch.T, 33.5213, 2e-4) || !printed(c.Welch.DF, 30.71, 2e-4) || !printed(c.D, 8.6552, 2e-4) || !printed(c.Welch.P, 9.40e-26, 0.02) ||
		!printed(c.Welch.CI.Low, 13631.2, 2e-4) || !printed(c.Welch.CI.High, 15398.1, 2e-4) {
		t.Errorf("got %+v, d %v", c.Welch, c.D)
	}
}

// The other branches of section 8, each by the smallest change that leads
// there.
func TestTheOtherBranches(t *testing.T) {
	alter := func(name string, arm string, m moments) func(c, t published) {
		return func(c, t published) { map[string]published{"control": c, "treatment": t}[arm][name] = m }
	}
	both := func(fs ...func(c, t published)) func(c, t published) {
		return func(c, t published) {
			for _, f := range fs {
				f(c, t)
			}
		}
	}
	tie := alter("throughput", "treatment", moments{4560.6, 136.3})
	modest := alter("throughput", "treatment", moments{4560.6 + 0.6*136.3, 136.3})
	noTail := both(alter("stall", "treatment", moments{126374, 0}), alter("p99", "treatment", moments{67406, 0}))
	for _, c := range []struct {
		name    string
		change  func(c, t published)
		outcome string
		class   Class
		why     string
	}{
		{"S1 worse", alter("stall", "treatment", moments{126375, 0}), "REGRESSION", NoGo, "Broken vetoes: s1 in variant=disjoint."},
		{"S1 equal", alter("stall", "treatment", moments{126374, 0}), "PROCEED", Go, "nothing blocks it"},
		{"S2 at its limit", alter("p99", "treatment", moments{67406 * 1.1, 0}), "PROCEED", Go, ""},
		{"S2 beyond it", alter("p99", "treatment", moments{67406 * 1.11, 0}), "REGRESSION", NoGo, "Broken vetoes: s2_p99 in variant=disjoint."},
		{"S3 at 1.3", alter("rss", "treatment", moments{484160 * 1.3, 0}), "REGRESSION", NoGo, "Broken vetoes: s3 in variant=disjoint."},
		{"S4 significantly worse", alter("contended", "treatment", moments{5500, 191.3}), "REGRESSION", NoGo, "Broken vetoes: s4 in variant=contended."},
		{"S4 worse by chance", alter("contended", "treatment", moments{5799.5, 191.3}), "PROCEED", Go, ""},
		{"throughput lower", alter("throughput", "treatment", moments{4000, 136.3}), "REGRESSION", NoGo, "The treatment makes something worse"},
		{"a tie, and the tail is there", tie, "PROCEED-WITH-CAVEAT", Go, "the secondary gain named in the protocol is there"},
		{"a tie, and no tail", both(tie, noTail), "NO-BENEFIT", NoGo, "No gain that matters"},
		{"a modest gain, and the tail is there", modest, "PROCEED-WITH-CAVEAT", Go, ""},
		{"a modest gain, and no tail", both(modest, noTail), "NO-BENEFIT", NoGo, "No gain that matters"},
		{"a tie, the tail is there, and memory is not", both(tie, alter("rss", "treatment", moments{484160 * 1.3, 0})), "REGRESSION", NoGo, "s3"},
	} {
		control, treatment := published2026()
		c.change(control, treatment)
		r := reproduce(t, control, treatment)
		v := Decide(plan(t, flip), r)
		ends(t, c.name, v, c.outcome, c.class)
		if !strings.Contains(v.Why, c.why) {
			t.Errorf("%s: why %q", c.name, v.Why)
		}
		if strings.HasPrefix(c.name, "a modest") {
			if p := r.Primary.Cells[0]; p.AdjustedP >= 0.05 || !p.Better {
				t.Errorf("%s: is not significantly better: %+v", c.name, p)
			}
		}
	}
}

func TestACorrectnessFailureComesBeforeTheReferencesRule(t *testing.T) {
	control, treatment := published2026()
	r := reproduce(t, control, treatment, func(s trial.Slot, i int, o *trial.Observation) {
		if s.Arm == "treatment" && i == 29 && s.Cell == "variant=contended" {
			o.Checks[0] = check.Result{Name: "reopen_exact", Verdict: check.Fail, Operations: 16000, Message: "3 acknowledged keys are gone"}
		}
	})
	v := Decide(plan(t, flip), r)
	ends(t, "a lost key", v, "ABORT", NoGo)
	if v.Why != "A correctness check failed, so no figure counts: reopen_exact is fail (3 acknowledged keys are gone)" {
		t.Errorf("why %q", v.Why)
	}
	if v.Vetoes != nil || r.Cells != nil {
		t.Error("figures are shown")
	}
}

func TestTheReferencesRuleWithoutOneRound(t *testing.T) {
	for name, m := range map[string]string{"throughput": "primary.", "stall": "veto.any"} {
		control, treatment := published2026()
		v := Decide(plan(t, flip), reproduce(t, control, treatment, func(s trial.Slot, i int, o *trial.Observation) {
			if s.Arm == "treatment" && i == 12 && s.Cell == "variant=disjoint" {
				delete(o.Values, name)
			}
		}))
		ends(t, name, v, "MISSING-DATA", Invalid)
		if !strings.Contains(v.Why, m) || !strings.Contains(v.Why, "1 of 30 rounds lack a value of "+name) {
			t.Errorf("%s: why %q", name, v.Why)
		}
		if s := step(t, v, "REGRESSION"); s.Result != "missing" || s.Note != "" {
			t.Errorf("%s: REGRESSION is %q with note %q", name, s.Result, s.Note)
		}
	}
}
