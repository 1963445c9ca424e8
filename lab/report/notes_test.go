package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/ledger"
)

// TestNotesOfARunAreOnEveryPage, with the columns of those that have some, and harmless.
func TestNotesOfARunAreOnEveryPage(t *testing.T) {
	s := makeRun(t, writePath, made{trial: writePathTrial(0.82)})
	table := "command    T    C\r\nfind     1.2  0.3\n<b>`|@all  9.9\x1b[31m\n"
	s.Run.Records = append(slices.Clone(s.Run.Records),
		ledger.Record{Note: &ledger.Note{Text: "where the time goes:\n" + table}},
		ledger.Record{Note: &ledger.Note{Text: "short & sweet"}})
	html := string(page(t, HTML, s))
	for _, want := range []string{
		`<h2>Notes</h2>`, `<a href="#notes">Notes</a>`, "<bdi>during the run: short &amp; sweet</bdi></li>",
		"<bdi>during the run: where the time goes:</bdi><pre class=\"note\"", "command    T    C\nfind     1.2  0.3\n&lt;b&gt;`|@all  9.9\uFFFD[31m</pre>",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	md := string(page(t, Markdown, s))
	for _, want := range []string{
		"- during the run: short &amp; sweet\n",
		"- during the run: where the time goes:\n\n  <pre>command    T    C\n  find     1.2  0.3\n  &lt;b&gt;&#96;&#124;@\u200ball  9.9\uFFFD&#91;31m</pre>\n",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("Markdown has no %q", want)
		}
	}
}

// TestNotesAreBounded so that no run makes a page too large to open.
func TestNotesAreBounded(t *testing.T) {
	r := newRemark("head\n" + strings.Repeat("line\n", 10*noteLines))
	if n := strings.Count(r.Table, "\n") + 1; n != noteLines+1 || !strings.HasSuffix(r.Table, "the ledger has the rest") {
		t.Errorf("%d lines, the last is %q", n, r.Table[strings.LastIndex(r.Table, "\n")+1:])
	}
	if r := newRemark("head\n" + strings.Repeat("x", 10*noteWidth)); len(r.Table) > noteWidth+40 {
		t.Errorf("a line of %d bytes", len(r.Table))
	}
	if all := newRemarks(make([]string, 10*pageItems)); len(all) != pageItems+1 || !strings.Contains(all[pageItems].Text, "360 more") {
		t.Errorf("%d notes, the last is %q", len(all), all[len(all)-1].Text)
	}
	for _, s := range []string{"", "one", "one\n", "one\n\n\n", "one\r\n"} {
		if r := newRemark(s); r.Table != "" || r.Text != strings.TrimSpace(s) {
			t.Errorf("%q became %+v", s, r)
		}
	}
}

// TestManyNotesAreFolded, and those that stand open are few.
func TestManyNotesAreFolded(t *testing.T) {
	for _, n := range []int{1, 50} {
		s := makeRun(t, writePath, made{trial: writePathTrial(0.82)})
		s.Run.Records = slices.Clone(s.Run.Records)
		for range n {
			s.Run.Records = append(s.Run.Records, ledger.Record{Note: &ledger.Note{Text: "a note"}})
		}
		many := n > 3
		if got := strings.Contains(string(page(t, HTML, s)), " notes</summary>\n<ul class=\"notes\">"); got != many {
			t.Errorf("%d notes: folded on the page is %v", n, got)
		}
		if got := strings.Contains(string(page(t, Markdown, s)), "<summary>Notes</summary>"); got != many {
			t.Errorf("%d notes: folded in Markdown is %v", n, got)
		}
	}
}

// TestLargeNotesLeaveMarkdownItsDecision: they stand ahead of it, and what does
// not fit takes along all that comes after.
func TestLargeNotesLeaveMarkdownItsDecision(t *testing.T) {
	for _, note := range []string{"head\n" + strings.Repeat(strings.Repeat("|", noteWidth)+"\n", noteLines), strings.Repeat("|", 10*noteWidth)} {
		s := makeRun(t, writePath, made{trial: writePathTrial(0.82)})
		s.Run.Records = slices.Clone(s.Run.Records)
		for range 500 {
			s.Run.Records = append(s.Run.Records, ledger.Record{Note: &ledger.Note{Text: note}})
		}
		md := string(page(t, Markdown, s))
		for _, want := range []string{"Vetoes and gates", "How it was decided", "the ledger has", "more, which the ledger has"} {
			if !strings.Contains(md, want) {
				t.Errorf("Markdown has no %q", want)
			}
		}
		if strings.Contains(md, "**Left out**") {
			t.Error("notes pushed something out")
		}
	}
}
