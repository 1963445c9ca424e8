package gate

import (
	"fmt"
	"math"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// evaluateRules works out gates and vetoes and everything that outcomes may
// name.
func (d *decision) evaluateRules() {
	d.values, d.absent = protocol.Named{}, map[string]string{}
	if !d.clear {
		return
	}
	d.v.Vetoes = d.rules(d.p.Vetoes)
	d.v.Gates = d.rules(d.p.Gates)
	d.fold("veto", d.p.Vetoes, d.v.Vetoes)
	d.fold("gate", d.p.Gates, d.v.Gates)
	d.primary()
	if cells := d.p.PrimaryCells(); len(cells) == 1 {
		for i := range d.p.Metrics {
			m := &d.p.Metrics[i]
			values, why := ruleValues(d.r.Cell(cells[0].Name).Metric(m.Name), m, &protocol.Rule{Arm: d.p.Primary.Treatment, Statistic: protocol.StatMean}, cells[0].Rounds)
			for n := range protocol.RuleScope(protocol.StatMean) {
				name := "effect." + m.Name + "." + n
				if v, ok := values[n]; ok {
					d.values[name] = v
				} else {
					d.absent[name] = why
				}
			}
		}
	}
}

// fold makes one truth per rule over its cells, and any or all over the rules.
// For a veto true means tripped, for a gate true means passed. A cell without
// an answer leaves the name without a value, unless another cell has already
// settled it the bad way. A stress rule has no truth that an outcome could
// consult: it is never judged.
func (d *decision) fold(kind string, rules []protocol.Rule, results []RuleResult) {
	good := kind == "gate"
	sum, sumMissing := good, ""
	for _, rule := range rules {
		name := kind + "." + rule.Name
		value, missing, judged := good, "", 0
		for _, res := range results {
			if res.Rule != rule.Name || !res.Judged {
				continue
			}
			judged++
			switch res.State {
			case Broken:
				value = !good
			case Missing:
				missing = fmt.Sprintf("cell %s: %s", res.Cell, res.Missing)
			}
		}
		if rule.Class == protocol.ClassStress {
			d.absent[name] = "class stress: reported, never judged"
			continue
		}
		if judged == 0 {
			missing = "no judged cell"
		}
		if value == good && missing != "" {
			d.absent[name] = missing
			if sumMissing == "" {
				sumMissing = rule.Name + ": " + missing
			}
			continue
		}
		d.values[name] = value
		if value != good {
			sum = value
		}
	}
	all := map[string]string{"veto": "veto.any", "gate": "gate.all"}[kind]
	if sum == good && sumMissing != "" {
		d.absent[all] = sumMissing
		return
	}
	d.values[all] = sum
}

func (d *decision) rules(rules []protocol.Rule) []RuleResult {
	var out []RuleResult
	for i := range rules {
		rule := &rules[i]
		m := d.p.Metric(rule.Metric)
		c, err := protocol.Compile(rule.Require, protocol.RuleScope(rule.Statistic))
		for _, cell := range d.p.RuleCells(rule) {
			res := RuleResult{Rule: rule.Name, Metric: rule.Metric, Cell: cell.Name, Arm: rule.Arm, Require: rule.Require, Because: rule.Because, Judged: rule.Judged(cell), State: Missing}
			if err != nil {
				res.Missing = err.Error()
				out = append(out, res)
				continue
			}
			values, why := ruleValues(d.r.Cell(cell.Name).Metric(rule.Metric), m, rule, cell.Rounds)
			res.Values = d.named(values, c.Names)
			ok, err := c.Eval(values)
			switch {
			case err != nil:
				res.Missing = err.Error()
				if why != "" {
					res.Missing += " (" + why + ")"
				}
			case ok:
				res.State = Holds
			default:
				res.State = Broken
			}
			out = append(out, res)
		}
	}
	return out
}

// ruleValues are the names a rule's condition may consult, with why some are
// not there.
func ruleValues(cm *analysis.CellMetric, m *protocol.Metric, rule *protocol.Rule, rounds int) (protocol.Named, string) {
	v := protocol.Named{}
	if cm == nil || len(cm.Arms) == 0 {
		return v, "the cell has no figures"
	}
	ref, treat, c := &cm.Arms[0], cm.Arm(rule.Arm), cm.Against(rule.Arm)
	if treat == nil || c == nil {
		return v, fmt.Sprintf("arm %s has no figures", rule.Arm)
	}
	if c.N < rounds {
		return v, fmt.Sprintf("%d of %d rounds lack a value of %s", rounds-c.N, rounds, cm.Metric)
	}
	if c.Contradiction != "" {
		return v, c.Contradiction
	}
	v["n"] = float64(c.N)
	var a, b float64
	switch rule.Statistic {
	case protocol.StatPooled:
		if c.Pooled == nil {
			return v, "there are no pooled samples"
		}
		q := c.Pooled
		a, b = float64(q.Ref), float64(q.Treat)
		v["diff_low"], v["diff_high"] = float64(q.DiffCI.Low), float64(q.DiffCI.High)
		v["ratio_low"], v["ratio_high"] = float64(q.RatioCI.Low), float64(q.RatioCI.High)
	case protocol.StatMedian:
		a, b = float64(ref.Median), float64(treat.Median)
	case protocol.StatMax:
		a, b = float64(ref.Max), float64(treat.Max)
	case protocol.StatSum:
		a, b = float64(ref.Sum), float64(treat.Sum)
	default:
		a, b = float64(ref.Mean), float64(treat.Mean)
		if c.Paired != nil {
			v["p"] = float64(c.Paired.P)
			v["diff_low"], v["diff_high"] = float64(c.Paired.CI.Low), float64(c.Paired.CI.High)
		}
		if c.RatioCI != nil {
			v["ratio_low"], v["ratio_high"] = float64(c.RatioCI.Low), float64(c.RatioCI.High)
		}
		v["d"], v["dz"] = towardsBetter(m, float64(c.D)), towardsBetter(m, float64(c.Dz))
	}
	v["ref"], v["treat"], v["diff"] = a, b, b-a
	switch {
	case a > 0:
		v["ratio"] = b / a
	case a == 0 && b == 0:
		// Nothing against nothing, for instance no retries on either side.
		v["ratio"], v["change"] = 1.0, 0.0
	}
	if a != 0 {
		v["change"] = (b - a) / math.Abs(a)
	}
	if gain := towardsBetter(m, b-a); !math.IsNaN(gain) {
		v["better"], v["worse"] = gain > 0, gain < 0
	}
	return v, "the reference's value is not positive, or a test could not be computed"
}

// towardsBetter is the value with the sign turned so that positive means that
// the treatment is better.
func towardsBetter(m *protocol.Metric, x float64) float64 {
	if m.Better == "lower" {
		return -x
	}
	return x
}

func (d *decision) named(values protocol.Named, names []string) []Value {
	var out []Value
	for _, n := range names {
		v := Value{Name: n, Num: analysis.Number(math.NaN())}
		switch x := values[n].(type) {
		case float64:
			v.Num = analysis.Number(x)
		case bool:
			b := x
			v.Bool, v.Num = &b, 0
		}
		out = append(out, v)
	}
	return out
}

// judged are the answers that count and are of that state.
func judged(rules []RuleResult, state string) []RuleResult {
	var out []RuleResult
	for _, r := range rules {
		if r.Judged && r.State == state {
			out = append(out, r)
		}
	}
	return out
}

func namesOf(rules []RuleResult) []string {
	var out []string
	for _, r := range rules {
		s := r.Rule
		if r.Cell != protocol.NoFactors {
			s += " in " + r.Cell
		}
		out = append(out, s)
	}
	return out
}
