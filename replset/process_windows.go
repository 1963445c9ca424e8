package replset

import (
	"errors"
	"os"
	"syscall"
)

// See process_linux.go for what these are there.

func ownProcess() *syscall.SysProcAttr { return nil }

var errNoStop = errors.New("members as processes cannot be paused on this system")

func stopProcess(*os.Process) error { return errNoStop }

func killProcess(p *os.Process) error { return p.Kill() }

func continueProcess(*os.Process) error { return errNoStop }
