package report

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/ledger"
)

// pageHead is what the first screen shows.
type pageHead struct {
	Name, Question string
	Long           bool // the question needs smaller type to leave room for the verdict
	Class          string
	Word           string
	Shape          template.HTML
	Outcome        string
	Why            string
	Would          string
	Facts          []pageFact
	Exploratory    []string
	Missing        []string
	Notes          []string
}

// pageFact is a term and what it stands for.
type pageFact struct {
	Term, Value string
	Mono        bool
}

// outcomeExploratory is the outcome of an exploratory run that nothing worse ended.
const outcomeExploratory = "EXPLORATORY"

func newPageHead(s *Source, names *cellNames) pageHead {
	r, v := s.Results, s.Verdict
	h := pageHead{
		Name: shorten(r.Name), Question: shortenTo(r.Question, headText), Long: len(r.Question) > 140,
		Class: classStyle(v.Class), Word: classWord(v.Class), Shape: classShape(v.Class),
		Outcome: shorten(v.Outcome), Why: names.in(shorten(v.Why)), Exploratory: firstOf(r.Exploratory, pageItems), Notes: firstOf(names.inAll(v.Notes), pageItems),
	}
	if v.Outcome == outcomeExploratory {
		h.Exploratory = nil // which is the verdict, and says why itself
	}
	if !r.Complete {
		h.Missing = firstOf(names.inAll(r.Missing), pageItems)
		if len(h.Missing) == 0 {
			h.Missing = []string{"the run has no end"}
		}
	}
	// A guard that hides what the rule said usually names it in its own why.
	if v.Would != "" && v.Would != v.Outcome && !strings.Contains(v.Why, v.Would) {
		h.Would = v.Would
	}
	h.Facts = []pageFact{
		{Term: "Exit code", Value: fmt.Sprint(v.Exit)},
		{Term: "Experiment", Value: h.Name},
		{Term: "Run", Value: runSpan(s.Run)},
		{Term: "Lock", Value: shortDigest(r.Lock), Mono: true},
		{Term: "Protocol version", Value: protocolVersion(r.Version)},
	}
	return h
}

// pageNotice is a list that belongs beside the verdict. A long one is folded up, so
// that what was measured is not pushed out of sight.
type pageNotice struct {
	Title  string
	Items  []string
	Folded bool
	Count  int
}

func newPageNotice(title string, items []string) pageNotice {
	return pageNotice{title, items, len(items) > noteFew, len(items)}
}

func protocolVersion(n int) string {
	switch {
	case n <= 1:
		return "1, as first frozen"
	case n == 2:
		return "2, after 1 deviation"
	}
	return fmt.Sprintf("%d, after %d deviations", n, n-1)
}

// runSpan is when the run began and how long it took.
func runSpan(run *ledger.Run) string {
	if len(run.Records) == 0 || run.Records[0].Begin == nil {
		return "not begun"
	}
	began := run.Records[0].Begin.Time
	s := stamp(began)
	if last := run.Records[len(run.Records)-1]; last.End != nil {
		return s + ", took " + roughly(last.End.Time.Sub(began))
	}
	return s + ", has no end"
}

// roughly is a time as people say it.
func roughly(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// stamp is a moment in UTC, so that the page does not depend on where it is
// made.
func stamp(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

func classWord(c gate.Class) string {
	switch c {
	case gate.Go, gate.NoGo, gate.Inconclusive, gate.Invalid:
		return strings.ToUpper(string(c))
	}
	return "NO VERDICT"
}

func classStyle(c gate.Class) string {
	switch c {
	case gate.Go, gate.NoGo, gate.Inconclusive:
		return string(c)
	}
	return "invalid"
}

// classShape is the class as a shape, so that colour never carries it alone:
// a disc with a tick, an octagon with a cross, a diamond with a question mark,
// a triangle with an exclamation mark. The word beside it is its text.
func classShape(c gate.Class) template.HTML {
	const open, end = `<svg class="shape" width="56" height="56" viewBox="0 0 56 56" aria-hidden="true" focusable="false">`, `</svg>`
	switch c {
	case gate.Go:
		return open + `<circle cx="28" cy="28" r="25"/><path d="M16 29l8 8 16-17"/>` + end
	case gate.NoGo:
		return open + `<path class="body" d="M18 3h20l15 15v20L38 53H18L3 38V18z"/><path d="M19 19l18 18M37 19L19 37"/>` + end
	case gate.Inconclusive:
		return open + `<path class="body" d="M28 2l26 26-26 26L2 28z"/><path d="M21.500 23a6.500 6.500 0 1 1 9.500 5.700c-2.200 1.200-3 2.400-3 4.300M28 39.500h.01"/>` + end
	}
	return open + `<path class="body" d="M28 3l26 48H2z"/><path d="M28 20v15M28 43h.01"/>` + end
}
