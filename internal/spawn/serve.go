//go:build linux

package spawn

import (
	"syscall"
	"unsafe"
)

// This file is the launcher. See invariant 2 of the package documentation for
// the rules that every function here keeps.

const (
	sigSetMask = 2

	prSetPDeathSig    = 1
	prSetName         = 15
	prSetChildSubreap = 36
	prSetTHPDisable   = 41
	prGetTHPDisable   = 42

	pAll    = 0
	wExited = 4
	wNoHang = 1
	wNoWait = 0x01000000

	pollIn         = 1
	clockMonotonic = 1
	rusageSelf     = 0
	atFDCWD        = ^uintptr(99) // -100
	fDupFDCloexec  = 1030
	msgDontWait    = 0x40
	msgNoSignal    = 0x4000
	msgCmsgCloexec = 0x40000000
	madvDontNeed   = 4
	signalfdInfo   = 128

	// largestPage is that of any supported machine.
	largestPage = 64 << 10

	millisecond int64 = 1e6
	second      int64 = 1e9

	// grace is how long a killed group gets to vanish before /proc is searched
	// for processes that are not in it. An exit takes some 50 µs.
	grace = 2 * millisecond
	// again spaces further searches, each of which reads all of /proc.
	again = 10 * millisecond
	// overlap is how long a command waits for its group while others run.
	overlap = 100 * millisecond
	// patience is how long a killed process may take: uninterruptible sleep
	// and processes of another user cannot be waited for for ever.
	patience = 10 * second
	// farewell is the same at the end, when nobody is left to be told.
	farewell = 5 * second
)

const (
	idle     = iota
	running  // until the main process is reaped
	settling // until nothing else is left either
)

type slot struct {
	state  uint32
	keep   bool
	killed bool
	pid    uintptr
	seq    uint64
	start  int64
	end    int64
	limit  int64 // when to give up on it, if killed or settling
	status uint32
	use    usage
}

type pollFD struct {
	fd      int32
	events  int16
	revents int16
}

// l is all that the launcher knows. Without Go pointers in it or in sent, the
// program's garbage collector has nothing to look at, and as neither is touched
// in the program, they cost it nothing.
var l struct {
	parent uintptr
	pid    uintptr
	signal uintptr // signalfd
	peak   uintptr // /proc/self/clear_refs
	proc   uintptr // /proc

	mask struct{ all, initial, watch uint64 }

	slots    [slots]slot
	running  int
	settling int
	children bool  // as of the last wait
	search   int64 // when /proc may be searched

	poll    [2]pollFD
	clock   syscall.Timespec
	timeout syscall.Timespec
	floor   syscall.Rusage
	usage   syscall.Rusage
	status  int32
	info    [32]int32
	action  [8]uint64
	reply   reply

	head struct {
		name    uintptr
		namelen uint64
		iov     uintptr
		iovlen  uint64
		control uintptr
		size    uint64
		flags   uint64
	}
	iov   [2]uintptr
	cmsg  [2 + maxFDs/2]uint64
	fds   [maxFDs]int32
	moved [maxFDs]int32 // the child's copy, as it may share memory
	given int

	text    [1024]byte
	entries [8192]byte
}

var (
	page *shared
	sent [maxRequest / 8]uint64
)

// serve is the life of the launcher after the fork.
//
//go:nosplit
//go:norace
//go:nocheckptr
func serve() {
	prepare()
	for {
		timeout := uintptr(0)
		if l.settling > 0 {
			l.timeout.Sec, l.timeout.Nsec = 0, millisecond
			timeout = uintptr(unsafe.Pointer(&l.timeout))
		} else if killedRunning() {
			l.timeout.Sec, l.timeout.Nsec = 1, 0
			timeout = uintptr(unsafe.Pointer(&l.timeout))
		}
		l.poll[0].revents, l.poll[1].revents = 0, 0
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&l.poll)), 2, timeout, 0, 0, 0)
		if l.poll[1].revents != 0 {
			signals()
			reap()
		}
		if l.poll[0].revents != 0 {
			handle()
		}
		settle()
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func prepare() {
	l.pid, _, _ = syscall.RawSyscall6(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetChildSubreap, 1, 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetPDeathSig, uintptr(syscall.SIGHUP), 0, 0, 0, 0)
	if orphaned() {
		exit(1)
	}
	// The name limits what ps shows, and what a kill by name would hit.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetName, address(argv0+"\x00"), 0, 0, 0, 0)

	// Between fork and exec a child would otherwise run the Go runtime's
	// handlers on the launcher's memory. What was ignored stays ignored, as
	// for any child of the program, except where the launcher depends on it.
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&l.action)), 8, 0, 0)
		if e != 0 || l.action[0] <= 1 && sig != uintptr(syscall.SIGCHLD) {
			continue
		}
		for i := range l.action {
			l.action[i] = 0
		}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&l.action)), 0, 8, 0, 0)
	}

	l.mask.watch = 1<<(uint(syscall.SIGCHLD)-1) | 1<<(uint(syscall.SIGHUP)-1)
	fd, _, e := syscall.RawSyscall6(syscall.SYS_SIGNALFD4, ^uintptr(0), uintptr(unsafe.Pointer(&l.mask.watch)), 8, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0, 0)
	if e != 0 {
		exit(uintptr(e))
	}
	l.signal = fd
	l.poll[0].fd, l.poll[0].events = sockFD, pollIn
	l.poll[1].fd, l.poll[1].events = int32(fd), pollIn
	l.peak = open(atFDCWD, address("/proc/self/clear_refs\x00"), syscall.O_WRONLY)
	l.proc = open(atFDCWD, address("/proc\x00"), syscall.O_DIRECTORY)

	// A start that fails touches the pages that any start does, so that the
	// first floor reported is already the lasting one.
	h := (*request)(unsafe.Pointer(&sent))
	h.path = uint64(unsafe.Sizeof(request{}))
	h.argv, h.envp = h.path+8, h.path+8
	_, _ = start(h)
	l.reply.kind = sayHello
	l.reply.pid = int32(l.pid)
	say()
}

// address is that of a string constant, which must bring its own zero byte.
//
//go:nosplit
//go:norace
func address(s string) uintptr {
	return uintptr(unsafe.Pointer(unsafe.StringData(s)))
}

//go:nosplit
//go:norace
func orphaned() bool {
	ppid, _, _ := syscall.RawSyscall6(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0)
	return ppid != l.parent
}

//go:nosplit
//go:norace
func exit(code uintptr) {
	for {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_EXIT_GROUP, code, 0, 0, 0, 0, 0)
	}
}

// open returns an impossible descriptor on failure.
//
//go:nosplit
//go:norace
func open(dir, name, flags uintptr) uintptr {
	fd, _, e := syscall.RawSyscall6(syscall.SYS_OPENAT, dir, name, flags|syscall.O_CLOEXEC, 0, 0, 0)
	if e != 0 {
		return ^uintptr(0)
	}
	return fd
}

//go:nosplit
//go:norace
func kill(pid uintptr) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_KILL, pid, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
}

//go:nosplit
//go:norace
func now() int64 {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&l.clock)), 0, 0, 0, 0)
	return l.clock.Sec*second + l.clock.Nsec
}

// say sends the reply and clears it. The floor is the kernel's own record of
// this process, which was forked by a small program rather than executed by a
// large one, so it is the very figure that an exec passes on.
//
//go:nosplit
//go:norace
func say() {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_GETRUSAGE, rusageSelf, uintptr(unsafe.Pointer(&l.floor)), 0, 0, 0, 0)
	l.reply.floor = l.floor.Maxrss << 10
	_, _, _ = syscall.RawSyscall6(syscall.SYS_SENDTO, sockFD, uintptr(unsafe.Pointer(&l.reply)), unsafe.Sizeof(l.reply), msgNoSignal, 0, 0)
	l.reply = reply{}
}

//go:nosplit
//go:norace
func killedRunning() bool {
	if l.running == 0 {
		return false
	}
	for i := range l.slots {
		if l.slots[i].state == running && l.slots[i].killed {
			return true
		}
	}
	return false
}

// signals empties the signalfd. It must come before reap: a child that dies
// between the two raises the signal anew.
//
//go:nosplit
//go:norace
func signals() {
	for {
		_, _, e := syscall.RawSyscall6(syscall.SYS_READ, l.signal, uintptr(unsafe.Pointer(&l.text)), signalfdInfo, 0, 0, 0)
		if e != 0 {
			return
		}
		if l.text[0] == byte(syscall.SIGCHLD) {
			return
		}
		if orphaned() {
			shutdown()
		}
	}
}

// reap collects every dead child.
//
//go:nosplit
//go:norace
func reap() {
	for {
		const pidWord = 4
		l.info[pidWord] = 0
		_, _, e := syscall.RawSyscall6(syscall.SYS_WAITID, pAll, 0, uintptr(unsafe.Pointer(&l.info)), wExited|wNoHang|wNoWait, 0, 0)
		if e != 0 {
			l.children = false
			return
		}
		pid := uintptr(l.info[pidWord])
		if pid == 0 {
			l.children = true
			return
		}
		i := mainOf(pid)
		if i >= 0 {
			l.slots[i].end = now()
			page.pids[i] = 0
			if !l.slots[i].keep {
				kill(-pid)
			}
		} else {
			i = ownerOf(pid)
		}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_WAIT4, pid, uintptr(unsafe.Pointer(&l.status)), 0, uintptr(unsafe.Pointer(&l.usage)), 0, 0)
		if i < 0 {
			continue
		}
		s := &l.slots[i]
		add(&s.use)
		if s.state != running || s.pid != pid {
			continue
		}
		s.status = uint32(l.status)
		l.running--
		if s.keep {
			finish(i, 0)
			continue
		}
		s.state = settling
		s.limit = s.end + patience
		l.settling++
		l.search = s.end + grace
	}
}

//go:nosplit
//go:norace
func mainOf(pid uintptr) int {
	for i := range l.slots {
		if l.slots[i].state == running && l.slots[i].pid == pid {
			return i
		}
	}
	return -1
}

// ownerOf says whose usage that of a dead stray is added to. It must not be
// reaped yet, so that it still has a group.
//
//go:nosplit
//go:norace
func ownerOf(pid uintptr) int {
	group, _, _ := syscall.RawSyscall6(syscall.SYS_GETPGID, pid, 0, 0, 0, 0, 0)
	first := -1
	for i := range l.slots {
		s := &l.slots[i]
		if s.state == idle {
			continue
		}
		if s.pid == group {
			return i
		}
		if !s.keep && (first < 0 || s.start < l.slots[first].start) {
			first = i
		}
	}
	return first
}

//go:nosplit
//go:norace
func add(u *usage) {
	r := &l.usage
	u.user += r.Utime.Sec*second + r.Utime.Usec*1000
	u.system += r.Stime.Sec*second + r.Stime.Usec*1000
	if peak := r.Maxrss << 10; u.peak < peak {
		u.peak = peak
	}
	u.minor += r.Minflt
	u.major += r.Majflt
	u.in += r.Inblock
	u.out += r.Oublock
	u.vol += r.Nvcsw
	u.invol += r.Nivcsw
}

// settle ends what is left of commands whose main process has ended.
//
//go:nosplit
//go:norace
func settle() {
	if l.settling == 0 && !killedRunning() {
		return
	}
	if l.settling > 0 && !l.children {
		for i := range l.slots {
			if l.slots[i].state == settling {
				l.settling--
				finish(i, 0)
			}
		}
		return
	}
	t := now()
	if l.settling > 0 && l.running == 0 && t >= l.search {
		killChildren()
		l.search = t + again
	}
	for i := range l.slots {
		s := &l.slots[i]
		switch {
		case s.state == settling && l.running > 0 && (groupGone(s.pid) || t >= s.end+overlap):
			l.settling--
			finish(i, 0)
		case s.state == settling && t >= s.limit:
			l.settling--
			finish(i, 1)
		case s.state == running && s.killed && t >= s.limit:
			s.end = t
			page.pids[i] = 0
			l.running--
			finish(i, 1)
		}
	}
}

// groupGone may be wrong only if the number has been taken again, and then only
// costs time: nothing is killed on its account.
//
//go:nosplit
//go:norace
func groupGone(pid uintptr) bool {
	_, _, e := syscall.RawSyscall6(syscall.SYS_KILL, -pid, 0, 0, 0, 0, 0)
	return e == syscall.ESRCH
}

//go:nosplit
//go:norace
func finish(i int, stuck uint32) {
	s := &l.slots[i]
	r := &l.reply
	r.kind = sayDone
	r.slot, r.seq = uint32(i), s.seq
	r.start, r.end = s.start, s.end
	r.use = s.use
	r.pid, r.status = int32(s.pid), s.status
	if s.killed {
		r.killed = 1
	}
	r.stuck = stuck
	*s = slot{}
	say()
}

// handle reads one request and acts on it.
//
//go:nosplit
//go:norace
func handle() {
	l.given = 0
	got, e := receive(0, msgDontWait)
	if e == syscall.EAGAIN || e == syscall.EINTR {
		return
	}
	if e != 0 || got == 0 {
		shutdown()
	}
	h := (*request)(unsafe.Pointer(&sent))
	for got < h.size {
		n, e := receive(got, 0)
		if e != 0 || n == 0 {
			shutdown()
		}
		got += n
	}
	switch h.kind {
	case askKill:
		end(h)
	case askRun:
		run(h)
	}
	if got > packet {
		shrink()
	}
}

// receive appends a packet to the request.
//
//go:nosplit
//go:norace
func receive(offset uint64, flags uintptr) (uint64, syscall.Errno) {
	l.iov[0] = uintptr(unsafe.Pointer(&sent)) + uintptr(offset)
	l.iov[1] = packet
	l.head.iov, l.head.iovlen = uintptr(unsafe.Pointer(&l.iov)), 1
	l.head.control, l.head.size = uintptr(unsafe.Pointer(&l.cmsg)), uint64(unsafe.Sizeof(l.cmsg))
	n, _, e := syscall.RawSyscall6(syscall.SYS_RECVMSG, sockFD, uintptr(unsafe.Pointer(&l.head)), flags|msgCmsgCloexec, 0, 0, 0)
	if e != 0 {
		return 0, e
	}
	const header = 16
	if l.head.size > header {
		l.given = int(l.cmsg[0]-header) / 4
		list := (*[maxFDs]int32)(unsafe.Pointer(&l.cmsg[2]))
		for i := 0; i < l.given; i++ {
			l.fds[i] = list[i]
		}
	}
	return uint64(n), 0
}

// shrink undoes what a large request did to this process, and to the peak that
// commands inherit from it.
//
//go:nosplit
//go:norace
func shrink() {
	const mask = largestPage - 1
	low := (uintptr(unsafe.Pointer(&sent)) + packet + mask) &^ mask
	high := (uintptr(unsafe.Pointer(&sent)) + maxRequest) &^ mask
	_, _, _ = syscall.RawSyscall6(syscall.SYS_MADVISE, low, high-low, madvDontNeed, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_WRITE, l.peak, address("5"), 1, 0, 0, 0)
}

//go:nosplit
//go:norace
func end(h *request) {
	s := &l.slots[h.slot]
	if s.state != running || s.seq != h.seq {
		return
	}
	s.killed = true
	s.limit = now() + patience
	kill(-s.pid)
	// It may have joined another group.
	kill(s.pid)
}

//go:nosplit
//go:norace
func run(h *request) {
	i := int(h.slot)
	s := &l.slots[i]
	s.start = now()
	pid, e := start(h)
	for i := 0; i < l.given; i++ {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_CLOSE, uintptr(l.fds[i]), 0, 0, 0, 0, 0)
	}
	if e != 0 {
		l.reply.kind = sayFailed
		l.reply.slot, l.reply.seq = h.slot, h.seq
		l.reply.stage, l.reply.errno = page.stage, int32(e)
		say()
		return
	}
	s.seq = h.seq
	s.keep = h.keep != 0
	s.pid = pid
	s.state = running
	l.running++
	page.pids[i] = int32(pid)
}

// start forks. The child shares this stack frame, so all that it does is in
// another function, below it.
//
//go:nosplit
//go:norace
func start(h *request) (uintptr, syscall.Errno) {
	base := uint64(uintptr(unsafe.Pointer(&sent)))
	table := h.argv / 8
	for i := table; i < table+h.words; i++ {
		if sent[i] != 0 {
			sent[i] += base
		}
	}
	page.stage, page.errno = 0, 0
	pid, errno := vfork(forkFlags)
	if pid == 0 && errno == 0 {
		child(h)
	}
	if page.thp != 0 {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetTHPDisable, 1, 0, 0, 0, 0)
	}
	if errno != 0 {
		page.stage = stageFork
		return 0, syscall.Errno(errno)
	}
	if page.errno != 0 {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_WAIT4, pid, 0, 0, 0, 0, 0)
		return 0, syscall.Errno(page.errno)
	}
	return pid, 0
}

// child runs in the forked process, on the launcher's stack and memory while
// the launcher is suspended.
//
//go:nosplit
//go:norace
//go:noinline
func child(h *request) {
	base := uintptr(unsafe.Pointer(&sent))
	if _, _, e := syscall.RawSyscall6(syscall.SYS_SETPGID, 0, 0, 0, 0, 0, 0); e != 0 {
		fail(stageGroup, e)
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetPDeathSig, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	if ppid, _, _ := syscall.RawSyscall6(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0); ppid != l.pid {
		exit(1)
	}
	if page.thp != 0 {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetTHPDisable, 0, 0, 0, 0, 0)
	}
	arrange(h)
	if h.dir != 0 {
		if _, _, e := syscall.RawSyscall6(syscall.SYS_CHDIR, base+uintptr(h.dir), 0, 0, 0, 0, 0); e != 0 {
			fail(stageDir, e)
		}
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetMask, uintptr(unsafe.Pointer(&l.mask.initial)), 0, 8, 0, 0)
	_, _, e := syscall.RawSyscall6(syscall.SYS_EXECVE, base+uintptr(h.path), base+uintptr(h.argv), base+uintptr(h.envp), 0, 0, 0)
	fail(stageExec, e)
}

// arrange puts the passed descriptors in place. Whatever else is open in the
// launcher closes on exec, except that 0, 1 and 2 are the null device.
//
//go:nosplit
//go:norace
func arrange(h *request) {
	count := 0
	top := 0
	for i := 0; i < maxFDs; i++ {
		if h.given>>uint(i)&1 != 0 {
			count++
			top = i + 1
		}
	}
	if count != l.given {
		// The kernel passes on as many as the limit allows.
		fail(stageFiles, syscall.EMFILE)
	}
	for i := 0; i < count; i++ {
		l.moved[i] = l.fds[i]
		if int(l.fds[i]) >= top {
			continue
		}
		fd, _, e := syscall.RawSyscall6(syscall.SYS_FCNTL, uintptr(l.fds[i]), fDupFDCloexec, uintptr(top), 0, 0, 0)
		if e != 0 {
			fail(stageFiles, e)
		}
		l.moved[i] = int32(fd)
	}
	for i, next := 0, 0; i < top; i++ {
		if h.given>>uint(i)&1 == 0 {
			continue
		}
		if _, _, e := syscall.RawSyscall6(syscall.SYS_DUP3, uintptr(l.moved[next]), uintptr(i), 0, 0, 0, 0); e != 0 {
			fail(stageFiles, e)
		}
		next++
	}
}

//go:nosplit
//go:norace
func fail(stage int32, e syscall.Errno) {
	page.stage, page.errno = stage, int32(e)
	exit(127)
}

// killChildren kills every process whose parent is the launcher. As it is
// their parent, none of the numbers can be reused before it reaps them.
//
//go:nosplit
//go:norace
func killChildren() {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_LSEEK, l.proc, 0, 0, 0, 0, 0)
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_GETDENTS64, l.proc, uintptr(unsafe.Pointer(&l.entries)), unsafe.Sizeof(l.entries), 0, 0, 0)
		if e != 0 || n == 0 {
			return
		}
		const sizeAt, nameAt = 16, 19
		for at := uintptr(0); at < n; {
			if pid := number(at + nameAt); pid != 0 && parentOf(at+nameAt) == l.pid {
				kill(pid)
			}
			at += uintptr(l.entries[at+sizeAt]) | uintptr(l.entries[at+sizeAt+1])<<8
		}
	}
}

// number is what the name in l.entries stands for, or 0.
//
//go:nosplit
//go:norace
func number(at uintptr) uintptr {
	n := uintptr(0)
	for ; l.entries[at] != 0; at++ {
		if l.entries[at] < '0' || l.entries[at] > '9' {
			return 0
		}
		n = n*10 + uintptr(l.entries[at]-'0')
	}
	return n
}

// parentOf reads the parent of the process whose number is in l.entries.
//
//go:nosplit
//go:norace
func parentOf(at uintptr) uintptr {
	n := 0
	for ; l.entries[at] != 0; at++ {
		l.text[n] = l.entries[at]
		n++
	}
	for i := 0; i < len("/stat\x00"); i++ {
		l.text[n] = "/stat\x00"[i]
		n++
	}
	fd := open(l.proc, uintptr(unsafe.Pointer(&l.text)), 0)
	got, _, e := syscall.RawSyscall6(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&l.text)), unsafe.Sizeof(l.text), 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	if e != 0 {
		return 0
	}
	// The second field is a name that may itself contain parentheses.
	i := int(got) - 1
	for i > 0 && l.text[i] != ')' {
		i--
	}
	parent := uintptr(0)
	for i += len(") S "); i < int(got) && l.text[i] >= '0' && l.text[i] <= '9'; i++ {
		parent = parent*10 + uintptr(l.text[i]-'0')
	}
	return parent
}

// shutdown ends everything below the launcher and then the launcher.
//
//go:nosplit
//go:norace
func shutdown() {
	for i := range l.slots {
		if l.slots[i].state == running {
			kill(-l.slots[i].pid)
			kill(l.slots[i].pid)
		}
	}
	limit := now() + farewell
	l.search = now() + grace
	for {
		for {
			pid, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), 0, wNoHang, 0, 0, 0)
			if e != 0 {
				exit(0)
			}
			if pid == 0 {
				break
			}
		}
		t := now()
		if t >= limit {
			exit(1)
		}
		if t >= l.search {
			killChildren()
			l.search = t + again
		}
		l.timeout.Sec, l.timeout.Nsec = 0, millisecond
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&l.poll[1])), 1, uintptr(unsafe.Pointer(&l.timeout)), 0, 0, 0)
		_, _, _ = syscall.RawSyscall6(syscall.SYS_READ, l.signal, uintptr(unsafe.Pointer(&l.text)), signalfdInfo, 0, 0, 0)
	}
}
