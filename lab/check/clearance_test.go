package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func pass(name string) Result { return Result{Name: name, Verdict: Pass, Operations: 1} }

func TestZeroClearanceIsNotValid(t *testing.T) {
	if (Clearance{}).Valid() {
		t.Fatal("zero Clearance is valid")
	}
}

func TestClearRefuses(t *testing.T) {
	cases := []struct {
		name     string
		required []string
		results  []Result
	}{
		{"nothing required, nothing checked", nil, nil},
		{"nothing required, all pass", nil, []Result{pass("a")}},
		{"required without a result", []string{"a", "b"}, []Result{pass("a")}},
		{"name with another case", []string{"a"}, []Result{pass("A")}},
		{"unchecked", []string{"a"}, []Result{{Name: "a"}}},
		{"unknown", []string{"a"}, []Result{{Name: "a", Verdict: Unknown}}},
		{"fail", []string{"a"}, []Result{{Name: "a", Verdict: Fail}}},
		{"no verdict", []string{"a"}, []Result{{Name: "a", Verdict: Verdict(9)}}},
		{"one unknown among passes", []string{"a"}, []Result{pass("a"), {Name: "a", Verdict: Unknown}, pass("a")}},
		{"one unchecked among passes", []string{"a"}, []Result{pass("a"), {Name: "a"}, pass("a")}},
		{"fail of a name not required", []string{"a"}, []Result{pass("a"), {Name: "b", Verdict: Fail}}},
		{"fail without a name", []string{"a"}, []Result{pass("a"), {Verdict: Fail}}},
		{"negative count", []string{"a"}, []Result{{Name: "a", Verdict: Pass, Operations: -1}}},
		{"negative count outweighed", []string{"a"}, []Result{{Name: "a", Verdict: Pass, Operations: -1}, {Name: "a", Verdict: Pass, Operations: 9}}},
		{"counts that overflow", []string{"a"}, []Result{{Name: "a", Verdict: Pass, Operations: math.MaxInt}, pass("a")}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			clearance, merged := Clear(c.required, c.results)
			if clearance.Valid() {
				t.Errorf("clear, with %+v", merged)
			}
			if len(merged) != len(c.required) {
				t.Errorf("%d merged results for %d names", len(merged), len(c.required))
			}
		})
	}
}

func TestClearAccepts(t *testing.T) {
	results := []Result{pass("b"), pass("a"), {Name: "extra", Verdict: Unknown}, {Name: "more"}, pass("b")}
	clearance, merged := Clear([]string{"a", "b"}, results)
	if !clearance.Valid() {
		t.Fatalf("not clear, with %+v", merged)
	}
	if merged[0].Name != "a" || merged[1].Name != "b" || merged[1].Operations != 2 {
		t.Errorf("merged %+v", merged)
	}
}

func TestClearIsValidOnlyIfAllIsPass(t *testing.T) {
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		required := rapid.SliceOfN(names, 0, 3).Draw(t, "required")
		results := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Result {
			// Mostly passes, or a valid clearance would hardly ever be drawn.
			v := Pass
			if rapid.IntRange(0, 9).Draw(t, "odd") == 9 {
				v = anyVerdict().Draw(t, "verdict")
			}
			return Result{Name: names.Draw(t, "name"), Verdict: v, Operations: rapid.IntRange(0, 3).Draw(t, "operations")}
		}), 0, 6).Draw(t, "results")

		want := len(required) > 0
		for _, r := range results {
			if r.Verdict == Fail || r.Verdict != Pass && slices.Contains(required, r.Name) {
				want = false
			}
		}
		for _, name := range required {
			if !slices.ContainsFunc(results, func(r Result) bool { return r.Name == name }) {
				want = false
			}
		}
		clearance, merged := Clear(required, results)
		if clearance.Valid() != want {
			t.Fatalf("valid is %t, want %t: %+v", clearance.Valid(), want, merged)
		}
		if want {
			valid++
		}
		for i, r := range merged {
			if r.Name != required[i] {
				t.Fatalf("result %d is %q, required %q", i, r.Name, required[i])
			}
		}
	})
	if valid == 0 {
		t.Error("no valid clearance was drawn: the property was hardly tested")
	}
}

func TestClearMergesResultsOfOneName(t *testing.T) {
	_, merged := Clear([]string{"durable"}, []Result{
		{Name: "durable", Verdict: Pass, Message: "fine", Operations: 3, Kinds: map[string]int{"insert": 3}, Faults: map[string]int{"kill": 1}},
		{Name: "durable", Verdict: Unknown, Message: "crashed"},
		{Name: "durable", Verdict: Fail, Message: "1 lost", Operations: 2, Kinds: map[string]int{"insert": 1, "delete": 1}, Examples: []string{"lost: k"}},
		{Name: "durable", Verdict: Pass, Message: "fine", Operations: 1, Faults: map[string]int{"kill": 2}},
		{Name: "other", Verdict: Pass, Operations: 100},
	})
	got := merged[0]
	if got.Verdict != Fail || got.Message != "1 lost; crashed; fine" || got.Operations != 6 {
		t.Errorf("merged to %+v", got)
	}
	if got.Kinds["insert"] != 4 || got.Kinds["delete"] != 1 || got.Faults["kill"] != 3 {
		t.Errorf("counts %v %v", got.Kinds, got.Faults)
	}
	if !slices.Equal(got.Examples, []string{"lost: k"}) {
		t.Errorf("examples %q", got.Examples)
	}
}

func TestClearChangesNoInput(t *testing.T) {
	results := []Result{
		{Name: "a", Verdict: Pass, Operations: 1, Kinds: map[string]int{"insert": 1}},
		{Name: "a", Verdict: Fail, Operations: 1, Kinds: map[string]int{"insert": 1}},
	}
	Clear([]string{"a"}, results)
	if results[0].Kinds["insert"] != 1 || results[1].Kinds["insert"] != 1 || results[0].Verdict != Pass {
		t.Errorf("inputs became %+v", results)
	}
}

func TestClearStaysReadable(t *testing.T) {
	var results []Result
	for i := range 1000 {
		results = append(results, Result{Name: "a", Verdict: Fail, Message: fmt.Sprintf("trial %d broke", i), Examples: []string{"x", "y"}})
	}
	_, merged := Clear([]string{"a"}, results)
	got := merged[0]
	if len(got.Examples) > maxExamples || !strings.HasSuffix(got.Message, "and 995 more") {
		t.Errorf("%d examples, message %q", len(got.Examples), got.Message)
	}
}
