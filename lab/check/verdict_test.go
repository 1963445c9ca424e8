package check

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// anyVerdict also draws values that are no verdict: a cast or a corrupt record
// can make one, and it must not open anything.
func anyVerdict() *rapid.Generator[Verdict] {
	return rapid.Map(rapid.IntRange(-2, 6), func(n int) Verdict { return Verdict(n) })
}

func someVerdicts() *rapid.Generator[[]Verdict] { return rapid.SliceOfN(anyVerdict(), 1, 6) }

// order is written out by hand, as the design states it, from best to worst.
var order = []Verdict{Pass, Unchecked, Unknown, Fail}

func rank(v Verdict) int {
	for i, known := range order {
		if v == known {
			return i
		}
	}
	return 2
}

func TestZeroVerdictIsUnchecked(t *testing.T) {
	var v Verdict
	if v != Unchecked || v == Pass {
		t.Fatalf("zero verdict is %v", v)
	}
	if got := Merge(); got != Unchecked {
		t.Fatalf("Merge of none is %v", got)
	}
	if got := (Result{}).Verdict; got != Unchecked {
		t.Fatalf("zero result is %v", got)
	}
}

func TestMergeTakesTheWorseOfEveryPair(t *testing.T) {
	for i, better := range order {
		for _, worse := range order[i:] {
			if got := Merge(better, worse); got != worse {
				t.Errorf("Merge(%v, %v) = %v", better, worse, got)
			}
			if got := Merge(worse, better); got != worse {
				t.Errorf("Merge(%v, %v) = %v", worse, better, got)
			}
		}
	}
}

func TestMergeDoesNotPassWhatIsNoVerdict(t *testing.T) {
	for _, v := range []Verdict{-1, 4, 1 << 40} {
		if got := Merge(Pass, v); got != Unknown {
			t.Errorf("Merge(pass, %d) = %v, want unknown", int(v), got)
		}
		if got := Merge(v); got != Unknown {
			t.Errorf("Merge(%d) = %v, want unknown", int(v), got)
		}
	}
}

func TestMergeIsAssociativeAndCommutative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := someVerdicts().Draw(t, "a"), someVerdicts().Draw(t, "b")
		whole := Merge(append(append([]Verdict{}, a...), b...)...)
		if got := Merge(Merge(a...), Merge(b...)); got != whole {
			t.Fatalf("grouped %v, flat %v", got, whole)
		}
		if got := Merge(append(append([]Verdict{}, b...), a...)...); got != whole {
			t.Fatalf("swapped %v, flat %v", got, whole)
		}
	})
}

func TestMergeIsTheWorstAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := someVerdicts().Draw(t, "vs")
		got := Merge(vs...)
		worst := 0
		for _, v := range vs {
			worst = max(worst, rank(v))
		}
		if rank(got) != worst {
			t.Fatalf("Merge(%v) = %v, the worst has rank %d", vs, got, worst)
		}
	})
}

func TestVerdictWords(t *testing.T) {
	words := map[Verdict]string{Unchecked: `"unchecked"`, Pass: `"pass"`, Unknown: `"unknown"`, Fail: `"fail"`}
	for v, word := range words {
		text, err := json.Marshal(v)
		if err != nil || string(text) != word {
			t.Errorf("%v is written %s, %v; want %s", v, text, err, word)
		}
		var back Verdict
		if err := json.Unmarshal([]byte(word), &back); err != nil || back != v {
			t.Errorf("%s is read as %v, %v", word, back, err)
		}
	}
}

func TestVerdictRefusesOtherWords(t *testing.T) {
	for _, text := range []string{`""`, `"PASS"`, `"Pass"`, `" pass"`, `"ok"`, `"true"`, `"1"`, `1`, `true`} {
		v := Unchecked
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%s is read as %v without an error", text, v)
		}
		if v != Unchecked {
			t.Errorf("%s left %v behind", text, v)
		}
	}
	if text, err := json.Marshal(Verdict(7)); err == nil {
		t.Errorf("a value that is no verdict is written as %s", text)
	}
}

func TestResultSaysThatItIsUnchecked(t *testing.T) {
	text, err := json.Marshal(Result{Name: "durable"})
	if want := `{"name":"durable","verdict":"unchecked"}`; err != nil || string(text) != want {
		t.Errorf("zero result is written %s, %v; want %s", text, err, want)
	}
	for _, missing := range []string{`{"name":"durable"}`, `{"name":"durable","verdict":null}`} {
		var r Result
		if err := json.Unmarshal([]byte(missing), &r); err != nil || r.Verdict != Unchecked {
			t.Errorf("%s is read as %v, %v; want unchecked", missing, r.Verdict, err)
		}
	}
}
