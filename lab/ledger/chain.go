package ledger

import (
	"bytes"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"
)

// chain reads the records. A line whose own hash fails was changed; one whose
// own hash holds but whose prev is not the sum of the line before stands in
// the wrong place, and its number says what happened.
func (v *verifier) chain() error {
	b, err := fs.ReadFile(v.files, ObservationsFile)
	if err != nil {
		v.problem(ObservationsFile, 0, "%v", why(err))
		return nil
	}
	whole := bytes.LastIndexByte(b, '\n') + 1
	v.run.chainBytes, v.run.tornBytes = int64(whole), int64(len(b)-whole)
	v.sums = map[string]string{ObservationsFile: sumOf(b)}
	all := readLines(b[:whole])
	v.run.Records = make([]Record, 0, len(all))
	head := ""
	if v.run.Lock != nil {
		head = v.run.Lock.Digest
	}
	for i, l := range all {
		n := i + 1
		if l.err != nil {
			v.problem(ObservationsFile, n, "%v", l.err)
			// The next line cannot be compared with one that is wrong itself:
			// one flipped byte is one problem.
			head = ""
			v.run.Records = append(v.run.Records, Record{})
			continue
		}
		switch {
		case l.seq > i:
			v.problem(ObservationsFile, n, "%d line(s) before it were removed: it is number %d and stands at %d", l.seq-i, l.seq, i)
			return nil
		case l.seq < i:
			v.problem(ObservationsFile, n, "stands out of order or is repeated: it is number %d and stands at %d", l.seq, i)
			return nil
		case head != "" && l.prev != head:
			if i == 0 {
				v.problem(ObservationsFile, n, "begins from another lock than %s", LockFile)
			} else {
				v.problem(ObservationsFile, n, "does not follow the line before it: one of the two was replaced")
			}
		}
		if v.run.Ended() {
			v.problem(ObservationsFile, n, "stands after the end of the run")
		}
		switch {
		case l.unreadable != nil:
			v.problem(ObservationsFile, n, "cannot be read: %v", l.unreadable)
		case i > 0:
		case l.rec.Begin == nil:
			v.problem(ObservationsFile, n, "the first record is %q, not %q", l.rec.Kind, KindBegin)
		case l.rec.Begin.Schema > SchemaVersion:
			return fmt.Errorf("%s: %w: run folder format %d, this one reads up to %d", v.run.Dir, ErrNewer, l.rec.Begin.Schema, SchemaVersion)
		}
		head = l.sum
		v.run.Records = append(v.run.Records, l.rec)
	}
	v.run.head = head
	switch n := len(v.run.Records); {
	case n == 0:
		v.problem(ObservationsFile, 1, "is missing: the file has no whole line")
	case v.run.Ended() && v.run.tornBytes > 0:
		// Nothing is written after the end, so no crash can have cut it off.
		v.problem(ObservationsFile, n+1, "%d bytes stand after the last line", v.run.tornBytes)
	}
	return nil
}

// chainLine is a line taken apart.
type chainLine struct {
	link
	err        error // of the link
	rec        Record
	unreadable error // of the record
}

// readLines takes lines apart. Each can be judged by itself but for its order,
// and to read the records is most of the work of a verification, so it is
// spread over the processors.
func readLines(b []byte) []chainLine {
	all := make([]chainLine, bytes.Count(b, []byte("\n")))
	starts := make([]int, 0, len(all)+1)
	for at := 0; at < len(b); at += bytes.IndexByte(b[at:], '\n') + 1 {
		starts = append(starts, at)
	}
	starts = append(starts, len(b))
	const batch = 64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(all)/batch+1) {
		wg.Go(func() {
			for {
				from := int(next.Add(batch)) - batch
				if from >= len(all) {
					return
				}
				for i := from; i < min(from+batch, len(all)); i++ {
					all[i].read(b[starts[i] : starts[i+1]-1])
				}
			}
		})
	}
	wg.Wait()
	return all
}

func (l *chainLine) read(line []byte) {
	if l.link, l.err = readLink(line); l.err == nil {
		l.unreadable = decode(line, &l.rec)
	}
}
