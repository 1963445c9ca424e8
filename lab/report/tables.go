package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
)

// Tables writes a run for a document: what came out, where it was measured, and
// one table per cell with every comparison and its tests, and none left out.
func Tables(w io.Writer, s *Source) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("**%s: %s.** %s", prose(strings.ToUpper(string(s.Verdict.Class))), code(s.Verdict.Outcome), prose(s.Verdict.Why))
	if len(s.Results.Exploratory) > 0 {
		line("\nExploratory, decides nothing: %s.", prose(strings.Join(s.Results.Exploratory, "; ")))
	}
	line("\n- protocol %s, version %d of lock %s; %s", code(s.Results.Name), s.Results.Version, code(shortDigest(s.Results.Lock)), prose(designText(s)))
	line("- begun %s", s.Run.Lock.Frozen.UTC().Format("2006-01-02 15:04 MST"))
	for _, l := range environmentLines(s) {
		line("- %s: %s", l[0], prose(l[1]))
	}
	for _, h := range s.Results.Host.Breaches {
		line("- host: %s", prose(breachText(&h)))
	}
	line("")
	for _, c := range mdCheckLines(s) {
		b.WriteString(c)
	}
	if rows := mdRules(s); len(rows) > 0 {
		b.WriteString("\n" + tableHead("state", "rule", "cell", "requires", "figures", "because") + strings.Join(rows, ""))
	}
	for i := range s.Results.Cells {
		cell := &s.Results.Cells[i]
		line("\n**%s**, %s%s\n", prose(cell.Name), counted(cell.Rounds, "round"), map[bool]string{true: ", not judged"}[cell.Class == "stress"])
		b.WriteString(tableHead("metric", "arm", code(s.Run.Protocol.Reference()), "the arm", "difference, Welch's interval", "change", "t (df)", "p", "paired interval, p", "d", "U, p"))
		for _, f := range s.figures(cell) {
			b.WriteString(tablesRow(&f))
		}
	}
	if !s.Results.Clear {
		line("\n%s", prose(withheldText(s)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func tablesRow(f *figure) string {
	c, m := f.cmp, f.metric
	diff, stat, p, paired, rank := signed(float64(c.Diff), m.Unit), none, none, none, none
	if f.exact() {
		p = "exact"
	} else {
		if t := c.Welch; t != nil && !math.IsNaN(float64(t.T)) {
			diff += " " + interval(float64(t.CI.Low), float64(t.CI.High), m.Unit)
			stat, p = fmt.Sprintf("%s (%s)", num(float64(t.T)), num(float64(t.DF))), pvalue(float64(t.P))
		}
		if t := c.Paired; t != nil && !math.IsNaN(float64(t.T)) {
			paired = interval(float64(t.CI.Low), float64(t.CI.High), m.Unit) + ", " + pvalue(float64(t.P))
		}
		if u := c.MannWhitney; u != nil && !math.IsNaN(float64(u.U)) {
			rank = num(float64(u.U)) + ", " + pvalue(float64(u.P))
		}
	}
	d := none
	if !f.exact() && !math.IsNaN(float64(c.D)) {
		d = f.gainful(c.D)
	}
	arms := func(a *analysis.ArmSummary) string { return prose(spread(m, a)) }
	return tableRow(code(m.Name), code(f.arm.Name), arms(f.ref), arms(f.treat), prose(diff), prose(f.change()), stat, p, prose(paired), d, rank)
}

// ErrNoMark is returned by Into for a document without the run's marks.
var ErrNoMark = errors.New("the document does not have the marks")

// Into puts content between the marks of the run of that name in a document:
//
//	<!-- assay:NAME -->
//	<!-- /assay:NAME -->
//
// What stood between them goes, and the rest is left as it is.
func Into(document []byte, name string, content []byte) ([]byte, error) {
	open := Marker(name)
	shut := strings.Replace(open, "assay:", "/assay:", 1)
	from := bytes.Index(document, []byte(open))
	to := bytes.Index(document, []byte(shut))
	if from < 0 || to < from || bytes.Count(document, []byte(open)) > 1 || bytes.Count(document, []byte(shut)) > 1 {
		return nil, fmt.Errorf("%w: a line %s and, below it, a line %s, once each", ErrNoMark, open, shut)
	}
	content = bytes.TrimPrefix(bytes.TrimSpace(content), []byte(open))
	return bytes.Join([][]byte{document[:from], []byte(open), []byte("\n\n"), bytes.TrimSpace(content), []byte("\n\n"), document[to:]}, nil), nil
}
