package trial

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// drainGrace is how long output is waited for after everything that could
// write it has been killed.
const drainGrace = time.Second

// captured is one end of a pipe that a goroutine empties, keeping the last
// tail bytes, or everything up to a limit beyond which stop is called.
type captured struct {
	r, w  *os.File
	buf   []byte
	over  bool
	ended chan struct{}
}

func capture(tail, limit int, stop func()) (*captured, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &captured{r: r, w: w, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		chunk := make([]byte, 32<<10)
		for {
			n, err := c.r.Read(chunk)
			if !c.over {
				c.buf = append(c.buf, chunk[:n]...)
			}
			switch {
			case limit > 0 && len(c.buf) > limit && !c.over:
				c.over, c.buf = true, nil
				stop()
			case tail > 0 && len(c.buf) > 2*tail:
				c.buf = append(c.buf[:0], c.buf[len(c.buf)-tail:]...)
			}
			if err != nil {
				if tail > 0 && len(c.buf) > tail {
					c.buf = c.buf[len(c.buf)-tail:]
				}
				return
			}
		}
	}()
	return c, nil
}

// finish waits for the end of the output and returns what was kept.
func (c *captured) finish() []byte {
	c.w.Close()
	// Whoever could still hold the pipe has been killed, but for a process
	// that no signal reaches; it must not hold the run.
	_ = c.r.SetReadDeadline(time.Now().Add(drainGrace))
	<-c.ended
	return c.buf
}

func (c *captured) close() {
	c.w.Close()
	c.r.Close()
}

// drainAfter is how long a trial may run before its stderr is emptied while it
// runs. Shorter trials, the ones in which a goroutine's wake-up would be a part
// of what the harness costs, are looked at once, when they have ended.
const drainAfter = 5 * time.Millisecond

// pipeRoom is asked of the kernel for stderr, so that what a trial prints in
// its first milliseconds does not hold it up.
const pipeRoom = 1 << 20

// tail keeps the last bytes of the stderr of one trial after the other. The
// pipe is made once: pipes and their registration with the poller would be a
// tenth of what it takes to run a trivial command.
type tail struct {
	fd    int // of r, which does not block
	r, w  *os.File
	buf   []byte
	chunk []byte // read into; by the goroutine or by finish, never both

	timer *time.Timer
	done  chan struct{} // closed when the goroutine of a long trial has ended; nil without one
	mu    sync.Mutex
	trial int  // which one it is
	over  bool // the trial has ended, so that no goroutine may start
}

func newTail() (*tail, error) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		return nil, os.NewSyscallError("pipe", err)
	}
	// More room is a favour that a kernel may refuse.
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(fds[1]), syscall.F_SETPIPE_SZ, pipeRoom)
	return &tail{fd: fds[0], r: os.NewFile(uintptr(fds[0]), "stderr"), w: os.NewFile(uintptr(fds[1]), "stderr"), chunk: make([]byte, 32<<10)}, nil
}

// begin is called before a trial starts.
func (t *tail) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trial++
	t.buf, t.done, t.over = t.buf[:0], nil, false
	// On a busy machine a goroutine may come to its turn when its trial is long
	// over and the next one runs.
	of := t.trial
	t.timer = time.AfterFunc(drainAfter, func() { t.drain(of) })
}

// drain empties the pipe until finish stops it.
func (t *tail) drain(of int) {
	t.mu.Lock()
	if t.over || t.trial != of {
		t.mu.Unlock()
		return
	}
	done := make(chan struct{})
	t.done = done
	t.mu.Unlock()
	defer close(done)
	for {
		n, err := t.r.Read(t.chunk)
		t.keep(t.chunk[:n])
		if err != nil {
			return
		}
	}
}

func (t *tail) keep(b []byte) {
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*stderrTail {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-stderrTail:]...)
	}
}

// finish is called when everything of the trial has ended, and returns the last
// of what it printed.
func (t *tail) finish() []byte {
	t.timer.Stop()
	t.mu.Lock()
	t.over = true
	done := t.done
	t.mu.Unlock()
	if done != nil {
		_ = t.r.SetReadDeadline(time.Now())
		<-done
		_ = t.r.SetReadDeadline(time.Time{})
	}
	// Bounded, because a process that no signal reaches may go on printing.
	for range pipeRoom / len(t.chunk) * 2 {
		n, err := syscall.Read(t.fd, t.chunk)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if n <= 0 {
			break
		}
		t.keep(t.chunk[:n])
	}
	if len(t.buf) > stderrTail {
		t.buf = t.buf[len(t.buf)-stderrTail:]
	}
	return t.buf
}

func (t *tail) close() error { return errors.Join(t.w.Close(), t.r.Close()) }

// text is what was kept, for people.
func text(b []byte) string { return strings.TrimSpace(strings.ToValidUTF8(string(b), "?")) }

func fileTail(f *os.File, n int64) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, min(n, info.Size()))
	if _, err := f.ReadAt(b, info.Size()-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return strings.ToValidUTF8(string(b), "?")
}
