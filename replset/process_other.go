//go:build unix && !linux

package replset

import (
	"os"
	"syscall"
)

// See process_linux.go for what these are there.

func ownProcess() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func stopProcess(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func killProcess(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
