package report

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed page.html.tmpl
var pageMarkup string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"name": Breakable, "notice": newPageNotice}).Parse(pageMarkup))

// Breakable lets a name break between its parts, ahead of anywhere else.
func Breakable(name string) template.HTML {
	return template.HTML(breaks.Replace(template.HTMLEscapeString(name)))
}

var breaks = strings.NewReplacer(",", ",<wbr>", "_", "_<wbr>")

// Style is the style sheet of every page, byte for byte as it stands between the
// tags, so that its hash can be made.
func Style() template.CSS { return template.CSS("\n" + pageStyle) }

// HTML writes the run as one page that needs no network, no script and no
// other file.
func HTML(w io.Writer, s *Source) error { return writeHTML(w, s, nil) }

// Link is where a page leads to. Without a URL it is the page itself.
type Link struct{ Text, URL string }

// Served writes the page of HTML for a server: with the way back to the pages
// that lead to it, and without links to files that only stand beside the page.
func Served(w io.Writer, s *Source, trail []Link) error { return writeHTML(w, s, trail) }

func writeHTML(w io.Writer, s *Source, trail []Link) error {
	if s.Run == nil || s.Run.Lock == nil || s.Run.Protocol == nil || s.Results == nil || s.Verdict == nil {
		return errors.New("a page needs a run with its lock, its results and its verdict")
	}
	v := newPage(s)
	if v.Trail = trail; len(trail) > 0 {
		for i := range v.Profiles {
			v.Profiles[i].Link = ""
		}
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		return err
	}
	_, err := w.Write(Inert(b.Bytes()))
	return err
}

// htmlPage is what the template sees: words and figures ready to print.
type htmlPage struct {
	Style    template.CSS
	Title    string
	Trail    []Link
	Head     pageHead
	Short    *pageShort
	Contents []pageLink
	Withheld []string // why there are no figures; empty where there are
	Primary  *pagePrimary
	Checks   []pageCheck
	Trace    *pageTrace
	Matrix   *pageMatrix
	Counts   *pageCounts
	Forest   []pageFigure
	Cells    *pageCells
	Trials   *pageTrials
	Profiles []pageProfile
	Notes    *pageNotes
	Host     *pageHost
	Origin   *pageOrigin
}

type pageLink struct{ ID, Title string }

func newPage(s *Source) *htmlPage {
	room, names := &pageRoom{left: pageFigureBytes}, newCellNames(s.Run.Protocol)
	v := &htmlPage{
		Style: Style(), Title: s.Results.Name + ": " + classWord(s.Verdict.Class),
		Head: newPageHead(s, names), Short: newPageShort(s, names), Checks: newPageChecks(s), Trace: newPageTrace(s), Trials: newPageTrials(s, names), Profiles: newPageProfiles(s, names),
		Notes: newPageNotes(runRemarks(s)),
		Host:  newPageHost(s, room), Origin: newPageOrigin(s),
	}
	if v.Withheld = withheld(s); len(v.Withheld) == 0 {
		v.Primary = newPagePrimary(s, names, room)
		v.Matrix = newPageMatrix(s, names)
		v.Counts = newPageCounts(s, names)
		v.Forest = newPageForest(s, names, room)
		v.Cells = newPageCells(s, names, room)
	}
	v.Contents = v.contents()
	return v
}

func (v *htmlPage) contents() []pageLink {
	var all []pageLink
	add := func(there bool, id, title string) {
		if there {
			all = append(all, pageLink{id, title})
		}
	}
	add(len(v.Withheld) > 0, "withheld", "Figures withheld")
	add(v.Primary != nil, "primary", "Primary comparison")
	add(v.Matrix != nil, "rules", "Gates and vetoes")
	add(true, "checks", "Checks")
	add(true, "decision", "Decision")
	add(v.Counts != nil, "counts", "Work counts")
	add(len(v.Forest) > 0, "changes", "Changes")
	add(v.Cells != nil, "cells", "Cells")
	add(true, "trials", "Trials")
	add(len(v.Profiles) > 0, "profiles", "Profiles")
	add(v.Notes != nil, "notes", "Notes")
	add(true, "host", "Host")
	add(true, "provenance", "Provenance")
	return all
}

// Inert takes the power out of characters that are not seen: control
// characters, and marks that turn the reading direction, so that a name cannot
// pretend to be another. It works on the whole page, so that no field can be
// forgotten.
func Inert(b []byte) []byte {
	return bytes.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), strings.ContainsRune("\u061c\u200e\u200f\u2028\u2029\ufeff", r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return utf8.RuneError
		}
		return r
	}, b)
}
