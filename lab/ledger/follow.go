package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/assaylab/assay/lab/protocol"
)

// Busy says whether a process is writing to the run whose chain this is. It is
// false too where the file system has no locks. To ask it takes the writer's
// lock, shared and for a moment; flock bears with that.
func Busy(chain *os.File) bool {
	err := syscall.Flock(int(chain.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		_ = syscall.Flock(int(chain.Fd()), syscall.LOCK_UN)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// lockTries is how often a writer asks for its lock. Whoever asks Busy holds
// it too, but is gone at the next try.
const lockTries = 10

// flock takes the writer's lock. It returns EWOULDBLOCK where another keeps it.
func flock(f *os.File, pause func()) (err error) {
	for try := range lockTries {
		if try > 0 {
			pause()
		}
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
	}
	return err
}

// Follower reads a chain while another process appends to it. It checks that
// each record is whole and follows the one before; that the samples and the
// environment are right only Verify says.
type Follower struct {
	head string // sum of the last record, at first the lock's digest
	next int    // number of the next record
	at   int64  // byte at which it begins
}

// Follow begins ahead of the first record of the lock's run.
func Follow(lock *protocol.Lock) *Follower { return &Follower{head: lock.Digest} }

// followStep is about how much of the chain one Read takes in.
const followStep = 1 << 20

// Read returns the records that were appended since the last call, or the
// first of them where there are many; none means that there is nothing new.
// After an error the follower is of no use: the chain is damaged, or a resume
// has cut records off that were read already. A new one tells which.
func (f *Follower) Read(chain io.ReaderAt) ([]Record, error) {
	b, err := f.lines(chain)
	if err != nil {
		return nil, err
	}
	var records []Record
	for line := range bytes.Lines(b) {
		var l chainLine
		l.read(line[:len(line)-1])
		switch {
		case l.err != nil:
			err = l.err
		case l.seq != f.next || l.prev != f.head:
			err = errors.New("does not follow the line before it")
		case l.unreadable != nil:
			err = fmt.Errorf("cannot be read: %w", l.unreadable)
		}
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", ObservationsFile, f.next+1, err)
		}
		f.head, f.next, f.at = l.sum, f.next+1, f.at+int64(len(line))
		records = append(records, l.rec)
	}
	return records, nil
}

// lines are the whole lines that come next.
func (f *Follower) lines(chain io.ReaderAt) ([]byte, error) {
	for _, size := range []int{followStep, maxLine} {
		b := make([]byte, size)
		n, err := chain.ReadAt(b, f.at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", ObservationsFile, err)
		}
		if whole := bytes.LastIndexByte(b[:n], '\n') + 1; whole > 0 || n < size {
			return b[:whole], nil
		}
	}
	return nil, fmt.Errorf("%s line %d: %w: it has more than %d bytes", ObservationsFile, f.next+1, errMalformed, maxLine)
}
