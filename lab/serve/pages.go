package serve

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/assaylab/assay/lab/report"
)

//go:embed pages.html.tmpl
var markup string

//go:embed pages.css
var ownStyle string

//go:embed live.js
var script template.JS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"cell": report.Breakable}).Parse(markup))

// style is the style sheet of the pages that are no report.
func style() template.CSS { return report.Style() + template.CSS(ownStyle) }

// page is what all pages have around their content.
type page struct {
	Title   string
	Trail   []report.Link
	Live    string // where events come from, "" from nowhere
	Moving  bool   // something on it will change by itself
	Pending bool   // all of it will
	Style   template.CSS
	Script  template.JS
	Content template.HTML
}

// part executes a part of a page.
func part(name string, data any) template.HTML {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic("serve: " + err.Error()) // the templates are ours and write to memory
	}
	return template.HTML(report.Inert(b.Bytes()))
}

// whole is a page around the named content.
func (s *Server) whole(p page, content string, data any) []byte {
	p.Content, p.Style, p.Script = part(content, data), style(), script
	return []byte(part("page", p))
}

func send(w http.ResponseWriter, status int, page []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(status)
	_, _ = w.Write(page) // a reader who went away is no concern
}

// trail is the way from the list to a page; without a key, to that of a study.
func (s *Server) trail(study, key string) []report.Link {
	links := []report.Link{{Text: "All runs", URL: "/"}}
	switch {
	case key == "":
		return append(links, report.Link{Text: study})
	case study != "":
		links = append(links, report.Link{Text: study, URL: studyURL(study)})
	}
	return append(links, report.Link{Text: key})
}

// message is a page that says one thing.
type message struct {
	Title  string
	Text   string
	List   []string
	Advice string
	Code   string
}

func (s *Server) tell(w http.ResponseWriter, status int, m message, here string, pending bool) {
	send(w, status, s.whole(page{Title: m.Title, Trail: s.trail("", here), Pending: pending}, "message", m))
}

func (s *Server) missing(w http.ResponseWriter, text string) {
	s.tell(w, http.StatusNotFound, message{Title: "Not found", Text: text}, "not found", false)
}

// stale is where a directory can no longer be scanned.
func (s *Server) stale(w http.ResponseWriter, err error) {
	s.tell(w, http.StatusInternalServerError, message{Title: "The directory cannot be read", Text: err.Error()}, "error", false)
}

// row is an entry as pages show it.
type row struct {
	ID, URL, Key    string
	State           state
	Mark            report.Mark
	Outcome, Note   string
	Problems        []string
	Study, StudyURL string
	Begun, Took     string
	Progress        *meter
	Summary         *report.Summary
}

// meter is the progress of a run under way.
type meter struct {
	Done, Total  int
	Rounds, Left string
	Cell         string
	Of           string
	Failed       int
	Question     string
}

// row is made with s.mu held, like all that reads entries.
func (s *Server) row(e *entry) row {
	key := s.key(e.path)
	r := row{ID: e.id, URL: runURL(key), Key: key, State: e.state, Problems: e.problems}
	switch e.state {
	case running:
		p := &e.progress
		r.Study, r.Begun = p.study, stamp(p.begun)
		r.Progress = &meter{Done: p.now.Done, Total: p.now.Total, Rounds: p.rounds(), Left: p.left(), Failed: p.failed, Question: p.question}
		if p.now.Cell != "" && p.counted() {
			r.Progress.Cell = p.now.Cell
			r.Progress.Of = fmt.Sprintf("%d of %d", p.now.Round, p.now.Of)
			if p.now.Warmup {
				r.Progress.Of += ", warm-up"
			}
		}
	case sound:
		sum := e.summary
		r.Summary, r.Study, r.Begun, r.Mark, r.Outcome = sum, sum.Name, stamp(sum.Begun), sum.Mark(), sum.Outcome
		if sum.Took > 0 {
			r.Took = "took " + sum.Took.Round(time.Second).String()
		}
		switch {
		case !sum.Ended:
			r.Note = "not ended; it can be resumed"
		case !sum.Sealed:
			r.Note = "not sealed yet; " + s.program + " analyze does it"
		}
	}
	if r.Study != "" {
		r.StudyURL = studyURL(r.Study)
	}
	return r
}

// Is says whether the run is in the named state; for templates.
func (r row) Is(name string) bool {
	return r.State == map[string]state{"waiting": waiting, "running": running, "sound": sound, "broken": broken, "unread": unread}[name]
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// overview is what the list shows.
type overview struct {
	Program string
	Name    string
	Counts  []string
	Studies []studyRow
	Rows    []row
	Left    []string
	Waits   string // why nothing is verified now
	Empty   bool
}

type studyRow struct {
	Name, URL string
	Runs      int
	Latest    row
	Verdicts  []report.Mark // the oldest first
	Earlier   int           // verdicts that are not among them
}

// shownVerdicts is how many verdicts of a study a list shows.
const shownVerdicts = 12

func (s *Server) overview() overview {
	v := overview{Program: s.program, Name: s.base, Left: s.left, Empty: len(s.order) == 0}
	n := map[state]int{}
	for _, e := range s.order {
		n[e.state]++
		v.Rows = append(v.Rows, s.row(e))
	}
	v.Studies = s.studies()
	v.Counts = append(v.Counts, counted(len(s.order), "run"))
	if len(v.Studies) > 0 {
		v.Counts = append(v.Counts, counted(len(v.Studies), "study"))
	}
	for _, c := range []struct {
		state state
		text  string
	}{{running, "under way"}, {waiting, "to be verified"}, {broken, "not what was recorded"}, {unread, "not readable"}} {
		if n[c.state] > 0 {
			v.Counts = append(v.Counts, fmt.Sprintf("%d %s", n[c.state], c.text))
		}
	}
	if n[running] > 0 && n[waiting] > 0 {
		v.Waits = "While a run is under way no folder is verified unasked, since that would take processor time from what is measured. To open a run or a study is to ask."
	}
	return v
}

func counted(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case noun == "study":
		return fmt.Sprintf("%d studies", n)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// studies are those of the sound runs, in the order of their newest run.
func (s *Server) studies() []studyRow {
	var all []studyRow
	at := map[string]int{}
	for _, e := range s.order {
		if e.state != sound {
			continue
		}
		name := e.summary.Name
		if _, there := at[name]; !there {
			at[name] = len(all)
			all = append(all, studyRow{Name: name, URL: studyURL(name)})
		}
		all[at[name]].Runs++
	}
	for i := range all {
		runs := s.runsOf(all[i].Name)
		all[i].Latest = s.row(runs[len(runs)-1])
		all[i].Earlier = max(0, len(runs)-shownVerdicts)
		for _, e := range runs[all[i].Earlier:] {
			all[i].Verdicts = append(all[i].Verdicts, e.summary.Mark())
		}
	}
	return all
}

// runsOf are the sound runs of a study in the order in which they began.
func (s *Server) runsOf(study string) []*entry {
	var runs []*entry
	for _, e := range s.order {
		if e.state == sound && e.summary.Name == study {
			runs = append(runs, e)
		}
	}
	slices.SortStableFunc(runs, func(a, b *entry) int { return a.summary.Begun.Compare(b.summary.Begun) })
	return runs
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	if err := s.refresh(); err != nil {
		s.stale(w, err)
		return
	}
	s.mu.Lock()
	v := s.overview()
	p := page{Title: "Runs in " + v.Name, Live: "/events?seen=" + s.seen(), Moving: s.moving()}
	s.mu.Unlock()
	send(w, http.StatusOK, s.whole(p, "list", v))
}

// moving says whether anything in the list is about to change by itself.
func (s *Server) moving() bool {
	return slices.ContainsFunc(s.order, func(e *entry) bool { return e.state == waiting || e.state == running })
}

// run shows one run: its report, how far it is, or what is wrong with it.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("run")
	for try := 0; ; try++ {
		if err := s.refresh(); err != nil {
			s.stale(w, err)
			return
		}
		s.mu.Lock()
		e := s.runs[key]
		var v row
		var at place
		var kept []byte
		var seen, where string
		if e != nil {
			v, where, seen = s.row(e), e.path, s.seen()
			at = runPlace(e.path, e.print)
			kept = s.shelf.pages[at]
		}
		s.mu.Unlock()
		switch {
		case e == nil:
			s.missing(w, "There is no such run in this directory.")
		case v.State == running:
			p := page{Title: v.Key + ": under way", Trail: s.trail(v.Study, v.Key), Live: "/events/" + escaped(v.Key) + "?seen=" + seen, Moving: true}
			send(w, http.StatusOK, s.whole(p, "running", v))
		case v.State == broken:
			s.tell(w, http.StatusOK, message{
				Title: v.Key + " is not what was recorded", Text: "This run folder does not verify, so it has no verdict and no figures here.",
				List: v.Problems, Advice: "The same check on the command line:", Code: s.program + " verify " + quoted(filepath.Join(s.name, where)),
			}, v.Key, false)
		case v.State == unread:
			s.tell(w, http.StatusOK, message{Title: v.Key + " cannot be shown", Text: "This run folder cannot be looked into.", List: v.Problems}, v.Key, false)
		case kept != nil:
			send(w, http.StatusOK, kept)
		case try == 0 && s.ask(r.Context(), "run "+where, func() { s.makeRun(where) }):
			continue
		default:
			s.pendingPage(w, v.Key, "This run is being verified: every hash is checked, and the analysis is made again from the data.")
		}
		return
	}
}

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+=:@%,", r) && !(r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)))
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// pendingPage comes again by itself until there is another.
func (s *Server) pendingPage(w http.ResponseWriter, here, text string) {
	s.tell(w, http.StatusOK, message{Title: "Verifying…", Text: text}, here, true)
}

// studyView is a study over its runs.
type studyView struct {
	Name, Question string
	Trend          template.HTML
	Cells          []string // with an effect in any run; "" where nothing is varied
	Rows           []trendRow
	Note           []string
	A, B           string // the two newest runs
}

type trendRow struct {
	row
	N       int
	Effects []effect
	Broke   bool // the run before it had another protocol
}

// effect is one cell of one run; Text is empty where it has none.
type effect struct{ Text, Interval, Missing string }

func (s *Server) study(w http.ResponseWriter, r *http.Request) {
	if err := s.refresh(); err != nil {
		s.stale(w, err)
		return
	}
	name := r.PathValue("study")
	s.mu.Lock()
	runs := s.runsOf(name)
	v := studyView{Name: name}
	var sums []*report.Summary
	for i, e := range runs {
		v.Question = e.summary.Question
		t := trendRow{row: s.row(e), N: i + 1, Broke: i > 0 && runs[i-1].summary.Protocol != e.summary.Protocol}
		for _, f := range e.summary.Effects {
			if !slices.Contains(v.Cells, f.Cell) {
				v.Cells = append(v.Cells, f.Cell)
			}
		}
		v.B, v.A = t.Key, v.B
		v.Rows, sums = append(v.Rows, t), append(sums, e.summary)
	}
	unsure, under := 0, 0
	for _, e := range s.order {
		switch {
		case e.state == waiting:
			unsure++
			e.asked = true
		case e.state == running && e.progress.study == name:
			under++
		}
	}
	s.wake()
	s.mu.Unlock()
	if len(runs) == 0 {
		switch {
		case unsure > 0:
			s.pendingPage(w, name, "The runs of this directory are being verified; which of them belong to this study is not known yet.")
		case under > 0:
			s.tell(w, http.StatusOK, message{Title: name, Text: "No run of this study has come to its end yet; " + counted(under, "run") + " under way."}, name, false)
		default:
			s.missing(w, "There is no run of this study that verifies.")
		}
		return
	}
	for i, sum := range sums {
		for _, cell := range v.Cells {
			v.Rows[i].Effects = append(v.Rows[i].Effects, effectOf(sum, cell))
		}
	}
	v.Trend = report.Trend(sums)
	if unsure > 0 {
		v.Note = append(v.Note, counted(unsure, "run")+" of the directory are being verified and may belong here.")
	}
	if under > 0 {
		v.Note = append(v.Note, counted(under, "run")+" of this study under way.")
	}
	if slices.ContainsFunc(v.Rows, func(t trendRow) bool { return t.Broke }) {
		v.Note = append(v.Note, "Not all of these runs have the same frozen protocol; their figures may answer different questions. Where it changed, the table says so, and a chart has a dotted line.")
	}
	send(w, http.StatusOK, s.whole(page{Title: name, Trail: s.trail(name, ""), Pending: unsure > 0}, "study", v))
}

func effectOf(sum *report.Summary, cell string) effect {
	e := sum.Effect(cell)
	switch {
	case e == nil:
		return effect{}
	case e.Missing != "":
		return effect{Text: "–", Missing: e.Missing}
	}
	return effect{Text: e.Text, Interval: e.Interval}
}

// comparison is two runs side by side.
type comparison struct {
	Study, Question string
	A, B            row
	Body            template.HTML
	Trouble         string
}

func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	a, b := r.URL.Query().Get("a"), r.URL.Query().Get("b")
	here := "two runs"
	if a == "" || b == "" || a == b {
		s.tell(w, http.StatusBadRequest, message{Title: "Two runs side by side", Text: "Name two different runs. The page of a study has a form for it."}, here, false)
		return
	}
	for try := 0; ; try++ {
		if err := s.refresh(); err != nil {
			s.stale(w, err)
			return
		}
		s.mu.Lock()
		x, y := s.runs[a], s.runs[b]
		var kept []byte
		var not string
		var paths [2]string
		if x != nil && y != nil {
			paths = [2]string{x.path, y.path}
			kept = s.shelf.pages[comparisonPlace(x.path, y.path, x.print, y.print)]
			for _, e := range []*entry{x, y} {
				if e.state != sound && e.state != waiting {
					not = s.key(e.path)
				}
			}
		}
		s.mu.Unlock()
		switch {
		case x == nil || y == nil:
			s.missing(w, "There is no such run in this directory.")
		case not != "":
			s.tell(w, http.StatusConflict, message{Title: "These runs cannot be compared", Text: not + " has no figures: it is under way, or it does not verify. Its own page says which."}, here, false)
		case kept != nil:
			send(w, http.StatusOK, kept)
		case try == 0 && s.ask(r.Context(), "compare "+paths[0]+"\x00"+paths[1], func() { s.makeComparison(paths[0], paths[1]) }):
			continue
		default:
			s.pendingPage(w, here, "Both runs are being verified.")
		}
		return
	}
}

// comparison is the page of two runs.
func (s *Server) comparison(c comparison, a, b string) []byte {
	s.mu.Lock()
	if x, y := s.runs[a], s.runs[b]; x != nil && y != nil {
		c.A, c.B = s.row(x), s.row(y)
	}
	s.mu.Unlock()
	return s.whole(page{Title: "Two runs of " + c.Study, Trail: s.trail(c.Study, a+" and "+b)}, "compare", c)
}
