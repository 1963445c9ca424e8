package serve

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"io/fs"
	"time"

	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/report"
)

// job makes something that somebody waits for.
type job struct {
	key  string
	do   func()
	done chan struct{}
}

// mostJobs may wait at a time. A page that finds no room comes again by itself.
const mostJobs = 16

// ask has the reader do something, once for all who wait for it, and waits, but
// not for long. What was made stands on the shelf or in the list when it is true.
func (s *Server) ask(ctx context.Context, key string, do func()) bool {
	s.mu.Lock()
	j := s.pending[key]
	if j == nil && len(s.jobs) < mostJobs {
		j = &job{key, do, make(chan struct{})}
		s.pending[key] = j
		s.jobs = append(s.jobs, j)
		s.wake()
	}
	s.mu.Unlock()
	if j == nil {
		return false
	}
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case <-j.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return false
}

// wake tells the reader that there may be something to do.
func (s *Server) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// work reads one folder after the other until the server is closed.
func (s *Server) work() {
	defer close(s.stopped)
	for s.ctx.Err() == nil {
		if do := s.next(); do != nil {
			do()
			continue
		}
		select {
		case <-s.poke:
		case <-s.ctx.Done():
		}
	}
}

// next is what is to be done now: what was asked for comes first, and the rest
// waits while a run is under way.
func (s *Server) next() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) > 0 {
		j := s.jobs[0]
		s.jobs = s.jobs[1:]
		return func() {
			j.do()
			s.mu.Lock()
			delete(s.pending, j.key)
			s.mu.Unlock()
			close(j.done)
		}
	}
	var idle *entry
	quiet := true
	for _, e := range s.order {
		switch {
		case e.state == running:
			quiet = false
		case e.state != waiting || e.moving:
		case e.asked:
			return s.verifying(e.path)
		case idle == nil:
			idle = e
		}
	}
	if idle == nil || !quiet {
		return nil
	}
	return s.verifying(idle.path)
}

func (s *Server) verifying(path string) func() {
	return func() { s.inspect(path, func(*report.Source) error { return nil }) }
}

// finding is what reading a folder has shown.
type finding struct {
	print    fingerprint
	state    state
	summary  *report.Summary
	problems []string
}

// inspect verifies a run, hands it over if it is sound, and keeps what it found.
// It is called by the reader alone. A folder that changed meanwhile waits for the
// next scan to be tried again.
func (s *Server) inspect(path string, with func(*report.Source) error) finding {
	f, steady := s.find(path, with)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[s.key(path)]
	switch {
	case e == nil || e.state == running:
	case steady:
		e.print, e.state, e.summary, e.problems, e.asked = f.print, f.state, f.summary, f.problems, false
		s.touch(e)
	default:
		e.state, e.summary, e.problems, e.moving = waiting, nil, nil, true
		s.touch(e)
	}
	return f
}

func (s *Server) find(path string, with func(*report.Source) error) (f finding, steady bool) {
	unable := func(format string, args ...any) finding {
		return finding{print: f.print, state: unread, problems: []string{fmt.Sprintf(format, args...)}}
	}
	defer func() {
		if p := recover(); p != nil {
			f, steady = unable("internal error: %v", p), true
		}
	}()
	dir, err := descend(s.root, path)
	if err != nil {
		return unable("%v", err), true
	}
	defer dir.Close()
	var wrong, over string
	files := folder{dir, &over}
	if f.print, wrong = look(files); wrong != "" {
		return unable("%s", wrong), true
	}
	if wrong = s.tooMuch(files); wrong != "" {
		return unable("%s", wrong), true
	}
	outcome, problems, err := s.verify(files, s.key(path))
	if after, _ := look(files); after != f.print {
		return f, false
	}
	switch {
	case over != "":
		return unable("%s", over), true // what else is said of it follows from that
	case err != nil:
		return unable("%v", err), true
	}
	if len(problems) > 0 {
		f.state = broken
		for i, p := range problems {
			if i == mostProblems {
				f.problems = append(f.problems, fmt.Sprintf("and %d more", len(problems)-i))
				break
			}
			f.problems = append(f.problems, p.String())
		}
		return f, true
	}
	source, err := outcome.Source()
	if err == nil {
		err = with(source)
	}
	if err != nil {
		return unable("%v", err), true
	}
	f.state, f.summary = sound, report.Summarise(source)
	return f, true
}

// Bounds of a plan that is judged here. It has figures for every metric of every
// arm in every cell, and a value of every metric for every trial.
const (
	mostFigures  = 200_000
	mostValues   = 10_000_000
	mostProblems = 40 // that are told of one folder
)

// tooMuch says why a run is not judged here, whose plan may be sound. It says
// nothing of a lock that cannot be read: the verification does.
func (s *Server) tooMuch(files folder) string {
	b, err := fs.ReadFile(files, ledger.LockFile)
	if err != nil {
		return ""
	}
	_, p, err := protocol.ReadLock(b)
	if err != nil {
		return ""
	}
	cells := p.Cells()
	trials := 0
	for _, c := range cells {
		trials += (c.Rounds + c.Warmup) * len(c.Arms)
	}
	if len(cells)*len(p.Arms)*len(p.Metrics) > mostFigures || trials*len(p.Metrics) > mostValues {
		return "has a plan of more figures than this server computes; " + s.program + " report shows it"
	}
	return ""
}

// makeRun puts the page of a sound run on the shelf.
func (s *Server) makeRun(path string) {
	var b bytes.Buffer
	f := s.inspect(path, func(src *report.Source) error {
		return report.Served(&b, src, s.trail(src.Results.Name, s.key(path)))
	})
	if f.state == sound {
		s.keep(runPlace(path, f.print), b.Bytes())
	}
}

// makeComparison puts two sound runs side by side on the shelf. Why they cannot
// be compared is shown in their place.
func (s *Server) makeComparison(a, b string) {
	var c comparison
	var second finding
	first := s.inspect(a, func(x *report.Source) error {
		second = s.inspect(b, func(y *report.Source) error {
			c.Study, c.Question = x.Results.Name, x.Results.Question
			c.Body, c.Trouble = compared(x, y)
			return nil
		})
		return nil
	})
	if first.state == sound && second.state == sound {
		s.keep(comparisonPlace(a, b, first.print, second.print), s.comparison(c, s.key(a), s.key(b)))
	}
}

func compared(x, y *report.Source) (body template.HTML, trouble string) {
	body, err := report.CompareHTML([]*report.Source{x, y})
	if err != nil {
		return "", err.Error()
	}
	return body, ""
}

// place is where a page stands on the shelf: what it was made of.
type place struct {
	kind   string
	paths  [2]string
	prints [2]fingerprint
}

func runPlace(path string, print fingerprint) place {
	return place{kind: "run", paths: [2]string{path}, prints: [2]fingerprint{print}}
}

func comparisonPlace(a, b string, pa, pb fingerprint) place {
	return place{"comparison", [2]string{a, b}, [2]fingerprint{pa, pb}}
}

// shelf keeps the last pages, up to a size.
type shelf struct {
	pages map[place][]byte
	order []place // the oldest first
	bytes int
}

const shelfBytes = 32 << 20

func newShelf() shelf { return shelf{pages: map[place][]byte{}} }

func (s *Server) keep(at place, page []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.shelf
	if old, ok := h.pages[at]; ok {
		h.bytes += len(page) - len(old)
		h.pages[at] = page
		return
	}
	h.pages[at] = page
	h.order = append(h.order, at)
	h.bytes += len(page)
	for h.bytes > shelfBytes && len(h.order) > 1 {
		h.bytes -= len(h.pages[h.order[0]])
		delete(h.pages, h.order[0])
		h.order = h.order[1:]
	}
}
