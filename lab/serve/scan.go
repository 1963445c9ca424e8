package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/assaylab/assay/lab/ledger"
)

// How much of a directory is looked at.
const (
	deepest     = 4      // folders below it
	mostRuns    = 1000   // run folders
	mostEntries = 20_000 // names in all folders together
	mostTold    = 5      // of what was left out, by name
)

// marks are the files of which one makes a folder a run folder, whatever it is:
// a run does not leave the list because its lock was taken away.
var marks = []string{ledger.LockFile, ledger.ObservationsFile, ledger.SealFile, ledger.VerdictFile}

// prints are the files whose state makes a fingerprint: all that are read.
var prints = [...]string{
	ledger.LockFile, ledger.EnvironmentFile, ledger.ObservationsFile, ledger.SamplesFile,
	ledger.ResultsFile, ledger.VerdictFile, ledger.SealFile, ledger.ReportFile,
}

// fingerprint stands for the content of a run folder. It has the time of the
// last change of a file's state, which no program can set back, beside size and
// time of writing, which any can.
type fingerprint [len(prints)]struct {
	there          bool
	size           int64
	written, state int64 // ns
	inode          uint64
	mode           fs.FileMode
}

// found is a run folder as the scan sees it.
type found struct {
	path  string // below the directory, with slashes; "." is the directory itself
	print fingerprint
	wrong string // why it cannot be looked into; "" if it can
	busy  bool   // a process is writing to it
}

// begun is about when the run was begun: when its lock was written.
func (f *found) begun() int64 { return f.print[0].written }

// listing is what a scan has found.
type listing struct {
	runs []found // the newest first
	left []string
}

// scan looks for run folders below root. It follows no symbolic link and enters
// neither run folders nor hidden ones.
func scan(root *os.Root) (listing, error) {
	return (&scanner{entries: mostEntries, room: mostRuns}).scan(root)
}

func (s *scanner) scan(root *os.Root) (listing, error) {
	dir, err := descend(root, ".")
	if err != nil {
		return listing{}, err
	}
	defer dir.Close()
	if err := s.folder(dir, ".", 0); err != nil {
		return listing{}, err
	}
	if n := len(s.links); n > 0 {
		s.tell("%d symbolic link(s) not followed: %s", n, someOf(s.links))
	}
	if n := len(s.deep); n > 0 {
		s.tell("%d folder(s) not entered, more than %d below the directory: %s", n, deepest, someOf(s.deep))
	}
	if n := len(s.shut); n > 0 {
		s.tell("%d folder(s) that could not be entered: %s", n, someOf(s.shut))
	}
	slices.SortFunc(s.runs, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.begun(), a.begun()), cmp.Compare(a.path, b.path))
	})
	return s.listing, nil
}

func someOf(names []string) string {
	if len(names) > mostTold {
		return strings.Join(names[:mostTold], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

type scanner struct {
	listing
	entries, room     int // names and run folders that may still come
	full              bool
	links, deep, shut []string
}

func (s *scanner) tell(format string, args ...any) {
	s.left = append(s.left, fmt.Sprintf(format, args...))
}

func (s *scanner) folder(dir *os.Root, path string, depth int) error {
	names, err := s.names(dir)
	if err != nil {
		return err
	}
	for _, mark := range marks {
		if _, there := slices.BinarySearchFunc(names, mark, func(e fs.DirEntry, name string) int { return cmp.Compare(e.Name(), name) }); there {
			s.run(dir, path)
			return nil
		}
	}
	for _, e := range names {
		below := strings.TrimPrefix(path+"/"+e.Name(), "./")
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.Type()&fs.ModeSymlink != 0:
			s.links = append(s.links, below)
		case !e.IsDir():
		case depth == deepest:
			s.deep = append(s.deep, below)
		case !s.full:
			next, err := step(dir, e.Name())
			if err == nil {
				err = errors.Join(s.folder(next, below, depth+1), next.Close())
			}
			if err != nil {
				s.shut = append(s.shut, below)
			}
		}
	}
	return nil
}

// names are those of a folder in order, as far as there is room for them.
func (s *scanner) names(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []fs.DirEntry
	for {
		some, err := f.ReadDir(256)
		if s.entries -= len(some); s.entries < 0 {
			s.stop("too many names")
			break
		}
		all = append(all, some...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all, nil
}

// stop ends the scan before everything was looked at.
func (s *scanner) stop(why string) {
	if !s.full {
		s.full = true
		s.tell("The directory has %s, of which only a part is shown; serve a smaller part of it.", why)
	}
}

func (s *scanner) run(dir *os.Root, path string) {
	if s.room--; s.room < 0 {
		s.stop("too many run folders")
		return
	}
	f := found{path: path}
	f.print, f.wrong = look(folder{root: dir})
	if f.wrong == "" && !f.decided() {
		f.busy = busy(folder{root: dir})
	}
	s.runs = append(s.runs, f)
}

// decided says that there is a verdict, after which nothing writes to the run.
func (f *found) decided() bool { return f.print[slices.Index(prints[:], ledger.VerdictFile)].there }

// look takes a fingerprint and says what is wrong with a folder that should not
// be looked into any further.
func look(f folder) (print fingerprint, wrong string) {
	for i, name := range prints {
		info, err := f.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			p := &print[i]
			p.there, p.size, p.written, p.mode = true, info.Size(), info.ModTime().UnixNano(), info.Mode()
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				p.state, p.inode = st.Ctim.Nano(), st.Ino
			}
			err = plain(name, info)
		}
		if err != nil && wrong == "" {
			wrong = name + " " + cause(err).Error()
		}
	}
	return print, wrong
}

func busy(f folder) bool {
	chain, err := f.open(ledger.ObservationsFile)
	if err != nil {
		return false
	}
	defer chain.Close()
	return ledger.Busy(chain.file)
}
