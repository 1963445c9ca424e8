//go:build linux && (amd64 || arm64)

package spawn

// sys makes a system call with further arguments zero. A negative result is an
// error number. That of package syscall needs so much stack in builds without
// optimisation that the linker refuses the launcher.
func sys(trap, a1, a2, a3, a4 uintptr) int

// vfork forks a child that shares memory and stack with this process, which is
// suspended until the child has executed a program or ended.
func vfork() int
