//go:build linux && (amd64 || arm64)

package spawn

import "syscall"

// sharing the address space makes the fork independent of its size.
const forkFlags = syscall.CLONE_VM | syscall.CLONE_VFORK | uintptr(syscall.SIGCHLD)

func vfork(flags uintptr) (pid, errno uintptr)
