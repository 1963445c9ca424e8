//go:build linux && (riscv64 || loong64)

package spawn

import "syscall"

// Without CLONE_VM the child has a stack of its own, so no assembly is needed
// and the launcher is small enough for the copy not to hurt.
const forkFlags = syscall.CLONE_VFORK | uintptr(syscall.SIGCHLD)

//go:nosplit
//go:norace
func vfork(flags uintptr) (pid, errno uintptr) {
	r, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	return r, uintptr(e)
}
