//go:build linux

package spawn

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Cmd describes a command to run.
type Cmd struct {
	// Path is the program. Without a slash it is searched for as Look does,
	// otherwise it is taken relative to Dir.
	Path string
	// Args is the whole argument vector; empty means just Path.
	Args []string
	// Env is the environment; nil means that of this process. It is passed on
	// unchanged, so PWD is up to the caller.
	Env []string
	// Dir is the working directory; empty means that of this process.
	Dir string
	// Stdin, Stdout and Stderr are the null device if nil. Like os/exec, Run
	// puts a file it passes on into blocking mode.
	Stdin, Stdout, Stderr *os.File
	// Extra are descriptors 3 and up; nil entries are left closed.
	Extra []*os.File
	// Timeout ends the command's whole process group; 0 means never.
	Timeout time.Duration
	// Keep leaves alone whatever processes the command leaves behind, until
	// Close.
	Keep bool
	// SampleTree is how often to add up the memory of all processes of the
	// command; 0 means never.
	SampleTree time.Duration
}

// Result is what was measured of a command. Processes that the command started
// are included, except those whose parents ignored SIGCHLD, which the kernel
// forgets.
type Result struct {
	// Start is just before the fork and End just after the end of the main
	// process was seen, both on CLOCK_MONOTONIC.
	Start, End time.Duration
	Wall       time.Duration
	User       time.Duration
	System     time.Duration
	// PeakRSS is in bytes: the largest resident peak of any single process.
	PeakRSS int64
	// PeakTree is in bytes: the largest sum sampled, 0 without SampleTree. It
	// misses what happens between samples and counts shared pages once for
	// every process.
	PeakTree int64
	// Exit is the exit status, -1 if the command was ended by Signal.
	Exit     int
	Signal   syscall.Signal
	TimedOut bool
	Pid      int

	MinorFaults, MajorFaults               int64
	VoluntarySwitches, InvoluntarySwitches int64
	// ReadBlocks and WriteBlocks are in units of 512 bytes.
	ReadBlocks, WriteBlocks int64
}

// PeakMemory is the best figure for the command as a whole: the larger of
// PeakRSS and PeakTree.
func (r Result) PeakMemory() int64 { return max(r.PeakRSS, r.PeakTree) }

func resultOf(r *reply) Result {
	result := Result{
		Start:               time.Duration(r.start),
		End:                 time.Duration(r.end),
		Wall:                time.Duration(r.end - r.start),
		User:                time.Duration(r.use.user),
		System:              time.Duration(r.use.system),
		PeakRSS:             r.use.peak,
		Pid:                 int(r.pid),
		MinorFaults:         r.use.minor,
		MajorFaults:         r.use.major,
		VoluntarySwitches:   r.use.vol,
		InvoluntarySwitches: r.use.invol,
		ReadBlocks:          r.use.in,
		WriteBlocks:         r.use.out,
	}
	status := syscall.WaitStatus(r.status)
	if r.stuck != 0 && r.use == (usage{}) {
		// The main process itself is still there.
		result.Exit = -1
		return result
	}
	result.Exit = status.ExitStatus()
	if status.Signaled() {
		result.Signal = status.Signal()
	}
	return result
}

// startError keeps what failed and on what apart from why, so that a caller
// can ask for the reason.
type startError struct {
	op, name string
	err      error
	hint     string
}

func (e *startError) Error() string { return e.op + " " + e.name + ": " + e.err.Error() + e.hint }
func (e *startError) Unwrap() error { return e.err }

func (c *Cmd) failure(path string, stage int32, errno syscall.Errno) error {
	switch stage {
	case stageFork, stageGroup:
		return &startError{op: "fork for", name: path, err: errno}
	case stageFiles:
		return &startError{op: "pass files to", name: path, err: errno}
	case stageDir:
		return &startError{op: "change directory to", name: c.Dir, err: errno}
	}
	e := &startError{op: "start", name: path, err: errno}
	switch errno {
	case syscall.ENOENT:
		full := path
		if !filepath.IsAbs(full) {
			full = filepath.Join(c.Dir, full)
		}
		if _, err := os.Stat(full); err == nil {
			e.hint = " (the file exists, but not the interpreter or loader it names)"
		}
	case syscall.ENOEXEC:
		e.hint = " (neither a program for this machine nor a script with a #! line)"
	}
	return e
}

func (c *Cmd) resolve() (string, error) {
	if strings.Contains(c.Path, "/") {
		return c.Path, nil
	}
	return Look(c.Path, c.Env, c.Dir)
}

// currentDir is os.Getwd without the detour by way of PWD.
func currentDir() (string, error) {
	var buffer [4096]byte
	n, err := syscall.Getcwd(buffer[:])
	if err != nil {
		return "", os.NewSyscallError("getcwd", err)
	}
	return string(buffer[:n-1]), nil
}

// absolute is dir as seen from the working directory.
func absolute(dir string) (string, error) {
	if filepath.IsAbs(dir) {
		return dir, nil
	}
	here, err := currentDir()
	return filepath.Join(here, dir), err
}

// encode writes the request as one block whose pointer tables hold offsets.
func (c *Cmd) encode(buffer []byte, path, launcherDir string) ([]byte, error) {
	args, env := c.Args, c.Env
	if len(args) == 0 {
		args = []string{c.Path}
	}
	if env == nil {
		env = os.Environ()
	}
	dir, err := absolute(c.Dir)
	if err != nil {
		return buffer, &startError{op: "start", name: path, err: err}
	}
	const word = 8
	words := len(args) + 1 + len(env) + 1
	table := int(unsafe.Sizeof(request{}))
	text := table + words*word
	size := text + len(path) + 1 + len(dir) + 1
	for _, list := range [2][]string{args, env} {
		for _, s := range list {
			size += len(s) + 1
		}
	}
	if size > maxRequest {
		return buffer, &startError{op: "start", name: path, err: syscall.E2BIG}
	}
	if cap(buffer) < size {
		buffer = make([]byte, size, max(size, 4096))
	}
	buffer = buffer[:size]

	at := text
	bad := false
	put := func(s string) uint64 {
		bad = bad || strings.IndexByte(s, 0) >= 0
		from := at
		at += copy(buffer[at:], s)
		buffer[at] = 0
		at++
		return uint64(from)
	}
	r := (*request)(unsafe.Pointer(&buffer[0]))
	*r = request{
		kind:  askRun,
		size:  uint64(size),
		argv:  uint64(table),
		envp:  uint64(table + (len(args)+1)*word),
		words: uint64(words),
	}
	if c.Keep {
		r.keep = 1
	}
	r.path = put(path)
	if dir != launcherDir {
		r.dir = put(dir)
	}
	offsets := unsafe.Slice((*uint64)(unsafe.Pointer(&buffer[table])), words)
	i := 0
	for _, list := range [2][]string{args, env} {
		for _, s := range list {
			offsets[i] = put(s)
			i++
		}
		offsets[i] = 0
		i++
	}
	if bad {
		return buffer, &startError{op: "start", name: path, err: syscall.EINVAL, hint: " (zero byte in a string)"}
	}
	return buffer, nil
}

// descriptors lists what to pass and marks it in the request.
func (c *Cmd) descriptors(r *request, fds []int) ([]int, error) {
	if 3+len(c.Extra) > maxFDs {
		return nil, &startError{op: "pass files to", name: c.Path, err: errors.New("too many extra files")}
	}
	closed := false
	add := func(i int, f *os.File) {
		if f != nil {
			fd := int(f.Fd())
			closed = closed || fd < 0
			r.given |= 1 << i
			fds = append(fds, fd)
		}
	}
	add(0, c.Stdin)
	add(1, c.Stdout)
	add(2, c.Stderr)
	for i, f := range c.Extra {
		add(3+i, f)
	}
	if closed {
		return nil, &startError{op: "pass files to", name: c.Path, err: fs.ErrClosed}
	}
	return fds, nil
}

// keepOpen is called when the descriptors have been handed over; until then no
// finalizer may close them.
func keepOpen(c *Cmd) {
	runtime.KeepAlive(c.Stdin)
	runtime.KeepAlive(c.Stdout)
	runtime.KeepAlive(c.Stderr)
	for _, f := range c.Extra {
		runtime.KeepAlive(f)
	}
}

// Look finds the program that a command means by file, as execvp would: a name
// with a slash is relative to dir, any other is searched for in the PATH of
// env. Unlike exec.LookPath it allows relative directories in PATH, also
// relative to dir. A nil env means that of this process, an empty dir its
// working directory. The result is absolute.
func Look(file string, env []string, dir string) (string, error) {
	if file == "" {
		return "", &startError{op: "find", name: `""`, err: fs.ErrNotExist}
	}
	dir, err := absolute(dir)
	if err != nil {
		return "", &startError{op: "find", name: file, err: err}
	}
	if strings.Contains(file, "/") {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", &startError{op: "find", name: file, err: err}
		}
		return path, nil
	}
	var failed error = fs.ErrNotExist
	for _, in := range filepath.SplitList(searchPath(env)) {
		if !filepath.IsAbs(in) {
			in = filepath.Join(dir, in)
		}
		path := filepath.Join(in, file)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		// Something of that name that may not be executed is the better
		// explanation, but the search goes on, as in execvp.
		if errors.Is(err, fs.ErrPermission) {
			failed = err
		}
	}
	return "", &startError{op: "find", name: file, err: failed, hint: " (searched in PATH)"}
}

func searchPath(env []string) string {
	path, ok := "", false
	if env == nil {
		path, ok = os.LookupEnv("PATH")
	}
	for _, entry := range env {
		// Of several, shells use the last.
		if v, found := strings.CutPrefix(entry, "PATH="); found {
			path, ok = v, true
		}
	}
	if !ok {
		// What the C library uses.
		return "/bin:/usr/bin"
	}
	return path
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		var reason *fs.PathError
		if errors.As(err, &reason) {
			return reason.Err
		}
		return err
	}
	if info.IsDir() {
		return syscall.EISDIR
	}
	if info.Mode()&0o111 == 0 {
		return fs.ErrPermission
	}
	return nil
}
