package check

import (
	"math"
	"testing"
)

func TestOperationsKeepsWhatCanProveSomething(t *testing.T) {
	kinds := []string{KindRead, KindWrite, KindCAS, KindGet, KindPut, KindInsert, KindDelete}
	changes := map[string]bool{KindWrite: true, KindCAS: true, KindPut: true, KindInsert: true, KindDelete: true}
	for _, kind := range kinds {
		for outcome, kept := range map[Outcome]bool{OutcomeOK: true, OutcomeFailed: false, OutcomeMaybe: changes[kind]} {
			got, err := Operations([]Op{{Client: 3, Kind: kind, Outcome: outcome, Call: 5, Return: 7}})
			if err != nil || (len(got) == 1) != kept {
				t.Errorf("%s %s: kept %d, %v", outcome, kind, len(got), err)
				continue
			}
			if !kept {
				continue
			}
			want := int64(7)
			if outcome == OutcomeMaybe {
				want = math.MaxInt64
			}
			if o := got[0]; o.ClientId != 3 || o.Call != 5 || o.Return != want {
				t.Errorf("%s %s became %+v", outcome, kind, o)
			}
		}
	}
}

func TestOperationsRefuses(t *testing.T) {
	for name, op := range map[string]Op{
		"no outcome":            {Kind: KindWrite},
		"an outcome unheard of": {Kind: KindWrite, Outcome: "OK"},
		"ok backwards":          {Kind: KindWrite, Outcome: OutcomeOK, Call: 2, Return: 1},
		"failed backwards":      {Kind: KindWrite, Outcome: OutcomeFailed, Call: 2, Return: 1},
	} {
		if got, err := Operations([]Op{{Kind: KindRead, Outcome: OutcomeOK}, op}); err == nil || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := Operations([]Op{{Kind: KindWrite, Outcome: OutcomeMaybe, Call: 2, Return: 1}}); err != nil {
		t.Errorf("the return of a maybe is not a time: %v", err)
	}
}

func TestModelsRefuseEachOthersKinds(t *testing.T) {
	step := func(f func()) (panicked bool) {
		defer func() { panicked = recover() != nil }()
		f()
		return false
	}
	for _, kind := range []string{KindGet, KindPut, KindInsert, KindDelete, ""} {
		if !step(func() { stepRegister("", Op{Kind: kind}) }) {
			t.Errorf("a register takes %q", kind)
		}
	}
	for _, kind := range []string{KindRead, KindWrite, KindCAS, ""} {
		if !step(func() { stepDictionary(slot[string]{}, Op{Kind: kind}) }) {
			t.Errorf("a dictionary takes %q", kind)
		}
	}
}
