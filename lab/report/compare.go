package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
)

// ErrNotComparable is returned by Compare for fewer than two runs and for runs
// of different protocols.
var ErrNotComparable = errors.New("not runs of one protocol")

// Compare writes how far several runs of the same protocol agree: what a figure
// of one run is worth shows in the next. The lock's name tells which runs
// belong together; where their contents differ, a line says so.
func Compare(w io.Writer, runs []*Source) error {
	c, err := newComparison(runs)
	if err != nil {
		return err
	}
	p := &textPage{Source: runs[0], width: defaultWidth}
	p.para("", "RUN TO RUN  "+c.Title)
	for _, f := range c.Facts {
		p.fact(f.Term, f.Value)
	}
	for _, t := range c.Tables {
		p.heading("%s", t.Title)
		p.table(t.table)
	}
	p.heading("Flips")
	if len(c.Flips) == 0 {
		p.para("  ", noFlips)
	}
	for _, f := range c.Flips {
		p.para("  - ", f)
	}
	_, err = io.WriteString(w, p.b.String())
	return err
}

const noFlips = "none: no change has both signs, and no outcome differs"

// comparison is what several runs of one protocol say, ready to print.
type comparison struct {
	Title  string
	Facts  []pageFact
	Tables []comparisonTable
	Flips  []string
	More   string // what a page leaves out

	runs []*Source
}

type comparisonTable struct {
	Title string
	table *textTable
}

func newComparison(runs []*Source) (*comparison, error) {
	if len(runs) < 2 {
		return nil, fmt.Errorf("%w: %s, give two or more", ErrNotComparable, counted(len(runs), "run"))
	}
	for _, r := range runs[1:] {
		if r.Results.Name != runs[0].Results.Name {
			return nil, fmt.Errorf("%w: %s and %s", ErrNotComparable, oneLine(runs[0].Results.Name), oneLine(r.Results.Name))
		}
	}
	c := &comparison{runs: runs, Title: fmt.Sprintf("%s, %s", runs[0].Results.Name, counted(len(runs), "run"))}
	c.head()
	c.outcomes()
	if len(c.clear()) > 1 {
		c.cells()
	}
	return c, nil
}

func (c *comparison) fact(term, value string) {
	c.Facts = append(c.Facts, pageFact{Term: term, Value: value})
}

func (c *comparison) table(title string, t *textTable) {
	c.Tables = append(c.Tables, comparisonTable{title, t})
}

// numbered is a run with its place in the list, as the page calls it.
type numbered struct {
	*Source
	n       int
	answers map[ruleKey]*rule
}

// clear are the runs that have figures.
func (c *comparison) clear() []numbered {
	var all []numbered
	for i, r := range c.runs {
		if r.Results.Clear {
			all = append(all, numbered{r, i + 1, r.answers()})
		}
	}
	return all
}

func (c *comparison) head() {
	first := c.runs[0]
	c.fact("question", first.Verdict.Question)
	for i, r := range c.runs[1:] {
		switch {
		case r.Run.Lock.SHA256 != first.Run.Lock.SHA256:
			c.fact("WARNING", fmt.Sprintf("run %d has another protocol under the same name; its figures may answer another question", i+2))
		case r.Results.Lock != first.Results.Lock:
			c.fact("note", fmt.Sprintf("run %d has the same protocol, frozen on its own: arms or inputs may differ", i+2))
		}
	}
}

func (c *comparison) outcomes() {
	t := &textTable{
		head:  []string{"run", "verdict", "outcome", "begun", "lock", ""},
		right: []bool{true, false, false, false, false, false}, names: []bool{false, false, true, false, false, true},
	}
	for i, r := range c.runs {
		begun := none
		if len(r.Run.Records) > 0 && r.Run.Begin() != nil {
			begun = r.Run.Begin().Time.UTC().Format("2006-01-02 15:04")
		}
		var remarks []string
		if len(r.Results.Exploratory) > 0 {
			remarks = append(remarks, "exploratory")
		}
		if !r.Results.Complete {
			remarks = append(remarks, "incomplete")
		}
		if !r.Results.Clear {
			remarks = append(remarks, "figures withheld")
		}
		t.add(num(float64(i+1)), oneLine(string(r.Verdict.Class)), oneLine(r.Verdict.Outcome), begun, shortDigest(r.Results.Lock), strings.Join(remarks, ", "))
	}
	c.table("Outcomes", t)
	c.flip("the outcome", len(c.runs), func(i int) string { return c.runs[i].Verdict.Outcome })
}

// flip notes a line where what the runs say is not the same.
func (c *comparison) flip(what string, n int, says func(int) string) {
	same := true
	var parts []string
	for i := range n {
		same = same && says(i) == says(0)
		parts = append(parts, says(i))
	}
	if !same {
		c.Flips = append(c.Flips, what+" differs: "+strings.Join(parts, ", "))
	}
}

func (c *comparison) cells() {
	runs := c.clear()
	for _, cell := range c.runs[0].Run.Protocol.Cells() {
		for _, m := range c.runs[0].countsFirst() {
			c.metric(runs, cell.Name, m)
		}
		c.rules(runs, cell.Name)
	}
}

// metric is a table of the runs, with their spread below.
func (c *comparison) metric(runs []numbered, cell string, m *protocol.Metric) {
	t := &textTable{head: []string{"run"}, rows: make([][]string, len(runs)+2)}
	t.rows[len(runs)], t.rows[len(runs)+1] = []string{"sd"}, []string{"max/min"}
	for i, r := range runs {
		t.rows[i] = []string{num(float64(r.n))}
	}
	for i, a := range c.runs[0].Run.Protocol.Arms {
		means := make([]float64, len(runs))
		for j, r := range runs {
			means[j] = float64(orNoSummary(r.Results.Cell(cell).Metric(m.Name).Arm(a.Name)).Mean)
		}
		factor, unit := scale(m.Unit, means...)
		text := func(x float64) string { return joinUnit(num(x*factor), unit) }
		c.column(t, clipped(a.Name, 14), means, text, text(sdOf(means)), maxOverMin(means))
		if i > 0 {
			c.changes(t, runs, cell, m, a.Name)
		}
	}
	for range t.head {
		t.right, t.names = append(t.right, true), append(t.names, false)
	}
	t.right[0] = false
	c.table(fmt.Sprintf("%s%s, %s", m.Name, inCell(cell), direction(m)), t)
}

// column adds a value per run, and below them their spread.
func (c *comparison) column(t *textTable, head string, xs []float64, text func(float64) string, spread ...string) {
	t.head = append(t.head, head)
	for j, x := range xs {
		t.rows[j] = append(t.rows[j], text(x))
	}
	for i, s := range spread {
		t.rows[len(xs)+i] = append(t.rows[len(xs)+i], s)
	}
}

func sdOf(xs []float64) float64 { return stats.MomentsOf(xs).SD }

// changes adds the column of an arm's change against the reference, as a
// difference where a run has no relative change.
func (c *comparison) changes(t *textTable, runs []numbered, cell string, m *protocol.Metric, arm string) {
	relative, diffs := make([]float64, len(runs)), make([]float64, len(runs))
	for j, r := range runs {
		cmp := orNoComparison(r.Results.Cell(cell).Metric(m.Name).Against(arm))
		relative[j], diffs[j] = float64(cmp.Change), float64(cmp.Diff)
	}
	xs, text, spread := relative, percent, strings.TrimPrefix(percent(sdOf(relative)), "+")
	if slices.ContainsFunc(relative, math.IsNaN) {
		xs, text, spread = diffs, func(x float64) string { return signed(x, m.Unit) }, withUnit(sdOf(diffs), m.Unit)
	}
	c.column(t, "change", xs, text, spread, "")
	up := slices.ContainsFunc(xs, func(x float64) bool { return x > 0 })
	down := slices.ContainsFunc(xs, func(x float64) bool { return x < 0 })
	if !up || !down {
		return
	}
	var parts []string
	for j, x := range xs {
		parts = append(parts, fmt.Sprintf("%s in run %d", text(x), runs[j].n))
	}
	c.Flips = append(c.Flips, fmt.Sprintf("%s of %s%s changes sign: %s", m.Name, arm, inCell(cell), strings.Join(parts, ", ")))
}

func maxOverMin(xs []float64) string {
	if slices.ContainsFunc(xs, func(x float64) bool { return !(x > 0) }) {
		return none
	}
	return times(slices.Max(xs) / slices.Min(xs))
}

// rules notes a veto or gate that does not say the same in every run.
func (c *comparison) rules(runs []numbered, cell string) {
	p := c.runs[0].Run.Protocol
	for _, list := range []struct {
		kind  string
		rules []protocol.Rule
	}{{"veto", p.Vetoes}, {"gate", p.Gates}} {
		for _, decl := range list.rules {
			c.flip(list.kind+" "+decl.Name+inCell(cell), len(runs), func(i int) string {
				if a := runs[i].answers[ruleKey{list.kind, decl.Name, cell}]; a != nil {
					return a.State
				}
				return gate.Missing
			})
		}
	}
}
