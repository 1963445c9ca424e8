package stats

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

func TestPairedSlotsAgainstR(t *testing.T) {
	b, err := os.ReadFile("testdata/slots.json")
	if err != nil {
		t.Fatal(err)
	}
	var sets []struct {
		Name                  string
		Ref, Treat            []float64
		Ref_slot, Treat_slot  []int
		Diff, T, P, Low, High float64
		DF                    int
	}
	if err := json.Unmarshal(b, &sets); err != nil {
		t.Fatal(err)
	}
	if len(sets) < 7 {
		t.Fatalf("only %d data sets", len(sets))
	}
	near := func(name, what string, got, want, tol float64) {
		t.Helper()
		if math.Abs(got-want) > tol*math.Abs(want) {
			t.Errorf("%s: %s = %.17g, want %.17g", name, what, got, want)
		}
	}
	for _, s := range sets {
		got, err := PairedSlots(s.Ref, s.Treat, s.Ref_slot, s.Treat_slot, 0.95)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		near(s.Name, "diff", got.Diff, s.Diff, 1e-9)
		near(s.Name, "t", got.T, s.T, 1e-9)
		near(s.Name, "df", got.DF, float64(s.DF), 0)
		near(s.Name, "p", got.P, s.P, 1e-6)
		near(s.Name, "low", got.CI.Lower, s.Low, 1e-9)
		near(s.Name, "high", got.CI.Upper, s.High, 1e-9)
	}
}

func TestPairedSlotsIsPairedWhereItMustBe(t *testing.T) {
	ref, treat := []float64{1, 2, 3, 4}, []float64{2, 2, 5, 4}
	few, err := PairedSlots(ref, treat, []int{0, 1, 0, 1}, []int{1, 0, 1, 0}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := Paired(ref, treat, 0.95)
	if few.P != plain.P || len(few.Notes) != 1 {
		t.Errorf("with 4 rounds: p %v and notes %q, want Paired's p %v and a note", few.P, few.Notes, plain.P)
	}
	same := make([]float64, 10)
	slots := make([]int, 10)
	other := make([]int, 10)
	for i := range other {
		other[i] = 1
	}
	if _, err := PairedSlots(same, same, slots, other, 0.95); err == nil {
		t.Error("a fixed order cannot tell slots from arms, and no error said so")
	}
	if _, err := PairedSlots(same, same, slots[:9], other, 0.95); err == nil {
		t.Error("a missing slot went unnoticed")
	}
}
