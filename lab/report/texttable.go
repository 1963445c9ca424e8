package report

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// textTable is a table for a terminal. Columns are as wide as their longest
// cell. Where the line would be too long, name columns are cut first; where
// that is not enough, each row becomes a paragraph, because a number that was
// cut would be another number.
type textTable struct {
	head  []string
	right []bool // numbers stand at the right
	names []bool // may be cut
	rows  [][]string

	// grouped leaves the first cell empty where it repeats the one above.
	grouped bool
}

const (
	columnGap  = "  "
	leastName  = 8
	rowIndent  = "  "
	paraIndent = "    "
)

func (t *textTable) add(cells ...string) { t.rows = append(t.rows, cells) }

// lines are the table's, none longer than width.
func (t *textTable) lines(width int) []string {
	width -= len(rowIndent)
	widths := t.widths()
	for sum(widths)+len(columnGap)*(len(widths)-1) > width {
		widest := -1
		for i, w := range widths {
			if t.names[i] && w > leastName && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return t.paragraphs(width)
		}
		widths[widest]--
	}
	var out []string
	if len(t.head) > 0 {
		out = append(out, t.line(t.head, widths))
	}
	for i, r := range t.rows {
		if t.grouped && i > 0 && r[0] == t.rows[i-1][0] {
			r = slices.Clone(r)
			r[0] = ""
		}
		out = append(out, t.line(r, widths))
	}
	return out
}

func (t *textTable) widths() []int {
	widths := make([]int, len(t.right))
	for _, r := range append([][]string{t.head}, t.rows...) {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	return widths
}

func (t *textTable) line(cells []string, widths []int) string {
	var b strings.Builder
	b.WriteString(rowIndent)
	for i, c := range cells {
		if i > 0 {
			b.WriteString(columnGap)
		}
		c = clipped(c, widths[i])
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if t.right[i] {
			b.WriteString(pad + c)
		} else {
			b.WriteString(c + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func (t *textTable) paragraphs(width int) []string {
	var out []string
	for _, r := range t.rows {
		var parts []string
		for i, c := range r {
			if i > 0 && c != "" && len(t.head) > 0 && t.head[i] != "" {
				c = t.head[i] + " " + c
			}
			if c != "" {
				parts = append(parts, c)
			}
		}
		for i, l := range wrapped(strings.Join(parts, "; "), width-len(paraIndent)+len(rowIndent)) {
			if i == 0 {
				out = append(out, rowIndent+l)
			} else {
				out = append(out, paraIndent+l)
			}
		}
	}
	return out
}

func sum(xs []int) int {
	n := 0
	for _, x := range xs {
		n += x
	}
	return n
}
