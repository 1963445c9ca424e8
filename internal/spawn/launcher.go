//go:build linux

package spawn

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var (
	// ErrClosed is returned by Run once Close has been called.
	ErrClosed = errors.New("the launcher is closed")
	// ErrLost is returned by Run when the launcher process has gone away by
	// itself, which takes somebody's SIGKILL.
	ErrLost = errors.New("the launcher process has died")
	// ErrStuck is returned by Run, with what is known of the result, when
	// processes of the command do not die of SIGKILL. They may belong to
	// another user or sleep uninterruptibly.
	ErrStuck = errors.New("processes of the command are still alive after SIGKILL")
)

const (
	// startLimit allows for a machine so loaded that executing the program
	// takes seconds.
	startLimit = 30 * time.Second
	// closeLimit exceeds what the launcher allows itself (farewell).
	closeLimit = 15 * time.Second
	// lingering is also what a garbage collection, or a goroutine that waits
	// for the P, may have to wait.
	lingering = 3 * time.Millisecond
)

// Launcher starts commands from a small process; the package documentation
// says how and why. Its methods may be used by several goroutines at once.
//
// What commands inherit (limits, file mode mask, priority, CPU affinity) is as
// it was when Start was called.
type Launcher struct {
	trials *server

	mu     sync.Mutex
	kept   *server // started by the first Cmd with Keep
	closed bool
}

// server is one launcher process as seen from the program.
type server struct {
	pid    int
	keeper bool
	dir    string // where the launcher process is
	page   *shared
	mapped []byte

	send sync.Mutex
	fd   int // -1 once closed
	seq  uint64

	// reader holds a token for reading from fd. Whoever waits for a reply
	// takes it if it can, and then also hands out the replies for others.
	// Reading in a goroutine of its own would cost every run two more thread
	// switches.
	reader chan struct{}
	free   chan int
	slots  [slots]slotState
	busy   atomic.Int32
	floor  atomic.Int64

	closing atomic.Bool
	dead    chan struct{}
}

type slotState struct {
	done   chan reply
	buffer []byte
	tree   atomic.Int64 // largest sum sampled
}

// Start starts the launcher process.
func Start() (*Launcher, error) {
	s, err := startServer()
	if err != nil {
		return nil, err
	}
	return &Launcher{trials: s}, nil
}

// Close kills everything that is still running, kept commands included, waits
// for it to be gone and ends the launcher.
func (l *Launcher) Close() error {
	l.mu.Lock()
	l.closed = true
	kept := l.kept
	l.mu.Unlock()
	err := l.trials.close()
	if kept != nil {
		err = errors.Join(err, kept.close())
	}
	return err
}

// Pid is that of the launcher process.
func (l *Launcher) Pid() int { return l.trials.pid }

// Run runs a command and returns when it and, unless Keep is set, everything
// it started has ended.
//
// An error means that there is no valid measurement: the command could not be
// started (errors.Is tells fs.ErrNotExist and the like), ctx ended it (the
// error is ctx.Err() and the result holds what was measured until then), or
// the launcher failed. A command that ran and failed, or ran out of time, is a
// Result.
func (l *Launcher) Run(ctx context.Context, c Cmd) (Result, error) {
	s := l.trials
	if c.Keep {
		var err error
		if s, err = l.keeper(); err != nil {
			return Result{}, err
		}
	}
	return s.run(ctx, &c)
}

func (l *Launcher) keeper() (*server, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if l.kept == nil {
		s, err := startServer()
		if err != nil {
			return nil, err
		}
		s.keeper = true
		l.kept = s
	}
	return l.kept, nil
}

func startServer() (_ *server, err error) {
	defer func() {
		if err != nil {
			err = &startError{op: "start", name: argv0, err: err}
		}
	}()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "launcher")
	defer theirs.Close()
	s := &server{
		fd:     pair[0],
		reader: make(chan struct{}, 1),
		free:   make(chan int, slots),
		dead:   make(chan struct{}),
	}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	for i := range s.slots {
		s.slots[i].done = make(chan reply, 1)
		s.free <- i
	}

	if s.dir, err = currentDir(); err != nil {
		return nil, err
	}
	memory, err := sharedMemory()
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	s.mapped, err = syscall.Mmap(int(memory.Fd()), 0, int(unsafe.Sizeof(shared{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	s.page = (*shared)(unsafe.Pointer(&s.mapped[0]))

	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if err := s.execute(null, theirs, memory); err != nil {
		return nil, err
	}

	s.pid = int(s.page.pid)
	// The launcher's end must be the only one left, or its death would not
	// be seen here.
	_ = theirs.Close()
	if err := s.greet(); err != nil {
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
		_, _ = wait(s.pid)
		return nil, err
	}
	s.reader <- struct{}{}
	return s, nil
}

func (s *server) greet() error {
	if err := s.limitReads(startLimit); err != nil {
		return err
	}
	hello, err := s.receive()
	if err != nil {
		return err
	}
	s.floor.Store(hello.floor)
	return s.limitReads(0)
}

// thp guards a setting of the whole process.
var thp sync.Mutex

// withoutHugePages calls do while new memory maps get no huge pages. Where these
// are the default, the first touch of the heap would make the launcher 2 MiB
// larger. The setting is inherited, and the launcher lifts it again for
// commands if it is told to.
func withoutHugePages(do func() error) (lift bool, err error) {
	thp.Lock()
	defer thp.Unlock()
	off, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prGetTHPDisable, 0, 0, 0, 0, 0)
	if e != 0 || off != 0 {
		return false, do()
	}
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetTHPDisable, 1, 0, 0, 0, 0); e != 0 {
		return false, do()
	}
	err = do()
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetTHPDisable, 0, 0, 0, 0, 0)
	return true, err
}

// execute runs the program once more and waits for that process, which leaves
// the launcher behind.
func (s *server) execute(null, theirs, memory *os.File) error {
	env := []string{
		envMark + "=" + envValue,
		// Nothing must run besides the thread that forks.
		"GOGC=off",
		"GOMAXPROCS=1",
	}
	// A program linked dynamically may not load without.
	if v, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		env = append(env, "LD_LIBRARY_PATH="+v)
	}
	var pid int
	lift, err := withoutHugePages(func() (err error) {
		pid, err = syscall.ForkExec("/proc/self/exe", []string{argv0}, &syscall.ProcAttr{
			Env:   env,
			Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd(), memory.Fd()},
		})
		return err
	})
	if err != nil {
		return &startError{op: "exec", name: "/proc/self/exe", err: err}
	}
	if lift {
		s.page.thp = 1
	}
	status, err := wait(pid)
	switch {
	case err != nil:
		return err
	case status.Signaled():
		return errors.New("killed by signal " + status.Signal().String())
	case status.ExitStatus() != 0:
		return syscall.Errno(status.ExitStatus())
	}
	return nil
}

func sharedMemory() (*os.File, error) {
	name := [...]byte{'a', 's', 's', 'a', 'y', 0}
	const cloexec = 1
	fd, _, e := syscall.RawSyscall(sysMemfdCreate, uintptr(unsafe.Pointer(&name)), cloexec, 0)
	if e != 0 {
		return nil, os.NewSyscallError("memfd_create", e)
	}
	f := os.NewFile(fd, "memfd")
	if err := f.Truncate(int64(unsafe.Sizeof(shared{}))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func wait(pid int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if err != syscall.EINTR {
			return status, os.NewSyscallError("wait4", err)
		}
	}
}

func (s *server) limitReads(d time.Duration) error {
	limit := syscall.NsecToTimeval(int64(d))
	return os.NewSyscallError("setsockopt", syscall.SetsockoptTimeval(s.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit))
}

func (s *server) release() {
	_ = syscall.Close(s.fd)
	if s.mapped != nil {
		_ = syscall.Munmap(s.mapped)
	}
}

func (s *server) receive() (r reply, err error) {
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	s.linger()
	for {
		n, err := syscall.Read(s.fd, buffer)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return r, os.NewSyscallError("read", err)
		case n != len(buffer):
			return r, io.ErrUnexpectedEOF
		}
		return r, nil
	}
}

// linger waits for a reply for a short time without telling the scheduler. If it
// knows of a blocked thread, the runtime's monitor wakes up all the time to see
// whether to take the thread's P away, and for commands as short as that time
// this costs a tenth: in part as work on the measured machine, in part as the
// scheduler moves the command to another processor. The price is that one P is
// idle for as long, so there must be others.
func (s *server) linger() {
	if s.busy.Load() > 1 || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	poll := pollFD{fd: int32(s.fd), events: pollIn}
	limit := syscall.NsecToTimespec(int64(lingering))
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
}

// read is called with the token and gives it back, unless the launcher has
// gone. It hands out replies until the one for slot has come; a negative slot
// means until the end.
func (s *server) read(slot int) {
	for {
		r, err := s.receive()
		if err != nil {
			break
		}
		if r.floor > s.floor.Load() {
			s.floor.Store(r.floor)
		}
		s.slots[r.slot].done <- r
		if int(r.slot) == slot {
			s.reader <- struct{}{}
			return
		}
	}
	s.bury()
	close(s.dead)
}

// bury waits for the launcher and, unless that has certified by its exit status
// that nothing is left, does its work.
func (s *server) bury() {
	var info [signalfdInfo / 4]int32
	const byPid, codeWord, statusWord, exited = 1, 2, 6, 1
	for {
		_, _, e := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(s.pid), uintptr(unsafe.Pointer(&info)), wExited|wNoWait, 0, 0)
		if e != syscall.EINTR {
			break
		}
	}
	if info[codeWord] != exited || info[statusWord] != 0 {
		// As long as the launcher has not been reaped, its number, and so that
		// of its session, is not reused.
		killSession(s.pid)
	}
	_, _ = wait(s.pid)
}

func (s *server) close() error {
	if s.closing.Swap(true) {
		<-s.dead
		return nil
	}
	// Replies already under way can still arrive.
	err := os.NewSyscallError("shutdown", syscall.Shutdown(s.fd, syscall.SHUT_WR))
	timer := time.AfterFunc(closeLimit, func() { _ = syscall.Kill(s.pid, syscall.SIGKILL) })
	select {
	case <-s.reader:
		s.read(-1)
	case <-s.dead:
	}
	if !timer.Stop() {
		err = ErrStuck
	}
	s.send.Lock()
	defer s.send.Unlock()
	_ = syscall.Close(s.fd)
	s.fd = -1
	// The page stays mapped, as Running may be looking at it.
	return err
}

func (s *server) gone() error {
	if s.closing.Load() {
		return ErrClosed
	}
	return ErrLost
}

func (s *server) run(ctx context.Context, c *Cmd) (result Result, err error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if s.closing.Load() {
		return Result{}, ErrClosed
	}
	path, err := c.resolve()
	if err != nil {
		return Result{}, err
	}
	var slot int
	select {
	case slot = <-s.free:
	case <-s.dead:
		return Result{}, s.gone()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	s.busy.Add(1)
	defer func() {
		s.busy.Add(-1)
		s.free <- slot
	}()

	seq, err := s.ask(slot, path, c)
	if err != nil {
		return Result{}, err
	}

	// The first reason to end the command is the one that is reported.
	var why atomic.Int32
	if c.Timeout > 0 {
		t := time.AfterFunc(c.Timeout, func() { s.kill(slot, seq, &why, becauseTimeout) })
		defer t.Stop()
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { s.kill(slot, seq, &why, becauseContext) })()
	}
	if c.SampleTree > 0 {
		stop := s.sampler(slot, c.SampleTree)
		defer func() { result.PeakTree = stop() }()
	}
	r, err := s.wait(slot)
	if err != nil {
		return Result{}, err
	}
	if r.kind == sayFailed {
		return Result{}, c.failure(path, r.stage, syscall.Errno(r.errno))
	}
	result = resultOf(&r)
	if r.killed != 0 && (result.Signal == syscall.SIGKILL || r.stuck != 0) {
		switch why.Load() {
		case becauseContext:
			err = ctx.Err()
		case becauseTimeout:
			result.TimedOut = true
		}
	}
	if r.stuck != 0 {
		err = errors.Join(err, &startError{op: "run", name: c.Path, err: ErrStuck})
	}
	return result, err
}

const (
	becauseTimeout = iota + 1
	becauseContext
)

func (s *server) wait(slot int) (reply, error) {
	done := s.slots[slot].done
	for {
		select {
		case r := <-done:
			return r, nil
		case <-s.reader:
			select {
			case r := <-done:
				s.reader <- struct{}{}
				return r, nil
			default:
			}
			s.read(slot)
		case <-s.dead:
			select {
			case r := <-done:
				return r, nil
			default:
			}
			return reply{}, s.gone()
		}
	}
}

// sampler measures until the function it returns is called, which tells the
// largest sum.
func (s *server) sampler(slot int, every time.Duration) func() int64 {
	tree := &s.slots[slot].tree
	tree.Store(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				tree.Store(max(tree.Load(), s.sample(slot)))
			case <-stop:
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-stopped
		return tree.Load()
	}
}

// sample measures the tree of the command in slot. Its strays are children of
// the launcher and can only be told from those of others if there are none.
func (s *server) sample(slot int) int64 {
	pid := int(atomic.LoadInt32(&s.page.pids[slot]))
	if pid == 0 {
		return 0
	}
	if s.busy.Load() == 1 && !s.keeper {
		sum, _ := treeRSS(s.pid, false)
		return sum
	}
	sum, _ := treeRSS(pid, true)
	return sum
}

func (s *server) kill(slot int, seq uint64, why *atomic.Int32, reason int32) {
	if !why.CompareAndSwap(0, reason) {
		return
	}
	r := request{kind: askKill, slot: uint32(slot), seq: seq, size: uint64(unsafe.Sizeof(request{}))}
	// If this fails, the launcher is gone, and the caller is about to see it.
	s.send.Lock()
	defer s.send.Unlock()
	_ = s.write(unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r)), nil)
}

func (s *server) ask(slot int, path string, c *Cmd) (uint64, error) {
	at := &s.slots[slot]
	var err error
	if at.buffer, err = c.encode(at.buffer, path, s.dir); err != nil {
		return 0, err
	}
	r := (*request)(unsafe.Pointer(&at.buffer[0]))
	r.slot = uint32(slot)
	var numbers [maxFDs]int
	fds, err := c.descriptors(r, numbers[:0])
	if err != nil {
		return 0, err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = syscall.UnixRights(fds...)
	}

	s.send.Lock()
	defer s.send.Unlock()
	s.seq++
	r.seq = s.seq
	err = s.write(at.buffer, rights)
	keepOpen(c)
	if err == syscall.EPIPE || err == syscall.ECONNRESET {
		return 0, s.gone()
	}
	if err != nil {
		return 0, &startError{op: "start", name: c.Path, err: err}
	}
	seq := r.seq
	if cap(at.buffer) > packet {
		at.buffer = nil
	}
	return seq, nil
}

// write sends a request in packets, the first of which carries the descriptors.
func (s *server) write(b, rights []byte) error {
	if s.fd < 0 {
		return syscall.EPIPE
	}
	for first := true; len(b) > 0; first = false {
		n := min(len(b), packet)
		err := syscall.Sendmsg(s.fd, b[:n], rights, nil, msgNoSignal)
		if err == syscall.EINTR {
			continue
		}
		if err != nil && !first {
			// The launcher is waiting for the rest.
			_ = syscall.Shutdown(s.fd, syscall.SHUT_WR)
			return syscall.EPIPE
		}
		if err != nil {
			return err
		}
		b, rights = b[n:], nil
	}
	return nil
}
