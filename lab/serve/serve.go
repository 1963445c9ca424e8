// Package serve shows the run folders of a directory as pages, to one person on
// this machine: a list with verdicts, each run's report, the trend of a study
// over its runs, two runs side by side, and how far a run under way is.
//
// It writes nothing and never knows what a figure means: what a page says comes
// from lab/report, and whether a folder may be believed from flow.Inspect. A
// Server is an http.Handler; Listen and Serve, at its rim, give it a loopback
// address.
//
// # What is trusted
//
// Neither the folders (they may be downloaded) nor the requests (any page in the
// same browser can make some). What holds, each with its test:
//
//  1. A name in a URL is looked up among the runs that the scan found. It never
//     becomes part of a path.
//  2. Files are opened below the directory only, by os.Root, and no symbolic
//     link is followed, not even one that stays inside (descend, folder).
//  3. Of a run folder eight files are read, each a plain file of bounded size.
//     Bounds on the values in it and on the figures of its plan keep it from
//     growing in memory, and one folder is read at a time. The directory has
//     bounds too; what is left out is told.
//  4. Nothing of a folder is sent as it is, its report.html least of all: pages
//     are made anew, and everything in them is escaped.
//  5. No verdict and no figure is shown of a folder that does not verify, or that
//     was not verified yet, or that changed since: what is known of a folder
//     belongs to its fingerprint, and the fingerprint is taken before and after.
//  6. A run under way shows how many rounds are done, and no figure: whoever
//     looks at half of the data can stop when he likes what he sees.
//  7. A Host that is not this machine's is refused (a page of another site whose
//     name was pointed here would have one), and so is what a page of another
//     site asks for by itself. Methods are GET and HEAD. Styles and the one
//     script are allowed by their hash, everything else by nothing.
//
// A folder that is broken, huge or hostile costs its own row at most. A panic
// while it is read is caught and told there.
//
// # When folders are verified
//
// One goroutine does all the reading, first of what somebody has asked for. The
// rest is read while nobody waits, but not while a run of the directory is under
// way: it would take processor time from what is measured. Whatever was read is
// kept as a summary, and the last pages whole, until the fingerprint changes.
//
// Rejected: one goroutine per request (two large folders at once), serving the
// report.html in the folder (a stranger's page on this origin), and watching the
// file system (a scan per second costs less than it can go wrong, and only while
// a page is open).
package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/report"
)

// tick is how often a directory is scanned at most, and a page that is open
// hears of changes.
const tick = time.Second

// Server shows the run folders below one directory.
type Server struct {
	root    *os.Root
	program string // that has the verbs which pages name
	name    string // of the directory, for people
	base    string // path that names a run that is the directory itself
	boot    string // tells this server from an earlier one on the same port
	mux     *http.ServeMux
	tick    time.Duration
	wait    time.Duration // how long a page may take before another says that it is being made

	verify func(files fs.FS, name string) (*flow.Outcome, []ledger.Problem, error) // flow.Inspect

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	stopped chan struct{} // closed when the worker has ended
	poke    chan struct{} // there may be work

	scanning sync.Mutex // guards the following
	scanned  time.Time
	follows  map[string]*follow // runs under way

	mu      sync.Mutex // guards the following
	runs    map[string]*entry
	order   []*entry
	left    []string // what the scan left out
	version uint64   // grows with every change that a page can show
	listed  uint64   // version at which runs came, went or changed places
	rows    int      // row identifiers given out
	jobs    []*job   // asked for and not begun
	pending map[string]*job
	shelf   shelf
	streams int
}

// state is what is known of a run folder.
type state int

const (
	waiting state = iota // not verified yet
	running              // a process is writing to it
	sound                // it verifies
	broken               // it does not verify
	unread               // it cannot be looked into
)

// entry is a run folder in the list. What it says of the content belongs to its
// fingerprint.
type entry struct {
	found
	id       string // of its row
	state    state
	summary  *report.Summary // of a sound run
	problems []string        // of one that is broken or unread
	progress progress        // of a running one
	asked    bool            // somebody waits for it to be verified
	moving   bool            // it changed while it was read; the next scan sees what it is
	changed  uint64          // version
}

// New serves the run folders below a directory. Pages name verbs of the program,
// such as "assay". The server reads until it is closed.
func New(program, dir string) (*Server, error) {
	s, err := open(program, dir)
	if err != nil {
		return nil, err
	}
	go s.work()
	return s, nil
}

// open is New without the reader.
func open(program, dir string) (*Server, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no directory %s; give the one whose run folders are to be shown", dir)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file; give the directory whose run folders are to be shown", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	boot := make([]byte, 8)
	if _, err := rand.Read(boot); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	s := &Server{
		root: root, program: program, name: dir, base: filepath.Base(abs), boot: hex.EncodeToString(boot), mux: http.NewServeMux(), tick: tick, wait: 2 * time.Second, verify: flow.Inspect,
		stopped: make(chan struct{}), poke: make(chan struct{}, 1),
		follows: map[string]*follow{}, runs: map[string]*entry{}, pending: map[string]*job{}, shelf: newShelf(),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.routes()
	if err := s.refresh(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

// Close ends all streams and the reading. What is being read at that moment is
// waited for, but not for long.
func (s *Server) Close() error {
	s.stop()
	select {
	case <-s.stopped:
	case <-time.After(2 * time.Second):
	}
	return s.root.Close()
}

// refresh brings the list up to date, once per tick.
func (s *Server) refresh() error {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	if !s.scanned.IsZero() && time.Since(s.scanned) < s.tick {
		return nil
	}
	list, err := scan(s.root)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, cause(err))
	}
	for path := range s.follows {
		if !slices.ContainsFunc(list.runs, func(r found) bool { return r.path == path && r.busy }) {
			delete(s.follows, path)
		}
	}
	for i := range list.runs {
		if r := &list.runs[i]; r.busy {
			if s.follows[r.path] == nil {
				s.follows[r.path] = &follow{}
			}
			s.follows[r.path].update(s.root, r.path)
		}
	}
	s.scanned = time.Now()
	s.apply(list)
	return nil
}

// apply takes in a scan.
func (s *Server) apply(list listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := make([]*entry, 0, len(list.runs))
	for _, r := range list.runs {
		e := s.runs[s.key(r.path)]
		if e == nil {
			s.rows++
			e = &entry{id: fmt.Sprintf("r%d", s.rows)}
			s.touch(e)
		}
		switch {
		case r.busy:
			now := s.follows[r.path].progress()
			if e.state != running || now != e.progress {
				e.state, e.progress, e.summary, e.problems = running, now, nil, nil
				s.touch(e)
			}
		case r.wrong != "":
			if e.state != unread || e.print != r.print {
				e.state, e.summary, e.problems = unread, nil, []string{r.wrong}
				s.touch(e)
			}
		case e.state == running || e.print != r.print:
			e.state, e.summary, e.problems, e.asked = waiting, nil, nil, false
			s.touch(e)
		}
		e.found, e.moving = r, false
		order = append(order, e)
	}
	if !slices.Equal(order, s.order) || !slices.Equal(list.left, s.left) {
		s.version++
		s.listed = s.version
	}
	s.order, s.left = order, list.left
	clear(s.runs)
	for _, e := range order {
		s.runs[s.key(e.path)] = e
	}
	s.wake()
}

// touch marks an entry as changed.
func (s *Server) touch(e *entry) {
	s.version++
	e.changed = s.version
}

// key is what URLs call a run.
func (s *Server) key(path string) string {
	if path == "." {
		return s.base
	}
	return path
}

// seen is the version of the list as a page carries it.
func (s *Server) seen() string { return fmt.Sprintf("%s-%d", s.boot, s.version) }

// runURL and studyURL name pages.
func runURL(key string) string     { return "/runs/" + escaped(key) }
func studyURL(study string) string { return "/studies/" + url.PathEscape(study) }

func escaped(key string) string {
	parts := strings.Split(key, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}
