package host

import (
	"bytes"
	"io"
	"os"
	"sync"
	"syscall"
)

// Machine reads the state of a Linux machine from /proc and /sys. The zero
// Machine reads the real one and knows of no run lock. On another system
// what the kernel would tell is unavailable.
type Machine struct {
	// Root is the folder that /proc, /sys and /etc are looked up in; "" is /.
	Root string
	// LockPath is the file that AcquireRunLock is called with. It is not
	// below Root. With "" the probe other_run is unavailable.
	LockPath string
}

// A file of /proc is made anew by each open, so it has no size to ask for.
// 64 KiB hold the CPU lines of some thousand CPUs.
const fileRoom = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, fileRoom); return &b }}

func (m Machine) path(p string) string { return m.Root + p }

// read fills buf with the start of a file. It avoids os.File, whose poller and
// finalizer cost as much as the read itself.
func (m Machine) read(p string, buf []byte) ([]byte, error) {
	fd, err := m.open(p)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	n := 0
	for n < len(buf) {
		k, err := retry(func() (int, error) { return syscall.Read(fd, buf[n:]) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: p, Err: err}
		}
		if k == 0 {
			break
		}
		n += k
	}
	return buf[:n], nil
}

// kept are descriptors by path. They belong to the process for good.
var kept sync.Map

// reread is read for the few files of a snapshot. On the real machine they
// stay open, since opening costs more than reading, and one read is enough:
// the kernel hands over a file of one record whole.
func (m Machine) reread(p string, buf []byte) ([]byte, error) {
	if m.Root != "" {
		return m.read(p, buf)
	}
	fd, ok := kept.Load(p)
	if !ok {
		opened, err := m.open(p)
		if err != nil {
			return nil, err
		}
		if fd, ok = kept.LoadOrStore(p, opened); ok {
			syscall.Close(opened)
		}
	}
	n, err := retry(func() (int, error) { return syscall.Pread(fd.(int), buf, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: p, Err: err}
	}
	return buf[:n], nil
}

func (m Machine) open(p string) (fd int, err error) {
	fd, err = retry(func() (int, error) { return syscall.Open(m.path(p), syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return fd, &os.PathError{Op: "open", Path: p, Err: err}
	}
	return fd, nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// text is a file of one value, without the white space around it.
func (m Machine) text(p string) (string, error) {
	b, err := m.whole(p)
	return string(bytes.TrimSpace(b)), err
}

// whole is a file that may be long. It is bounded because a garbage tree must
// not exhaust memory.
func (m Machine) whole(p string) ([]byte, error) {
	f, err := os.Open(m.path(p))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4<<20))
}
