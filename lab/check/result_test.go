package check

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestRequireTurnsAVacuousPassIntoUnknown(t *testing.T) {
	full := Result{
		Name: "durable", Verdict: Pass, Operations: 10,
		Kinds:  map[string]int{"insert": 7, "delete": 3, "cas": 0},
		Faults: map[string]int{"kill": 1, "cut": 0},
	}
	cases := []struct {
		name   string
		q      Requirement
		want   Verdict
		reason string
	}{
		{"met", Requirement{Operations: 10, Kinds: []string{"insert", "delete"}, Faults: []string{"kill"}}, Pass, ""},
		{"too few", Requirement{Operations: 11}, Unknown, "looked at 10 operations, needs 11"},
		{"kind without success", Requirement{Kinds: []string{"cas"}}, Unknown, "no cas succeeded"},
		{"kind never tried", Requirement{Kinds: []string{"insert", "scan"}}, Unknown, "no scan succeeded"},
		{"fault did not fire", Requirement{Faults: []string{"kill", "cut"}}, Unknown, "fault cut did not fire"},
		{"fault unheard of", Requirement{Faults: []string{"pause"}}, Unknown, "fault pause did not fire"},
		{"everything", Requirement{Operations: 99, Kinds: []string{"cas"}, Faults: []string{"cut"}}, Unknown,
			"looked at 10 operations, needs 99; no cas succeeded; fault cut did not fire"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := full.Require(c.q)
			if got.Verdict != c.want || got.Message != c.reason {
				t.Errorf("got %v %q, want %v %q", got.Verdict, got.Message, c.want, c.reason)
			}
		})
	}
}

func TestRequireNeverPassesACheckThatSawNothing(t *testing.T) {
	for _, q := range []Requirement{{}, {Operations: 0}, {Operations: -5}} {
		if got := (Result{Verdict: Pass}).Require(q); got.Verdict != Unknown {
			t.Errorf("%+v: a pass over no operation is %v", q, got.Verdict)
		}
		if got := (Result{Verdict: Pass, Operations: 1}).Require(q); got.Verdict != Pass {
			t.Errorf("%+v: a pass over one operation is %v", q, got.Verdict)
		}
	}
}

func TestRequireNeverImproves(t *testing.T) {
	met := Requirement{Operations: 1}
	unmet := Requirement{Operations: 99, Kinds: []string{"cas"}, Faults: []string{"cut"}}
	for _, v := range order {
		for _, q := range []Requirement{met, unmet} {
			got := Result{Verdict: v, Operations: 5}.Require(q).Verdict
			if rank(got) < rank(v) {
				t.Errorf("%v became %v", v, got)
			}
			if v == Fail && got != Fail {
				t.Errorf("a fail became %v", got)
			}
		}
	}
	if got := (Result{Verdict: Verdict(9), Operations: 5}).Require(met).Verdict; got != Unknown {
		t.Errorf("what is no verdict became %v", got)
	}
}

func TestRequireDistrustsNegativeCounts(t *testing.T) {
	bad := []Result{
		{Operations: -1},
		{Operations: 9, Kinds: map[string]int{"insert": 1, "delete": -1}},
		{Operations: 9, Faults: map[string]int{"kill": -1}},
	}
	for _, r := range bad {
		for v, want := range map[Verdict]Verdict{Pass: Unknown, Unchecked: Unknown, Unknown: Unknown, Fail: Fail} {
			r.Verdict = v
			got := r.Require(Requirement{})
			if got.Verdict != want || !strings.Contains(got.Message, "negative count") {
				t.Errorf("%+v became %v %q, want %v", r, got.Verdict, got.Message, want)
			}
		}
	}
}

func TestRequireLeavesItsReceiverAlone(t *testing.T) {
	r := Result{Verdict: Pass, Message: "all there", Operations: 2, Kinds: map[string]int{"insert": 2}}
	kinds := maps.Clone(r.Kinds)
	got := r.Require(Requirement{Kinds: []string{"delete"}})
	if r.Verdict != Pass || r.Message != "all there" || !maps.Equal(r.Kinds, kinds) {
		t.Errorf("receiver became %+v", r)
	}
	if want := "all there; no delete succeeded"; got.Message != want {
		t.Errorf("message %q, want %q", got.Message, want)
	}
}

func TestGuardMakesAPanicUnknown(t *testing.T) {
	judges := map[string]func() Result{
		"a word":    func() Result { panic("disk on fire") },
		"an error":  func() Result { panic(errors.New("disk on fire")) },
		"too late":  func() (r Result) { r.Verdict = Pass; panic("disk on fire") },
		"a runtime": func() Result { return Result{Verdict: Verdict([]int{}[len(order)-4])} },
		"nil":       func() Result { panic(nil) },
		"no judge":  nil,
	}
	for name, judge := range judges {
		got := Guard(name, judge)
		if got.Verdict != Unknown || got.Name != name || !strings.Contains(got.Message, "panicked: ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := Guard("long", func() Result { panic(strings.Repeat("x", 1<<20)) }); len(got.Message) > maxExampleBytes {
		t.Errorf("a long panic makes a message of %d bytes", len(got.Message))
	}
}

func TestGuardNamesTheResult(t *testing.T) {
	for _, v := range order {
		got := Guard("durable", func() Result { return Result{Name: "other", Verdict: v, Operations: 3} })
		if got.Name != "durable" || got.Verdict != v || got.Operations != 3 {
			t.Errorf("%v became %+v", v, got)
		}
	}
	if got := Guard("durable", func() Result { return Result{} }); got.Verdict != Unchecked {
		t.Errorf("a judge that says nothing is %v", got.Verdict)
	}
	if got := Guard("durable", func() Result { return Result{Verdict: Verdict(9)} }); got.Verdict != Unknown {
		t.Errorf("a judge that says what is no verdict is %v", got.Verdict)
	}
}
