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

// me is all that the launcher knows. Without Go pointers in it or in sent, the
// program's garbage collector has nothing to look at, and as neither is touched
// in the program, they cost it nothing.
var me struct {
	parent uintptr
	pid    uintptr
	signal uintptr // signalfd
	peak   uintptr // /proc/self/clear_refs
	proc   uintptr // /proc

	pagesize uintptr

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
	moved [maxFDs]int32 // what the child makes of fds, which it shares
	given int

	stage, errno int32 // left by a child that failed

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
func serve() {
	prepare()
	dropHeap()
	hello()
	for {
		timeout := uintptr(0)
		if me.settling > 0 {
			me.timeout.Sec, me.timeout.Nsec = 0, millisecond
			timeout = uintptr(unsafe.Pointer(&me.timeout))
		} else if killedRunning() {
			me.timeout.Sec, me.timeout.Nsec = 1, 0
			timeout = uintptr(unsafe.Pointer(&me.timeout))
		}
		me.poll[0].revents, me.poll[1].revents = 0, 0
		sys(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&me.poll)), 2, timeout, 0)
		if me.poll[1].revents != 0 {
			signals()
			reap()
		}
		if me.poll[0].revents != 0 {
			h := (*request)(unsafe.Pointer(&sent))
			size := receive()
			switch {
			case size > 0 && h.kind == askRun:
				run(h)
			case size > 0 && h.kind == askKill:
				end(h)
			}
			if size > packet {
				shrink()
			}
		}
		settle()
	}
}

//go:nosplit
//go:norace
func prepare() {
	me.pid = uintptr(sys(syscall.SYS_GETPID, 0, 0, 0, 0))
	sys(syscall.SYS_SETSID, 0, 0, 0, 0)
	sys(syscall.SYS_PRCTL, prSetChildSubreap, 1, 0, 0)
	sys(syscall.SYS_PRCTL, prSetPDeathSig, uintptr(syscall.SIGHUP), 0, 0)
	if orphaned() {
		exit(1)
	}
	// The name limits what ps shows, and what a kill by name would hit.
	sys(syscall.SYS_PRCTL, prSetName, address(argv0+"\x00"), 0, 0)

	// Between fork and exec a child would otherwise run the Go runtime's
	// handlers on the launcher's memory. What is ignored stays ignored, as for
	// any child of the program, except where the launcher depends on it.
	for sig := uintptr(1); sig <= 64; sig++ {
		failed := sys(syscall.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&me.action)), 8) < 0
		if failed || me.action[0] <= 1 && sig != uintptr(syscall.SIGCHLD) {
			continue
		}
		for i := range me.action {
			me.action[i] = 0
		}
		sys(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&me.action)), 0, 8)
	}

	me.mask.watch = 1<<(uint(syscall.SIGCHLD)-1) | 1<<(uint(syscall.SIGHUP)-1)
	fd := sys(syscall.SYS_SIGNALFD4, ^uintptr(0), uintptr(unsafe.Pointer(&me.mask.watch)), 8, syscall.O_CLOEXEC|syscall.O_NONBLOCK)
	if fd < 0 {
		exit(1)
	}
	me.signal = uintptr(fd)
	me.poll[0].fd, me.poll[0].events = sockFD, pollIn
	me.poll[1].fd, me.poll[1].events = int32(fd), pollIn
	me.peak = open(atFDCWD, address("/proc/self/clear_refs\x00"), syscall.O_WRONLY)
	me.proc = open(atFDCWD, address("/proc\x00"), syscall.O_DIRECTORY)
}

// hello comes after a start that fails: it touches the pages that any start
// does, so that the first floor reported is already the lasting one.
//
//go:nosplit
//go:norace
func hello() {
	h := (*request)(unsafe.Pointer(&sent))
	h.path = uint64(unsafe.Sizeof(request{}))
	h.argv, h.envp = h.path+8, h.path+8
	start(h)
	me.reply.kind = sayHello
	say()
}

// dropHeap gives back the part of the Go heap around this stack, a third of what
// the fork brought along. Only the stack is still needed: what follows never
// uses the rest, see invariant 2. The runtime reserves the heap in units that
// are larger than the stretch used here and aligned, so nothing else is in it.
//
//go:nosplit
//go:norace
func dropHeap() {
	const stretch = 4 << 20
	var here byte
	at := uintptr(unsafe.Pointer(&here)) &^ (me.pagesize - 1)
	low := at &^ (stretch - 1)
	// A nosplit call chain is shorter than a page.
	if keep := at - me.pagesize; keep > low {
		sys(syscall.SYS_MADVISE, low, keep-low, madvDontNeed, 0)
	}
	if keep := at + 2*me.pagesize; keep < low+stretch {
		sys(syscall.SYS_MADVISE, keep, low+stretch-keep, madvDontNeed, 0)
	}
	forgetPeak()
}

// forgetPeak makes the present size of this process its peak.
//
//go:nosplit
//go:norace
func forgetPeak() {
	sys(syscall.SYS_WRITE, me.peak, address("5"), 1, 0)
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
	return sys(syscall.SYS_GETPPID, 0, 0, 0, 0) != int(me.parent)
}

//go:nosplit
//go:norace
func exit(code uintptr) {
	for {
		sys(syscall.SYS_EXIT_GROUP, code, 0, 0, 0)
	}
}

// open returns a number that is no descriptor if it fails.
//
//go:nosplit
//go:norace
func open(dir, name, flags uintptr) uintptr {
	return uintptr(sys(syscall.SYS_OPENAT, dir, name, flags|syscall.O_CLOEXEC, 0))
}

//go:nosplit
//go:norace
func kill(pid uintptr) {
	sys(syscall.SYS_KILL, pid, uintptr(syscall.SIGKILL), 0, 0)
}

//go:nosplit
//go:norace
func now() int64 {
	sys(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&me.clock)), 0, 0)
	return me.clock.Sec*second + me.clock.Nsec
}

// say sends the reply and clears it. The floor is the kernel's own record of
// this process, which was forked by a small program rather than executed by a
// large one, so it is the very figure that an exec passes on.
//
//go:nosplit
//go:norace
func say() {
	sys(syscall.SYS_GETRUSAGE, rusageSelf, uintptr(unsafe.Pointer(&me.floor)), 0, 0)
	me.reply.floor = me.floor.Maxrss << 10
	sys(syscall.SYS_SENDTO, sockFD, uintptr(unsafe.Pointer(&me.reply)), unsafe.Sizeof(me.reply), msgNoSignal)
	me.reply = reply{}
}

//go:nosplit
//go:norace
func killedRunning() bool {
	if me.running == 0 {
		return false
	}
	for i := range me.slots {
		if me.slots[i].state == running && me.slots[i].killed {
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
		if sys(syscall.SYS_READ, me.signal, uintptr(unsafe.Pointer(&me.text)), signalfdInfo, 0) < 0 {
			return
		}
		if me.text[0] == byte(syscall.SIGCHLD) {
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
		me.info[pidWord] = 0
		if sys(syscall.SYS_WAITID, pAll, 0, uintptr(unsafe.Pointer(&me.info)), wExited|wNoHang|wNoWait) < 0 {
			me.children = false
			return
		}
		pid := uintptr(me.info[pidWord])
		if pid == 0 {
			me.children = true
			return
		}
		i := mainOf(pid)
		if i >= 0 {
			me.slots[i].end = now()
			page.pids[i] = 0
			if !me.slots[i].keep {
				kill(-pid)
			}
		} else {
			i = ownerOf(pid)
		}
		sys(syscall.SYS_WAIT4, pid, uintptr(unsafe.Pointer(&me.status)), 0, uintptr(unsafe.Pointer(&me.usage)))
		if i < 0 {
			continue
		}
		s := &me.slots[i]
		add(&s.use)
		if s.state != running || s.pid != pid {
			continue
		}
		s.status = uint32(me.status)
		me.running--
		if s.keep {
			finish(i, 0)
			continue
		}
		s.state = settling
		s.limit = s.end + patience
		me.settling++
		me.search = s.end + grace
	}
}

//go:nosplit
//go:norace
func mainOf(pid uintptr) int {
	for i := range me.slots {
		if me.slots[i].state == running && me.slots[i].pid == pid {
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
	group := uintptr(sys(syscall.SYS_GETPGID, pid, 0, 0, 0))
	first := -1
	for i := range me.slots {
		s := &me.slots[i]
		if s.state == idle {
			continue
		}
		if s.pid == group {
			return i
		}
		if !s.keep && (first < 0 || s.start < me.slots[first].start) {
			first = i
		}
	}
	return first
}

//go:nosplit
//go:norace
func add(u *usage) {
	r := &me.usage
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
	if me.settling == 0 && !killedRunning() {
		return
	}
	if me.settling > 0 && !me.children {
		for i := range me.slots {
			if me.slots[i].state == settling {
				me.settling--
				finish(i, 0)
			}
		}
		return
	}
	t := now()
	if me.settling > 0 && me.running == 0 && t >= me.search {
		killChildren()
		me.search = t + again
	}
	for i := range me.slots {
		s := &me.slots[i]
		switch {
		case s.state == settling && me.running > 0 && (groupGone(s.pid) || t >= s.end+overlap):
			me.settling--
			finish(i, 0)
		case s.state == settling && t >= s.limit:
			me.settling--
			finish(i, 1)
		case s.state == running && s.killed && t >= s.limit:
			s.end = t
			page.pids[i] = 0
			me.running--
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
	return sys(syscall.SYS_KILL, -pid, 0, 0, 0) == -int(syscall.ESRCH)
}

//go:nosplit
//go:norace
func finish(i int, stuck uint32) {
	s := &me.slots[i]
	r := &me.reply
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

// receive reads a request and returns its size, or 0 if there is none after all.
//
//go:nosplit
//go:norace
func receive() int {
	me.given = 0
	got := another(0, msgDontWait)
	if got == -int(syscall.EAGAIN) || got == -int(syscall.EINTR) {
		return 0
	}
	h := (*request)(unsafe.Pointer(&sent))
	for got > 0 && got < int(h.size) {
		n := another(got, 0)
		if n <= 0 {
			got = n
			break
		}
		got += n
	}
	if got <= 0 {
		shutdown()
	}
	return got
}

// another appends a packet to the request.
//
//go:nosplit
//go:norace
func another(offset int, flags uintptr) int {
	me.iov[0] = uintptr(unsafe.Pointer(&sent)) + uintptr(offset)
	me.iov[1] = packet
	me.head.iov, me.head.iovlen = uintptr(unsafe.Pointer(&me.iov)), 1
	me.head.control, me.head.size = uintptr(unsafe.Pointer(&me.cmsg)), uint64(unsafe.Sizeof(me.cmsg))
	n := sys(syscall.SYS_RECVMSG, sockFD, uintptr(unsafe.Pointer(&me.head)), flags|msgCmsgCloexec, 0)
	const header = 16
	if n > 0 && me.head.size > header {
		me.given = int(me.cmsg[0]-header) / 4
		list := (*[maxFDs]int32)(unsafe.Pointer(&me.cmsg[2]))
		for i := 0; i < me.given; i++ {
			me.fds[i] = list[i]
		}
	}
	return n
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
	sys(syscall.SYS_MADVISE, low, high-low, madvDontNeed, 0)
	forgetPeak()
}

//go:nosplit
//go:norace
func end(h *request) {
	s := &me.slots[h.slot]
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
	s := &me.slots[i]
	s.start = now()
	pid := start(h)
	for i := 0; i < me.given; i++ {
		sys(syscall.SYS_CLOSE, uintptr(me.fds[i]), 0, 0, 0)
	}
	if pid < 0 {
		me.reply.kind = sayFailed
		me.reply.slot, me.reply.seq = h.slot, h.seq
		me.reply.stage, me.reply.errno = me.stage, int32(-pid)
		say()
		return
	}
	s.seq = h.seq
	s.keep = h.keep != 0
	s.pid = uintptr(pid)
	s.state = running
	me.running++
	page.pids[i] = int32(pid)
}

// start forks. The child shares this stack frame, so all that it does is in
// another function, below it.
//
//go:nosplit
//go:norace
func start(h *request) int {
	base := uint64(uintptr(unsafe.Pointer(&sent)))
	for i := h.argv / 8; i < h.argv/8+h.words; i++ {
		if sent[i] != 0 {
			sent[i] += base
		}
	}
	me.stage, me.errno = 0, 0
	pid := vfork()
	if pid == 0 {
		child(h)
	}
	if page.thp != 0 {
		sys(syscall.SYS_PRCTL, prSetTHPDisable, 1, 0, 0)
	}
	if pid < 0 {
		me.stage = stageFork
		return pid
	}
	if me.errno != 0 {
		sys(syscall.SYS_WAIT4, uintptr(pid), 0, 0, 0)
		return -int(me.errno)
	}
	return pid
}

// child runs in the forked process, on the launcher's stack and memory while
// the launcher is suspended.
//
//go:nosplit
//go:norace
//go:noinline
func child(h *request) {
	base := uintptr(unsafe.Pointer(&sent))
	must(stageGroup, sys(syscall.SYS_SETPGID, 0, 0, 0, 0))
	sys(syscall.SYS_PRCTL, prSetPDeathSig, uintptr(syscall.SIGKILL), 0, 0)
	if sys(syscall.SYS_GETPPID, 0, 0, 0, 0) != int(me.pid) {
		exit(1)
	}
	if page.thp != 0 {
		sys(syscall.SYS_PRCTL, prSetTHPDisable, 0, 0, 0)
	}
	arrange(h)
	if h.dir != 0 {
		must(stageDir, sys(syscall.SYS_CHDIR, base+uintptr(h.dir), 0, 0, 0))
	}
	sys(syscall.SYS_RT_SIGPROCMASK, sigSetMask, uintptr(unsafe.Pointer(&me.mask.initial)), 0, 8)
	must(stageExec, sys(syscall.SYS_EXECVE, base+uintptr(h.path), base+uintptr(h.argv), base+uintptr(h.envp), 0))
}

// must ends the forked process if a step has failed, and leaves the reason to the
// launcher in the memory that they share.
//
//go:nosplit
//go:norace
func must(stage int32, result int) int {
	if result < 0 {
		me.stage, me.errno = stage, int32(-result)
		exit(127)
	}
	return result
}

// arrange puts the passed descriptors in place. Whatever else is open in the
// launcher closes on exec, except that 0, 1 and 2 are the null device.
//
//go:nosplit
//go:norace
func arrange(h *request) {
	count, top := 0, 0
	for i := 0; i < maxFDs; i++ {
		if h.given>>uint(i)&1 != 0 {
			count++
			top = i + 1
		}
	}
	if count != me.given {
		// The kernel passes on as many as the limit allows.
		must(stageFiles, -int(syscall.EMFILE))
	}
	for i := 0; i < count; i++ {
		me.moved[i] = me.fds[i]
		if int(me.fds[i]) < top {
			me.moved[i] = int32(must(stageFiles, sys(syscall.SYS_FCNTL, uintptr(me.fds[i]), fDupFDCloexec, uintptr(top), 0)))
		}
	}
	for i, next := 0, 0; i < top; i++ {
		if h.given>>uint(i)&1 != 0 {
			must(stageFiles, sys(syscall.SYS_DUP3, uintptr(me.moved[next]), uintptr(i), 0, 0))
			next++
		}
	}
}

// killChildren kills every process whose parent is the launcher. As it is
// their parent, none of the numbers can be reused before it reaps them.
//
//go:nosplit
//go:norace
func killChildren() {
	sys(syscall.SYS_LSEEK, me.proc, 0, 0, 0)
	for {
		n := sys(syscall.SYS_GETDENTS64, me.proc, uintptr(unsafe.Pointer(&me.entries)), unsafe.Sizeof(me.entries), 0)
		if n <= 0 {
			return
		}
		const sizeAt, nameAt = 16, 19
		for at := 0; at < n; {
			if pid := number(at + nameAt); pid != 0 && parentOf(at+nameAt) == me.pid {
				kill(pid)
			}
			at += int(me.entries[at+sizeAt]) | int(me.entries[at+sizeAt+1])<<8
		}
	}
}

// number is what the name in me.entries stands for, or 0.
//
//go:nosplit
//go:norace
func number(at int) uintptr {
	n := uintptr(0)
	for ; me.entries[at] != 0; at++ {
		if me.entries[at] < '0' || me.entries[at] > '9' {
			return 0
		}
		n = n*10 + uintptr(me.entries[at]-'0')
	}
	return n
}

// parentOf reads the parent of the process whose number is in me.entries.
//
//go:nosplit
//go:norace
func parentOf(at int) uintptr {
	n := 0
	for ; me.entries[at] != 0; at++ {
		me.text[n] = me.entries[at]
		n++
	}
	for i := 0; i < len("/stat\x00"); i++ {
		me.text[n] = "/stat\x00"[i]
		n++
	}
	fd := open(me.proc, uintptr(unsafe.Pointer(&me.text)), 0)
	got := sys(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&me.text)), unsafe.Sizeof(me.text), 0)
	sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
	// The second field is a name that may itself contain parentheses.
	i := got - 1
	for i > 0 && me.text[i] != ')' {
		i--
	}
	parent := uintptr(0)
	for i += len(") S "); i < got && me.text[i] >= '0' && me.text[i] <= '9'; i++ {
		parent = parent*10 + uintptr(me.text[i]-'0')
	}
	return parent
}

// shutdown ends everything below the launcher and then the launcher.
//
//go:nosplit
//go:norace
func shutdown() {
	for i := range me.slots {
		if me.slots[i].state == running {
			kill(-me.slots[i].pid)
			kill(me.slots[i].pid)
		}
	}
	limit := now() + farewell
	me.search = now() + grace
	for {
		for {
			pid := sys(syscall.SYS_WAIT4, ^uintptr(0), 0, wNoHang, 0)
			if pid < 0 {
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
		if t >= me.search {
			killChildren()
			me.search = t + again
		}
		me.timeout.Sec, me.timeout.Nsec = 0, millisecond
		sys(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&me.poll[1])), 1, uintptr(unsafe.Pointer(&me.timeout)), 0)
		sys(syscall.SYS_READ, me.signal, uintptr(unsafe.Pointer(&me.text)), signalfdInfo, 0)
	}
}
