package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"
)

// world is the content of all keys at once. The oracle does not split a history
// by key, so that it also tests that splitting is sound.
type world map[string]string

// happens is the sequential meaning of an operation that took effect, written
// apart from the models. It returns false where the operation cannot have taken
// effect with the answer it got. A key that is missing from a register's world
// holds "0".
func (w world) happens(op Op) (world, bool) {
	held, present := w[op.Key]
	set := func() world { next := maps.Clone(w); next[op.Key] = op.Value; return next }
	unset := func() world { next := maps.Clone(w); delete(next, op.Key); return next }
	maybe := op.Outcome == OutcomeMaybe
	switch op.Kind {
	case KindRead:
		return w, present && held == op.Value || !present && op.Value == "0"
	case KindWrite, KindPut:
		return set(), true
	case KindCAS:
		return set(), present && held == op.Expect || !present && op.Expect == "0"
	case KindGet:
		return w, op.Found == present && (!present || held == op.Value)
	case KindInsert:
		if present {
			return w, !maybe && op.Found
		}
		return set(), maybe || !op.Found
	case KindDelete:
		return unset(), maybe && present || !maybe && op.Found == present
	}
	panic(op.Kind)
}

// legal tries every order of every subset that holds all answered operations
// and any of the unanswered ones.
func legal(w world, left []Op) bool {
	open := false
	for i, op := range left {
		open = open || op.Outcome == OutcomeOK
		if slices.ContainsFunc(left, func(o Op) bool { return o.Outcome == OutcomeOK && o.Return < op.Call }) {
			continue
		}
		if next, ok := w.happens(op); ok && legal(next, slices.Delete(slices.Clone(left), i, i+1)) {
			return true
		}
	}
	return !open
}

func bruteForce(ops []Op) bool {
	return legal(world{}, slices.DeleteFunc(slices.Clone(ops), func(op Op) bool {
		return op.Outcome == OutcomeFailed || op.Outcome == OutcomeMaybe && (op.Kind == KindRead || op.Kind == KindGet)
	}))
}

func anyOps(kinds ...string) *rapid.Generator[[]Op] {
	digit := rapid.SampledFrom([]string{"0", "1", "2"})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Op {
		call := rapid.IntRange(0, 8).Draw(t, "call")
		return Op{
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Key: rapid.SampledFrom([]string{"j", "k", "k"}).Draw(t, "key"),
			Value: digit.Draw(t, "value"), Expect: digit.Draw(t, "expect"), Found: rapid.Bool().Draw(t, "found"),
			Outcome: rapid.SampledFrom([]Outcome{OutcomeOK, OutcomeOK, OutcomeOK, OutcomeOK, OutcomeMaybe, OutcomeMaybe, OutcomeFailed}).Draw(t, "outcome"),
			Call:    time.Duration(call), Return: time.Duration(call + rapid.IntRange(0, 6).Draw(t, "took")),
		}
	}), 1, 6)
}

func TestLinearizableAgreesWithBruteForce(t *testing.T) {
	for name, c := range map[string]struct {
		model porcupine.Model
		kinds []string
	}{
		"register":   {Register("0"), []string{KindRead, KindRead, KindWrite, KindCAS}},
		"dictionary": {Dictionary(), []string{KindGet, KindGet, KindPut, KindInsert, KindDelete}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[Verdict]int{}
			rapid.Check(t, func(t *rapid.T) {
				ops := anyOps(c.kinds...).Draw(t, "ops")
				for _, ops := range variants(ops) {
					got, want := LinearizableOps(name, c.model, ops, time.Minute), wantVerdict(ops)
					if got.Verdict != want {
						t.Fatalf("%v: got %v %q %q, brute force says %v", ops, got.Verdict, got.Message, got.Examples, want)
					}
					seen[want]++
				}
			})
			if seen[Pass] == 0 || seen[Fail] == 0 || seen[Unknown] == 0 {
				t.Errorf("a verdict was never drawn: %v", seen)
			}
		})
	}
}

// variants returns ops with every combination of answers in its last two
// operations: one drawn at random is nearly always wrong somewhere.
func variants(ops []Op) (all [][]Op) {
	last := ops[max(len(ops)-2, 0):]
	for code := range 1 << (2 * len(last)) {
		for i := range last {
			// A dictionary looks at Found, a register at Expect.
			bit := code >> (2 * i) & 1
			last[i].Found, last[i].Expect = bit == 1, fmt.Sprint(bit)
			last[i].Value = fmt.Sprint(code >> (2*i + 1) & 1)
		}
		all = append(all, slices.Clone(ops))
	}
	return all
}

func wantVerdict(ops []Op) Verdict {
	blind := []string{KindWrite, KindPut}
	switch {
	case !bruteForce(ops):
		return Fail
	case !slices.ContainsFunc(ops, func(op Op) bool { return op.Outcome == OutcomeOK && !slices.Contains(blind, op.Kind) }):
		return Unknown
	}
	return Pass
}

// rejecting is a model that rejects every step.
func rejecting() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, _, _ any) (bool, any) { return false, state },
	}
}

// accepting is a model that allows every step.
func accepting() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, _, _ any) (bool, any) { return true, state },
	}
}

func inputs(n int) (ops []porcupine.Operation) {
	for i := range n {
		ops = append(ops, porcupine.Operation{Input: i, Call: int64(i), Return: int64(i) + 5})
	}
	return ops
}

func TestLinearizableDoesNotPassOnNothing(t *testing.T) {
	if !porcupine.CheckOperations(rejecting(), nil) {
		t.Error("porcupine no longer takes an empty history for legal; this package need not either")
	}
	empty := rejecting()
	empty.Partition = func([]porcupine.Operation) [][]porcupine.Operation { return nil }
	hollow := rejecting()
	hollow.Partition = func([]porcupine.Operation) [][]porcupine.Operation { return [][]porcupine.Operation{{}, {}} }
	if got := Linearizable("", accepting(), nil, time.Minute); got.Message != "the history is empty" {
		t.Errorf("no operation: %q", got.Message)
	}
	for name, got := range map[string]Result{
		"no operation":         Linearizable("", rejecting(), nil, time.Minute),
		"no part":              Linearizable("", empty, inputs(3), time.Minute),
		"empty parts":          Linearizable("", hollow, inputs(3), time.Minute),
		"no ops":               LinearizableOps("", Register(""), nil, time.Minute),
		"all failed":           LinearizableOps("", Register(""), []Op{{Kind: KindRead, Outcome: OutcomeFailed}}, time.Minute),
		"a read that is maybe": LinearizableOps("", Register(""), []Op{{Kind: KindRead, Outcome: OutcomeMaybe}}, time.Minute),
	} {
		if got.Verdict != Unknown || got.Message == "" {
			t.Errorf("%s: %v %q", name, got.Verdict, got.Message)
		}
	}
}

func TestLinearizableNeedsATimeout(t *testing.T) {
	for _, timeout := range []time.Duration{0, -1} {
		if got := Linearizable("", accepting(), inputs(3), timeout); got.Verdict != Unknown {
			t.Errorf("timeout %v: %v", timeout, got.Verdict)
		}
	}
}

func TestLinearizableRefusesTimeThatRunsBackwards(t *testing.T) {
	ops := inputs(3)
	ops[1].Return = ops[1].Call - 1
	got := Linearizable("", accepting(), ops, time.Minute)
	if got.Verdict != Unknown || !strings.Contains(got.Message, "operation 1 returned at 0, before its call at 1") {
		t.Errorf("%v %q", got.Verdict, got.Message)
	}
}

// byParity splits inputs into even and odd ones.
func byParity(ops []porcupine.Operation) [][]porcupine.Operation {
	parts := make([][]porcupine.Operation, 2)
	for _, op := range ops {
		at := op.Input.(int) % 2
		parts[at] = append(parts[at], op)
	}
	return parts
}

// endless never answers for odd inputs, and says even to the others.
func endless(even bool) porcupine.Model {
	return porcupine.Model{
		Partition: byParity,
		Init:      func() any { return 0 },
		StepContext: func(ctx context.Context, state, input, _ any) (bool, any) {
			if input.(int)%2 == 1 {
				<-ctx.Done()
			}
			return even, state
		},
	}
}

func TestLinearizableOutOfTimeIsUnknown(t *testing.T) {
	got := Linearizable("", endless(true), inputs(4), time.Millisecond)
	if got.Verdict != Unknown || got.Message != "no answer within 1ms" {
		t.Errorf("%v %q", got.Verdict, got.Message)
	}
}

func TestLinearizableOutOfTimeDoesNotHideAFail(t *testing.T) {
	got := Linearizable("", endless(false), inputs(4), 300*time.Millisecond)
	if got.Verdict != Fail || got.Message != "1 of 2 parts of the history have no legal order; no answer within 300ms" {
		t.Errorf("%v %q", got.Verdict, got.Message)
	}
}

func TestLinearizableSurvivesAModelThatPanics(t *testing.T) {
	broken := map[string]func(m *porcupine.Model){
		"partition": func(m *porcupine.Model) {
			m.Partition = func([]porcupine.Operation) [][]porcupine.Operation { panic("oops") }
		},
		"init":    func(m *porcupine.Model) { m.Init = func() any { panic("oops") } },
		"no init": func(m *porcupine.Model) { m.Init = nil },
		"step":    func(m *porcupine.Model) { m.Step = func(_, _, _ any) (bool, any) { panic("oops") } },
		"no step": func(m *porcupine.Model) { m.Step = nil },
		"step context": func(m *porcupine.Model) {
			m.StepContext = func(context.Context, any, any, any) (bool, any) { panic("oops") }
		},
		"hash":  func(m *porcupine.Model) { m.Hash = func(any) uint64 { panic("oops") } },
		"equal": func(m *porcupine.Model) { m.Equal = func(_, _ any) bool { panic("oops") } },
		"no equal for a state that has none": func(m *porcupine.Model) {
			m.Init = func() any { return []int{} }
		},
	}
	for name, breaks := range broken {
		t.Run(name, func(t *testing.T) {
			// Two operations in either order lead to the same state, so that
			// the search has to compare states; the last one is rejected.
			model := accepting()
			model.Step = func(state, input, _ any) (bool, any) { return input.(int) < 2, state }
			breaks(&model)
			got := Linearizable("panics", model, inputs(3), time.Minute)
			if got.Verdict != Unknown || got.Name != "panics" || !strings.Contains(got.Message, "panicked: ") {
				t.Errorf("%v %q", got.Verdict, got.Message)
			}
		})
	}
}

func TestLinearizableModelThatPanicsDoesNotHideAFail(t *testing.T) {
	model := rejecting()
	model.Partition = byParity
	model.Step = func(state, input, _ any) (bool, any) {
		if input.(int)%2 == 1 {
			panic("oops")
		}
		return false, state
	}
	got := Linearizable("", model, inputs(4), time.Minute)
	if got.Verdict != Fail || !strings.Contains(got.Message, "1 of 2 parts") || !strings.Contains(got.Message, "oops") {
		t.Errorf("%v %q", got.Verdict, got.Message)
	}
}

func TestLinearizableFailsWithoutADescription(t *testing.T) {
	model := rejecting()
	model.DescribeOperation = func(_, _ any) string { panic("oops") }
	if got := Linearizable("", model, inputs(3), time.Minute); got.Verdict != Fail {
		t.Errorf("%v %q", got.Verdict, got.Message)
	}
}

func TestLinearizableTakesAnyModel(t *testing.T) {
	got := Linearizable("foreign", accepting(), inputs(3), time.Minute)
	if got.Verdict != Pass || got.Operations != 3 || len(got.Kinds) != 0 {
		t.Fatalf("%+v", got)
	}
	if got := got.Require(Requirement{Kinds: []string{KindRead}}); got.Verdict != Unknown {
		t.Errorf("a kind that cannot be counted is %v", got.Verdict)
	}
	bad := Linearizable("foreign", rejecting(), inputs(3), time.Minute)
	if want := "client 0: 0 -> <nil> [0s, 5ns] fits nowhere after 0 of 3 operations, which leave 0"; bad.Verdict != Fail || bad.Examples[0] != want {
		t.Errorf("%v %q, want %q", bad.Verdict, bad.Examples, want)
	}
}

func TestLinearizableCounts(t *testing.T) {
	got := LinearizableOps("register", Register("0"), []Op{
		{Kind: KindWrite, Value: "1", Outcome: OutcomeOK, Return: 10},
		{Kind: KindWrite, Value: "2", Outcome: OutcomeMaybe, Call: 11},
		{Kind: KindCAS, Value: "3", Outcome: OutcomeFailed, Call: 11, Return: 12},
		{Kind: KindRead, Outcome: OutcomeMaybe, Call: 11},
		{Kind: KindRead, Value: "1", Outcome: OutcomeOK, Call: 11, Return: 12},
	}, time.Minute)
	if got.Name != "register" || got.Verdict != Pass || got.Operations != 3 {
		t.Errorf("%+v", got)
	}
	if want := map[string]int{KindWrite: 1, KindRead: 1}; !maps.Equal(got.Kinds, want) {
		t.Errorf("kinds %v, want %v", got.Kinds, want)
	}
}

// Forty writes that timed out are 2^40 subsets to search, unless those that
// nobody saw are left out.
func TestRegisterIsNotSlowedByWritesThatNobodySaw(t *testing.T) {
	var ops []Op
	for i := range 40 {
		ops = append(ops, Op{Kind: KindWrite, Value: fmt.Sprint("lost", i), Outcome: OutcomeMaybe})
	}
	ops = append(ops,
		Op{Kind: KindWrite, Value: "1", Outcome: OutcomeOK, Call: 1, Return: 2},
		Op{Kind: KindRead, Value: "lost7", Outcome: OutcomeOK, Call: 3, Return: 4},
		Op{Kind: KindRead, Value: "1", Outcome: OutcomeOK, Call: 5, Return: 6},
	)
	if got := LinearizableOps("", Register("0"), ops, time.Minute); got.Verdict != Fail {
		t.Errorf("%v %q", got.Verdict, got.Message)
	}
	ops[len(ops)-1].Value = "lost7"
	if got := LinearizableOps("", Register("0"), ops, time.Minute); got.Verdict != Pass {
		t.Errorf("%v %q", got.Verdict, got.Message)
	}
}

// Either read can be explained without the other, so there are two longest
// orders, and porcupine returns them in any order.
func TestLinearizableExplainsItselfTheSameWayEveryTime(t *testing.T) {
	ops := []Op{
		{Client: 1, Kind: KindWrite, Value: "1", Outcome: OutcomeOK, Return: 10},
		{Client: 2, Kind: KindWrite, Value: "2", Outcome: OutcomeOK, Return: 10},
		{Client: 3, Kind: KindRead, Value: "1", Outcome: OutcomeOK, Call: 11, Return: 20},
		{Client: 4, Kind: KindRead, Value: "2", Outcome: OutcomeOK, Call: 11, Return: 20},
	}
	first := LinearizableOps("", Register("0"), ops, time.Minute)
	if len(first.Examples) != 1 {
		t.Fatalf("examples %q", first.Examples)
	}
	for range 30 {
		if again := LinearizableOps("", Register("0"), ops, time.Minute); !slices.Equal(again.Examples, first.Examples) {
			t.Fatalf("first %q, then %q", first.Examples, again.Examples)
		}
	}
}

func TestLinearizableSplitsOnce(t *testing.T) {
	splits := 0
	model := accepting()
	model.Partition = func(ops []porcupine.Operation) [][]porcupine.Operation {
		if splits++; splits > 1 {
			return nil
		}
		return byParity(ops)
	}
	if got := Linearizable("", model, inputs(4), time.Minute); got.Verdict != Pass || splits != 1 {
		t.Errorf("%v %q, split %d times", got.Verdict, got.Message, splits)
	}
}
