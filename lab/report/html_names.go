package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assaylab/assay/lab/protocol"
)

// cellNames are the names under which the page shows cells: what sets a cell apart
// and no more, because a reader does not find the one difference in a row of names
// that say five things each.
//
// Left out of a name is the level that a factor has in all cells, and the level that
// it has in more than half of them; the page says once which levels those are.
// Where there is but one factor and its levels are words, the level alone is the name.
//
//  1. No two cells get the same name: what is left out is the same level for all of
//     them, so a name with the levels that were left out is the cell's own name.
//  2. A cell that the protocol does not have keeps its own name.
//
// Rejected: leaving out factor names as well. "all" and "off" say nothing where
// two factors have such levels.
type cellNames struct {
	cells   map[string]protocol.Cell
	factors []string
	usual   map[string]string // per factor, the level that is left out
	bare    bool              // names are levels without their factor
	names   map[string]string
	texts   *strings.Replacer // a text's own names of cells by these
	left    []string          // factor=level, of what is left out
	head    string            // of a column of names
}

// baseCell is the name of the cell that has every level that is left out.
const baseCell = "base cell"

func newCellNames(p *protocol.Protocol) *cellNames {
	v := &cellNames{cells: map[string]protocol.Cell{}, usual: map[string]string{}, names: map[string]string{}, head: "Cell"}
	cells := p.Cells()
	var varied []string
	for _, f := range p.Factors {
		v.factors = append(v.factors, f.Name)
		level, n := mostFrequent(cells, f.Name)
		if n < len(cells) {
			varied = append(varied, f.Name)
		}
		if 2*n > len(cells) {
			v.usual[f.Name] = level
		}
	}
	if len(varied) == 1 {
		delete(v.usual, varied[0])
		if v.bare = len(p.Factors) == 1 && words(cells, varied[0]); v.bare {
			v.head = varied[0]
		}
	}
	if len(cells) == 1 {
		v.usual = nil
	}
	for _, f := range v.factors {
		if level, ok := v.usual[f]; ok {
			v.left = append(v.left, f+"="+level)
		}
	}
	for _, c := range cells {
		v.cells[c.Name] = c
		v.names[c.Name] = c.Name
		if len(v.factors) > 0 {
			v.names[c.Name] = cmp.Or(v.say(c, v.factors, true), baseCell)
		}
	}
	v.texts = v.replacer()
	return v
}

// say names the cell's levels of some factors, with or without the usual ones.
func (v *cellNames) say(c protocol.Cell, factors []string, short bool) string {
	var parts []string
	for _, f := range factors {
		level := c.Level(f)
		switch usual, ok := v.usual[f]; {
		case short && ok && usual == level:
		case v.bare:
			parts = append(parts, level)
		default:
			parts = append(parts, f+"="+level)
		}
	}
	return strings.Join(parts, ", ")
}

// among are names for cells that stand together apart from all others: what they
// have in common is left out too, and said once.
func (v *cellNames) among(cells []string) (of func(string) string, common string) {
	var apart, alike []string
	for _, f := range v.factors {
		levels := map[string]bool{}
		for _, name := range cells {
			c, ok := v.cells[name]
			if !ok {
				return v.of, ""
			}
			levels[c.Level(f)] = true
		}
		if len(levels) > 1 {
			apart = append(apart, f)
		} else {
			alike = append(alike, f)
		}
	}
	if len(cells) < 2 {
		return v.of, ""
	}
	if common = v.say(v.cells[cells[0]], alike, true); common == "" || len(apart) == 0 {
		return v.of, ""
	}
	return func(name string) string {
		c, ok := v.cells[name]
		if !ok {
			return name
		}
		return cmp.Or(v.say(c, apart, true), v.say(c, apart, false))
	}, common
}

// replacer knows the longest name first, since one may begin with another.
func (v *cellNames) replacer() *strings.Replacer {
	var pairs []string
	for _, name := range slices.SortedFunc(maps.Keys(v.names), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) {
		if name != protocol.NoFactors {
			pairs = append(pairs, name, v.names[name])
		}
	}
	return strings.NewReplacer(pairs...)
}

// mostFrequent is the level that most cells have, the first of them where several do.
func mostFrequent(cells []protocol.Cell, factor string) (level string, n int) {
	count := map[string]int{}
	for _, c := range cells {
		count[c.Level(factor)]++
	}
	for _, c := range cells {
		if l := c.Level(factor); count[l] > n {
			level, n = l, count[l]
		}
	}
	return level, n
}

// words says whether all levels speak for themselves. Numbers and switches do not.
func words(cells []protocol.Cell, factor string) bool {
	return !slices.ContainsFunc(cells, func(c protocol.Cell) bool {
		l := c.Level(factor)
		_, err := strconv.ParseFloat(l, 64)
		return err == nil || slices.Contains([]string{"", "on", "off", "yes", "no", "true", "false", baseCell}, l)
	})
}

// of is the name under which the page shows the cell.
func (v *cellNames) of(cell string) string {
	if name, ok := v.names[cell]; ok {
		return name
	}
	return cell
}

// in is a text that the verdict made, with the page's names of the cells that it
// speaks of.
func (v *cellNames) in(text string) string { return v.texts.Replace(text) }

func (v *cellNames) inAll(texts []string) []string {
	all := make([]string, len(texts))
	for i, s := range texts {
		all[i] = v.in(s)
	}
	return all
}

// leftOut says what the names do not, "" where they say all.
func (v *cellNames) leftOut() string { return strings.Join(v.left, ", ") }
