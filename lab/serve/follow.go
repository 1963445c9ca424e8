package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
)

// followSteps bounds what one tick reads of a run that is followed for the first
// time: so many steps of the ledger's follower.
const followSteps = 8

// follow reads a run under way as it grows. The zero follow begins at its start.
type follow struct {
	follower *ledger.Follower
	watch    *flow.Watch
	said     progress
	dead     bool // it cannot be followed
}

// progress is what is shown of a run under way.
type progress struct {
	study, question string
	begun           time.Time
	now             flow.Progress
	failed          int
	fault           string // why it cannot be told
}

// update reads what was appended.
func (f *follow) update(root *os.Root, path string) {
	if f.dead {
		return
	}
	fresh := f.follower == nil
	err := f.read(root, path)
	f.said.fault = ""
	if err != nil {
		// What was read may have been cut off by a resume, so it begins anew, but
		// once: there is no end to what a damaged run could cost.
		*f = follow{dead: fresh, said: progress{fault: err.Error()}}
	}
}

func (f *follow) read(root *os.Root, path string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	dir, err := descend(root, path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if f.follower == nil {
		b, err := fs.ReadFile(folder{root: dir}, ledger.LockFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is about to begin
		}
		if err != nil {
			return err
		}
		lock, p, err := protocol.ReadLock(b)
		if err != nil {
			return err
		}
		f.follower, f.watch = ledger.Follow(lock), flow.NewWatch(p)
		f.said = progress{study: p.Name, question: p.Question}
	}
	chain, err := folder{root: dir}.open(ledger.ObservationsFile)
	if err != nil {
		return err
	}
	defer chain.Close()
	for range followSteps {
		records, err := f.follower.Read(chain)
		if err != nil {
			return err
		}
		for _, rec := range records {
			if rec.Begin != nil {
				f.said.begun = rec.Begin.Time.UTC()
			}
			f.watch.Add(rec)
		}
		if len(records) == 0 {
			break
		}
	}
	f.said.now, f.said.failed = f.watch.Progress(), f.watch.Failed
	return nil
}

func (f *follow) progress() progress { return f.said }

// counted says that the number of rounds is known.
func (p *progress) counted() bool { return p.now.Total > 0 }

// rounds is how far the run is, in words.
func (p *progress) rounds() string {
	switch {
	case p.fault != "":
		return "how far it is cannot be told: " + p.fault
	case !p.counted():
		return "about to begin"
	case p.now.Done == p.now.Total:
		return fmt.Sprintf("all %d rounds are done, and it is being judged", p.now.Total)
	}
	return fmt.Sprintf("%d of %d rounds", p.now.Done, p.now.Total)
}

// left is the time that it will take, "" where nobody knows.
func (p *progress) left() string {
	if p.fault != "" || p.now.Left <= 0 || p.now.Done == 0 {
		return ""
	}
	return "about " + flow.Short(p.now.Left) + " left"
}
