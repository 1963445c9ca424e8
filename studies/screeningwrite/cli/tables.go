package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
)

// tables are the run as Markdown: where it comes from, gate (b), gate (a), outcomes, and
// what goes beyond the matrix.
func (r *results) tables() string {
	var b strings.Builder
	p := r.o.Run.Protocol
	fmt.Fprintf(&b, "Run of `%s`, lock `%.12s`, %d batches and %d for warming up per arm and cell of the matrix. Verdict: **%s** (%s).\n",
		p.Name, r.o.Run.Lock.Digest, p.Design.Rounds, p.Design.Warmup, r.o.Verdict.Outcome, r.o.Verdict.Class)
	for _, why := range r.o.Results.Exploratory {
		fmt.Fprintf(&b, "It decides nothing: %s.\n", why)
	}
	for _, h := range r.o.Results.Host.Breaches {
		fmt.Fprintf(&b, "Host limit broken (%s): %s, %d times; counts stand, timings are provisional.\n", h.Action, h.First, h.Times)
	}
	fmt.Fprintf(&b, "\n`gate_b_summary`: %s\n", r.summary())
	r.gateBTable(&b)
	r.gateATable(&b)
	r.outcomesTable(&b)
	r.beyondTable(&b)
	r.commandsTable(&b)
	return b.String()
}

func table(b *strings.Builder, title string, head ...string) func(row ...string) {
	fmt.Fprintf(b, "\n### %s\n\n| %s |\n|%s\n", title, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	return func(row ...string) { fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | ")) }
}

func (c *cell) words() []string {
	policy := "off"
	if c.eligibility {
		policy = "on"
	}
	return []string{strings.ReplaceAll(c.target, "_", " "), fmt.Sprint(c.reviewers), policy}
}

func figure(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}

func pair50(a *armed, p *analysis.Number) string {
	p95 := math.NaN()
	if p != nil {
		p95 = float64(*p) / 1e6
	}
	return figure(a.quantile("submission", 0.5)) + " / " + figure(p95)
}

func change(p *analysis.Pooled) (percent, diff string) {
	if p == nil {
		return "–", "–"
	}
	return fmt.Sprintf("%+.0f %% (%+.0f to %+.0f)", 100*(float64(p.Ratio)-1), 100*(float64(p.RatioCI.Low)-1), 100*(float64(p.RatioCI.High)-1)),
		fmt.Sprintf("%+.2f (%+.2f to %+.2f)", float64(p.Diff)/1e6, float64(p.DiffCI.Low)/1e6, float64(p.DiffCI.High)/1e6)
}

func ends(p *analysis.Pooled) (ref, treat *analysis.Number) {
	if p == nil {
		return nil, nil
	}
	return &p.Ref, &p.Treat
}

func (r *results) gateBTable(b *strings.Builder) {
	row := table(b, "Gate (b): fold against source-only", "Target", "Reviewers", "Eligibility", "Source-only p50 / p95 ms", "Fold p50 / p95 ms", "p95 overhead (95 % interval)", "p95 difference ms (95 % interval)", "Statistics-caused conflicts, exhausted", "Verdict")
	for i := range r.cells {
		c := &r.cells[i]
		if c.regime != "free" {
			continue
		}
		g := r.gateB(c)
		ref, treat := ends(g.pooled)
		percent, diff := change(g.pooled)
		f := c.arm(fold)
		row(append(c.words(), pair50(c.arm(sourceOnly), ref), pair50(f, treat), percent, diff,
			fmt.Sprintf("%.0f, %.0f", f.sums["conflicts_statistics"], f.sums["exhausted_statistics"]), g.verdict())...)
	}
}

func (r *results) gateATable(b *strings.Builder) {
	row := table(b, "Gate (a): transactional against source-only, reported", "Target", "Reviewers", "Eligibility", "Source-only p50 / p95 ms", "Transactional p50 / p95 ms", "p95 overhead (95 % interval)", "Saved", "Under 10 %")
	for i := range r.cells {
		c := &r.cells[i]
		m := c.arm(transactional)
		if c.regime != "free" || m == nil {
			continue
		}
		p := r.pooled(c.Name, transactional)
		ref, treat := ends(p)
		percent, _ := change(p)
		holds := "–"
		if rule := r.rule("transactional_latency", c.Name); rule != nil {
			holds = rule.State
		}
		row(append(c.words(), pair50(c.arm(sourceOnly), ref), pair50(m, treat), percent, fmt.Sprintf("%.0f of %.0f", m.sums["saved"], m.sums["submissions"]), holds)...)
	}
}

func (r *results) outcomesTable(b *strings.Builder) {
	row := table(b, "Outcomes and conflicts", "Regime", "Target", "Reviewers", "Eligibility", "Arm", "Saved", "Exhausted", "Failed", "Conflicts", "by a save", "by a fold", "by the project's token", "by statistics", "unattributed", "interrupted", "Free retries", "Unknown at first", "Connections opened", "Largest document B")
	for i := range r.cells {
		c := &r.cells[i]
		for _, m := range c.arms {
			cols := append([]string{c.regime}, c.words()...)
			cols = append(cols, m.name, fmt.Sprintf("%.0f of %.0f", m.sums["saved"], m.sums["submissions"]))
			for _, key := range []string{"exhausted", "failed", "conflicts", "conflicts_study", "conflicts_fold", "conflicts_token", "conflicts_statistics", "conflicts_unattributed", "conflicts_interrupted", "free_retries", "unknown_commits", "connections_opened"} {
				cols = append(cols, fmt.Sprintf("%.0f", m.sums[key]))
			}
			row(append(cols, fmt.Sprintf("%.0f", m.largest))...)
		}
	}
}

func (r *results) beyondTable(b *strings.Builder) {
	row := table(b, "Beyond the matrix", "Regime", "Target", "Reviewers", "Eligibility", "Source-only p50 ms", "Fold p50 ms", "Transactional p50 ms", "Saves/s source-only", "Saves/s fold", "Worker drains entries/s", "Drain over save rate")
	for i := range r.cells {
		c := &r.cells[i]
		if c.regime == "free" || c.regime == "lockstep" {
			continue
		}
		f := c.arm(fold)
		ratio := "–"
		if drain := f.mean("drain_rate"); c.regime == "backlog" && !math.IsNaN(drain) {
			ratio = figure(drain / f.mean("save_rate"))
		}
		row(append(append([]string{c.regime}, c.words()...), figure(c.arm(sourceOnly).quantile("submission", 0.5)), figure(f.quantile("submission", 0.5)), figure(c.arm(transactional).quantile("submission", 0.5)),
			figure(c.arm(sourceOnly).mean("save_rate")), figure(f.mean("save_rate")), figure(f.mean("drain_rate")), ratio)...)
	}
}

func (r *results) commandsTable(b *strings.Builder) {
	var row func(...string)
	for i := range r.cells {
		c := &r.cells[i]
		for j := range c.arms {
			m := &c.arms[j]
			total, counted := m.commands()
			if !counted {
				continue
			}
			if row == nil {
				row = table(b, "Commands", "Regime", "Target", "Reviewers", "Eligibility", "Arm", "Per submission", "By name")
			}
			var names []string
			for _, name := range m.byName() {
				names = append(names, fmt.Sprintf("%s %.0f", name, m.sums["commands_"+name]))
			}
			row(append(append([]string{c.regime}, c.words()...), m.name, fmt.Sprintf("%.2f", total/m.sums["submissions"]), strings.Join(names, ", "))...)
		}
	}
	if row == nil {
		b.WriteString("\nCommands were not counted in this run.\n")
	}
}
