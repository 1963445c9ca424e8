package trial

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assaylab/assay/lab/protocol"
)

var update = flag.Bool("update", false, "write the golden files anew")

func plan(seed uint64, rounds, warmup int, arms ...string) *protocol.Protocol {
	p := &protocol.Protocol{Design: protocol.Design{Rounds: rounds, Warmup: warmup, Seed: seed}}
	for _, a := range arms {
		p.Arms = append(p.Arms, protocol.Arm{Name: a})
	}
	p.Factors = []protocol.Factor{
		{Name: "size", Levels: []protocol.Scalar{"1", "64"}},
		{Name: "keys", Levels: []protocol.Scalar{"hot", "cold"}},
	}
	return p
}

// A change of this file means that frozen protocols would run otherwise than
// before, and that no unfinished run can go on: mean it.
func TestTheScheduleIsTheOneItAlwaysWas(t *testing.T) {
	var b strings.Builder
	for _, r := range Schedule(plan(42, 4, 2, "control", "treatment", "third")) {
		fmt.Fprintf(&b, "%s %d warmup=%v", r.Cell, r.Round, r.Warmup)
		for _, s := range r.Slots {
			fmt.Fprintf(&b, " %d:%s", s.Slot, s.Arm)
		}
		fmt.Fprintf(&b, " seed=%016x\n", r.Slots[0].Seed)
	}
	path := filepath.Join("testdata", "schedule.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, path); got != b.String() {
		t.Errorf("the schedule is now\n%s", b.String())
	}
}

func TestEveryArmStandsInEveryPlaceEquallyOften(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, 6).Draw(t, "arms")
		arms := make([]string, k)
		for i := range arms {
			arms[i] = fmt.Sprintf("arm%d", i)
		}
		rounds, warmup := rapid.IntRange(1, 4*k).Draw(t, "rounds"), rapid.IntRange(0, 2*k).Draw(t, "warmup")
		p := plan(rapid.Uint64().Draw(t, "seed"), rounds, warmup, arms...)
		byCell := map[string][]Round{}
		for _, r := range Schedule(p) {
			byCell[r.Cell] = append(byCell[r.Cell], r)
		}
		if len(byCell) != 4 {
			t.Fatalf("%d cells", len(byCell))
		}
		for cell, all := range byCell {
			if len(all) != warmup+rounds {
				t.Fatalf("cell %s has %d rounds", cell, len(all))
			}
			for i, r := range all {
				if r.Round != i || r.Warmup != (i < warmup) {
					t.Fatalf("round %d of cell %s is %+v", i, cell, r)
				}
				ran := map[string]bool{}
				for j, s := range r.Slots {
					if s.Slot != j || s.Round != r.Round || s.Warmup != r.Warmup || s.Cell != cell || s.Seed != r.Slots[0].Seed {
						t.Fatalf("slot %d of %+v", j, r)
					}
					ran[s.Arm] = true
				}
				if len(ran) != k {
					t.Fatalf("round %d runs %d of %d arms", i, len(ran), k)
				}
			}
			for _, part := range [][]Round{all[:warmup], all[warmup:]} {
				for len(part) > 0 {
					block := part[:min(k, len(part))]
					part = part[len(block):]
					at := map[string]int{}
					for _, r := range block {
						for _, s := range r.Slots {
							at[fmt.Sprint(s.Slot, s.Arm)]++
						}
					}
					if len(at) != len(block)*k {
						t.Fatalf("in a block of %d rounds an arm stands twice in one place: %v", len(block), at)
					}
				}
			}
		}
	})
}

func TestSeedsDecideTheOrder(t *testing.T) {
	seen := map[string]uint64{}
	for seed := range uint64(50) {
		p := plan(seed, 8, 0, "a", "b", "c")
		if !reflect.DeepEqual(Schedule(p), Schedule(p)) {
			t.Fatal("one seed, two schedules")
		}
		order := ""
		for _, r := range Schedule(p) {
			for _, s := range r.Slots {
				order += s.Arm
			}
		}
		if other, ok := seen[order]; ok {
			t.Errorf("seeds %d and %d give the same order", seed, other)
		}
		seen[order] = seed
	}
}

func TestEveryRoundHasWorkOfItsOwn(t *testing.T) {
	seen := map[uint64]string{}
	for _, r := range Schedule(plan(7, 200, 200, "a", "b")) {
		what := fmt.Sprint(r.Cell, r.Round)
		if other, ok := seen[r.Slots[0].Seed]; ok {
			t.Errorf("%s and %s have the same seed", what, other)
		}
		seen[r.Slots[0].Seed] = what
	}
}

func byCell(p *protocol.Protocol) map[string][]Round {
	out := map[string][]Round{}
	for _, r := range Schedule(p) {
		out[r.Cell] = append(out[r.Cell], r)
	}
	return out
}

func TestLeavingACellOutMovesNoOther(t *testing.T) {
	whole := byCell(plan(7, 9, 2, "a", "b", "c"))
	p := plan(7, 9, 2, "a", "b", "c")
	p.Exclude = []protocol.Selector{{"size": {"1"}, "keys": {"cold"}}}
	less := byCell(p)
	if len(less) != 3 {
		t.Fatalf("%d cells", len(less))
	}
	for cell, rounds := range less {
		if !reflect.DeepEqual(rounds, whole[cell]) {
			t.Errorf("cell %s moved", cell)
		}
	}
}

func TestWarmUpDoesNotMoveTheMeasuredRounds(t *testing.T) {
	measured := func(warmup int) (out []string) {
		for _, r := range Schedule(plan(7, 9, warmup, "a", "b", "c")) {
			if !r.Warmup {
				out = append(out, fmt.Sprint(r.Cell, r.Round-warmup, r.Slots[0].Arm, r.Slots[1].Arm, r.Slots[0].Seed))
			}
		}
		return out
	}
	for _, warmup := range []int{1, 2, 5} {
		if !reflect.DeepEqual(measured(0), measured(warmup)) {
			t.Errorf("with %d warm-up rounds the measured ones are others", warmup)
		}
	}
}
