package replset

import (
	"os/exec"
	"runtime"
)

// keeper starts processes from one thread that lives as long as the set. Linux ends
// a process whose parent has died when the thread that started it ends, and Go ends
// a thread when a goroutine that was locked to it returns: a member must not hang on
// a thread that somebody else may end.
type keeper struct {
	jobs chan func()
	done chan struct{}
}

func newKeeper() *keeper {
	k := &keeper{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(k.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range k.jobs {
			f()
		}
	}()
	return k
}

func (k *keeper) start(c *exec.Cmd) error {
	result := make(chan error)
	k.jobs <- func() { result <- c.Start() }
	return <-result
}

// close ends the thread, after all processes have ended.
func (k *keeper) close() {
	close(k.jobs)
	<-k.done
}
