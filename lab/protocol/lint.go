package protocol

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	ident    = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	label    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	level    = regexp.MustCompile(`^[^,=\s/\\"'<>&]+$`)
	variable = regexp.MustCompile(`\$\{([^}]*)\}`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Probes are the host probes that a limit may name.
var Probes = []string{
	"load_per_cpu", "foreign_cpu", "psi_cpu", "psi_io", "psi_memory", "steal", "governor", "turbo",
	"cgroup_quota", "memory_available", "swap_used", "disk_free", "scratch_tmpfs", "other_run", "thermal",
}

// TrialVars are the variables every trial gets, besides one per factor.
var TrialVars = []string{
	"ASSAY_ARM", "ASSAY_CELL", "ASSAY_ROUND", "ASSAY_SLOT", "ASSAY_SEED", "ASSAY_PHASE",
	"ASSAY_SCRATCH", "ASSAY_OUT", "ASSAY_ARM_DIR", "ASSAY_PROTOCOL_DIR",
}

// FactorVar is the variable that carries a factor's level.
func FactorVar(factor string) string { return "ASSAY_FACTOR_" + strings.ToUpper(factor) }

// lint looks at the meaning of a protocol that was read, perhaps in part.
// Defaults are applied to a copy, so that a rule's own faults are found even
// where something else is missing.
func (r *reader) lint(parsed *Protocol, known *Known) {
	p := *parsed
	p.Arms, p.Metrics = slices.Clone(p.Arms), slices.Clone(p.Metrics)
	p.Vetoes, p.Gates, p.Checks = slices.Clone(p.Vetoes), slices.Clone(p.Gates), slices.Clone(p.Checks)
	if p.Primary != nil {
		primary := *p.Primary
		p.Primary = &primary
	}
	p.defaults()
	if known == nil {
		known = &Known{}
	}

	if _, ok := r.places["assay"]; ok && p.Schema != SchemaVersion {
		r.bad("assay", "version %d of the protocol format; this program reads version %d", p.Schema, SchemaVersion)
	}
	if _, ok := r.places["name"]; ok && !label.MatchString(p.Name) {
		r.bad("name", "%q is not a name; use letters, digits, dot, dash, underscore", p.Name)
	}
	if _, ok := r.places["question"]; ok && strings.TrimSpace(p.Question) == "" {
		r.bad("question", "the question is empty; write down what is to be decided")
	}
	for i, in := range p.Inputs {
		if strings.TrimSpace(in) == "" || filepath.Clean(in) == "." {
			r.bad(fmt.Sprintf("inputs[%d]", i), "%q is not a file", in)
		}
	}
	r.lintArms(&p, known)
	r.lintFactors(&p)
	r.lintDesign(&p)
	r.lintMetrics(&p)
	r.lintChecks(&p, known)
	r.lintPrimary(&p)
	r.lintRules(&p, "vetoes", p.Vetoes, "any")
	r.lintRules(&p, "gates", p.Gates, "all")
	r.lintDecision(&p)
	r.lintHost(&p)
}

func (r *reader) bad(path, format string, args ...any) { r.fault(r.at(path), path, format, args...) }

// unique reports a name that stands twice in a list.
func (r *reader) unique(list, what string, n int, name func(int) string) {
	seen := map[string]int{}
	for i := range n {
		nm := name(i)
		if first, dup := seen[nm]; dup && nm != "" {
			r.bad(fmt.Sprintf("%s[%d].name", list, i), "%s %q stands twice; the first is at line %d", what, nm, r.at(fmt.Sprintf("%s[%d].name", list, first)).line)
			continue
		}
		seen[nm] = i
	}
}

func (r *reader) lintArms(p *Protocol, known *Known) {
	if n := len(p.Arms); n > 0 && n < 2 {
		r.bad("arms", "one arm; a comparison needs a reference and at least one other")
	}
	r.unique("arms", "arm", len(p.Arms), func(i int) string { return p.Arms[i].Name })
	for i := range p.Arms {
		a, at := &p.Arms[i], fmt.Sprintf("arms[%d]", i)
		if a.Name != "" && !label.MatchString(a.Name) {
			r.bad(at+".name", "%q is not a name; use letters, digits, dot, dash, underscore", a.Name)
		}
		switch ways := count(len(a.Command) > 0, a.Shell != "", a.Func != ""); {
		case ways == 0:
			r.bad(at, "arm %q executes nothing; give it one of command, shell, func", a.Name)
		case ways > 1:
			r.bad(at, "arm %q has more than one of command, shell, func", a.Name)
		}
		if len(a.Command) > 0 && strings.TrimSpace(a.Command[0]) == "" {
			r.bad(at+".command", "the program's name is empty")
		}
		if a.Func != "" && !slices.Contains(known.Arms, a.Func) {
			r.bad(at+".func", "this program has no arm function %q%s", a.Func, have(known.Arms, a.Func))
		}
		if a.Func != "" && a.Rev != "" {
			r.bad(at+".rev", "a Go function is compiled into this program and cannot be taken from a revision")
		}
		for name := range a.Env {
			if !envName.MatchString(name) || strings.HasPrefix(name, "ASSAY_") {
				r.bad(at+".env."+name, "%q cannot be set; names are letters, digits, underscore, and ASSAY_ is reserved", name)
			}
		}
		for j, arg := range a.Command {
			for _, m := range variable.FindAllStringSubmatch(arg, -1) {
				if !p.knownVariable(a, m[1]) {
					r.bad(fmt.Sprintf("%s.command[%d]", at, j), "unknown variable ${%s}; known are %s, a factor's variable and this arm's env", m[1], strings.Join(TrialVars, " "))
				}
			}
		}
		for j, code := range a.OKExit {
			if code < 0 || code > 255 {
				r.bad(fmt.Sprintf("%s.ok_exit[%d]", at, j), "%d is not an exit status; they are 0 to 255", code)
			}
		}
	}
	if len(p.Arms) > 0 && p.Arms[0].Class == ClassReported {
		r.bad("arms[0].class", "the first arm is the reference and cannot be merely reported")
	}
}

func (p *Protocol) knownVariable(a *Arm, name string) bool {
	if _, ok := a.Env[name]; ok || slices.Contains(TrialVars, name) {
		return true
	}
	return slices.ContainsFunc(p.Factors, func(f Factor) bool { return FactorVar(f.Name) == name })
}

func (r *reader) lintFactors(p *Protocol) {
	r.unique("factors", "factor", len(p.Factors), func(i int) string { return p.Factors[i].Name })
	cells := 1
	for i, f := range p.Factors {
		at := fmt.Sprintf("factors[%d]", i)
		if f.Name != "" && !ident.MatchString(f.Name) {
			r.bad(at+".name", "%q is not a factor name; use lower-case letters, digits, underscore", f.Name)
		}
		if len(f.Levels) == 0 {
			r.bad(at, "factor %q has no levels", f.Name)
		}
		seen := map[Scalar]bool{}
		for j, l := range f.Levels {
			if !level.MatchString(string(l)) {
				r.bad(fmt.Sprintf("%s.levels[%d]", at, j), "%q is not a level; no spaces, commas, equals signs, slashes, quotes", l)
			}
			if seen[l] {
				r.bad(fmt.Sprintf("%s.levels[%d]", at, j), "level %q stands twice", l)
			}
			seen[l] = true
		}
		cells = min(cells*max(len(f.Levels), 1), maxCells+1)
	}
	if cells > maxCells {
		r.bad("factors", "more than %d cells", maxCells)
		p.Factors = nil
		return
	}
	for i, s := range p.Exclude {
		r.selector(p, fmt.Sprintf("exclude[%d]", i), s)
	}
	for i, o := range p.Overrides {
		at := fmt.Sprintf("overrides[%d]", i)
		r.selector(p, at+".cells", o.Cells)
		if o.Rounds < 0 || o.Rounds > maxRounds {
			r.bad(at+".rounds", "%d rounds; give 1 to %d", o.Rounds, maxRounds)
		}
		if o.Warmup != nil && (*o.Warmup < 0 || *o.Warmup > maxRounds) {
			r.bad(at+".warmup", "%d warm-up rounds; give 0 to %d", *o.Warmup, maxRounds)
		}
	}
	if len(p.Factors) > 0 && len(p.Cells()) == 0 {
		r.bad("exclude", "every cell is left out; nothing would run")
	}
}

// selector checks that a selector names what exists and selects something.
func (r *reader) selector(p *Protocol, at string, s Selector) {
	ok := true
	for name, levels := range s {
		i := slices.IndexFunc(p.Factors, func(f Factor) bool { return f.Name == name })
		if i < 0 {
			var names []string
			for _, f := range p.Factors {
				names = append(names, f.Name)
			}
			r.bad(at+"."+name, "unknown factor %q%s", name, have(names, name))
			ok = false
			continue
		}
		for _, l := range levels {
			if !slices.Contains(p.Factors[i].Levels, l) {
				r.bad(at+"."+name, "factor %s has no level %q", name, l)
				ok = false
			}
		}
		if len(levels) == 0 {
			r.bad(at+"."+name, "no level given")
			ok = false
		}
	}
	if ok && len(s) > 0 && !strings.HasPrefix(at, "exclude") && !slices.ContainsFunc(p.Cells(), s.Match) {
		r.bad(at, "selects no cell that runs")
	}
}

func (r *reader) lintDesign(p *Protocol) {
	if _, ok := r.places["design.rounds"]; ok && (p.Design.Rounds < 1 || p.Design.Rounds > maxRounds) {
		r.bad("design.rounds", "%d rounds; give 1 to %d", p.Design.Rounds, maxRounds)
	}
	if p.Design.Warmup < 0 || p.Design.Warmup > maxRounds {
		r.bad("design.warmup", "%d warm-up rounds; give 0 to %d", p.Design.Warmup, maxRounds)
	}
	if p.Design.ScratchGB < 0 {
		r.bad("design.scratch_gib", "a ceiling must be 0 (none) or more")
	}
}

func (r *reader) lintMetrics(p *Protocol) {
	r.unique("metrics", "metric", len(p.Metrics), func(i int) string { return p.Metrics[i].Name })
	for i := range p.Metrics {
		m, at := &p.Metrics[i], fmt.Sprintf("metrics[%d]", i)
		if m.Name != "" && !ident.MatchString(m.Name) {
			r.bad(at+".name", "%q is not a metric name; use lower-case letters, digits, underscore", m.Name)
		}
		if m.Source == SourceSamples {
			if m.Quantile == nil {
				r.bad(at, "metric %q reads samples; say which quantile of them is a trial's value", m.Name)
			}
		} else if m.Quantile != nil {
			r.bad(at+".quantile", "only samples have a quantile; %q reads %s", m.Name, m.Source)
		}
		if q := m.Quantile; q != nil && (*q < 0 || *q > 1) {
			r.bad(at+".quantile", "%v is not a quantile; give 0 (least) to 1 (greatest)", *q)
		}
		if units := m.units(); units != nil {
			if _, ok := units[m.Unit]; !ok {
				r.bad(at+".unit", "%q is no unit of %s; use one of %s", m.Unit, m.Source, strings.Join(slices.Sorted(maps.Keys(units)), " "))
			}
		}
		if m.Source == SourcePeakMemory && p.Design.Isolation == IsolationShared && slices.ContainsFunc(p.Arms, func(a Arm) bool { return a.Func != "" }) {
			r.bad(at+".source", "a Go function in shared isolation has no memory of its own; use isolation: process")
		}
		if m.Source == SourceGoBench && m.Unit == "" {
			r.bad(at, "metric %q reads Go benchmark lines; unit says which figure of the line, for instance ns/op", m.Name)
		}
		if slices.ContainsFunc(p.Arms, func(a Arm) bool { return a.Func != "" }) && m.Source == SourceGoBench {
			r.bad(at+".source", "a Go function reports figures directly, not as benchmark lines")
		}
	}
}

func (r *reader) lintChecks(p *Protocol, known *Known) {
	r.unique("checks", "check", len(p.Checks), func(i int) string { return p.Checks[i].Name })
	for i := range p.Checks {
		c, at := &p.Checks[i], fmt.Sprintf("checks[%d]", i)
		if c.Name != "" && !ident.MatchString(c.Name) {
			r.bad(at+".name", "%q is not a check name; use lower-case letters, digits, underscore", c.Name)
		}
		switch ways := count(len(c.Command) > 0, c.Shell != "", c.Func != "", c.Reported); {
		case ways == 0:
			r.bad(at, "check %q has no judge; give it one of command, shell, func, reported", c.Name)
		case ways > 1:
			r.bad(at, "check %q has more than one of command, shell, func, reported", c.Name)
		}
		if c.Func != "" && !slices.Contains(known.Checks, c.Func) {
			r.bad(at+".func", "this program has no check function %q%s", c.Func, have(known.Checks, c.Func))
		}
		if c.Reported && c.Scope != ScopeTrial && c.Scope != "" {
			r.bad(at+".scope", "an arm reports on its own trial; scope must be trial")
		}
		if len(c.Arms) > 0 && c.Scope != ScopeTrial && c.Scope != "" {
			r.bad(at+".arms", "only a check of scope trial belongs to single arms")
		}
		for j, a := range c.Arms {
			r.armName(p, fmt.Sprintf("%s.arms[%d]", at, j), a)
		}
		if c.Operations < 0 {
			r.bad(at+".operations", "a check that may look at nothing passes on nothing; give 1 or more")
		}
		r.selector(p, at+".cells", c.Cells)
	}
}

func (r *reader) armName(p *Protocol, at, name string) {
	if p.Arm(name) != nil {
		return
	}
	var names []string
	for _, a := range p.Arms {
		names = append(names, a.Name)
	}
	r.bad(at, "unknown arm %q%s", name, have(names, name))
}

func (r *reader) metricName(p *Protocol, at, name string) {
	if p.Metric(name) != nil || name == "" {
		return
	}
	var names []string
	for _, m := range p.Metrics {
		names = append(names, m.Name)
	}
	r.bad(at, "unknown metric %q%s", name, have(names, name))
}

func (r *reader) lintPrimary(p *Protocol) {
	q := p.Primary
	if q == nil {
		return
	}
	r.metricName(p, "primary.metric", q.Metric)
	if q.Treatment != "" {
		r.armName(p, "primary.treatment", q.Treatment)
		if len(p.Arms) > 0 && q.Treatment == p.Arms[0].Name {
			r.bad("primary.treatment", "%q is the reference itself", q.Treatment)
		}
		if a := p.Arm(q.Treatment); a != nil && a.Class == ClassReported {
			r.bad("primary.treatment", "arm %q is only reported; the decision cannot be about it", q.Treatment)
		}
	}
	r.selector(p, "primary.cells", q.Cells)
	if q.Alpha <= 0 || q.Alpha >= 1 {
		r.bad("primary.alpha", "alpha is %v; give a value between 0 and 1, usually 0.05", q.Alpha)
	}
	f := q.Floor
	if n := count(f.D != 0, f.Dz != 0, f.Change != 0); n > 1 {
		r.bad("primary.floor", "a floor has one scale; keep one of d, dz, change")
	}
	if f.D < 0 || f.Dz < 0 || f.Change < 0 {
		r.bad("primary.floor", "a floor is a size without sign; give a positive value")
	}
	if len(p.Cells()) > 0 && len(p.PrimaryCells()) == 0 {
		r.bad("primary", "no cell is left for the primary comparison: all it selects are stress cells")
	}
}

func (r *reader) lintRules(p *Protocol, list string, rules []Rule, reserved string) {
	r.unique(list, strings.TrimSuffix(strings.TrimSuffix(list, "s"), "e"), len(rules), func(i int) string { return rules[i].Name })
	for i := range rules {
		g, at := &rules[i], fmt.Sprintf("%s[%d]", list, i)
		if g.Name != "" && !ident.MatchString(g.Name) || g.Name == reserved {
			r.bad(at+".name", "%q is not a rule name; use lower-case letters, digits, underscore, and not %q", g.Name, reserved)
		}
		r.metricName(p, at+".metric", g.Metric)
		if g.Arm != "" {
			r.armName(p, at+".arm", g.Arm)
			if len(p.Arms) > 0 && g.Arm == p.Arms[0].Name {
				r.bad(at+".arm", "%q is the reference itself", g.Arm)
			}
		}
		r.selector(p, at+".cells", g.Cells)
		if m := p.Metric(g.Metric); m != nil && g.Statistic == StatPooled && m.Source != SourceSamples {
			r.bad(at+".statistic", "only samples can be pooled; %q reads %s", m.Name, m.Source)
		}
		if g.Require != "" {
			r.condition(at+".require", g.Require, RuleScope(g.Statistic))
		}
	}
}

func (r *reader) condition(at, src string, scope Scope) *Condition {
	c, err := Compile(src, scope)
	if err == nil {
		return c
	}
	where := r.at(at)
	var ce *ConditionError
	if errors.As(err, &ce) && where.line <= len(r.lines) {
		// The caret can be exact where the condition stands plainly on its line.
		if line := r.lines[where.line-1]; strings.Contains(line, src) {
			where.column = len([]rune(line[:strings.Index(line, src)])) + ce.Offset + 1
		}
	}
	r.fault(where, at, "%s", err)
	return nil
}

func (r *reader) lintDecision(p *Protocol) {
	d := &p.Decision
	_, presetGiven := r.places["decision.preset"]
	_, outcomesGiven := r.places["decision.outcomes"]
	if presetGiven && outcomesGiven {
		r.bad("decision", "give a preset or outcomes, not both")
		return
	}
	if d.Preset == "" && len(d.Outcomes) == 0 {
		r.bad("decision", "no rule; give preset: four-branch, or a list of outcomes")
		return
	}
	scope := p.OutcomeScope()
	if d.Caveat != "" {
		if d.Preset == "" {
			r.bad("decision.caveat", "only the preset four-branch has a caveat")
		} else if c := r.condition("decision.caveat", d.Caveat, scope); c != nil {
			r.oneCell(p, "decision.caveat", c)
		}
	}
	if d.Preset != "" {
		return
	}
	consulted := map[string]bool{}
	names := map[string]bool{}
	for i := range d.Outcomes {
		o, at := &d.Outcomes[i], fmt.Sprintf("decision.outcomes[%d]", i)
		last := i == len(d.Outcomes)-1
		if names[o.Name] {
			r.bad(at+".name", "outcome %q stands twice", o.Name)
		}
		names[o.Name] = true
		if slices.Contains(ReservedOutcomes, o.Name) {
			r.bad(at+".name", "%q is an outcome that assay itself decides; choose another name", o.Name)
		}
		if last {
			if o.When != "" {
				r.bad(at+".when", "the last outcome is the default and has no condition; add one after it")
			}
			if o.Class == "go" {
				r.bad(at+".class", "the last outcome is the default and may not be go: what no condition recognises is not a success")
			}
			continue
		}
		if o.When == "" {
			r.bad(at, "outcome %q has no condition; only the last may have none", o.Name)
			continue
		}
		c := r.condition(at+".when", o.When, scope)
		if c == nil {
			continue
		}
		for _, n := range c.Names {
			consulted[n] = true
		}
		r.oneCell(p, at+".when", c)
		if o.Class == "go" && !slices.ContainsFunc(c.Names, func(n string) bool { return strings.HasPrefix(n, "primary.") || strings.HasPrefix(n, "gate.") }) {
			r.bad(at+".when", "a go outcome must consult the primary comparison or a gate")
		}
	}
	for i, g := range p.Gates {
		if g.Class != ClassStress && !consulted["gate."+g.Name] && !consulted["gate.all"] {
			r.bad(fmt.Sprintf("gates[%d].name", i), "no outcome consults gate %q; use gate.%s or gate.all, or make it class: stress", g.Name, g.Name)
		}
	}
}

// oneCell refuses effect names where they would have several values.
func (r *reader) oneCell(p *Protocol, at string, c *Condition) {
	if p.Primary == nil || len(p.PrimaryCells()) <= 1 {
		return
	}
	for _, n := range c.Names {
		if strings.HasPrefix(n, "effect.") {
			r.bad(at, "%s is defined only where the primary comparison has one cell; it has %d: use a gate", n, len(p.PrimaryCells()))
			return
		}
	}
}

func (r *reader) lintHost(p *Protocol) {
	for i, l := range p.Host {
		at := fmt.Sprintf("host[%d]", i)
		if l.Probe != "" && !slices.Contains(Probes, l.Probe) {
			r.bad(at+".probe", "unknown probe %q%s", l.Probe, have(Probes, l.Probe))
		}
		if l.Max == nil && l.Min == nil {
			r.bad(at, "a limit needs max or min")
		}
		if l.Max != nil && l.Min != nil && *l.Max < *l.Min {
			r.bad(at, "max %v is below min %v: nothing would be allowed", *l.Max, *l.Min)
		}
	}
}

// ReservedOutcomes are decided before a protocol's own rule is looked at.
var ReservedOutcomes = []string{"ABORT", "UNCHECKED", "INCOMPLETE", "MISSING-DATA", "HOST-LIMITS", "PROVISIONAL", "EXPLORATORY", "VETOED"}

func have(names []string, word string) string {
	if h := didYouMean(word, names); h != "" {
		return h
	}
	if len(names) == 0 {
		return "; there are none"
	}
	return "; there are " + strings.Join(names, ", ")
}

func count(truths ...bool) (n int) {
	for _, t := range truths {
		if t {
			n++
		}
	}
	return n
}
