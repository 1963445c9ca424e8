package trial

import (
	"errors"
	"io"
	"os"
	"strings"
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
