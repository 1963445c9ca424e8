package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assaylab/assay/lab/protocol"
)

func named(t testing.TB, factors string) (*protocol.Protocol, *cellNames) {
	t.Helper()
	p, faults := protocol.Parse("protocol.yaml", []byte(strings.Replace(matrix, `factors:
  - {name: size, levels: [1, 16]}
  - {name: keys, levels: [hot, uniform-8]}
overrides:
  - {cells: {size: 16, keys: hot}, class: stress}
`, factors, 1)), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return p, newCellNames(p)
}

func TestCellNames(t *testing.T) {
	for _, c := range []struct {
		about, factors string
		names          []string
		left, head     string
	}{
		{"a grid says all", "factors: [{name: size, levels: [1, 16]}, {name: keys, levels: [hot, uniform]}]\n",
			[]string{"size=1, keys=hot", "size=1, keys=uniform", "size=16, keys=hot", "size=16, keys=uniform"}, "", "Cell"},
		{"what is the same in all cells is left out", "factors: [{name: size, levels: [1, 16]}, {name: disk, levels: [ssd]}]\n",
			[]string{"size=1", "size=16"}, "disk=ssd", "Cell"},
		{"what is usual is left out", `factors: [{name: size, levels: [0, 9]}, {name: keys, levels: [spread, hot]}, {name: cache, levels: ["off", cold, warm]}]
exclude: [{size: 9, keys: hot}, {keys: hot, cache: [cold, warm]}, {size: 9, cache: [cold, warm]}]
`, []string{"base cell", "cache=cold", "cache=warm", "keys=hot", "size=9"}, "size=0, keys=spread, cache=off", "Cell"},
		{"one of several factors", "factors: [{name: pattern, levels: [even, hot]}, {name: disk, levels: [ssd]}]\n", []string{"pattern=even", "pattern=hot"}, "disk=ssd", "Cell"},
		{"words speak for themselves", "factors: [{name: scenario, levels: [quiet, kill, partition]}]\n",
			[]string{"quiet", "kill", "partition"}, "", "scenario"},
		{"numbers do not", "factors: [{name: size, levels: [quiet, 16]}]\n", []string{"size=quiet", "size=16"}, "", "Cell"},
		{"nor do switches", "factors: [{name: cache, levels: [\"on\", \"off\"]}]\n", []string{"cache=on", "cache=off"}, "", "Cell"},
		{"the only cell", "factors: [{name: size, levels: [1]}, {name: keys, levels: [hot]}]\n", []string{"size=1, keys=hot"}, "", "Cell"},
		{"nothing varies", "", []string{"all"}, "", "Cell"},
	} {
		p, v := named(t, c.factors)
		var got []string
		for _, cell := range p.Cells() {
			got = append(got, v.of(cell.Name))
		}
		if !slices.Equal(got, c.names) || v.leftOut() != c.left || v.head != c.head {
			t.Errorf("%s: %q, left out %q, head %q", c.about, got, v.leftOut(), v.head)
		}
		for _, cell := range p.Cells() {
			if text := v.in("a in " + cell.Name + ": b"); text != "a in "+v.of(cell.Name)+": b" {
				t.Errorf("%s: %q", c.about, text)
			}
		}
		if v.of("no=such,cell=here") != "no=such,cell=here" {
			t.Error("a cell that the protocol does not have gets another name")
		}
	}
}

// Cells that stand together are named by what sets them apart from each other.
func TestCellNamesAmongFew(t *testing.T) {
	p, v := named(t, `factors: [{name: size, levels: [0, 9]}, {name: keys, levels: [spread, hot]}, {name: cache, levels: ["off", cold, warm]}]
exclude: [{size: 9, cache: [cold, warm]}]
`)
	var large []string
	for _, c := range p.Cells() {
		if c.Level("size") == "9" {
			large = append(large, c.Name)
		}
	}
	of, common := v.among(large)
	if common != "size=9, cache=off" || len(large) != 2 || of(large[0]) != "keys=spread" || of(large[1]) != "keys=hot" {
		t.Errorf("%q, %q in %q", of(large[0]), of(large[1]), common)
	}
	for _, few := range [][]string{nil, large[:1], {large[0], "no=such"}} {
		if of, common := v.among(few); common != "" || of(large[0]) != v.of(large[0]) || of("no=such") != "no=such" {
			t.Errorf("%q: %q in %q", few, of(large[0]), common)
		}
	}
	// What is usual has no name of its own, but needs one beside what is not.
	p, v = named(t, `factors: [{name: size, levels: [0, 9, 99, 999]}, {name: cache, levels: ["off", "on"]}]
exclude: [{size: [99, 999], cache: "on"}, {size: 0, cache: "on"}]
`)
	of, common = v.among([]string{"size=9,cache=off", "size=9,cache=on"})
	if common != "size=9" || of("size=9,cache=off") != "cache=off" || of("size=9,cache=on") != "cache=on" {
		t.Errorf("%q and %q in %q", of("size=9,cache=off"), of("size=9,cache=on"), common)
	}
}

// No two cells get one name, whatever is left out of it.
func TestCellNamesAreUnique(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := &protocol.Protocol{}
		for i := range rapid.IntRange(1, 4).Draw(r, "factors") {
			f := protocol.Factor{Name: fmt.Sprint("f", i)}
			for range rapid.IntRange(1, 4).Draw(r, "levels") {
				l := protocol.Scalar(rapid.SampledFrom([]string{"on", "off", "1", "2", "hot", "cold", "all"}).Draw(r, "level"))
				if !slices.Contains(f.Levels, l) {
					f.Levels = append(f.Levels, l)
				}
			}
			p.Factors = append(p.Factors, f)
		}
		for range rapid.IntRange(0, 3).Draw(r, "exclusions") {
			s := protocol.Selector{}
			for _, f := range p.Factors {
				if rapid.Bool().Draw(r, "named") {
					s[f.Name] = f.Levels[:1]
				}
			}
			if len(s) > 0 {
				p.Exclude = append(p.Exclude, s)
			}
		}
		v := newCellNames(p)
		var few []string
		for _, c := range p.Cells() {
			if rapid.Bool().Draw(r, "among the few") {
				few = append(few, c.Name)
			}
		}
		of, _ := v.among(few)
		unique := func(cells []string, name func(string) string) {
			seen := map[string]string{}
			for _, c := range cells {
				if other, dup := seen[name(c)]; dup || name(c) == "" {
					r.Fatalf("%s and %s are both called %q", c, other, name(c))
				}
				seen[name(c)] = c
			}
		}
		unique(few, of)
		unique(slices.Collect(maps.Keys(v.names)), v.of)
	})
}
