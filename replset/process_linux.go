package replset

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownProcess is a process that a terminal's ^C does not reach, since the set ends
// its members in order, and that the kernel kills if the set's process dies, even
// while it is stopped.
func ownProcess() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// stopProcess returns when every thread of the process stands still, or it is dead.
func stopProcess(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.ECHILD {
			return nil
		}
		if err != unix.EINTR {
			return err
		}
	}
}

// killProcess ends the process and whatever it has started, which might hold its pipes
// open. It may be dead already.
func killProcess(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
