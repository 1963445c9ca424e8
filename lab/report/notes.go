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

// noteFew are as many as stand open; more of them are folded.
const noteFew = 3

// mdNoteBytes is the room of all notes in Markdown. They stand ahead of the rules
// and of the decision, and a page that is full has neither.
const mdNoteBytes = 16_000

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

// pageNotes are the notes of a page.
type pageNotes struct {
	Count  int // of all; the list may be cut
	Folded bool
	List   []remark
}

func newPageNotes(notes []string) *pageNotes {
	if len(notes) == 0 {
		return nil
	}
	return &pageNotes{len(notes), len(notes) > noteFew, newRemarks(notes)}
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

// mdNotes are the items of a list that does not fill the page. A note that has no
// room for its lines is left with the first.
func mdNotes(notes []string) []string {
	var rows []string
	room := mdNoteBytes
	for i, n := range notes {
		r := newRemark(n)
		item := r.markdown()
		if len(item) > room && r.Table != "" {
			r.Table = ""
			item = strings.TrimSuffix(r.markdown(), "\n") + " … the ledger has the rest\n"
		}
		if room -= len(item); room < 0 {
			return append(rows, fmt.Sprintf("- and %d more, which the ledger has\n", len(notes)-i))
		}
		rows = append(rows, item)
	}
	return rows
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
