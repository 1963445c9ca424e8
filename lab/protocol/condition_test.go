package protocol

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// outcomeScope is that of a protocol with one metric, one veto and one gate.
func outcomeScope() Scope {
	p := &Protocol{Metrics: []Metric{{Name: "wall"}}, Vetoes: []Rule{{Name: "grown"}}, Gates: []Rule{{Name: "small"}}}
	return p.OutcomeScope()
}

func TestConditionRefused(t *testing.T) {
	for _, c := range []struct {
		src    string
		offset int
		want   string
	}{
		{"primary.p <", 10, "unexpected token EOF"},
		{"primary.p < 1)", 13, `unexpected token Bracket(")")`},
		{"(primary.p < 1", 13, "unexpected token EOF"},
		{"primary.p < < 1", 12, "unexpected token"},
		{"primary.p = 1", 10, "unexpected token"},
		{"primary.p", 0, "the condition is a number"},
		{"primary", 0, `unknown name "primary"; known here: primary.alpha primary.better`},
		{"1 < primary", 4, `unknown name "primary"`},
		{"gate", 0, `unknown name "gate"; known here: gate.all gate.small`},
		{"primary.q < 1", 0, `unknown name "primary.q"; did you mean "primary.d"?`},
		{"veto.any && primray.p < 1", 12, `unknown name "primray.p"; did you mean "primary.p"?`},
		{"primary.p.x < 1", 0, `unknown name "primary.p.x"`},
		{"speed < 1", 0, `unknown name "speed"; names here begin with effect. gate. primary. veto.`},
		{"effect.speed.p < 1", 0, `unknown name "effect.speed.p"; known here: effect.wall.better`},
		{"true", 0, "consults no result"},
		{"1 < 2 || !false", 0, "consults no result"},
		{"primary.better == 1", 18, "== wants a truth here, and this is a number"},
		{"primary.p == veto.any", 13, "== wants a number here, and this is a truth"},
		{"primary.better < primary.worse", 0, "< wants a number here, and this is a truth"},
		{"primary.p && veto.any", 0, "&& wants a truth here, and this is a number"},
		{"veto.any || primary.d - 1", 12, "|| wants a truth here, and this is a number"},
		{"veto.any or 1 + 2", 12, "or wants a truth here, and this is a number"},
		{"!primary.p", 1, "! wants a truth here"},
		{"not primary.p", 4, "not wants a truth here"},
		{"-veto.any < 1", 1, "- wants a number here"},
		{"primary.p + veto.any < 1", 12, "+ wants a number here"},
		{"veto.any ? true : 1", 18, "?: wants a truth here, and this is a number"},
		{"veto.any ? 1 : true", 15, "?: wants a number here, and this is a truth"},
		{"veto.any ? 1 : 2", 0, "the condition is a number"},
		{"primary.p ? veto.any : true", 0, "?: wants a truth here"},
		{"abs(veto.any) < 1", 4, "abs wants a number here"},
		{"max(primary.p, veto.any) < 1", 15, "max wants a number here"},
		{"abs(primary.p, 1) < 1", 0, "invalid number of arguments"},
		{"min() < primary.p", 0, "not enough arguments"},
		{"primary.p / 0 < 1", 12, "division by zero"},
		{"primary.p / (2 - 2) < 1", 13, "division by zero"},
		{"primary.p / -0.0 < 1", 12, "division by zero"},
		{"primary.p % 2 == 0", 10, `"%" is not allowed`},
		{"primary.p ** 2 < 1", 10, `"**" is not allowed`},
		{"primary.p ^ 2 < 1", 10, `"^" is not allowed`},
		{"primary.p in 1..2", 10, `"in" is not allowed`},
		{"1..1000000 == 1..2 && veto.any", 1, `".." is not allowed`},
		{"(primary.p ?? 1) < 1", 11, `"??" is not allowed`},
		{"primary?.p < 1", 0, "not allowed"},
		{"primary.p() < 1", 0, "not allowed"},
		{"now() > primary.p", 0, "not allowed"},
		{"len(primary.p) > 1", 0, `"len" is not allowed`},
		{"all(primary, true)", 0, `"all" is not allowed`},
		{"primary.p | foo() < 1", 12, "not allowed"},
		{`primary["p"] < 1`, 7, `"[" is not allowed`},
		{`$env.primary.p < 1`, 0, `"$" is not allowed`},
		{`"a" + "b" == "ab" && veto.any`, 0, `"\"" is not allowed`},
		{"primary.p < `1`", 12, "\"`\" is not allowed"},
		{"all([1], # > 0)", 4, `"[" is not allowed`},
		{"let x = 1; veto.any", 9, `";" is not allowed`},
		{"if veto.any { true } else { false }", 12, `"{" is not allowed`},
		{"veto.any // || true", 9, `"//" is not allowed`},
		{"veto.any /* || true", 9, `"/*" is not allowed`},
		{"veto.any\u00a0", 8, "is not allowed"},
		{"vet\u00f6.any", 3, `"ö" is not allowed`},
		{"veto.any\x00", 8, "is not allowed"},
		{"99999999999999999999 > primary.p", 21, "out of range"},
		{"1e400 > primary.p", 6, "out of range"},
		{"nil == primary.p", 0, "not allowed"},
		{strings.Repeat("!", 1001) + "veto.any", 0, "at most 1000 can be agreed on"},
		{strings.Repeat("(", 500) + "veto.any" + strings.Repeat(")", 500), 0, "at most 1000"},
	} {
		got, err := Compile(c.src, outcomeScope())
		var ce *ConditionError
		if got != nil || !errors.As(err, &ce) {
			t.Errorf("%s: compiled, %v", c.src, err)
			continue
		}
		if ce.Offset != c.offset || !strings.Contains(ce.Message, c.want) {
			t.Errorf("%s: at %d %s; want at %d %s", cut(c.src, 40), ce.Offset, ce.Message, c.offset, c.want)
		}
	}
	for _, blank := range []string{"", " \t\n"} {
		if _, err := Compile(blank, outcomeScope()); err == nil {
			t.Errorf("%q compiled", blank)
		}
	}
}

func TestConditionEval(t *testing.T) {
	values := Named{"primary.p": 0.03, "primary.d": -0.5, "primary.n": 7.0, "primary.ratio": math.Inf(1), "primary.dz": math.Inf(-1), "primary.diff": 0.0, "primary.better": true, "veto.any": false}
	for _, c := range []struct {
		src  string
		want bool
	}{
		{"primary.p < 0.05", true},
		{"primary.p < 0.05 && !veto.any", true},
		{"primary.p < 0.05 and not veto.any", true},
		{"veto.any or primary.better", true},
		{"veto.any || primary.p > 0.03", false},
		{"primary.p < 0.05\n&& primary.better", true},
		{"0.01 < primary.p", true},
		{"0.01 < primary.p < 0.05", true},
		{"primary.better == !veto.any", true},
		{"primary.better != true", false},
		{"veto.any ? primary.p > 1 : primary.p < 1", true},
		{"(veto.any ? 1 : 2) > 1.5 && primary.better", true},
		{"abs(primary.d) >= 0.5", true},
		{"min(primary.d, 0) < 0 && max(primary.d, 0, 1) == 1", true},
		// Whole numbers are numbers: 7 / 2 is three and a half.
		{"primary.n / 2 == 3.5", true},
		{"7 / 2 == primary.n / 2", true},
		{"1 / 3 * 3 == 1 && primary.better", true},
		{"9223372036854775807 + 1 > primary.n", true},
		{"9007199254740993 == 9007199254740992 && primary.better", true},
		{"-primary.d == +0.5", true},
		{"primary.ratio > 1", true},
		{"primary.ratio * 2 > 1", true},
		{"primary.dz < -0.5", true},
		{"abs(primary.dz) > 0.5", true},
	} {
		cond, err := Compile(c.src, outcomeScope())
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if got, err := cond.Eval(values); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.src, got, err)
		}
	}
}

// What is no number answers no question: its comparison is false and the
// negation of that true, and one of them would open some gate.
func TestNoNumberIsNoAnswer(t *testing.T) {
	values := Named{"primary.p": 0.03, "primary.diff": 0.0, "primary.d": 0.0, "primary.ratio": math.Inf(1), "primary.change": 1e200, "veto.any": false}
	for _, src := range []string{
		"primary.diff / primary.d < 1", "!(primary.diff / primary.d > 1)", "1 / primary.d > 0", "!(1 / primary.d > 0)", "-1 / primary.d < 0",
		"primary.ratio - primary.ratio < 1", "!(primary.ratio * 0 > 1)", "primary.ratio / primary.ratio == 1",
		"primary.change * primary.change > 1", "veto.any || primary.diff / primary.d < 1",
	} {
		cond, err := Compile(src, outcomeScope())
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got, err := cond.Eval(values); err == nil || got {
			t.Errorf("%s: %v, %v; want an error", src, got, err)
		}
	}
}

// A missing result makes the whole condition unanswerable, also where
// evaluation would have stopped before it.
func TestMissingNames(t *testing.T) {
	for _, src := range []string{
		"primary.p < 0.05", "veto.any && primary.p < 0.05", "gate.all || primary.p < 0.05", "veto.any ? primary.p < 0.05 : gate.all",
		"!(veto.any && primary.p < 0.05)", "primary.p < 0.05 || primary.p >= 0.05", "gate.all || veto.any && primary.p * 0 == 1",
	} {
		cond, err := Compile(src, outcomeScope())
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		for _, c := range []struct {
			name   string
			values Named
		}{
			{"absent", Named{"veto.any": false, "gate.all": true}},
			{"NaN", Named{"veto.any": false, "gate.all": true, "primary.p": math.NaN()}},
		} {
			got, err := cond.Eval(c.values)
			var miss *MissingError
			if !errors.As(err, &miss) || got || !slices.Equal(miss.Names, []string{"primary.p"}) {
				t.Errorf("%s with primary.p %s: %v, %v", src, c.name, got, err)
			}
		}
		_, err = cond.Eval(nil)
		var miss *MissingError
		if !errors.As(err, &miss) || !slices.Equal(miss.Names, cond.Names) {
			t.Errorf("%s with nothing: %v, consults %v", src, err, cond.Names)
		}
	}
}

// A value of the wrong kind is an error and neither true nor false.
func TestValuesOfTheWrongKind(t *testing.T) {
	cond, err := Compile("primary.p < 0.05 && gate.all", outcomeScope())
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range []Named{
		{"primary.p": true, "gate.all": true},
		{"primary.p": 0.01, "gate.all": 1.0},
		{"primary.p": "small", "gate.all": true},
		{"primary.p": nil, "gate.all": true},
	} {
		if got, err := cond.Eval(values); err == nil || got {
			t.Errorf("%v: %v, %v", values, got, err)
		}
	}
}

func TestRuleScope(t *testing.T) {
	for _, c := range []struct{ statistic, gone string }{
		{"", ""}, {StatMean, ""}, {StatPooled, "p d dz"},
		{StatMedian, "p d dz diff_low diff_high ratio_low ratio_high"}, {StatMax, "p d dz diff_low diff_high ratio_low ratio_high"}, {StatSum, "p d dz diff_low diff_high ratio_low ratio_high"},
	} {
		s := RuleScope(c.statistic)
		for name := range comparison {
			if _, ok := s[name]; ok == slices.Contains(strings.Fields(c.gone), name) {
				t.Errorf("%q: %s there: %v", c.statistic, name, ok)
			}
		}
	}
	if s := RuleScope(StatMean); len(s) != len(comparison) {
		t.Error("the shared scope was changed")
	}
}

// randomCondition draws a condition over the scope; truth says which kind.
func randomCondition(t *rapid.T, scope Scope, want Kind, depth int) string {
	pick := func(list ...string) string { return rapid.SampledFrom(list).Draw(t, "word") }
	var names []string
	for n, k := range scope {
		if k == want {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	sub := func(k Kind) string { return randomCondition(t, scope, k, depth-1) }
	if want == Number {
		if depth <= 0 || rapid.IntRange(0, 2).Draw(t, "number") > 0 {
			return pick(append(names, "0", "0.05", "1", "-1", "20", "2.5")...)
		}
		switch pick("binary", "negative", "abs", "max", "?") {
		case "binary":
			return "(" + sub(Number) + " " + pick("+", "-", "*", "/") + " " + sub(Number) + ")"
		case "negative":
			return "-(" + sub(Number) + ")"
		case "abs":
			return "abs(" + sub(Number) + ")"
		case "max":
			return "max(" + sub(Number) + ", " + sub(Number) + ")"
		default:
			return "(" + sub(Truth) + " ? " + sub(Number) + " : " + sub(Number) + ")"
		}
	}
	if depth <= 0 {
		return pick(append(names, "true", "false")...)
	}
	switch pick("compare", "compare", "logic", "logic", "not", "equal", "?") {
	case "compare":
		return sub(Number) + " " + pick("<", "<=", ">", ">=", "==", "!=") + " " + sub(Number)
	case "logic":
		return "(" + sub(Truth) + ") " + pick("&&", "||", "and", "or") + " (" + sub(Truth) + ")"
	case "not":
		return "!(" + sub(Truth) + ")"
	case "equal":
		return "(" + sub(Truth) + ") " + pick("==", "!=") + " (" + sub(Truth) + ")"
	default:
		return "((" + sub(Truth) + ") ? (" + sub(Truth) + ") : (" + sub(Truth) + "))"
	}
}

// randomResults are results as a run can have them.
func randomResults(t *rapid.T, scope Scope, fixed map[string]float64) Named {
	values := Named{}
	for _, name := range slices.Sorted(maps.Keys(scope)) {
		last := name[strings.LastIndexByte(name, '.')+1:]
		switch f, isFixed := fixed[name]; {
		case isFixed:
			values[name] = f
		case scope[name] == Truth:
			values[name] = rapid.Bool().Draw(t, name)
		case last == "p":
			values[name] = rapid.Float64Range(math.SmallestNonzeroFloat64, 1-1e-9).Draw(t, name)
		case last == "n":
			values[name] = float64(rapid.IntRange(1, maxRounds).Draw(t, name))
		default:
			values[name] = rapid.OneOf(rapid.Float64Range(-3, 3), rapid.SampledFrom([]float64{0, 0.05, 1, -1, 20, 2.5})).Draw(t, name)
		}
	}
	for name, v := range values {
		if of, ok := strings.CutSuffix(name, "worse"); ok && v == true && values[of+"better"] == true {
			values[name] = false
		}
	}
	return values
}

// What is said to hold whatever is measured never fails, and the other way
// round; and what compiles can be evaluated.
func TestAnswersAreCertain(t *testing.T) {
	scope := Scope{"p": Number, "n": Number, "ratio": Number, "diff_high": Number, "better": Truth, "worse": Truth, "gate.all": Truth}
	fixed := map[string]float64{"n": 20}
	claims := 0
	rapid.Check(t, func(t *rapid.T) {
		src := randomCondition(t, scope, Truth, 3)
		cond, err := Compile(src, scope)
		if err != nil {
			if !strings.Contains(err.Error(), "consults no result") && !strings.Contains(err.Error(), "division by zero") && !strings.Contains(err.Error(), "at most") {
				t.Fatalf("%s: %v", src, err)
			}
			return
		}
		canHold, canFail := search{scope: scope, fixed: fixed}.answers(cond)
		if !canHold && !canFail {
			t.Fatalf("%s: neither true nor false", src)
		}
		if !canHold || !canFail {
			claims++
		}
		for range 5 {
			values := randomResults(t, scope, fixed)
			got, err := cond.Eval(values)
			if err != nil {
				if !strings.Contains(err.Error(), "is no number") {
					t.Fatalf("%s with %v: %v", src, values, err)
				}
				continue
			}
			if got && !canHold || !got && !canFail {
				t.Fatalf("%s is %v with %v, and was said to be able to be true %v, false %v", src, got, values, canHold, canFail)
			}
		}
	})
	if claims == 0 {
		t.Error("no condition was found to decide nothing; the test shows nothing")
	}
}

// Where only names and constants are compared, nothing is overlooked.
func TestAnswersAreExact(t *testing.T) {
	s := search{scope: RuleScope(""), fixed: map[string]float64{"n": 20}}
	for _, c := range []struct {
		src              string
		canHold, canFail bool
	}{
		{"ratio <= 1.2", true, true},
		{"1.2 >= ratio", true, true},
		{"ratio <= 1.2 || ratio > 1.2", true, false},
		{"ratio <= 1.2 || 1.2 < ratio", true, false},
		{"ratio < 1.2 || ratio > 1.2", true, true},
		{"ratio < 1.2 && ratio > 1.1", true, true},
		{"ratio < 1.1 && ratio > 1.2", false, true},
		{"ratio == 1.2 && ratio != 1.2", false, true},
		{"ratio != 1.2 || ratio == 1.2", true, false},
		{"ratio < 1e300 || ratio >= 1e300", true, false},
		{"ratio > -1e300", true, true},
		{"p < 1", true, false}, {"p <= 1", true, false}, {"p > 0", true, false}, {"p >= 1", false, true}, {"p < 0", false, true}, {"p < 0.999", true, true},
		{"n >= 20", true, false}, {"n > 20", false, true}, {"n / 2 == 10", true, false},
		{"n > 0 && better", true, true},
		{"better && worse", false, true}, {"better || worse", true, true}, {"!better || !worse", true, false},
		{"better ? true : !better", true, false}, {"better ? worse : better", false, true},
		{"better == better", true, false}, {"better == worse", true, true}, {"better != !better", true, false},
		{"ref < treat || treat <= ref", true, true}, {"ref < treat || !(ref < treat)", true, false},
		{"ref < treat && !(ref < treat)", false, true}, {"ref < treat && 1 > 2", false, true},
		{"abs(diff) < 1 || abs(diff) >= 1", true, true},
		{"p < 0.05 || true", true, false}, {"p < 0.05 && false", false, true},
		{"1 / 3 > 0.3 || better", true, false},
	} {
		cond, err := Compile(c.src, s.scope)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if canHold, canFail := s.answers(cond); canHold != c.canHold || canFail != c.canFail {
			t.Errorf("%s: can hold %v, can fail %v", c.src, canHold, canFail)
		}
	}
	// More combinations than are tried: nothing is claimed.
	var parts []string
	many := Scope{}
	for i := range 13 {
		name := fmt.Sprintf("gate.g%d", i)
		many[name] = Truth
		parts = append(parts, name)
	}
	cond, err := Compile(strings.Join(parts, " || ")+" || true", many)
	if err != nil {
		t.Fatal(err)
	}
	if canHold, canFail := (search{scope: many}).answers(cond); !canHold || !canFail {
		t.Error("a claim about more worlds than were tried")
	}
}

// FuzzCompile checks that no condition makes the compiler or the evaluation
// panic, that only names of the scope are consulted, and that an answer is
// given only where there is one.
func FuzzCompile(f *testing.F) {
	for _, src := range []string{
		"primary.p < 0.05", "!veto.any && gate.all", "abs(primary.d) >= 0.8", "primary.significant ? gate.all : effect.wall.ratio <= 0.9", "primary.better || true",
		"min(primary.p, 1) / max(2, primary.n) < 1e-3", "not (veto.any or gate.small)", "primary.p < primary.alpha == gate.all", "1..2", "primary[\"p\"]", "let x = 1; x", "veto.any // x",
	} {
		f.Add(src, 0.5, true)
	}
	scope := outcomeScope()
	f.Fuzz(func(t *testing.T, src string, number float64, truth bool) {
		cond, err := Compile(src, scope)
		if err != nil {
			if cond != nil {
				t.Fatal("a condition and an error")
			}
			return
		}
		values := Named{}
		for n, k := range scope {
			values[n] = number
			if k == Truth {
				values[n] = truth
			}
		}
		for _, n := range cond.Names {
			if _, ok := scope[n]; !ok {
				t.Fatalf("consults %q", n)
			}
		}
		got, err := cond.Eval(values)
		var miss *MissingError
		switch {
		case err != nil && got:
			t.Fatalf("true and %v", err)
		case math.IsNaN(number) != errors.As(err, &miss) && slices.ContainsFunc(cond.Names, func(n string) bool { return scope[n] == Number }):
			t.Fatalf("with %v: %v", number, err)
		}
		search{scope: scope}.answers(cond)
		delete(values, cond.Names[0])
		if _, err := cond.Eval(values); !errors.As(err, &miss) {
			t.Fatalf("without %s: %v", cond.Names[0], err)
		}
	})
}
