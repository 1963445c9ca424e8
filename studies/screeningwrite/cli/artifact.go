package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/gate"
)

// artifact is the run in one object. Keys are only ever added.
type artifact struct {
	Dataset    string
	Scenario   string
	Protocol   string
	Lock       string
	Verdict    string
	Iterations int
	Warmup     int
	Corpus     map[string]int
	Host       analysis.Host

	Environment map[string]any
	Durations   map[string]durations
	RoundTrips  map[string]map[string]int64 `json:",omitempty"` // only where commands were counted
	Notes       map[string]string
}

// durations are quantiles in ms over all submissions, exhausted ones included, and over
// all attempts; null where there are too few samples.
type durations struct {
	Submissions  int
	P50Ms, P95Ms analysis.Number
	Attempts     int
	AttemptP50Ms analysis.Number
	AttemptP95Ms analysis.Number
}

func (r *results) artifact() artifact {
	p := r.o.Run.Protocol
	a := artifact{
		Dataset: "PS-WRITE-01", Scenario: "ScreeningSourceWrites", Protocol: p.Name, Lock: r.o.Run.Lock.Digest,
		Verdict: fmt.Sprintf("%s (%s)", r.o.Verdict.Outcome, r.o.Verdict.Class), Iterations: p.Design.Rounds, Warmup: p.Design.Warmup,
		Corpus: map[string]int{"projects": 1, "studies": 10, "reviewers": 10}, Host: r.o.Results.Host,
		Durations: map[string]durations{}, RoundTrips: map[string]map[string]int64{}, Notes: map[string]string{},
	}
	if env, err := r.o.Run.Environment(); err == nil {
		a.Environment = map[string]any{"os": env.OS, "kernel": env.Kernel, "cpu": env.CPUModel, "cpus": env.CPUs, "scratch": env.ScratchFS}
	}
	warmups := 0
	for _, rec := range r.o.Run.Records {
		if rec.Note != nil && strings.HasPrefix(rec.Note.Text, "connection_pool_warmup") {
			key := "connection_pool_warmup"
			if warmups++; warmups > 1 {
				key += fmt.Sprintf("_%d", warmups)
			}
			a.Notes[key] = strings.TrimPrefix(rec.Note.Text, "connection_pool_warmup: ")
		}
	}
	for i := range r.cells {
		r.addCell(&a, &r.cells[i])
	}
	a.Notes["gate_b_summary"] = r.summary()
	return a
}

func (r *results) addCell(a *artifact, c *cell) {
	for i := range c.arms {
		m := &c.arms[i]
		key := c.key() + "_" + suffix(m.name)
		d := durations{
			P50Ms: analysis.Number(m.quantile("submission", 0.5)), P95Ms: analysis.Number(m.quantile("submission", 0.95)),
			AttemptP50Ms: analysis.Number(m.quantile("attempt", 0.5)), AttemptP95Ms: analysis.Number(m.quantile("attempt", 0.95)),
		}
		if s := m.sets["submission"]; s != nil {
			d.Submissions = s.Count
		}
		if s := m.sets["attempt"]; s != nil {
			d.Attempts = s.Count
		}
		a.Durations[key] = d
		a.Notes[key+"_outcomes"] = outcomes(m)
		per := "not_counted"
		if total, counted := m.commands(); counted {
			a.RoundTrips[key] = map[string]int64{}
			for _, name := range m.byName() {
				a.RoundTrips[key][name] = int64(m.sums["commands_"+name])
			}
			switch s := m.sets["commands_per_attempt"]; {
			case s != nil:
				per = fmt.Sprintf("mean=%.2f; min=%.0f; max=%.0f; attempts=%d", float64(s.Mean), float64(s.Min), float64(s.Max), s.Count)
			default:
				per = "not_counted: reviewers submit at once, and an attempt's commands cannot be told from another's"
			}
			a.Notes[key+"_commands"] = fmt.Sprintf("%.0f", total)
		}
		a.Notes[key+"_commands_per_attempt"] = per
	}
	if c.regime != "free" {
		return
	}
	if c.arm(transactional) != nil {
		rule := r.rule("transactional_latency", c.Name)
		verdict := "MISSING"
		if rule != nil && rule.State != gate.Missing {
			verdict = map[string]string{gate.Holds: "PASS", gate.Broken: "FAIL"}[rule.State]
		}
		a.Notes[c.key()+"_p95_gate"] = fmt.Sprintf("verdict=%s; %s; limit=10%%; reported, not part of the verdict", verdict, overhead(r.pooled(c.Name, transactional)))
	}
	g := r.gateB(c)
	conflicts, exhausted := c.arm(fold).sums["conflicts_statistics"], c.arm(fold).sums["exhausted_statistics"]
	a.Notes[c.key()+"_fold_gate_b"] = fmt.Sprintf("verdict=%s; %s; latency_gated=%v; statistics_caused_conflicts=%.0f; statistics_caused_exhausted=%.0f; statistics_clean=%v; "+
		"source_only_exhausted=%.0f; fold_exhausted=%.0f; gate_definition=p95 overhead under 10%% or at most +2 ms, no conflict or exhaustion caused by statistics",
		g.verdict(), overhead(g.pooled), g.judged, conflicts, exhausted, g.clean, c.arm(sourceOnly).sums["exhausted"], c.arm(fold).sums["exhausted"])
}

func outcomes(m *armed) string {
	var b strings.Builder
	for _, k := range [][2]string{
		{"submissions", "submissions"}, {"saved", "saved"}, {"exhausted", "exhausted"}, {"failed", "failed"}, {"no_delta_saves", "no_delta"},
		{"version_conflicts", "conflicts"}, {"source_study_conflicts", "conflicts_study"}, {"source_project_conflicts", "conflicts_token"},
		{"fold_conflicts", "conflicts_fold"}, {"statistics_conflicts", "conflicts_statistics"}, {"unattributed_conflicts", "conflicts_unattributed"},
		{"interrupted_conflicts", "conflicts_interrupted"}, {"free_retries", "free_retries"}, {"statistics_caused_exhausted", "exhausted_statistics"},
		{"unknown_commit_failures", "unknown_commits"}, {"connections_opened", "connections_opened"},
	} {
		fmt.Fprintf(&b, "%s=%.0f; ", k[0], m.sums[k[1]])
	}
	fmt.Fprintf(&b, "max_document_bytes=%.0f; ", m.largest)
	if total, counted := m.commands(); counted {
		fmt.Fprintf(&b, "commands=%.0f; commit_attempts=%.0f", total, m.sums["commands_commitTransaction"])
	} else {
		b.WriteString("commands=not_counted; commit_attempts=not_counted")
	}
	return b.String()
}

func overhead(p *analysis.Pooled) string {
	if p == nil || math.IsNaN(float64(p.Ratio)) {
		return "overhead=missing"
	}
	return fmt.Sprintf("source_only_p95=%.3f ms; p95=%.3f ms; overhead=%+.1f%% (95%% from %+.1f%% to %+.1f%%); difference=%+.3f ms (95%% from %+.3f to %+.3f)",
		float64(p.Ref)/1e6, float64(p.Treat)/1e6, 100*(float64(p.Ratio)-1), 100*(float64(p.RatioCI.Low)-1), 100*(float64(p.RatioCI.High)-1),
		float64(p.Diff)/1e6, float64(p.DiffCI.Low)/1e6, float64(p.DiffCI.High)/1e6)
}

// summary tallies gate (b) over the matrix.
func (r *results) summary() string {
	n := map[string]int{}
	for i := range r.cells {
		c := &r.cells[i]
		g := r.gateB(c)
		if !g.clean {
			n["unclean"]++
		}
		if c.regime != "free" {
			continue
		}
		n["cells"]++
		n[g.verdict()]++
		if g.judged {
			n["gated"]++
		}
	}
	return fmt.Sprintf("cells=%d; latency_gated=%d; passed=%d; failed=%d; stress=%d; missing=%d; statistics_unclean_cells=%d; verdict=%s",
		n["cells"], n["gated"], n["PASS"], n["FAIL"], n["STRESS"], n["MISSING"], n["unclean"], r.o.Verdict.Outcome)
}
