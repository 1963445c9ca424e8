package report

import (
	"fmt"
	"strings"
)

// remark is a note as a page shows it.
type remark struct {
	Text  string // its first line
	Table string // the others, which often are columns of figures and keep their places
}

// noteLines and noteWidth are how much of a note that is not one line a page has room for.
const (
	noteLines = 120
	noteWidth = 400
)

func newRemark(note string) remark {
	first, rest, _ := strings.Cut(note, "\n")
	r := remark{Text: strings.TrimSuffix(first, "\r")}
	var lines []string
	for l := range strings.Lines(strings.Trim(rest, "\n")) {
		if len(lines) == noteLines {
			lines = append(lines, "… the ledger has the rest")
			break
		}
		lines = append(lines, shortenTo(strings.TrimRight(graphic(l), " "), noteWidth))
	}
	r.Table = strings.Join(lines, "\n")
	return r
}

// newRemarks are the notes of a list, the first of them where there are many.
func newRemarks(notes []string) []remark {
	var all []remark
	for i, n := range notes {
		if i == pageItems {
			return append(all, remark{Text: fmt.Sprintf("and %d more, which the ledger has", len(notes)-pageItems)})
		}
		r := newRemark(n)
		r.Text = shorten(r.Text)
		all = append(all, r)
	}
	return all
}

// markdown is the note as an item of a list.
func (r remark) markdown() string {
	item := "- " + prose(r.Text) + "\n"
	if r.Table == "" {
		return item
	}
	return item + "\n  <pre>" + strings.ReplaceAll(mdEntities.Replace(r.Table), "\n", "\n  ") + "</pre>\n"
}

// remarksOf is what a reader must know to judge the figures.
func remarksOf(s *Source) []string {
	var notes []string
	for _, n := range s.Verdict.Notes {
		// The host's own part has said those.
		if !strings.HasPrefix(n, "host: ") {
			notes = append(notes, n)
		}
	}
	return append(notes, runRemarks(s)...)
}

// runRemarks are those that the verdict does not have.
func runRemarks(s *Source) []string {
	var notes []string
	for _, a := range s.Run.Protocol.Asymmetries {
		notes = append(notes, "the arms differ: "+a)
	}
	for _, d := range s.Run.Lock.Deviations {
		notes = append(notes, fmt.Sprintf("deviation, version %d: %s (changed: %s)", d.Version, d.Reason, strings.Join(d.Changed, ", ")))
	}
	resumed := 0
	for _, rec := range s.Run.Records {
		switch {
		case rec.Note != nil:
			notes = append(notes, "during the run: "+rec.Note.Text)
		case rec.Resume != nil:
			resumed++
		}
	}
	if resumed > 0 {
		notes = append(notes, fmt.Sprintf("the run was stopped and resumed %d time(s)", resumed))
	}
	return notes
}
