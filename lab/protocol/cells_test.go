package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func names(cells []Cell) string {
	var out []string
	for _, c := range cells {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

func factors(spec ...string) []Factor {
	var out []Factor
	for _, s := range spec {
		name, levels, _ := strings.Cut(s, "=")
		f := Factor{Name: name}
		for _, l := range strings.Split(levels, ",") {
			f.Levels = append(f.Levels, Scalar(l))
		}
		out = append(out, f)
	}
	return out
}

func TestCells(t *testing.T) {
	zero := 0
	p := &Protocol{Design: Design{Rounds: 20, Warmup: 2}}
	if got := p.Cells(); len(got) != 1 || got[0].Name != NoFactors || got[0].Rounds != 20 || got[0].Warmup != 2 || got[0].Class != ClassGated {
		t.Errorf("without factors: %+v", got)
	}
	p.Factors = factors("size=1,16,big", "keys=hot,cold")
	if got, want := names(p.Cells()), "size=1,keys=hot size=1,keys=cold size=16,keys=hot size=16,keys=cold size=big,keys=hot size=big,keys=cold"; got != want {
		t.Errorf("the last factor must vary fastest:\ngot  %s\nwant %s", got, want)
	}
	p.Exclude = []Selector{{"size": {"big"}, "keys": {"hot"}}, {"size": {"1", "16"}, "keys": {"cold"}}}
	if got, want := names(p.Cells()), "size=1,keys=hot size=16,keys=hot size=big,keys=cold"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// A later override counts where both say something, and each only for what
	// it says.
	p.Overrides = []Override{
		{Cells: Selector{"keys": {"hot"}}, Rounds: 40, Class: ClassStress, Timeout: Duration(time.Second)},
		{Cells: Selector{"size": {"16"}}, Rounds: 50, Warmup: &zero, Timeout: Duration(2 * time.Second)},
		{Cells: Selector{"size": {"16"}}, Class: ClassGated},
	}
	var got []string
	for _, c := range p.Cells() {
		got = append(got, fmt.Sprint(c.Name, " ", c.Rounds, " ", c.Warmup, " ", c.Class, " ", p.TimeoutIn(&Arm{}, c)))
	}
	want := []string{"size=1,keys=hot 40 2 stress 1s", "size=16,keys=hot 50 0 gated 2s", "size=big,keys=cold 20 2 gated 10m0s"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if d := p.TimeoutIn(&Arm{Timeout: Duration(time.Minute)}, p.Cells()[2]); d != time.Minute {
		t.Errorf("the arm's own time-out is %v", d)
	}
	if c, ok := p.Cell("size=16,keys=hot"); !ok || c.Rounds != 50 || c.Level("size") != "16" || c.Level("keys") != "hot" || c.Level("length") != "" {
		t.Errorf("%+v %v", c, ok)
	}
	for _, name := range []string{"size=big,keys=hot", "size=16", "", NoFactors} {
		if c, ok := p.Cell(name); ok {
			t.Errorf("%q is cell %+v", name, c)
		}
	}
}

// Cells share no memory, so that no one's append changes another's levels.
func TestCellsAreIndependent(t *testing.T) {
	p := &Protocol{Factors: factors("a=1,2", "b=1,2", "c=1,2")}
	cells := p.Cells()
	before := names(p.Cells())
	for i := range cells {
		_ = append(cells[i].Levels, "x")
		cells[i].Levels[0] = "changed"
	}
	for i, c := range cells {
		if c.Levels[1] == "changed" || c.Levels[2] == "changed" {
			t.Errorf("cell %d: %v", i, c.Levels)
		}
	}
	if after := names(p.Cells()); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

func TestSelectorMatch(t *testing.T) {
	p := &Protocol{Factors: factors("size=1,16,big", "keys=hot,cold")}
	for _, c := range []struct {
		s    Selector
		want string
	}{
		{nil, names(p.Cells())},
		{Selector{}, names(p.Cells())},
		{Selector{"size": {"1"}}, "size=1,keys=hot size=1,keys=cold"},
		{Selector{"size": {"1", "big"}, "keys": {"cold"}}, "size=1,keys=cold size=big,keys=cold"},
		{Selector{"size": {"2"}}, ""},
		{Selector{"size": nil}, ""},
		{Selector{"length": {"1"}}, ""},
		{Selector{"size": {"1"}, "length": {"1"}}, ""},
	} {
		got := names(slices.DeleteFunc(p.Cells(), func(cell Cell) bool { return !c.s.Match(cell) }))
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.s, got, c.want)
		}
	}
}

func TestPrimaryAndRuleCells(t *testing.T) {
	p := &Protocol{
		Factors:   factors("size=1,16,big"),
		Overrides: []Override{{Cells: Selector{"size": {"big"}}, Class: ClassStress}},
		Primary:   &Primary{},
	}
	if got := names(p.PrimaryCells()); got != "size=1 size=16" {
		t.Errorf("all that are not stress: %q", got)
	}
	p.Primary.Cells = Selector{"size": {"16", "big"}}
	if got := names(p.PrimaryCells()); got != "size=16" {
		t.Errorf("a stress cell is never primary: %q", got)
	}
	rule := &Rule{Cells: Selector{"size": {"16", "big"}}}
	if got := names(p.RuleCells(rule)); got != "size=16 size=big" {
		t.Errorf("a rule is shown in stress cells too: %q", got)
	}
	for _, c := range p.Cells() {
		if got, want := rule.Judged(c), c.Name != "size=big"; got != want {
			t.Errorf("%s judged: %v", c.Name, got)
		}
		if (&Rule{Class: ClassStress}).Judged(c) {
			t.Errorf("a stress rule is judged in %s", c.Name)
		}
	}
}

// A unit's scale applies to what the operating system measures; any other
// source has the unit that its author gave it.
func TestScale(t *testing.T) {
	for _, c := range []struct {
		source, unit string
		want         float64
	}{
		{SourceWall, "s", 1}, {SourceWall, "ms", 1e-3}, {SourceUser, "us", 1e-6}, {SourceSystem, "µs", 1e-6}, {SourceCPU, "ns", 1e-9},
		{SourcePeakMemory, "B", 1}, {SourcePeakMemory, "KiB", 1 << 10}, {SourcePeakMemory, "MiB", 1 << 20}, {SourcePeakMemory, "GiB", 1 << 30},
		{SourceJSON, "ms", 1}, {SourceSamples, "us", 1}, {SourceGoBench, "ns/op", 1}, {SourceExit, "", 1}, {SourceWall, "", 1},
	} {
		if got := (&Metric{Source: c.source, Unit: c.unit}).Scale(); got != c.want {
			t.Errorf("%s in %q: %v, want %v", c.source, c.unit, got, c.want)
		}
	}
}

func TestFindByName(t *testing.T) {
	p := parse(t, base)
	if p.Reference() != "old" || p.Arm("new") != &p.Arms[1] || p.Metric("bytes") != &p.Metrics[1] || p.Check("same") != &p.Checks[0] {
		t.Error("found something else")
	}
	if p.Arm("") != nil || p.Metric("none") != nil || p.Check("none") != nil {
		t.Error("found what is not there")
	}
}
