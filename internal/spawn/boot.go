//go:build linux

package spawn

import (
	"os"
	"syscall"
	"unsafe"
)

// init turns the process into the launcher if that is what it was executed
// for. This has to be an init function, the one exception to the rule that the
// program has none: main would come after every package of the program has
// built its tables, whose memory the launcher would then inherit, and in test
// binaries main is not ours at all.
func init() {
	if len(os.Args) != 1 || os.Args[0] != argv0 {
		return
	}
	if v, ok := syscall.Getenv(envMark); !ok || v != envValue {
		return
	}
	kind, err := syscall.GetsockoptInt(sockFD, syscall.SOL_SOCKET, syscall.SO_TYPE)
	if err != nil || kind != syscall.SOCK_SEQPACKET {
		return
	}
	boot()
}

// boot leaves the launcher behind as a sibling and ends this process. The exit
// status is the errno of what failed.
func boot() {
	// Package syscall raised the soft descriptor limit when the process
	// started and keeps the original to itself. Exec puts it back before
	// trying, so an attempt that is bound to fail restores it for the commands.
	_ = syscall.Exec("", []string{""}, nil)

	mem, err := syscall.Mmap(sharedFD, 0, int(unsafe.Sizeof(shared{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		leave(err)
	}
	page = (*shared)(unsafe.Pointer(&mem[0]))
	_ = syscall.Close(sharedFD)
	syscall.CloseOnExec(sockFD)
	me.parent = uintptr(syscall.Getppid())
	me.pagesize = uintptr(os.Getpagesize())

	// From here on no signal may run a handler of the Go runtime.
	me.mask.all = ^uint64(0)
	if _, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetMask, uintptr(unsafe.Pointer(&me.mask.all)), uintptr(unsafe.Pointer(&me.mask.initial)), 8, 0, 0); e != 0 {
		leave(e)
	}
	pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD)|syscall.CLONE_PARENT, 0, 0, 0, 0, 0)
	if e != 0 {
		leave(e)
	}
	if pid == 0 {
		serve()
	}
	page.pid = int32(pid)
	leave(nil)
}

func leave(err error) {
	code := 0
	if e, ok := err.(syscall.Errno); ok {
		code = int(e)
	}
	for {
		// Unlike os.Exit this runs nothing that the program registered.
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0)
	}
}
