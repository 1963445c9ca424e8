//go:build linux

package spawn

import "sync/atomic"

// FloorBytes is the launcher's own peak. A command's PeakRSS cannot be lower,
// so a figure at or below it is only an upper bound.
func (l *Launcher) FloorBytes() int64 {
	floor := l.trials.floor.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept != nil {
		floor = max(floor, l.kept.floor.Load())
	}
	return floor
}

// Running lists the main processes of the commands that are running.
func (l *Launcher) Running() []int {
	pids := l.trials.running(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept != nil {
		pids = l.kept.running(pids)
	}
	return pids
}

func (s *server) running(pids []int) []int {
	select {
	case <-s.dead:
		return pids
	default:
	}
	for i := range s.page.pids {
		if pid := atomic.LoadInt32(&s.page.pids[i]); pid != 0 {
			pids = append(pids, int(pid))
		}
	}
	return pids
}
