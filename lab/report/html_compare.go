package report

import (
	"bytes"
	"html/template"
)

// CompareHTML is Compare as a part of a page that has the question as its title:
// sections whose headings are of the second order.
func CompareHTML(runs []*Source) (template.HTML, error) {
	c, err := newComparison(runs)
	if err != nil {
		return "", err
	}
	if n := len(c.Tables); n > pageRows {
		c.Tables = c.Tables[:pageRows]
		c.More = leftOut(n-pageRows, "table")
	}
	if n := len(c.Flips); n > pageRows {
		c.Flips = firstOf(c.Flips, pageRows)
	}
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "comparison", c); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil
}

// tableCell is a cell of a table whose columns are not known ahead.
type tableCell struct {
	Text string
	Left bool
	Name bool // of the row
}

// Head are the headings of the table's columns.
func (t comparisonTable) Head() []tableCell { return t.cells(t.table.head) }

// Rows are the table's.
func (t comparisonTable) Rows() [][]tableCell {
	rows := make([][]tableCell, len(t.table.rows))
	for i, r := range t.table.rows {
		rows[i] = t.cells(r)
		rows[i][0].Name = true
	}
	return rows
}

func (t comparisonTable) cells(texts []string) []tableCell {
	cells := make([]tableCell, len(texts))
	for i, s := range texts {
		cells[i] = tableCell{Text: s, Left: i > 0 && !t.table.right[i]}
	}
	return cells
}

// Remarks are the facts but for the question, which a page has as its title.
func (c *comparison) Remarks() []pageFact { return c.Facts[1:] }

// Outcomes is the table of verdicts.
func (c *comparison) Outcomes() comparisonTable {
	return comparisonTable{"The verdict of each run", c.Tables[0].table}
}

// Figures are the tables of the metrics.
func (c *comparison) Figures() []comparisonTable { return c.Tables[1:] }

// NoFlips stands where nothing differs.
func (c *comparison) NoFlips() string { return noFlips }
