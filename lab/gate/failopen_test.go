package gate

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// These tests look for a way to a go that is not earned. Protocols, runs and
// rules are drawn at random, mostly harmless and here and there spoiled, and
// whatever comes out as go must have everything that a go needs.

// form is a condition as drawn, so that it can be judged by other code than
// the gate's.
type form struct {
	text string
	eval func(values map[string]any) any
}

// draw makes a condition over the scope. It may name what does not exist.
func draw(t *rapid.T, scope protocol.Scope, depth int) form {
	if depth > 0 {
		switch rapid.IntRange(0, 6).Draw(t, "shape") {
		case 0:
			a := draw(t, scope, depth-1)
			return form{"!(" + a.text + ")", func(v map[string]any) any { return !a.eval(v).(bool) }}
		case 1, 2:
			a, b := draw(t, scope, depth-1), draw(t, scope, depth-1)
			return form{"(" + a.text + " && " + b.text + ")", func(v map[string]any) any { return a.eval(v).(bool) && b.eval(v).(bool) }}
		case 3:
			a, b := draw(t, scope, depth-1), draw(t, scope, depth-1)
			return form{"(" + a.text + " || " + b.text + ")", func(v map[string]any) any { return a.eval(v).(bool) || b.eval(v).(bool) }}
		case 4:
			a, b, c := draw(t, scope, depth-1), draw(t, scope, depth-1), draw(t, scope, depth-1)
			return form{"(" + a.text + " ? " + b.text + " : " + c.text + ")", func(v map[string]any) any {
				if a.eval(v).(bool) {
					return b.eval(v)
				}
				return c.eval(v)
			}}
		}
	}
	name := rapid.SampledFrom(namesIn(scope)).Draw(t, "name")
	if scope[name] == protocol.Truth {
		return form{name, func(v map[string]any) any { return v[name] }}
	}
	if rapid.IntRange(0, 199).Draw(t, "misspelt") == 77 {
		return form{name + "x > 0", func(map[string]any) any { return true }}
	}
	bound := rapid.SampledFrom([]float64{-100, -0.2, 0, 0.05, 0.8, 1, 1.25, 100}).Draw(t, "bound")
	number := form{name, func(v map[string]any) any { return v[name] }}
	if rapid.Bool().Draw(t, "size") {
		number = form{"abs(" + name + ")", func(v map[string]any) any { return math.Abs(v[name].(float64)) }}
	}
	compare := map[string]func(a, b float64) bool{
		"<": func(a, b float64) bool { return a < b }, "<=": func(a, b float64) bool { return a <= b },
		">": func(a, b float64) bool { return a > b }, ">=": func(a, b float64) bool { return a >= b },
	}
	op := rapid.SampledFrom([]string{"<", "<=", ">", ">="}).Draw(t, "op")
	return form{fmt.Sprintf("%s %s %v", number.text, op, bound), func(v map[string]any) any { return compare[op](number.eval(v).(float64), bound) }}
}

func namesIn(scope protocol.Scope) []string {
	var names []string
	for n := range scope {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

const hunted = `
assay: 1
name: hunt
question: Is there a way through?
arms:
  - {name: old, shell: "true"}
  - {name: new, shell: "true"}
  - {name: odd, shell: "true"}
%s
design: {rounds: 4, warmup: 1, seed: 3}
metrics:
  - {name: a, better: higher, source: json}
  - {name: b, better: lower, source: json}
  - {name: lat, better: lower, source: samples, quantile: 0.9}
checks:
  - {name: exact, scope: trial, shell: "true"}
  - {name: whole, scope: run, shell: "true"}
primary: {metric: %s, test: %s, %s floor: %s}
decision: {preset: four-branch}
host:
  - {probe: steal, max: 5, action: block}
  - {probe: psi_io, max: 5, action: provisional}
  - {probe: psi_cpu, max: 5, action: warn}
`

func drawPlan(t *rapid.T) *protocol.Protocol {
	factors := rapid.SampledFrom([]string{"", "factors: [{name: f, levels: [1, 2]}]", "factors: [{name: f, levels: [1, 2, 3]}]\noverrides: [{cells: {f: 3}, class: stress}]"}).Draw(t, "factors")
	cells := ""
	if factors != "" && rapid.Bool().Draw(t, "one cell") {
		cells = "cells: {f: 1},"
	}
	text := fmt.Sprintf(hunted, factors, rapid.SampledFrom([]string{"a", "b", "lat"}).Draw(t, "primary"),
		rapid.SampledFrom([]string{"paired", "welch", "mann-whitney"}).Draw(t, "test"), cells,
		rapid.SampledFrom([]string{"{}", "{d: 0.8}", "{dz: 0.5}", "{change: 0.02}"}).Draw(t, "floor"))
	p, faults := protocol.Parse("hunt.yaml", []byte(text), nil)
	if len(faults) > 0 {
		t.Fatalf("%v", faults)
	}
	return p
}

// drawRules gives the protocol vetoes, gates and a rule that lint might refuse.
// It returns the outcomes' conditions.
func drawRules(t *rapid.T, p *protocol.Protocol) []form {
	rules := func(kind string) (out []protocol.Rule) {
		for i := range rapid.IntRange(0, 2).Draw(t, kind+"s") {
			r := protocol.Rule{
				Name: fmt.Sprintf("%s%d", kind, i), Arm: rapid.SampledFrom([]string{"new", "new", "odd"}).Draw(t, "arm"),
				Statistic: rapid.SampledFrom([]string{"mean", "mean", "median", "max", "sum", "pooled"}).Draw(t, "statistic"),
				Metric:    rapid.SampledFrom([]string{"a", "b", "lat"}).Draw(t, "metric"),
				Class:     rapid.SampledFrom([]string{"gated", "gated", "gated", "stress"}).Draw(t, "class"),
			}
			if len(p.Factors) > 0 && rapid.Bool().Draw(t, "in one cell") {
				r.Cells = protocol.Selector{"f": {protocol.Scalar(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "cell"))}}
			}
			r.Require = draw(t, protocol.RuleScope(r.Statistic), 2).text
			out = append(out, r)
		}
		return out
	}
	p.Vetoes, p.Gates = rules("v"), rules("g")
	p.Decision.Outcomes = nil
	var forms []form
	for i := range rapid.IntRange(1, 3).Draw(t, "outcomes") {
		f := draw(t, p.OutcomeScope(), 2)
		forms = append(forms, f)
		p.Decision.Outcomes = append(p.Decision.Outcomes, protocol.Outcome{
			Name: fmt.Sprintf("O%d", i), When: f.text, Class: rapid.SampledFrom([]string{"go", "go", "no-go", "inconclusive"}).Draw(t, "class"),
		})
	}
	p.Decision.Outcomes = append(p.Decision.Outcomes, protocol.Outcome{Name: "ELSE", Class: rapid.SampledFrom([]string{"no-go", "no-go", "go"}).Draw(t, "default")})
	return forms
}

// rarely is true once in n, and never where rapid shrinks.
func rarely(t *rapid.T, n int, what string) bool { return rapid.IntRange(0, n-1).Draw(t, what) == n/2 }

func drawRun(t *rapid.T, p *protocol.Protocol, dir string) *ledger.Run {
	level := map[string]float64{}
	for _, c := range p.Cells() {
		for _, key := range []string{"a", "b", "lat"} {
			for _, arm := range p.Arms {
				level[c.Name+key+arm.Name] = rapid.SampledFrom([]float64{100, 100, 110, 90, 0, -50}).Draw(t, "level")
			}
		}
	}
	flat := rarely(t, 4, "exact")
	trials := len(p.Cells()) * len(p.Arms) * 5
	bad := map[int]string{}
	for range rapid.IntRange(0, 2).Draw(t, "spoiled trials") {
		bad[rapid.IntRange(0, trials-1).Draw(t, "which")] = rapid.SampledFrom([]string{"nan", "inf", "gone", "lat", "nan", "fail", "unknown", "unchecked", "lost", "crash", "extra"}).Draw(t, "how")
	}
	n := -1
	run := measure(t, p, dir, func(s trial.Slot, i int, o *trial.Observation) {
		n++
		at := func(key string) float64 {
			if flat {
				return level[s.Cell+key+s.Arm]
			}
			return level[s.Cell+key+s.Arm] + float64((i*7+len(s.Arm)+int(s.Arm[0]))%5)
		}
		o.Values = map[string]float64{"a": at("a"), "b": at("b")}
		o.Bulk = map[string][]int64{"lat": {int64(at("lat")), int64(at("lat")) + 3, int64(2 * at("lat"))}}
		switch bad[n] {
		case "nan":
			o.Values["a"] = math.NaN()
		case "inf":
			o.Values["b"] = math.Inf(1)
		case "gone":
			o.Values = nil
		case "lat":
			o.Bulk = nil
		case "fail":
			o.Checks[0].Verdict = check.Fail
		case "unknown":
			o.Checks[0].Verdict = check.Unknown
		case "unchecked":
			o.Checks[0].Verdict = check.Unchecked
		case "lost":
			o.Checks = nil
		case "crash":
			o.Status = trial.StatusFailed
		case "extra":
			o.Checks = append(o.Checks, check.Result{Name: "extra", Verdict: check.Fail})
		}
	})
	for _, probe := range []string{"steal", "psi_io", "psi_cpu"} {
		if !rarely(t, 20, "unread") {
			reading(run, probe, map[bool]float64{true: 9, false: 1}[rarely(t, 20, probe)])
		}
	}
	if rarely(t, 20, "exploratory") {
		insert(run, ledger.Record{Kind: ledger.KindNote, Note: &ledger.Note{Text: "early", Exploratory: true}})
	}
	if rarely(t, 20, "no end") {
		run.Records = run.Records[:len(run.Records)-1]
	}
	if rarely(t, 20, "record lost") {
		i := rapid.IntRange(0, len(run.Records)-1).Draw(t, "record")
		run.Records = slices.Delete(run.Records, i, i+1)
	}
	if rarely(t, 20, "record twice") {
		i := rapid.IntRange(0, len(run.Records)-1).Draw(t, "record")
		run.Records = slices.Insert(run.Records, i, run.Records[i])
	}
	return run
}

// unearned says why a go is not one, by the results; nil for any other class.
func unearned(p *protocol.Protocol, r *analysis.Results, v *Verdict, forms []form) error {
	if v.Exit != v.Class.ExitCode() || v.Exit == 70 || v.Outcome == "" || v.Why == "" {
		return fmt.Errorf("ended in %q, class %q, exit %d, why %q", v.Outcome, v.Class, v.Exit, v.Why)
	}
	if v.Class != Go {
		return nil
	}
	passed := map[string]bool{}
	for _, c := range r.Checks {
		if c.Verdict != check.Pass {
			return fmt.Errorf("check %s is %v", c.Name, c.Verdict)
		}
		passed[c.Name] = true
	}
	switch {
	case !passed["completed"] || !passed["exact"] || !passed["whole"] || !r.Clear:
		return fmt.Errorf("clear %v, passed %v", r.Clear, passed)
	case !r.Complete:
		return fmt.Errorf("not complete: %v", r.Missing)
	case len(r.Exploratory) > 0:
		return fmt.Errorf("exploratory: %v", r.Exploratory)
	case r.Host.Worst == "block" || r.Host.Worst == "provisional":
		return fmt.Errorf("the host's worst is %s", r.Host.Worst)
	}
	for _, b := range r.Host.Breaches {
		if b.Action != "warn" {
			return fmt.Errorf("breach %+v", b)
		}
	}
	answers := map[string]bool{}
	for _, res := range v.Vetoes {
		answers[res.Rule+res.Cell] = true
		if res.Judged && res.State != Holds {
			return fmt.Errorf("veto %s in %s is %s", res.Rule, res.Cell, res.State)
		}
	}
	for i := range p.Vetoes {
		for _, c := range p.RuleCells(&p.Vetoes[i]) {
			if !answers[p.Vetoes[i].Name+c.Name] {
				return fmt.Errorf("veto %s has no answer in %s", p.Vetoes[i].Name, c.Name)
			}
		}
	}
	return unsupported(p, v, forms)
}

// unsupported judges the rule's own steps again.
func unsupported(p *protocol.Protocol, v *Verdict, forms []form) error {
	for _, s := range v.Trace {
		i := slices.IndexFunc(p.Decision.Outcomes, func(o protocol.Outcome) bool { return o.Name == s.Outcome })
		if i < 0 || s.Result == "not reached" {
			continue
		}
		if i == len(forms) {
			return fmt.Errorf("the default is go")
		}
		c, err := protocol.Compile(s.Condition, p.OutcomeScope())
		if err != nil {
			return fmt.Errorf("%s: %v", s.Condition, err)
		}
		values, measured := map[string]any{}, false
		for _, val := range s.Values {
			if val.Bool != nil {
				values[val.Name] = *val.Bool
			} else if math.IsNaN(float64(val.Num)) {
				return fmt.Errorf("%s: %s is no number", s.Condition, val.Name)
			} else {
				values[val.Name] = float64(val.Num)
			}
			measured = measured || !strings.HasPrefix(val.Name, "veto.") && val.Name != "primary.alpha" && (val.Name != "gate.all" || len(p.Gates) > 0)
		}
		for _, name := range c.Names {
			if _, ok := values[name]; !ok {
				return fmt.Errorf("%s: %s was consulted and has no value", s.Condition, name)
			}
		}
		holds := forms[i].eval(values).(bool)
		switch {
		case s.Outcome != v.Outcome && (holds || s.Result != "false"):
			return fmt.Errorf("%s stands before and is %v, called %s, with %s", s.Condition, holds, s.Result, words(s.Values))
		case s.Outcome == v.Outcome && (!holds || s.Result != "true" || !measured):
			return fmt.Errorf("%s is %v, called %s, with %s", s.Condition, holds, s.Result, words(s.Values))
		}
	}
	return nil
}

// unmeasured says which figure behind a go is not whole in the ledger itself.
func unmeasured(p *protocol.Protocol, run *ledger.Run, v *Verdict) error {
	whole := func(metric, arm string, cell protocol.Cell) error {
		have := map[int]bool{}
		for _, rec := range run.Records {
			o := rec.Trial
			if o == nil || o.Cell != cell.Name || o.Arm != arm || o.Warmup {
				continue
			}
			x, ok := o.Values[metric]
			if metric == "lat" {
				ok = slices.ContainsFunc(o.Samples, func(s trial.SampleRef) bool { return s.Count > 0 })
			}
			if ok && !math.IsNaN(x) && !math.IsInf(x, 0) && o.Status == trial.StatusOK {
				have[o.Round] = true
			}
		}
		if len(have) != cell.Rounds {
			return fmt.Errorf("%s of %s in %s has %d of %d rounds", metric, arm, cell.Name, len(have), cell.Rounds)
		}
		return nil
	}
	both := func(metric, arm string, cells []protocol.Cell) error {
		for _, c := range cells {
			for _, a := range []string{"old", arm} {
				if err := whole(metric, a, c); err != nil {
					return err
				}
			}
		}
		return nil
	}
	ruled := func(r *protocol.Rule) error {
		return both(r.Metric, r.Arm, slices.DeleteFunc(p.RuleCells(r), func(c protocol.Cell) bool { return !r.Judged(c) }))
	}
	for i := range p.Vetoes {
		if err := ruled(&p.Vetoes[i]); err != nil {
			return err
		}
	}
	for _, s := range v.Trace {
		if s.Outcome != v.Outcome {
			continue
		}
		for _, val := range s.Values {
			var err error
			group, rest, _ := strings.Cut(val.Name, ".")
			switch {
			case group == "primary" && rest != "alpha":
				err = both(p.Primary.Metric, "new", p.PrimaryCells())
			case group == "effect":
				metric, _, _ := strings.Cut(rest, ".")
				err = both(metric, "new", p.PrimaryCells())
			case group == "gate" && *val.Bool:
				for i := range p.Gates {
					if rest == "all" && p.Gates[i].Class != "stress" || rest == p.Gates[i].Name {
						err = ruled(&p.Gates[i])
					}
				}
			}
			if err != nil {
				return fmt.Errorf("%s: %w", val.Name, err)
			}
		}
	}
	return nil
}

// rulesPerRun is how many rules each drawn run is judged by: a run costs far
// more than a decision.
const rulesPerRun = 6

func TestNoWayToAnUnearnedGo(t *testing.T) {
	gos, all, dir := 0, 0, t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		run := drawRun(rt, p, dir)
		r := analysis.Analyze(run)
		for range rulesPerRun {
			forms := drawRules(rt, p)
			v := Decide(p, r)
			all++
			if v.Class == Go {
				gos++
				if err := unmeasured(p, run, v); err != nil {
					rt.Fatalf("go without data: %v\n%s", err, v.Bytes())
				}
			}
			if err := unearned(p, r, v, forms); err != nil {
				rt.Fatalf("%v\n%s", err, v.Bytes())
			}
		}
	})
	if gos*50 < all {
		t.Errorf("only %d of %d decisions were go: the search is blind", gos, all)
	}
}

// The same with results that no analysis would make: any part of them may be
// gone or wrong, and whatever that does, it opens nothing and breaks nothing.
func TestNoWayToAnUnearnedGoFromBrokenResults(t *testing.T) {
	gos, all, dir := 0, 0, t.TempDir()
	p := plan(t, fmt.Sprintf(hunted, "factors: [{name: f, levels: [1, 2]}]", "a", "paired", "cells: {f: 1},", "{d: 0.8}"))
	run := measure(t, p, dir, func(s trial.Slot, i int, o *trial.Observation) {
		gain := map[string]float64{"new": 10, "odd": 5}[s.Arm]
		o.Values = map[string]float64{"a": 100 + gain + float64(i%3), "b": 100 - gain + float64(i%2)}
		o.Bulk = map[string][]int64{"lat": {100 - int64(gain), 110 - int64(gain) + int64(i%2)}}
	})
	for _, probe := range []string{"steal", "psi_io", "psi_cpu"} {
		reading(run, probe, 1)
	}
	analysed := analysis.Analyze(run)
	for i := range analysed.Cells {
		analysed.Cells[i].Samples = nil // which no rule reads
	}
	whole := analysed.Bytes()
	rapid.Check(t, func(rt *rapid.T) {
		r := &analysis.Results{}
		if err := json.Unmarshal(whole, r); err != nil {
			rt.Fatalf("%v", err)
		}
		var leaves []reflect.Value
		gather(reflect.ValueOf(r).Elem(), &leaves)
		for range rapid.IntRange(0, 3).Draw(rt, "breaks") {
			breakLeaf(rt, leaves[rapid.IntRange(0, len(leaves)-1).Draw(rt, "leaf")])
		}
		for range rulesPerRun {
			forms := drawRules(rt, p)
			v := Decide(p, r)
			all++
			if v.Class == Go {
				gos++
			}
			if err := unearned(p, r, v, forms); err != nil {
				rt.Fatalf("%v\n%s", err, v.Bytes())
			}
		}
	})
	if gos*50 < all {
		t.Errorf("only %d of %d decisions were go: the search is blind", gos, all)
	}
}

// gather lists everything in the results that can be set.
func gather(v reflect.Value, into *[]reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			gather(v.Field(i), into)
		}
	case reflect.Slice:
		*into = append(*into, v)
		for i := range v.Len() {
			gather(v.Index(i), into)
		}
	case reflect.Pointer:
		*into = append(*into, v)
		if !v.IsNil() {
			gather(v.Elem(), into)
		}
	case reflect.Map:
	default:
		*into = append(*into, v)
	}
}

func breakLeaf(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{math.NaN(), math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1e308}).Draw(t, "number"))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int:
		v.SetInt(rapid.SampledFrom([]int64{-1, 0, 1, 2, 3, 99}).Draw(t, "int"))
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "new", "block", "provisional", "f=2", "stress"}).Draw(t, "text"))
	case reflect.Slice:
		v.SetLen(rapid.IntRange(0, v.Len()).Draw(t, "length"))
	case reflect.Pointer:
		v.SetZero()
	}
}
