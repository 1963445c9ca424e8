package report

import (
	"fmt"
	"slices"
	"strings"
)

// A comment on GitHub may have 65,536 characters. Counting bytes, and staying
// clear of the limit, leaves room for what a bot puts around the page.
const markdownLimit = 60_000

// leftOutRoom is kept for the sentence that says what was left out. It names
// sections only, of which there is a fixed number.
const leftOutRoom = 1500

// markdownBlock is a section that may be cut between its rows, never inside
// one, so that what is printed stays well-formed.
type markdownBlock struct {
	name  string
	open  string
	rows  []string
	close string
}

// markdownPage fits blocks below the limit, in the order of their weight.
type markdownPage struct {
	b    strings.Builder
	left []string // what did not fit
}

func (p *markdownPage) add(b markdownBlock) {
	if len(p.left) > 0 {
		p.left = append(p.left, b.leftOut(0))
		return
	}
	room := markdownLimit - leftOutRoom - p.b.Len() - len(b.open) - len(b.close)
	fit := 0
	for _, r := range b.rows {
		if room -= len(r); room < 0 {
			break
		}
		fit++
	}
	if fit < len(b.rows) {
		p.left = append(p.left, b.leftOut(fit))
	}
	if fit == 0 {
		return
	}
	p.b.WriteString(b.open + strings.Join(b.rows[:fit], "") + b.close)
}

func (b *markdownBlock) leftOut(fit int) string {
	return fmt.Sprintf("%d of %s of “%s”", len(b.rows)-fit, counted(len(b.rows), "row"), b.name)
}

func (p *markdownPage) bytes() []byte {
	if len(p.left) > 0 {
		left := p.left
		if n := len(left); n > 12 {
			left = append(slices.Clone(left[:12]), fmt.Sprintf("%d more sections", n-12))
		}
		p.b.WriteString("\n**Left out** to stay below the size that GitHub takes: " + strings.Join(left, "; ") +
			". Nothing is lost: all of it stands in `results.json` and `verdict.json` of the run folder and on the HTML page.\n")
	}
	return []byte(p.b.String())
}

// folded is a block that a reader opens.
func folded(name, open string, rows []string) markdownBlock {
	return markdownBlock{
		name: name, open: "\n<details><summary>" + name + "</summary>\n\n" + open, rows: rows, close: "\n</details>\n",
	}
}

// titled is a block that is seen at once.
func titled(name, open string, rows []string) markdownBlock {
	return markdownBlock{name: name, open: "\n#### " + name + "\n\n" + open, rows: rows}
}

// tableHead is the head of a table; the first n columns are text.
func tableHead(columns ...string) string {
	return "| " + strings.Join(columns, " | ") + " |\n|" + strings.Repeat(" --- |", len(columns)) + "\n"
}

func tableRow(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// Text in a page comes from arms, judges and file names. Each bound keeps a
// row, and so the unit in which a page is cut, small.
const (
	mdName  = 100
	mdProse = 600
)

// mdEntities are the characters that mean something to Markdown, to HTML or to
// GitHub. As entities they mean nothing anywhere, also in a table, where a
// backslash in front of a bar depends on what stands before it.
var mdEntities = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "&#124;", "`", "&#96;", `\`, "&#92;", "*", "&#42;", "_", "&#95;",
	"[", "&#91;", "]", "&#93;", "~", "&#126;", "$", "&#36;", "!", "&#33;", "://", "&#58;//",
	// GitHub looks for these after the entities are gone: a name would be
	// called and a number linked, so something invisible stands in between.
	"@", "@\u200b", "#", "#\u200b",
)

// prose is text of any origin, to stand in a sentence or a cell.
func prose(s string) string { return mdEntities.Replace(clipped(s, mdProse)) }

// code is a name, set as code.
func code(s string) string {
	s = clipped(s, mdName)
	if s == "" {
		return none
	}
	if strings.ContainsAny(s, "`|\\<>&") || strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") {
		return "<code>" + mdEntities.Replace(s) + "</code>"
	}
	return "`" + s + "`"
}

// measure is a figure with its unit. Only the unit can hold anything but
// numbers, so the brackets of an interval stay as they are unless it has some
// of its own that would make a link of them.
func measure(s, unit string) string {
	s = prose(s)
	if strings.ContainsAny(unit, "[]()") {
		return s
	}
	return strings.NewReplacer("&#91;", "[", "&#93;", "]").Replace(s)
}
