package protocol

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Names become parts of files, variables and report columns, so that they have
// a length that those can bear.
var (
	ident    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	label    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	level    = regexp.MustCompile(`^[^,=\s/\\"'<>&]{1,64}$`)
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

// SettingVar is the variable that carries a setting's value.
func SettingVar(setting string) string { return "ASSAY_SETTING_" + strings.ToUpper(setting) }

// lint looks at the meaning of a protocol that was read, perhaps in part.
// Defaults are applied to a copy, so that a rule's own faults are found even
// where something else is missing.
func (r *reader) lint(parsed *Protocol, known *Known) {
	p := *parsed
	p.Arms, p.Metrics, p.Host = slices.Clone(p.Arms), slices.Clone(p.Metrics), slices.Clone(p.Host)
	p.Settings = slices.Clone(p.Settings)
	p.Vetoes, p.Gates, p.Checks = slices.Clone(p.Vetoes), slices.Clone(p.Gates), slices.Clone(p.Checks)
	if p.Primary != nil {
		primary := *p.Primary
		p.Primary = &primary
	}
	p.defaults()
	if known == nil {
		known = &Known{}
	}

	if r.given("assay") && p.Schema != SchemaVersion {
		r.bad("assay", "version %d of the protocol format; this program reads version %d", p.Schema, SchemaVersion)
	}
	if p.Name != "" && !label.MatchString(p.Name) {
		r.bad("name", "%q is not a name; use at most 64 letters, digits, dots, dashes, underscores", cut(p.Name, 40))
	}
	for i, in := range p.Inputs {
		if strings.TrimSpace(in) == "" || filepath.Clean(in) == "." {
			r.bad(fmt.Sprintf("inputs[%d]", i), "%q is not a file", in)
		}
	}
	r.zeroes(parsed)
	r.lintSettings(&p)
	r.lintArms(&p, known)
	r.lintFactors(&p)
	r.lintDesign(&p)
	r.lintMetrics(&p)
	r.lintChecks(&p, known)
	r.lintPrimary(&p)
	r.lintRules(&p, "veto", "vetoes", p.Vetoes)
	r.lintRules(&p, "gate", "gates", p.Gates)
	r.lintDecision(&p)
	r.lintHost(&p)
}

// zeroes refuses a zero that was written down where leaving the key out means
// the default: it would silently be something else.
func (r *reader) zeroes(p *Protocol) {
	refuse := func(zero bool, path, why string) {
		if zero && r.given(path) {
			r.bad(path, "%s", why)
		}
	}
	for i := range p.Arms {
		refuse(len(p.Arms[i].OKExit) == 0, fmt.Sprintf("arms[%d].ok_exit", i), "no exit status would be a success; remove the key for [0]")
	}
	for i := range p.Overrides {
		refuse(p.Overrides[i].Rounds == 0, fmt.Sprintf("overrides[%d].rounds", i), "0 rounds; exclude leaves cells out")
	}
	for i := range p.Checks {
		refuse(p.Checks[i].Operations == 0, fmt.Sprintf("checks[%d].operations", i), "a check that may look at nothing passes on nothing; give 1 or more")
	}
	if q := p.Primary; q != nil {
		refuse(q.Alpha == 0, "primary.alpha", "alpha is 0: nothing would ever be significant")
		for _, f := range []struct {
			value float64
			key   string
		}{{q.Floor.D, "d"}, {q.Floor.Dz, "dz"}, {q.Floor.Change, "change"}} {
			refuse(f.value == 0, "primary.floor."+f.key, "a floor of 0 is none; remove it or give a positive value")
		}
	}
}

// bad reports what is wrong with the meaning of a path, unless its form, or
// that of what it is part of, is wrong already.
func (r *reader) bad(path, format string, args ...any) {
	for p := path; p != ""; p = p[:max(strings.LastIndexAny(p, ".["), 0)] {
		if r.broken[p] {
			return
		}
	}
	r.fault(r.at(path), path, format, args...)
}

// badName is bad for what defines a name: whoever uses the name is not
// reported too.
func (r *reader) badName(path, format string, args ...any) {
	r.bad(path, format, args...)
	r.broken[path] = true
}

// given says whether the path stands in the file.
func (r *reader) given(path string) bool {
	_, ok := r.places[path]
	return ok
}

// sound says whether the form of none of the keys at the path is wrong, so that
// it makes sense to say that something is missing there.
func (r *reader) sound(at string, keys ...string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return r.broken[at+"."+k] })
}

// complete says whether all that a list defines could be read: then a name that
// is not in it does not exist.
func (r *reader) complete(list string, parts ...string) bool {
	for path := range r.broken {
		rest, ok := strings.CutPrefix(path, list)
		if !ok || rest != "" && rest[0] != '[' {
			continue
		}
		_, part, isPart := strings.Cut(rest, "].")
		if !isPart || slices.ContainsFunc(append(parts, "name"), func(k string) bool { return strings.HasPrefix(part, k) }) {
			return false
		}
	}
	return true
}

// unique reports a name that stands twice in a list.
func (r *reader) unique(list, what string, n int, name func(int) string) {
	seen := map[string]int{}
	for i := range n {
		nm := name(i)
		if first, dup := seen[nm]; dup && nm != "" {
			r.badName(fmt.Sprintf("%s[%d].name", list, i), "%s %q stands twice; the first is at line %d", what, nm, r.at(fmt.Sprintf("%s[%d].name", list, first)).line)
			continue
		}
		seen[nm] = i
	}
}

func (r *reader) lintArms(p *Protocol, known *Known) {
	if n := len(p.Arms); n < 2 && r.given("arms") && r.complete("arms") {
		r.badName("arms", "%s; a comparison needs a reference and at least one other", []string{"no arm", "one arm"}[n])
	}
	r.unique("arms", "arm", len(p.Arms), func(i int) string { return p.Arms[i].Name })
	for i := range p.Arms {
		a, at := &p.Arms[i], fmt.Sprintf("arms[%d]", i)
		if a.Name != "" && !label.MatchString(a.Name) {
			r.badName(at+".name", "%q is not a name; use at most 64 letters, digits, dots, dashes, underscores", cut(a.Name, 40))
		}
		switch ways := count(len(a.Command) > 0, a.Shell != "", a.Func != ""); {
		case !r.sound(at, "command", "shell", "func"):
		case ways == 0:
			r.bad(at, "arm %q executes nothing; give it one of command, shell, func", a.Name)
		case ways > 1:
			r.bad(at, "arm %q has more than one of command, shell, func", a.Name)
		}
		if len(a.Command) > 0 && strings.TrimSpace(a.Command[0]) == "" {
			r.bad(at+".command[0]", "the program's name is empty")
		}
		if a.Func != "" && !slices.Contains(known.Arms, a.Func) {
			r.bad(at+".func", "this program has no arm function %q%s", a.Func, have(known.Arms, a.Func))
		}
		if a.Func != "" && a.Rev != "" {
			r.bad(at+".rev", "a Go function is compiled into this program and cannot be taken from a revision")
		}
		if a.Rev != "" && (strings.HasPrefix(a.Rev, "-") || strings.ContainsAny(a.Rev, " \t\n")) {
			r.bad(at+".rev", "%q is not a git revision", a.Rev)
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
	return slices.ContainsFunc(p.Factors, func(f Factor) bool { return FactorVar(f.Name) == name }) ||
		slices.ContainsFunc(p.Settings, func(s Setting) bool { return SettingVar(s.Name) == name })
}

func (r *reader) lintSettings(p *Protocol) {
	r.unique("settings", "setting", len(p.Settings), func(i int) string { return p.Settings[i].Name })
	for i, s := range p.Settings {
		at := fmt.Sprintf("settings[%d].", i)
		if s.Name != "" && !ident.MatchString(s.Name) {
			r.badName(at+"name", "%q is not a setting's name; use at most 64 lower-case letters, digits, underscores", cut(s.Name, 40))
		}
		if strings.ContainsAny(s.Value, "\x00\r\n") {
			r.bad(at+"value", "a value is one line of text")
		}
	}
}

func (r *reader) lintFactors(p *Protocol) {
	r.unique("factors", "factor", len(p.Factors), func(i int) string { return p.Factors[i].Name })
	r.cellsKnown = r.complete("factors", "levels") && r.complete("exclude", "") && r.complete("overrides", "cells", "class")
	for i, f := range p.Factors {
		at := fmt.Sprintf("factors[%d]", i)
		if f.Name != "" && !ident.MatchString(f.Name) {
			r.badName(at+".name", "%q is not a factor name; use at most 64 lower-case letters, digits, underscores", cut(f.Name, 40))
		}
		if len(f.Levels) == 0 {
			if r.sound(at, "levels") {
				r.bad(at, "factor %q has no levels", f.Name)
			}
			r.broken[at+".levels"] = true
			r.cellsKnown = false
		}
		seen := map[Scalar]bool{}
		for j, l := range f.Levels {
			if !level.MatchString(string(l)) {
				r.bad(fmt.Sprintf("%s.levels[%d]", at, j), "%q is not a level; no spaces, commas, equals signs, slashes, quotes, and at most 64 characters", cut(string(l), 40))
			}
			if seen[l] {
				r.bad(fmt.Sprintf("%s.levels[%d]", at, j), "level %q stands twice", l)
			}
			seen[l] = true
		}
	}
	if p.combinations() > maxCells {
		r.bad("factors", "more than %d cells", maxCells)
		r.cellsKnown = false
	}
	if r.cellsKnown {
		r.cells = p.Cells()
	}
	for i, s := range p.Exclude {
		r.cellsKnown = r.selector(p, fmt.Sprintf("exclude[%d]", i), s) && r.cellsKnown
	}
	for i, o := range p.Overrides {
		at := fmt.Sprintf("overrides[%d]", i)
		r.cellsKnown = r.selector(p, at+".cells", o.Cells) && r.cellsKnown
		if o.Rounds < 0 || o.Rounds > maxRounds {
			r.bad(at+".rounds", "%d rounds; give 1 to %d", o.Rounds, maxRounds)
		}
		if o.Warmup != nil && (*o.Warmup < 0 || *o.Warmup > maxRounds) {
			r.bad(at+".warmup", "%d warm-up rounds; give 0 to %d", *o.Warmup, maxRounds)
		}
		for j, a := range o.Arms {
			r.armName(p, fmt.Sprintf("%s.arms[%d]", at, j), a)
			if slices.Contains(o.Arms[:j], a) {
				r.bad(fmt.Sprintf("%s.arms[%d]", at, j), "arm %q stands twice", a)
			}
		}
		for _, a := range p.Arms {
			if len(o.Arms) > 0 && a.Class != ClassReported && !slices.Contains(o.Arms, a.Name) {
				r.bad(at+".arms", "leaves out %q, which is compared; only an arm of class reported may be left out", a.Name)
			}
		}
		if !r.given(at+".rounds") && o.Warmup == nil && o.Timeout == 0 && o.Class == "" && len(o.Arms) == 0 && r.sound(at, "rounds", "warmup", "timeout", "class", "arms") {
			r.bad(at, "changes nothing; give it one of rounds, warmup, timeout, class, arms")
		}
	}
	if r.cellsKnown && len(r.cells) == 0 {
		r.bad("exclude", "every cell is left out; nothing would run")
		r.cellsKnown = false
	}
}

// selected are the cells that run and that the selector names; none where they
// are not known.
func (r *reader) selected(s Selector) []Cell {
	if !r.cellsKnown {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.cells), func(c Cell) bool { return !s.Match(c) })
}

// primaryCells are the cells of the primary comparison; none where they are
// not known.
func (r *reader) primaryCells(p *Protocol) []Cell {
	if p.Primary == nil || !r.cellsKnown || r.broken["primary.cells"] {
		return nil
	}
	return slices.DeleteFunc(r.selected(p.Primary.Cells), func(c Cell) bool { return c.Class == ClassStress })
}

// selector checks that a selector names what exists and selects something. It
// says whether all names exist.
func (r *reader) selector(p *Protocol, at string, s Selector) (ok bool) {
	ok = true
	for name, levels := range s {
		i := slices.IndexFunc(p.Factors, func(f Factor) bool { return f.Name == name })
		if i < 0 {
			if r.complete("factors") {
				var names []string
				for _, f := range p.Factors {
					names = append(names, f.Name)
				}
				r.bad(at+"."+name, "unknown factor %q%s", cut(name, 40), have(names, name))
			}
			ok = false
			continue
		}
		var exist []string
		exists := map[Scalar]bool{}
		for _, l := range p.Factors[i].Levels {
			exists[l] = true
			exist = append(exist, string(l))
		}
		for j, l := range levels {
			if exists[l] {
				continue
			}
			ok = false
			where := fmt.Sprintf("%s.%s[%d]", at, name, j)
			if !r.given(where) {
				where = at + "." + name
			}
			if r.complete("factors", "levels") {
				r.bad(where, "factor %s has no level %q%s", name, cut(string(l), 40), have(exist, string(l)))
			}
		}
		if len(levels) == 0 {
			r.bad(at+"."+name, "no level given")
			ok = false
		}
	}
	if ok && len(s) > 0 && r.cellsKnown && !strings.HasPrefix(at, "exclude") && !slices.ContainsFunc(r.cells, s.Match) {
		r.bad(at, "selects no cell that runs")
	}
	return ok
}

// roundsKnown says whether the cells have the rounds that the file gives them.
func (r *reader) roundsKnown(p *Protocol) bool {
	return r.cellsKnown && r.sound("design", "rounds", "warmup") && r.complete("overrides", "rounds", "warmup") && p.Design.Rounds >= 1 && p.Design.Rounds <= maxRounds && p.Design.Warmup <= maxRounds
}

func (r *reader) lintDesign(p *Protocol) {
	if r.given("design.rounds") && (p.Design.Rounds < 1 || p.Design.Rounds > maxRounds) {
		r.bad("design.rounds", "%d rounds; give 1 to %d", p.Design.Rounds, maxRounds)
	}
	if trials := p.trials(r.cells); r.roundsKnown(p) && trials > maxTrials {
		r.bad("design.rounds", "%d trials in all cells, rounds and arms; a run has at most %d", trials, maxTrials)
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
	if len(p.Metrics) == 0 && r.given("metrics") {
		r.badName("metrics", "no metric; give at least the one that the primary comparison is about")
	}
	for i := range p.Metrics {
		m, at := &p.Metrics[i], fmt.Sprintf("metrics[%d]", i)
		if m.Name != "" && !ident.MatchString(m.Name) {
			r.badName(at+".name", "%q is not a metric name; use at most 64 lower-case letters, digits, underscores", cut(m.Name, 40))
		}
		if m.Source == "" {
			continue // said already; what it would be judged by is not known
		}
		if m.Source == SourceSamples {
			if m.Quantile == nil && r.sound(at, "quantile") {
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
		if (m.Source == SourcePeakMemory || m.Source == SourceSwitches) && p.Design.Isolation == IsolationShared && slices.ContainsFunc(p.Arms, func(a Arm) bool { return a.Func != "" }) {
			r.bad(at+".source", "a Go function in shared isolation has no %s of its own; use isolation: process", strings.ReplaceAll(m.Source, "_", " "))
		}
		if m.Source == SourceGoBench && m.Unit == "" && r.sound(at, "unit") {
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
			r.badName(at+".name", "%q is not a check name; use at most 64 lower-case letters, digits, underscores", cut(c.Name, 40))
		}
		if c.Name == CompletedCheck {
			r.badName(at+".name", "%q is the check that every run has; choose another name", c.Name)
		}
		switch ways := count(len(c.Command) > 0, c.Shell != "", c.Func != "", c.Reported); {
		case !r.sound(at, "command", "shell", "func", "reported"):
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
		if len(c.Command) > 0 && strings.TrimSpace(c.Command[0]) == "" {
			r.bad(at+".command[0]", "the program's name is empty")
		}
		if c.Operations < 0 {
			r.bad(at+".operations", "a check that may look at nothing passes on nothing; give 1 or more")
		}
		for list, items := range map[string][]string{"kinds": c.Kinds, "faults": c.Faults} {
			for j, item := range items {
				if strings.TrimSpace(item) == "" {
					r.bad(fmt.Sprintf("%s.%s[%d]", at, list, j), "an empty name; nothing can be called that")
				}
			}
		}
		r.selector(p, at+".cells", c.Cells)
	}
}

func (r *reader) armName(p *Protocol, at, name string) {
	if p.Arm(name) != nil || !r.complete("arms") {
		return
	}
	var names []string
	for _, a := range p.Arms {
		names = append(names, a.Name)
	}
	r.bad(at, "unknown arm %q%s", cut(name, 40), have(names, name))
}

func (r *reader) metricName(p *Protocol, at, name string) {
	if p.Metric(name) != nil || name == "" || !r.complete("metrics") {
		return
	}
	var names []string
	for _, m := range p.Metrics {
		names = append(names, m.Name)
	}
	r.bad(at, "unknown metric %q%s", cut(name, 40), have(names, name))
}

// Bounds of alpha. One in five is a coin that a team would not bet its data on;
// below the least, the distribution functions have no digits left.
const (
	leastAlpha = 1e-12
	mostAlpha  = 0.2
)

func (r *reader) lintPrimary(p *Protocol) {
	q := p.Primary
	if q == nil {
		return
	}
	r.metricName(p, "primary.metric", q.Metric)
	if r.given("primary.treatment") {
		r.armName(p, "primary.treatment", q.Treatment)
		if len(p.Arms) > 0 && q.Treatment == p.Arms[0].Name {
			r.bad("primary.treatment", "%q is the reference itself", q.Treatment)
		}
	}
	if q.Treatment != "" {
		if a := p.Arm(q.Treatment); a != nil && a.Class == ClassReported {
			r.bad("primary.treatment", "arm %q is only reported; the decision cannot be about it", q.Treatment)
		}
	}
	r.selector(p, "primary.cells", q.Cells)
	if q.Alpha < leastAlpha || q.Alpha > mostAlpha {
		r.bad("primary.alpha", "alpha is %v; give a value between %v and %v, usually 0.05: above, chance alone would too often be called an effect", q.Alpha, leastAlpha, mostAlpha)
	}
	f := q.Floor
	if n := count(f.D != 0, f.Dz != 0, f.Change != 0); n > 1 {
		r.bad("primary.floor", "a floor has one scale; keep one of d, dz, change")
	}
	if f.D < 0 || f.Dz < 0 || f.Change < 0 {
		r.bad("primary.floor", "a floor is a size without sign; give a positive value")
	}
	if r.cellsKnown && !r.broken["primary.cells"] && len(r.selected(q.Cells)) > 0 && len(r.primaryCells(p)) == 0 {
		r.bad("primary", "no cell is left for the primary comparison: all it selects are stress cells")
	}
}

func (r *reader) lintHost(p *Protocol) {
	for i, l := range p.Host {
		at := fmt.Sprintf("host[%d]", i)
		if l.Probe != "" && !slices.Contains(Probes, l.Probe) {
			r.bad(at+".probe", "unknown probe %q%s", cut(l.Probe, 40), have(Probes, l.Probe))
		}
		if l.Max == nil && l.Min == nil && r.sound(at, "max", "min") {
			r.bad(at, "a limit needs max or min")
		}
		if l.Max != nil && l.Min != nil && *l.Max < *l.Min {
			r.bad(at, "max %v is below min %v: nothing would be allowed", *l.Max, *l.Min)
		}
	}
}

func have(names []string, word string) string {
	if h := didYouMean(word, names); h != "" {
		return h
	}
	switch len(names) {
	case 0:
		return "; there are none"
	case 1:
		return "; there is only " + names[0]
	}
	return "; there are " + few(names, ", ")
}

func count(truths ...bool) (n int) {
	for _, t := range truths {
		if t {
			n++
		}
	}
	return n
}
